// Package queues draws what processes wait for over time, such as the messages that they hold back.
package queues

import (
	"fmt"
	"strconv"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scale"
	"parley/internal/draw/scene"
)

// Queues are what processes wait for in a run: messages that they hold back, and what they wait for themselves.
type Queues struct {
	reading.Style
	N     int
	Spans []reading.WaitSpan
	Order reading.Sequences // for the colors of messages
	Unit  string            // of time
	// Changed is the time of the last change that a picture of the same run shows, and Over that of the last event.
	Changed, Over parley.Tick
}

// Empty reports whether there is nothing to draw.
func (d Queues) Empty() bool {
	for _, s := range d.Spans {
		if drawn(s) {
			return false
		}
	}
	return true
}

const (
	width     = 952 // of the picture without its margins, in pixels
	margin    = 24
	barHeight = 20
	pitch     = 24
	mostBars  = 12 // maximum bars below one another in a lane
	mostLanes = 32
	top       = 28
)

// bar is the time in which a process holds one message, or waits.
type bar struct {
	reading.WaitSpan
	row   int
	parts []reading.WaitSpan // what it waits for, one after the other
}

// drawn reports whether a span is drawn.
func drawn(s reading.WaitSpan) bool {
	return s.Kind == parley.HeldMessage || s.Kind == parley.WaitingProcess
}

// follows reports whether a span continues a bar: the process waits for something else, with the same message.
func (b *bar) follows(s reading.WaitSpan) bool {
	return b.Until == s.Since && b.Kind == s.Kind && b.Name == s.Name &&
		(s.Kind == parley.WaitingProcess || b.From == s.From && b.Value == s.Value)
}

// bars returns the bars of a process, in rows without overlap.
func (d Queues) bars(id parley.ID) (bars []bar, rows int) {
	for _, s := range d.Spans {
		if s.At != id || !drawn(s) {
			continue
		}
		joined := false
		for i := range bars {
			if b := &bars[i]; b.follows(s) {
				b.parts, b.Until, b.Ends, joined = append(b.parts, s), s.Until, s.Ends, true
				break
			}
		}
		if !joined {
			bars = append(bars, bar{WaitSpan: s, parts: []reading.WaitSpan{s}})
		}
	}
	var free []uint64 // by row: the event that ends its last bar; 0: none does
	for i := range bars {
		row := 0
		for row < len(free) && (free[row] == 0 || free[row] > bars[i].Since) {
			row++
		}
		if row == len(free) {
			free = append(free, 0)
		}
		free[row], bars[i].row = bars[i].Until, row
	}
	return bars, len(free)
}

// end returns the time at which the picture ends: some time after the last change, or with the run if that is near.
func (d Queues) end() parley.Tick {
	last := max(d.Changed, 1)
	for _, s := range d.Spans {
		if drawn(s) {
			last = max(last, s.Begins, s.Ends)
		}
	}
	if d.Over <= last*7/5 {
		return max(last+last/7, d.Over)
	}
	return last + last/7
}

// sketch is the picture under construction.
type sketch struct {
	Queues
	axis  scale.Axis
	marks []scene.Mark
	used  map[string]bool
}

func (s *sketch) add(m scene.Mark) *scene.Mark {
	s.marks = append(s.marks, m)
	return &s.marks[len(s.marks)-1]
}

func (s *sketch) text(role string, x, y int, align, text string) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Text, Role: role, X: x, Y: y, Align: align, Text: text})
}

func (s *sketch) line(role string, x1, y1, x2, y2 int) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Line, Role: role, X: x1, Y: y1, W: x2 - x1, H: y2 - y1})
}

func (s *sketch) rect(role string, x, y, w, h int) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Rect, Role: role, X: x, Y: y, W: w, H: h})
}

// Scene draws a lane for each process, with a bar for each message that it holds back and for each time in which it
// waits itself.
func (d Queues) Scene() scene.Scene {
	const title = "What each process waits for"
	names, shown := 0, min(d.N, mostLanes)
	for id := range parley.ID(shown) {
		names = max(names, scene.Wide("name", d.Called(id))+14)
	}
	s := sketch{Queues: d, used: make(map[string]bool),
		axis: scale.Axis{To: d.end(), Left: names + 12, Width: width - names - 24}}
	heights, low := make([]int, shown), top+2
	bars := make([][]bar, shown)
	for id := range bars {
		var rows int
		bars[id], rows = d.bars(parley.ID(id))
		heights[id] = min(max(rows, 1), mostBars)*pitch + 8
		low += heights[id]
	}
	s.text("head", 0, 16, "", title)
	s.scale(low + 2)
	y := top + 2
	for id := range bars {
		s.lane(parley.ID(id), y, heights[id])
		for _, b := range bars[id] {
			if b.row < mostBars {
				s.bar(b, y+4+b.row*pitch)
			} else {
				s.used["more"] = true
			}
		}
		y += heights[id]
	}
	low = s.legend(low + 44)
	return scene.Scene{
		Title: title, Width: width + 2*margin, Height: low + 2*margin,
		Marks: []scene.Mark{{Shape: scene.Group, X: margin, Y: margin, Marks: s.marks}},
	}
}

// scale draws the scale of time.
func (s *sketch) scale(low int) {
	for _, t := range s.axis.Ticks(scene.Wide("words", prose.Number(uint64(s.axis.To))) + 24) {
		x := s.axis.At(t)
		s.line("guide", x, top, x, low+4).Value = strconv.FormatInt(int64(t), 10)
		s.text("words", x, low+17, "middle", prose.Number(uint64(t)))
	}
	s.line("axis", s.axis.Left, low, s.axis.Left+s.axis.Width, low)
	s.text("note", s.axis.Left-6-scene.Wide("words", "0")/2, low+17, "end", s.Unit)
}

// lane draws the name of a process, and the line below its bars.
func (s *sketch) lane(id parley.ID, y, height int) {
	name, faulty := s.Called(id), s.Faulty.Has(id)
	w := scene.Wide("name", name) + 14
	box := s.rect("process", 0, y+height/2-10, w, 20)
	box.Faulty, box.Ref = faulty, scene.Process(id)
	tone := "text"
	if faulty {
		tone = "fault"
	}
	s.add(scene.Mark{Shape: scene.Text, Role: "name", X: w / 2, Y: y + height/2 + 4, Align: "middle",
		Parts: []scene.Part{{Text: name, Tone: tone}}, Ref: scene.Process(id)})
	s.line("guide", s.axis.Left, y+height, s.axis.Left+s.axis.Width, y+height)
}

// bar draws one bar, with a line where it begins to wait for something else.
func (s *sketch) bar(b bar, y int) {
	until := s.axis.To
	if b.Until > 0 {
		until = b.Ends
	}
	x, first := s.axis.At(b.Begins), len(s.marks)
	w := max(s.axis.At(until)-x, 3)
	held := b.Kind == parley.HeldMessage
	role := "stage"
	if held {
		role = "cell"
	}
	s.used[role] = true
	if b.Until == 0 {
		s.used["on"] = true
		s.line("light", x+w, y+barHeight/2, x+w+10, y+barHeight/2).Arrow = true
	}
	m := s.rect(role, x, y, w, barHeight)
	m.Value, m.Faulty = b.Value, !held
	if held {
		m.Ink = s.ink(b)
		text := b.Value
		if why := text + ": waits for " + b.Waits; len(b.parts) == 1 && scene.Wide("words", why)+10 <= w {
			text = why
		}
		s.label(text, x, y, w)
	}
	for i, part := range b.parts {
		from, to := s.axis.At(part.Begins), x+w
		if i > 0 && from > x+2 && from < to-2 {
			s.line("axis", from, y+1, from, y+barHeight-1)
		}
		if i+1 < len(b.parts) {
			to = s.axis.At(b.parts[i+1].Begins)
		}
		if !held {
			s.label(part.Waits, from, y, to-from)
		}
	}
	for i := first; i < len(s.marks); i++ {
		m := &s.marks[i]
		m.Tip, m.Ref, m.Since, m.Until = s.words(b), scene.Event(b.Since), b.Since, b.Until
	}
}

// label writes a text into a bar if it fits.
func (s *sketch) label(text string, x, y, w int) {
	if scene.Wide("words", text)+8 <= w {
		s.text("words", x+5, y+barHeight/2+4, "", text)
	}
}

// words describes a bar.
func (s *sketch) words(b bar) string {
	text := s.Called(b.At) + " waits"
	if b.Kind == parley.HeldMessage {
		text = fmt.Sprintf("%s holds back %s of %s", s.Called(b.At), b.Value, s.Called(b.From))
	}
	text += " from " + prose.Number(uint64(b.Begins))
	if b.Until > 0 {
		text += " to " + prose.Number(uint64(b.Ends))
	} else {
		text += " to the end of the run, at " + prose.Number(uint64(s.Over))
	}
	for i, part := range b.parts {
		if i == 3 {
			return text + "; " + prose.Count(uint64(len(b.parts)-i), "more reason", "more reasons")
		}
		if part.Waits != "" {
			text += "; it waits for " + part.Waits
		}
	}
	return text
}

// ink returns the color of a message, as in the picture of the order. A message that no process delivers has none.
func (s *sketch) ink(b bar) scene.Ink {
	nth := 0
	for _, item := range s.Order.Items {
		if item.Delivered && item.From == b.From && item.Text == b.Value {
			return scene.Ink(1 + nth%scene.Inks)
		}
		if item.Delivered {
			nth++
		}
	}
	return 0
}

// legend draws the signs that are used, and returns the height below them.
func (s *sketch) legend(y int) int {
	x := 0
	sign := func(role, text string) {
		if s.used[role] {
			s.rect(role, x, y-7, 26, 14).Faulty = role == "stage"
			s.text("note", x+33, y+4, "", text)
			x += 33 + scene.Wide("note", text) + 18
		}
	}
	sign("cell", "a message that is held back")
	sign("stage", "the process waits, and holds its locks")
	if s.used["on"] {
		s.line("light", x, y, x+26, y).Arrow = true
		s.text("note", x+33, y+4, "", "to the end of the run, at "+prose.Number(uint64(s.Over)))
	}
	if s.used["more"] {
		y += 20
		s.text("note", 0, y+4, "",
			fmt.Sprintf("Of more than %d messages that wait at a process, the first are drawn.", mostBars))
	}
	return y
}
