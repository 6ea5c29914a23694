package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/trace"
)

// SpaceTimeSVG draws a run as a picture: a lane for each process, time going down, and
// each message as an arrow from where and when it was sent to where and when it came.
// The time axis is stretched where much happens and pressed together where nothing
// does; what is lower is never earlier.
func SpaceTimeSVG(p parley.Protocol, events []trace.Event, o reading.SpaceTimeOptions, title, subtitle string) string {
	run := reading.SpaceTime(p, events, o)
	c := space{n: p.N, o: o, alive: run.Alive, at: make(map[parley.Tick]int), used: make(map[string]bool),
		signs: make(map[place][]string)}
	c.choose(run.Moments)
	c.layout(title, subtitle)
	return figure(cmp.Or(title, "Space and time"), c.picture())
}

// space is a picture of space and time in the making.
type space struct {
	n     int
	o     reading.SpaceTimeOptions
	shown []reading.Moment // what is drawn, in order
	left  int              // how much is not drawn
	alive uint64           // signs of life that are not

	title, sub  []string // folded
	top         int      // where time 0 is
	lane        int      // from one lane to the next
	first       int      // the first lane
	right       int
	bottom      int
	at          map[parley.Tick]int // where a time is
	times       []parley.Tick
	inks        palette
	back, front svg
	used        map[string]bool
	notes       [][]note           // by lane, from top to bottom
	signs       map[place][]string // what there is at a lane and a height
}

// place is where a sign stands.
type place struct {
	at parley.ID
	y  int
}

// note is a text beside a lane.
type note struct {
	y      int
	text   string
	colour string
}

const (
	leastStep  = 13 // pixels between two times at which something happens
	mostStep   = 40 // and the most that the time between them takes
	noteHeight = 12
	mostTimes  = 400 // times at which something happens, in one picture
)

// choose picks the moments that are drawn: all, or those before there are too many.
func (c *space) choose(all []reading.Moment) {
	most := c.o.Most
	if most <= 0 {
		most = mostTimes
	}
	seen := make(map[parley.Tick]bool)
	for _, m := range all {
		if len(seen) >= most {
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

// layout sets where everything stands.
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
	if title != "" {
		c.title = prose.Lines(title, c.right/sansWidth("x", 18))
		c.top += 24*len(c.title) + 4
	}
	if subtitle != "" {
		c.sub = prose.Lines(subtitle, c.right/sansWidth("x", 13))
		c.top += 18*len(c.sub) + 8
	}
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
	c.inks = newPalette(labels)
}

// lead is the room between a time and the first lane.
func (c *space) lead() int { return monoWidth(c.o.Called(0), 12)/2 + 14 }

func (c *space) x(id parley.ID) int { return c.first + int(id)*c.lane }

// picture draws what was chosen: lanes behind, then messages, then marks and words.
func (c *space) picture() picture {
	labelled := make(map[note]bool)
	down := make([]int, c.n) // since when a process is down, 0 if it is up
	var marks svg
	for _, e := range c.shown {
		y := c.at[e.Time]
		switch e.Op {
		case trace.Receive, trace.Lose:
			c.arrow(&e, labelled)
		case trace.Crash:
			down[e.At] = y
			c.sign(e.At, y, "crash", marks.cross)
			c.say(e.At, y, e.Says, inkFault)
		case trace.Restart:
			c.gone(e.At, down[e.At], y)
			down[e.At] = 0
			c.mark(&marks, e.At, y, inkText, e.Says)
		case trace.Request:
			c.sign(e.At, y, "asked", marks.ring)
			c.say(e.At, y, e.Says, inkText)
		case trace.Deliver:
			c.sign(e.At, y, "deliver", marks.full)
			c.say(e.At, y, strings.TrimPrefix(e.Says, "delivers "), inkText) // as the sign says
		case trace.Indicate:
			c.sign(e.At, y, "indicate", marks.hollow)
			c.say(e.At, y, e.Says, inkFaint)
		default:
			c.mark(&marks, e.At, y, inkFaint, e.Says)
		}
	}
	for id, since := range down {
		if since > 0 {
			c.gone(parley.ID(id), since, c.bottom)
		}
	}
	c.write(&marks)
	var lines svg
	c.ground(&lines)
	body := lines.b.String() + c.back.b.String() + c.front.b.String() + marks.b.String()
	var colours []string
	for colour := range c.used { // order: sorted below
		if colour[0] == '#' {
			colours = append(colours, colour)
		}
	}
	slices.Sort(colours)
	return picture{
		width: c.right, height: c.bottom + 6, colours: colours, legend: c.legend(),
		draw: func(s *svg) { s.b.WriteString(body) },
	}
}

// sign draws a sign of a process at a height, unless it has that sign there already:
// on the lane, or to the left of those that are there.
func (c *space) sign(id parley.ID, y int, kind string, draw func(x, y int)) {
	at := place{id, y}
	if !slices.Contains(c.signs[at], kind) {
		draw(c.x(id)-12*len(c.signs[at]), y)
		c.signs[at] = append(c.signs[at], kind)
	}
	c.used[kind] = true
}

// ground draws titles, lanes with their names, and the times.
func (c *space) ground(s *svg) {
	y := 0
	for _, line := range c.title {
		y += 20
		s.text(0, y, "t", line)
		y += 4
	}
	for _, line := range c.sub {
		y += 15
		s.text(0, y, "s", line)
		y += 3
	}
	for id := range parley.ID(c.n) {
		x := c.x(id)
		stroke, fill, border, text := inkLine, "#ffffff", "#8c959f", inkText
		line := []any{"stroke-width", 1.5}
		if c.o.Faulty.Has(id) {
			stroke, fill, border, text = inkFaulty, "#fff1f0", inkFault, inkFault
			line = append(line, "stroke-dasharray", "5 3")
			c.used["faulty"] = true
		}
		s.line(x, c.top-14, x, c.bottom, append(line, "stroke", stroke)...)
		name := c.o.Called(id)
		w := monoWidth(name, 12) + 14
		s.rect(x-w/2, c.top-36, w, 20, "rx", 5, "fill", fill, "stroke", border)
		s.spans(x, c.top-22, "p", []span{{text: name, colour: text}}, "text-anchor", "middle")
	}
	last := c.top - 100
	for _, t := range c.times {
		if y := c.at[t]; y >= last+noteHeight {
			s.spans(c.first-c.lead(), y+3, "m",
				[]span{{text: prose.Number(uint64(max(t, 0))), colour: inkFaint}}, "text-anchor", "end")
			last = y
		}
	}
	if c.left > 0 {
		s.text(c.first, c.bottom+4, "n", "and "+prose.Count(uint64(c.left), "event", "events")+" more")
	}
}

// gone hides the lane of a process that is down.
func (c *space) gone(id parley.ID, from, to int) {
	c.back.line(c.x(id), from, c.x(id), to, "stroke", inkCard, "stroke-width", 3)
	c.back.line(c.x(id), from, c.x(id), to, "stroke", inkFaulty, "stroke-width", 1, "stroke-dasharray", "1 5")
}

// arrow draws a message. What it says stands once, where it was sent.
func (c *space) arrow(e *reading.Moment, labelled map[note]bool) {
	if e.Sent.ID == 0 {
		return
	}
	words := e.Says
	ink := c.inks.of(words).line
	x1, y1, x2, y2 := c.x(e.Peer), c.at[e.Sent.Time], c.x(e.At), c.at[e.Time]
	if once := (note{y1, c.o.Called(e.Peer) + words, ink}); !labelled[once] {
		labelled[once] = true
		c.say(e.Peer, y1, words, ink)
	}
	if e.Op == trace.Lose {
		c.front.missing(x1, y1, x1+(x2-x1)/3, y1+max((y2-y1)/3, 8))
		c.used["lost"] = true
		return
	}
	short := 3
	if x2 < x1 {
		short = -3
	}
	c.used[ink] = true
	c.front.line(x1, y1, x2-short, y2, "stroke", ink, "stroke-width", 1.3, "marker-end", "url(#"+headOfArrow(ink)+")")
}

func (c *space) mark(s *svg, id parley.ID, y int, colour, words string) {
	s.put("circle", "cx", c.x(id), "cy", y, "r", 3, "fill", colour)
	c.say(id, y, words, colour)
}

// ring is the sign of who is asked; full and hollow are of who delivers and indicates.
func (s *svg) ring(x, y int) {
	s.put("circle", "cx", x, "cy", y, "r", 4.5, "fill", inkCard, "stroke", inkText, "stroke-width", 1.4)
}

func (s *svg) full(x, y int) { s.diamond(x, y, inkText) }

func (s *svg) hollow(x, y int) { s.diamond(x, y, inkCard) }

func (s *svg) diamond(x, y int, fill string) {
	s.put("path", "d", fmt.Sprintf("M%d,%d l5,5 l-5,5 l-5,-5 Z", x, y-5),
		"fill", fill, "stroke", inkText, "stroke-width", 1.2)
}

// say puts words beside a lane.
func (c *space) say(id parley.ID, y int, words, colour string) {
	c.notes[id] = append(c.notes[id], note{y, words, colour})
}

// write writes the words beside the lanes, those that are too near below one another.
func (c *space) write(s *svg) {
	for id, list := range c.notes {
		slices.SortStableFunc(list, func(a, b note) int { return a.y - b.y })
		room := max((c.lane-16)/monoWidth("x", 10), 4)
		y := 0
		for _, n := range list {
			y = max(n.y+3, y+noteHeight)
			if y > n.y+4*noteHeight { // too far from what it is about
				y -= noteHeight
				continue
			}
			s.spans(c.x(parley.ID(id))+8, y, "m", []span{{text: prose.Cut(n.text, room), colour: n.colour}},
				"paint-order", "stroke", "stroke", inkCard, "stroke-width", 3)
		}
		c.bottom = max(c.bottom, y+10)
	}
}

// legend explains the signs that are in the picture.
func (c *space) legend() []legendEntry {
	var out []legendEntry
	add := func(used, text string, sign func(s *svg, x, y int)) {
		if c.used[used] {
			out = append(out, legendEntry{sign: sign, text: text})
		}
	}
	add("asked", "asked", func(s *svg, x, y int) { s.ring(x+13, y) })
	add("deliver", "delivers", func(s *svg, x, y int) { s.full(x+13, y) })
	add("indicate", "indicates", func(s *svg, x, y int) { s.hollow(x+13, y) })
	add("lost", "lost on its way", func(s *svg, x, y int) { s.missing(x, y, x+22, y) })
	add("crash", "crashes", func(s *svg, x, y int) { s.cross(x+13, y) })
	add("faulty", "faulty process", func(s *svg, x, y int) {
		s.line(x, y, x+26, y, "stroke", inkFaulty, "stroke-width", 2, "stroke-dasharray", "5 3")
	})
	if c.alive > 0 {
		out = append(out, legendEntry{sign: func(*svg, int, int) {}, wide: 1,
			text: prose.Count(c.alive, "sign of life is", "signs of life are") + " not drawn"})
	}
	return out
}
