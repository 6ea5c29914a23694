package draw

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/trace"
)

// SpaceTime draws a run: a lane for each process, time from top to bottom, and each message as an arrow from the
// place and time of its sending to those of its arrival. The time axis is stretched where there are many events and
// compressed where there are none; lower is never earlier.
func SpaceTime(
	p parley.Protocol, events []trace.Event, o reading.SpaceTimeOptions, title, subtitle string,
) scene.Scene {
	run := reading.SpaceTime(p, events, o)
	c := space{n: p.N, o: o, alive: run.Alive, at: make(map[parley.Tick]int), used: make(map[string]bool),
		signs: make(map[place][]string)}
	c.choose(run.Moments)
	c.layout(title, subtitle)
	return figure(cmp.Or(title, "Space and time"), c.picture())
}

// space is a space-time diagram under construction.
type space struct {
	n     int
	o     reading.SpaceTimeOptions
	shown []reading.Moment // the drawn moments, in order
	left  int              // the number of moments not drawn
	alive uint64           // the number of heartbeats not drawn

	titles      titles
	top         int // the position of time 0
	lane        int // from one lane to the next
	first       int // the first lane
	right       int
	bottom      int
	at          map[parley.Tick]int // the position of a time
	times       []parley.Tick
	inks        scene.Palette
	back, front sketch
	used        map[string]bool
	notes       [][]note           // by lane, from top to bottom
	signs       map[place][]string // the signs at a lane and a height
}

// place is the position of a sign.
type place struct {
	at parley.ID
	y  int
}

// note is a text next to a lane.
type note struct {
	y    int
	part scene.Part
	of   uint64 // the event
}

const (
	leastStep  = 13 // minimum pixels between two times with events
	mostStep   = 40 // the maximum for the time between them
	noteHeight = 12
	mostTimes  = 400 // maximum times with events in one picture
)

// choose selects the moments to draw: all, or the first ones if there are too many.
func (c *space) choose(all []reading.Moment) {
	seen := make(map[parley.Tick]bool)
	for _, m := range all {
		if len(seen) >= mostTimes {
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
		c.shown = append(c.shown, m)
	}
	slices.Sort(c.times)
}

// layout sets all positions.
func (c *space) layout(title, subtitle string) {
	names, axis := 0, sansWidth("time", 11)
	for id := range parley.ID(c.n) {
		names = max(names, monoWidth(c.o.Called(id), 12)+14)
	}
	for _, t := range c.times {
		axis = max(axis, monoWidth(prose.Number(uint64(max(t, 0))), 10))
	}
	c.lane = min(max((figureWidth-axis)/max(c.n, 1), names+10), 190)
	c.first = axis + 16 + names/2
	c.right = c.first + (c.n-1)*c.lane + max(c.lane-20, names/2)
	c.titles, c.top = newTitles(title, subtitle, c.right)
	c.top += 44
	y, before := c.top, parley.Tick(0)
	for i, t := range c.times {
		if i > 0 {
			gap := (t - before) / 8
			y += int(min(max(gap, leastStep), mostStep))
		}
		c.at[t], before = y, t
	}
	c.bottom = y + 22
	c.notes = make([][]note, c.n)
	var labels []string
	for _, e := range c.shown {
		if e.Message() {
			labels = append(labels, e.Says)
		}
	}
	c.inks = scene.NewPalette(labels)
}

// lead returns the room between a time and the first lane.
func (c *space) lead() int { return monoWidth(c.o.Called(0), 12)/2 + 14 }

func (c *space) x(id parley.ID) int { return c.first + int(id)*c.lane }

// picture draws the chosen moments: lanes behind, then messages, then signs and words.
func (c *space) picture() picture {
	labelled := make(map[label]bool)
	down := make([]reading.Moment, c.n) // the crash by which each process is down; zero if up
	var marks sketch
	for _, m := range c.shown {
		switch m.Op {
		case trace.Receive, trace.Lose:
			c.arrow(&m, labelled)
			continue
		case trace.Crash:
			down[m.At] = m
			c.sign(&m, "crash", marks.cross)
		case trace.Restart:
			c.gone(&down[m.At], c.at[m.Time], m.ID)
			down[m.At] = reading.Moment{}
			marks.circle("restart", c.x(m.At), c.at[m.Time])
		case trace.Request:
			c.sign(&m, "asked", marks.ring)
		case trace.Deliver:
			c.sign(&m, "deliver", marks.full)
		case trace.Indicate:
			c.sign(&m, "indicate", marks.hollow)
		default:
			marks.circle("befalls", c.x(m.At), c.at[m.Time])
		}
		marks.about(0, scene.Event(m.ID), m.ID, 0)
		c.say(m.At, c.at[m.Time], wordsOf(&m), m.ID)
	}
	for id := range down {
		c.gone(&down[id], c.bottom, 0)
	}
	c.write(&marks)
	var lines sketch
	c.ground(&lines)
	return picture{
		width: c.right, height: c.bottom + 6, legend: c.legend(),
		marks: slices.Concat(lines.marks, c.back.marks, c.front.marks, marks.marks),
	}
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

// ground draws titles, lanes with their names, and the times.
func (c *space) ground(s *sketch) {
	c.titles.draw(s)
	for id := range parley.ID(c.n) {
		x, faulty, from := c.x(id), c.o.Faulty.Has(id), len(s.marks)
		s.line("lane", x, c.top-14, x, c.bottom).Faulty = faulty
		if faulty {
			c.used["faulty"] = true
		}
		name := c.o.Called(id)
		w := monoWidth(name, 12) + 14
		s.rect("process", x-w/2, c.top-36, w, 20).Faulty = faulty
		s.parts("name", x, c.top-22, middle, toned(name, faulty))
		s.about(from, scene.Process(id), 0, 0)
	}
	last := c.top - 100
	for _, t := range c.times {
		if y := c.at[t]; y >= last+noteHeight {
			s.parts("words", c.first-c.lead(), y+3, end, inked(prose.Number(uint64(max(t, 0))), 0))
			last = y
		}
	}
	if c.left > 0 {
		s.text("note", c.first, c.bottom+4, start, "and "+prose.Count(uint64(c.left), "event", "events")+" more")
	}
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
}

// label is the text of a message at the place of its sending.
type label struct {
	from  parley.ID
	y     int
	words string
}

// arrow draws a message. Its text is written once, where it was sent.
func (c *space) arrow(m *reading.Moment, labelled map[label]bool) {
	if m.Sent.ID == 0 {
		return
	}
	ink, first := c.inks.Of(m.Says), len(c.front.marks)
	x1, y1, x2, y2 := c.x(m.Peer), c.at[m.Sent.Time], c.x(m.At), c.at[m.Time]
	if once := (label{m.Peer, y1, m.Says}); !labelled[once] {
		labelled[once] = true
		c.say(m.Peer, y1, scene.Part{Text: m.Says, Tone: "ink", Ink: ink}, m.Sent.ID)
	}
	if m.Op == trace.Lose {
		c.front.missing(x1, y1, x1+(x2-x1)/3, y1+max((y2-y1)/3, 8))
		c.used["lost"] = true
	} else {
		short := 3
		if x2 < x1 {
			short = -3
		}
		a := c.front.line("arrow", x1, y1, x2-short, y2)
		a.Arrow, a.Ink, a.Value = true, ink, m.Says
	}
	c.front.about(first, scene.Event(m.ID), m.Sent.ID, m.ID)
}

// ring draws the sign of a request, full that of a delivery, and hollow that of an indication.
func (s *sketch) ring(x, y int) { s.circle("asked", x, y) }

func (s *sketch) full(x, y int) { s.path("deliver", diamond, x, y-5) }

func (s *sketch) hollow(x, y int) { s.path("indicate", diamond, x, y-5) }

const diamond = "M%d,%d l5,5 l-5,5 l-5,-5 Z"

// say adds a text next to a lane.
func (c *space) say(id parley.ID, y int, words scene.Part, of uint64) {
	c.notes[id] = append(c.notes[id], note{y, words, of})
}

// write writes the texts next to the lanes. Texts that are too close together are moved down.
func (c *space) write(s *sketch) {
	for id, list := range c.notes {
		slices.SortStableFunc(list, func(a, b note) int { return a.y - b.y })
		room := max((c.lane-16)/monoWidth("x", 10), 4)
		y := 0
		for _, n := range list {
			y = max(n.y+3, y+noteHeight)
			if y > n.y+4*noteHeight { // too far from its event
				y -= noteHeight
				continue
			}
			n.part.Text = prose.Cut(n.part.Text, room)
			m := s.parts("says", c.x(parley.ID(id))+8, y, start, n.part)
			m.Ref, m.Since = scene.Event(n.of), n.of
		}
		c.bottom = max(c.bottom, y+10)
	}
}

// legend explains the signs in the picture.
func (c *space) legend() (out legend) {
	out.add(c.used["asked"], "asked", func(s *sketch, x, y int) { s.ring(x+13, y) })
	out.add(c.used["deliver"], "delivers", func(s *sketch, x, y int) { s.full(x+13, y) })
	out.add(c.used["indicate"], "indicates", func(s *sketch, x, y int) { s.hollow(x+13, y) })
	out.add(c.used["lost"], "lost on its way", func(s *sketch, x, y int) { s.missing(x, y, x+22, y) })
	out.add(c.used["crash"], "crashes", func(s *sketch, x, y int) { s.cross(x+13, y) })
	out.addFaulty(c.used["faulty"])
	if c.alive > 0 {
		out = append(out, legendEntry{sign: func(*sketch, int, int) {}, wide: 1,
			text: prose.Count(c.alive, "sign of life is", "signs of life are") + " not drawn"})
	}
	return out
}
