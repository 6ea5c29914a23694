package draw

import (
	"fmt"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
)

// Waiting draws what each process waits for over time. Each process has a lane, with a bar for each message that it
// holds back and for each time in which it waits itself.
type Waiting struct {
	reading.Style
	Spans []reading.WaitSpan // those that are no messages or waiting processes are not drawn
	Order reading.Sequences
	Unit  string
}

func (Waiting) values() []string { return nil }

const (
	waitHeight = 20 // of a bar
	waitPitch  = 24
	mostWaits  = 12 // maximum bars below one another in a lane
)

// waitingBar is the time in which a process holds one message, or waits.
type waitingBar struct {
	reading.WaitSpan
	row   int
	parts []reading.WaitSpan // what it waits for, one after the other
}

// waits reports whether a span is drawn.
func waits(s reading.WaitSpan) bool {
	return s.Kind == parley.HeldMessage || s.Kind == parley.WaitingProcess
}

// queues is the picture under construction.
type queues struct {
	Waiting
	axis axis
	used map[string]bool
	inks scene.Palette
}

// waitingBars returns the bars of a process, in rows without overlap. Spans of one message that follow one another are
// one bar.
func (d Waiting) waitingBars(id parley.ID) (bars []waitingBar, rows int) {
	for _, s := range d.Spans {
		if s.At != id || !waits(s) {
			continue
		}
		joined := false
		for i := range bars {
			b := &bars[i]
			same := s.Kind == parley.WaitingProcess || b.From == s.From && b.Value == s.Value
			if b.Until == s.Since && b.Kind == s.Kind && same {
				b.parts, b.Until, b.Ends, joined = append(b.parts, s), s.Until, s.Ends, true
				break
			}
		}
		if !joined {
			bars = append(bars, waitingBar{WaitSpan: s, parts: []reading.WaitSpan{s}})
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

func (d Waiting) picture(inks scene.Palette, _ int) picture {
	names, shown := 0, min(d.processes(), mostRows)
	for id := range parley.ID(shown) {
		names = max(names, wide("name", d.Called(id))+14)
	}
	q := queues{Waiting: d, used: make(map[string]bool), inks: inks,
		axis: axis{to: d.end(), left: names + 12, width: figureWidth - names - 24}}
	var ground, bars sketch
	ground.text("head", 0, 16, start, "What each process waits for")
	y := 30
	for id := range parley.ID(shown) {
		list, rows := d.waitingBars(id)
		rows = min(max(rows, 1), mostWaits)
		first, name, high := len(ground.marks), d.Called(id), rows*waitPitch+8
		w := wide("name", name) + 14
		ground.process(w/2, y+high/2, name, d.Faulty.Has(id))
		ground.about(first, scene.Process(id), 0, 0)
		ground.line("axis", q.axis.left, y+high, q.axis.left+q.axis.width, y+high)
		for _, b := range list {
			if b.row < mostWaits {
				q.bar(&bars, b, y+4+b.row*waitPitch)
			} else {
				q.used["more"] = true
			}
		}
		y += high
	}
	q.axis.draw(&ground, 28, y+2, d.Unit)
	return picture{width: figureWidth, height: y + 26, legend: q.legend(), marks: append(ground.marks, bars.marks...)}
}

// end returns the time at which the picture ends: some time after the last change.
func (d Waiting) end() parley.Tick {
	last := parley.Tick(1)
	for _, s := range d.Spans {
		if waits(s) {
			last = max(last, s.Begins, s.Ends)
		}
	}
	return last + last/7
}

// processes returns the number of processes.
func (d Waiting) processes() (n int) {
	for _, s := range d.Spans {
		n = max(n, int(s.At)+1)
	}
	return max(n, len(d.Order.Rows))
}

// bar draws one bar, with a line where it begins to wait for something else.
func (q *queues) bar(s *sketch, b waitingBar, y int) {
	until := q.axis.to
	if b.Until > 0 {
		until = b.Ends
	}
	x, first := q.axis.at(b.Begins), len(s.marks)
	w := max(q.axis.at(until)-x, 3)
	role, text := "cell", b.Value
	if b.Kind == parley.WaitingProcess {
		role = "stage"
		q.used["process"] = true
	} else {
		q.used["held"] = true
	}
	m := s.rect(role, x, y, w, waitHeight)
	if m.Faulty = b.Kind == parley.WaitingProcess; !m.Faulty {
		m.Ink = q.ink(b)
	}
	m.Value = b.Value
	for i, part := range b.parts {
		from, to := q.axis.at(part.Begins), x+w
		if i > 0 && from > x+2 && from < to-2 {
			s.line("axis", from, y+1, from, y+waitHeight-1)
		}
		if i+1 < len(b.parts) {
			to = q.axis.at(b.parts[i+1].Begins)
		}
		if b.Kind == parley.WaitingProcess && wide("words", part.Waits)+8 <= to-from {
			s.parts("words", from+5, y+waitHeight/2+4, start, toned(part.Waits, false))
		}
	}
	if b.Kind == parley.HeldMessage {
		if why := text + ": waits for " + b.Waits; len(b.parts) == 1 && wide("words", why)+10 <= w {
			text = why
		}
		if wide("words", text)+8 <= w {
			s.parts("words", x+5, y+waitHeight/2+4, start, toned(text, false))
		}
	}
	s.tip(first, q.words(b))
	s.about(first, scene.Event(b.Since), b.Since, b.Until)
}

// words describes a bar.
func (q *queues) words(b waitingBar) string {
	text := q.Called(b.At) + " waits"
	if b.Kind == parley.HeldMessage {
		text = fmt.Sprintf("%s holds back %s of %s", q.Called(b.At), b.Value, q.Called(b.From))
	}
	text += " from " + clockTime(b.Begins)
	if b.Until > 0 {
		text += " to " + clockTime(b.Ends)
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

// ink returns the color of a message, as in the picture of the order.
func (q *queues) ink(b waitingBar) scene.Ink {
	r := rank{Order: Order{Style: q.Style, Sequences: q.Order}, inks: q.inks}
	for i, item := range q.Order.Items {
		if item.Delivered && item.From == b.From && item.Text == b.Value {
			return r.ink(i)
		}
	}
	return 0
}

func (q *queues) legend() (out legend) {
	out.add(q.used["held"], "a message that is held back", box("cell"))
	out.add(q.used["process"], "the process waits, and holds its locks", func(s *sketch, x, y int) {
		s.rect("stage", x, y-7, 26, 14).Faulty = true
	})
	if q.used["more"] {
		out.remark(fmt.Sprintf("Of more than %d messages that wait at one process, the first are drawn.", mostWaits))
	}
	return out
}
