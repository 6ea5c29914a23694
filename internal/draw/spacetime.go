package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/trace"
)

// SpaceTime is a space-time diagram: a lane for each process, time from top to bottom, and each message as an arrow
// from the place and time of its sending to those of its arrival. The time axis is stretched where there are many
// events and compressed where there are none; lower is never earlier.
type SpaceTime struct {
	reading.SpaceTimeOptions
	Protocol parley.Protocol
	Moments  func() reading.Moments // of the run; it is called twice
	// Unit is the unit of time; ticks if empty.
	Unit string
}

func (d SpaceTime) values() []string { return d.Moments().Labels() }

func (d SpaceTime) picture(inks scene.Palette, _ int) picture {
	run := d.Moments()
	c := space{SpaceTime: d, lanes: min(d.Protocol.N, mostLanes), alive: run.Alive, inks: inks,
		at: make(map[parley.Tick]int), used: make(map[string]bool), signs: make(map[place][]string),
		signed: make(map[parley.Tick]parley.Set)}
	all := slices.Concat(run.Moments, run.Unarrived)
	slices.SortStableFunc(all, func(a, b reading.Moment) int { return cmp.Compare(a.ID, b.ID) })
	c.choose(all)
	c.columns()
	c.note()
	c.rows()
	return c.picture()
}

// space is a space-time diagram under construction.
type space struct {
	SpaceTime
	shown []reading.Moment // the drawn moments, in order
	lanes int              // the number of drawn processes
	left  int              // the number of moments not drawn
	alive uint64           // the number of heartbeats not drawn

	lane        int // from one lane to the next
	first       int // the first lane
	right       int
	bottom      int
	at          map[parley.Tick]int // the position of a time
	times       []parley.Tick
	inks        scene.Palette
	back, front sketch
	used        map[string]bool
	notes       []map[parley.Tick][]note   // by lane and time
	signs       map[place][]string         // the signs at a lane and a height
	signed      map[parley.Tick]parley.Set // the processes that have a sign at a time
	brief       bool                       // some messages are named only by their kind
	bare        bool                       // some texts are left out
}

// place is the position of a sign.
type place struct {
	at parley.ID
	y  int
}

// note is a text next to a lane, on one or more lines.
type note struct {
	lines []string
	part  scene.Part
	of    uint64 // the event
	tip   string
}

const (
	leastStep  = 15 // minimum pixels between two times with events
	mostStep   = 40 // the maximum for the time between them
	noteHeight = 14
	noteLines  = 3 // maximum lines of a note
	// messageLines is the maximum for a message, which otherwise is named by its kind.
	messageLines = 2
	mostTimes    = 150 // maximum times with events in one picture
	mostLanes    = 20  // maximum processes in one picture
	spaceTop     = 72  // the position of the first time
)

// choose selects the moments to draw: all, or the first ones if there are too many.
func (c *space) choose(all []reading.Moment) {
	seen := make(map[parley.Tick]bool)
	for _, m := range all {
		switch hidden := parley.ID(c.lanes); {
		case m.At >= hidden || m.Message() && m.Peer >= hidden:
			continue
		case len(seen) >= mostTimes:
			c.left++
			continue
		}
		times := []parley.Tick{m.Time}
		if m.Sent.ID != 0 {
			times = append(times, m.Sent.Time)
		}
		for _, t := range times {
			if !seen[t] {
				seen[t] = true
				c.times = append(c.times, t)
			}
		}
		if !m.Message() {
			at := c.signed[m.Time]
			at.Add(m.At)
			c.signed[m.Time] = at
		}
		c.shown = append(c.shown, m)
	}
	slices.Sort(c.times)
}

// unit returns the unit of time.
func (d SpaceTime) unit() string { return cmp.Or(d.Unit, "ticks") }

// columns sets the places of the lanes.
func (c *space) columns() {
	n := c.lanes
	names, axis := 0, wide("note", c.unit())
	for id := range parley.ID(n) {
		names = max(names, wide("name", c.Called(id))+14)
	}
	for _, t := range c.times {
		axis = max(axis, wide("words", clockTime(t)))
	}
	c.lane = min(max((figureWidth-axis-16)/max(n, 1), names+10), 300)
	c.first = axis + 16 + names/2
	c.right = c.first + (n-1)*c.lane + max(c.lane-10, names/2)
}

// clockTime formats a time.
func clockTime(t parley.Tick) string { return prose.Number(uint64(max(t, 0))) }

func (c *space) x(id parley.ID) int { return c.first + int(id)*c.lane }

// note puts what happens into words. A message has its text once, where it was sent.
func (c *space) note() {
	c.notes = make([]map[parley.Tick][]note, c.lanes)
	type label struct {
		from  parley.ID
		at    parley.Tick
		words string
	}
	labelled := make(map[label]bool)
	for i := range c.shown {
		m := &c.shown[i]
		if !m.Message() {
			part := wordsOf(m)
			if !c.fits(part.Text) {
				c.bare = true
				continue
			}
			c.say(m.At, m.Time, note{prose.Lines(part.Text, c.room()), part, m.ID, c.tip(m)})
			continue
		}
		once := label{m.Peer, m.Sent.Time, m.Says}
		if m.Sent.ID == 0 || labelled[once] {
			continue
		}
		labelled[once] = true
		part, ink := scene.Part{Text: m.Says, Tone: "ink"}, c.inks.Of(m.Says)
		part.Ink = ink
		lines := prose.Lines(part.Text, c.room())
		if len(lines) > messageLines || !c.fits(part.Text) {
			lines = []string{c.kind(m)}
			c.brief = true
		}
		if !c.fits(lines[0]) {
			c.bare = true
			continue
		}
		c.say(m.Peer, m.Sent.Time, note{lines, part, m.Sent.ID, c.Called(m.Peer) + " sends " + m.Says})
	}
	for _, lane := range c.notes {
		for _, list := range lane { // order: each list by itself
			slices.SortStableFunc(list, func(a, b note) int { return cmp.Compare(a.of, b.of) })
		}
	}
}

// room returns how many characters have room between two lanes.
func (c *space) room() int { return max(columns("says", c.lane-30), 4) }

// fits reports whether each word of a text has room on a line.
func (c *space) fits(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if prose.Width(word) > c.room() {
			return false
		}
	}
	return text != ""
}

// kind returns the name of a message's kind, or the first word about it if several layers use the kind.
func (c *space) kind(m *reading.Moment) string {
	if k := int(m.Msg.Kind); k < len(c.Protocol.Kinds) && !strings.Contains(c.Protocol.Kinds[k], "/") {
		return c.Protocol.Kinds[k]
	}
	word, _, _ := strings.Cut(m.Says, " ")
	return word
}

func (c *space) say(id parley.ID, at parley.Tick, n note) {
	if len(n.lines) > noteLines {
		c.bare = true
		n.lines = n.lines[:noteLines]
		n.lines[noteLines-1] = prose.Cut(n.lines[noteLines-1]+" "+prose.Ellipsis, c.room())
	}
	if c.notes[id] == nil {
		c.notes[id] = make(map[parley.Tick][]note)
	}
	c.notes[id][at] = append(c.notes[id][at], n)
}

// rows sets the position of each time, so that the texts of a lane have room below one another.
func (c *space) rows() {
	y, before := spaceTop, parley.Tick(0)
	used := make([]int, c.lanes) // by lane: the end of the text so far
	for i, t := range c.times {
		if i > 0 {
			y += int(min(max((t-before)/8, leastStep), mostStep))
		}
		for id := range used {
			if len(c.notes[id][t]) > 0 {
				y = max(y, used[id]+noteHeight)
			}
		}
		c.at[t], before = y, t
		for id := range used {
			for _, n := range c.notes[id][t] {
				used[id] = max(used[id], y-noteHeight) + noteHeight*len(n.lines)
			}
		}
	}
	c.bottom = max(y, slices.Max(append(used, 0))) + 22
}

// picture draws the chosen moments: lanes behind, then messages, then signs and words.
func (c *space) picture() picture {
	down := make([]reading.Moment, c.lanes) // the crash by which each process is down; zero if up
	var marks sketch
	for i := range c.shown {
		m := &c.shown[i]
		if m.Message() {
			c.arrow(m)
			continue
		}
		first := len(marks.marks)
		switch m.Op {
		case trace.Crash:
			down[m.At] = *m
			c.sign(m, "crash", marks.cross)
		case trace.Restart:
			c.gone(&down[m.At], c.at[m.Time], m.ID)
			down[m.At] = reading.Moment{}
			c.sign(m, "restart", marks.dot)
		case trace.Request:
			c.sign(m, "asked", marks.ring)
		case trace.Deliver:
			c.sign(m, "deliver", marks.full)
		case trace.Indicate:
			c.sign(m, "indicate", marks.hollow)
		default:
			c.sign(m, "befalls", marks.faint)
		}
		marks.tip(first, c.tip(m))
		marks.about(first, scene.Event(m.ID), m.ID, 0)
	}
	for id := range down {
		c.gone(&down[id], c.bottom, 0)
	}
	var words, lines sketch
	c.write(&words)
	c.ground(&lines)
	return picture{
		width: c.right, height: c.bottom + 6, legend: c.legend(),
		marks: slices.Concat(lines.marks, c.back.marks, c.front.marks, words.marks, marks.marks),
	}
}

// tip describes an event of a process.
func (c *space) tip(m *reading.Moment) string {
	return fmt.Sprintf("%s %s at %s", c.Called(m.At), m.Says, clockTime(m.Time))
}

// wordsOf returns the text next to a sign.
func wordsOf(m *reading.Moment) scene.Part {
	switch m.Op {
	case trace.Crash:
		return toned(m.Says, true)
	case trace.Deliver:
		return toned(strings.TrimPrefix(m.Says, "delivers "), false) // the sign says the rest
	case trace.Request, trace.Restart:
		return toned(m.Says, false)
	}
	return inked(m.Says, 0)
}

// sign draws a sign of a process at a height, unless it has that sign there already: on the lane, or to the left of
// existing signs.
func (c *space) sign(m *reading.Moment, kind string, draw func(x, y int)) {
	at := place{m.At, c.at[m.Time]}
	if !slices.Contains(c.signs[at], kind) {
		draw(c.x(m.At)-12*len(c.signs[at]), at.y)
		c.signs[at] = append(c.signs[at], kind)
	}
	c.used[kind] = true
}

// ground draws lanes with their names, and the times.
func (c *space) ground(s *sketch) {
	for id := range parley.ID(c.lanes) {
		x, faulty, from := c.x(id), c.Faulty.Has(id), len(s.marks)
		s.line("lane", x, spaceTop-14, x, c.bottom).Faulty = faulty
		if faulty {
			c.used["faulty"] = true
		}
		s.process(x, spaceTop-26, c.Called(id), faulty)
		s.about(from, scene.Process(id), 0, 0)
	}
	s.text("head", 0, 16, start, "Messages and other events")
	names := wide("name", c.Called(0))/2 + 14
	s.text("note", c.first-names, spaceTop-22, end, c.unit())
	for _, t := range c.times {
		s.parts("words", c.first-names, c.at[t]+4, end, inked(clockTime(t), 0))
	}
}

// process draws the name of a process in a box around a point.
func (s *sketch) process(x, y int, name string, faulty bool) {
	w := wide("name", name) + 14
	s.rect("process", x-w/2, y-10, w, 20).Faulty = faulty
	s.parts("name", x, y+4, middle, toned(name, faulty))
}

// gone erases the lane of a process that is down since a crash, up to a height.
func (c *space) gone(crash *reading.Moment, to int, until uint64) {
	from, x, first := c.at[crash.Time], c.x(crash.At), len(c.back.marks)
	if crash.ID == 0 {
		return
	}
	c.back.line("gap", x, from, x, to)
	c.back.line("down", x, from, x, to)
	c.back.about(first, scene.Process(crash.At), crash.ID, until)
	c.used["down"] = true
}

// arrow draws a message.
func (c *space) arrow(m *reading.Moment) {
	if m.Sent.ID == 0 {
		return
	}
	first := len(c.front.marks)
	right, until, short := 1, m.ID, 3 // the distance from the lane, or from the sign in it
	if m.At < m.Peer {
		right = -1
	}
	if at := c.signed[m.Time]; at.Has(m.At) {
		short = 7
	}
	x1, y1, x2, y2 := c.x(m.Peer), c.at[m.Sent.Time], c.x(m.At), c.at[m.Time]
	a := &scene.Mark{}
	switch {
	case m.Down:
		if fell, drawn := c.at[m.Fell]; drawn {
			y2 = fell
		}
		c.front.stopped("missing", "missed", x1, y1, x2-9*right, max(y2, y1+8))
		c.used["missed"], until = true, 0
	case m.Omitted:
		a = c.front.omitted("arrow", x1, y1, x2-(short+1)*right, y2)
		c.used["omitted"] = true
	case m.Op == trace.Lose:
		c.front.missing(x1, y1, x2-16*right, max(y2, y1+8))
		c.used["lost"] = true
	default:
		a = c.front.line("arrow", x1, y1, x2-short*right, y2)
		a.Arrow = true
	}
	a.Ink, a.Value = c.inks.Of(m.Says), m.Says
	c.front.tip(first, messageTip(c.Style, m))
	c.front.about(first, scene.Event(m.ID), m.Sent.ID, until)
}

// messageTip describes a message on its way.
func messageTip(s reading.Style, m *reading.Moment) string {
	text := fmt.Sprintf("%s to %s: %s; sent at %s, ", s.Called(m.Peer), s.Called(m.At), m.Says, clockTime(m.Sent.Time))
	switch {
	case m.Down:
		return text + "missed: " + s.Called(m.At) + " is down"
	case m.Omitted:
		return text + "omitted by " + s.Called(m.At) + " at " + clockTime(m.Time)
	case m.Op == trace.Lose:
		return text + "lost"
	}
	return text + "arrives at " + clockTime(m.Time)
}

// fates explains the messages that do not arrive, in pictures with a scale of time.
func fates(used map[string]bool) (out legend) {
	out.add(used["lost"], "lost message", func(s *sketch, x, y int) { s.missing(x, y, x+22, y) })
	out.add(used["missed"], "missed message: its receiver is down", func(s *sketch, x, y int) {
		s.stopped("missing", "missed", x, y, x+24, y)
	})
	out.add(used["omitted"], "omitted by its faulty receiver", func(s *sketch, x, y int) {
		s.omitted("light", x, y, x+22, y)
	})
	return out
}

// hiddenProcesses says which processes are not drawn, if there are more than are shown.
func hiddenProcesses(s reading.Style, shown, n int) string {
	if shown >= n {
		return ""
	}
	return fmt.Sprintf("%s to %s and their messages are not drawn; a trace has all of them.",
		s.Called(parley.ID(shown)), s.Called(parley.ID(n-1)))
}

// ring draws the sign of a request, full that of a delivery, hollow that of an indication, dot that of a restart, and
// faint that of anything else that happens to a process.
func (s *sketch) ring(x, y int) { s.circle("asked", x, y) }

func (s *sketch) full(x, y int) { s.path("deliver", diamond, x, y-5) }

func (s *sketch) hollow(x, y int) { s.path("indicate", diamond, x, y-5) }

func (s *sketch) dot(x, y int) { s.circle("restart", x, y) }

func (s *sketch) faint(x, y int) { s.circle("befalls", x, y) }

const diamond = "M%d,%d l5,5 l-5,5 l-5,-5 Z"

// write writes the texts next to the lanes.
func (c *space) write(s *sketch) {
	for id, lane := range c.notes {
		for _, t := range c.times {
			y := c.at[t] + 4
			for _, n := range lane[t] {
				first, x := len(s.marks), c.x(parley.ID(id))+17
				for _, line := range n.lines {
					n.part.Text = line
					s.rect("plate", x-1, y-noteHeight+4, wide("says", line)+3, noteHeight)
					s.parts("says", x, y, start, n.part).Tip = n.tip
					y += noteHeight
				}
				s.about(first, scene.Event(n.of), n.of, 0)
			}
		}
	}
}

// legend explains the signs in the picture.
func (c *space) legend() (out legend) {
	out.add(c.used["asked"], "request", func(s *sketch, x, y int) { s.ring(x+13, y) })
	out.add(c.used["deliver"], "delivery or decision", func(s *sketch, x, y int) { s.full(x+13, y) })
	out.add(c.used["indicate"], "indication", func(s *sketch, x, y int) { s.hollow(x+13, y) })
	out.add(c.used["befalls"], "pause, resume, or notice of a failure", func(s *sketch, x, y int) { s.faint(x+13, y) })
	out = append(out, fates(c.used)...)
	out.add(c.used["crash"], "crash", func(s *sketch, x, y int) { s.cross(x+13, y) })
	out.add(c.used["restart"], "restart", func(s *sketch, x, y int) { s.dot(x+13, y) })
	out.add(c.used["down"], "down", func(s *sketch, x, y int) { s.line("down", x, y, x+26, y) })
	out.addFaulty(c.used["faulty"])
	out.remark("Time in " + c.unit() + ", from top to bottom: every time at which something happens has a line.")
	if c.brief {
		out.remark("Long messages are named by their kind: point at an arrow to read all of it.")
	}
	if c.bare {
		out.remark("Texts without room are left out or end in …: point at a sign or an arrow to read them.")
	}
	if c.alive > 0 {
		out.remark(prose.Count(c.alive, "sign of life is", "signs of life are") + " not drawn.")
	}
	out.remark(hiddenProcesses(c.Style, c.lanes, c.Protocol.N))
	if c.left > 0 {
		out.remark(prose.Count(uint64(c.left), "later event is", "later events are") +
			" not drawn; a trace has all of them.")
	}
	return out
}
