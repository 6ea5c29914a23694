package draw

import (
	"cmp"
	"fmt"
	"slices"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/trace"
)

// Live draws the last seconds of a cluster that runs: a lane for each node, time from left to right. Time has a
// constant pace, and is stretched where events are close together. The places of lanes depend on nothing but their
// number, so that consecutive pictures differ only where something happened.
type Live struct {
	reading.Style
	Protocol parley.Protocol
	// Events are in order, with times in ns. They also say when a node was paused, resumed, killed (crash), and started
	// again (restart).
	Events []trace.Event
	Lanes  []Lane
	Cuts   []Cut
	Until  parley.Tick // the end of the picture
	Width  int         // in pixels, with margins
}

// Lane is the present state of a node, in one or two words.
type Lane struct {
	State string
	Bad   bool // something is wrong with it
}

// Cut is a time during which the link between two nodes is cut. Until is 0 if it is cut now.
type Cut struct {
	A, B        parley.ID
	From, Until parley.Tick
}

const (
	second    parley.Tick = 1e9
	livePace              = 44 // pixels of a second without events
	liveStep              = 7  // minimum pixels between two times with events
	liveHead              = 92 // width of the names
	livePitch             = 60 // from one lane to the next
	liveTop               = 34 // of the first lane
	liveEdge              = 10 // margin
	liveGrace             = second / 2
)

// live is the picture under construction.
type live struct {
	Live
	left, right int
	times       []parley.Tick // with a place, from the latest back
	places      []int
	sent        map[uint64]trace.Event
	arrived     map[arrivalAt]bool
	moments     []reading.Moment
	written     []int // by lane: the left end of the text that was written last, from the right
}

// arrivalAt is a message at one receiver.
type arrivalAt struct {
	sent uint64
	at   parley.ID
}

// Scene draws the picture.
func (d Live) Scene() scene.Scene {
	l := live{Live: d, left: liveEdge + liveHead, sent: make(map[uint64]trace.Event), arrived: make(map[arrivalAt]bool)}
	l.Width = max(l.Width, liveHead+160)
	l.right = l.Width - liveEdge - 6
	l.moments = reading.SpaceTime(d.Protocol, d.Events, reading.SpaceTimeOptions{Style: d.Style, Beats: true}).Moments
	l.place()
	var ground, lanes, arrows, signs sketch
	low := liveTop + len(d.Lanes)*livePitch - livePitch/2 + 16
	l.scale(&ground, low)
	for id := range parley.ID(len(d.Lanes)) {
		l.lane(&lanes, id)
	}
	for i := range d.Cuts {
		l.cut(&arrows, &d.Cuts[i])
	}
	l.messages(&arrows)
	l.written = slices.Repeat([]int{l.Width}, len(d.Lanes))
	for i := len(l.moments) - 1; i >= 0; i-- {
		l.sign(&signs, &l.moments[i])
	}
	body := sketch{slices.Concat(ground.marks, arrows.marks, lanes.marks, signs.marks)}
	height := body.legendRows(l.legend(), l.Width-2*margin, low+18) + 12
	return scene.Scene{
		Title: "The last seconds of the cluster", About: l.words(), Width: l.Width, Height: height, Marks: body.marks,
	}
}

// words says what the lanes show now.
func (l *live) words() string {
	text := ""
	for id, lane := range l.Lanes {
		text += fmt.Sprintf("%s: %s; ", l.Called(parley.ID(id)), lane.State)
	}
	for _, c := range l.Cuts {
		if c.Until == 0 {
			text += fmt.Sprintf("the link between %s and %s is cut; ", l.Called(c.A), l.Called(c.B))
		}
	}
	return text
}

// place gives each time with an event a place, from the right to the left, as far as there is room.
func (l *live) place() {
	seen := map[parley.Tick]bool{l.Until: true}
	times := []parley.Tick{l.Until}
	add := func(t parley.Tick) {
		if t < l.Until && !seen[t] {
			seen[t] = true
			times = append(times, t)
		}
	}
	for i := range l.moments {
		m := &l.moments[i]
		add(m.Time)
		if m.Sent.ID != 0 {
			add(m.Sent.Time)
		}
	}
	for _, e := range l.Events {
		switch e.Op {
		case trace.Send:
			l.sent[e.ID] = e
		case trace.Receive, trace.Lose:
			l.arrived[arrivalAt{e.Cause, e.At}] = true
		}
	}
	slices.SortFunc(times, func(a, b parley.Tick) int { return cmp.Compare(b, a) })
	x := l.right
	for i, t := range times {
		if i > 0 {
			gap := int(float64(times[i-1]-t) / float64(second) * livePace)
			least := liveStep
			if i == 1 {
				least = 0 // the end of the picture is no event
			}
			x -= max(gap, least)
		}
		l.times, l.places = append(l.times, t), append(l.places, x)
		if x < l.left {
			break
		}
	}
}

// at returns the place of a time, which may be outside of the picture.
func (l *live) at(t parley.Tick) int {
	i, found := slices.BinarySearchFunc(l.times, t, func(one, t parley.Tick) int { return cmp.Compare(t, one) })
	switch {
	case found:
		return l.places[i]
	case i == 0:
		return l.right
	case i == len(l.times):
		return l.places[i-1] - int(float64(min(l.times[i-1]-t, 1000*second))/float64(second)*livePace)
	}
	later, earlier := l.times[i-1], l.times[i]
	share := float64(t-earlier) / float64(later-earlier)
	return l.places[i] + int(share*float64(l.places[i-1]-l.places[i]))
}

// inside returns the place of a time, or the nearest place in the picture.
func (l *live) inside(t parley.Tick) int { return min(max(l.at(t), l.left), l.right) }

func (l *live) y(id parley.ID) int { return liveTop + int(id)*livePitch }

// scale draws the whole seconds.
func (l *live) scale(s *sketch, low int) {
	last := l.right + 100
	for t := l.Until / second * second; t >= 0; t -= second {
		x := l.at(t)
		if x < l.left+4 {
			return
		}
		s.line("guide", x, 12, x, low)
		text := clock(t)
		if x+wide("words", text)/2+12 < last && x+wide("words", text)/2 < l.Width-2 {
			s.parts("words", x, low+14, middle, inked(text, 0))
			last = x - wide("words", text)/2
		}
	}
}

// clock formats a time in minutes and seconds.
func clock(t parley.Tick) string { return fmt.Sprintf("%d:%02d", t/second/60, t/second%60) }

// lane draws the lane of a node with its name and state, and where it is paused or down.
func (l *live) lane(s *sketch, id parley.ID) {
	y, first, now := l.y(id), len(s.marks), l.Lanes[id]
	s.line("lane", l.left, y, l.right, y)
	name := prose.Cut(l.Called(id), 11)
	w := wide("name", name) + 14
	s.rect("process", liveEdge, y-15, w, 20).Faulty = now.Bad
	s.parts("name", liveEdge+w/2, y-1, middle, toned(name, now.Bad))
	s.parts("note", liveEdge, y+20, start, toned(prose.Cut(now.State, 13), now.Bad))
	s.about(first, scene.Process(id), 0, 0)
	s.tip(first, l.Called(id)+": "+now.State)

	paused, down := parley.Tick(-1), parley.Tick(-1)
	hatch := func(until parley.Tick) {
		if paused >= 0 {
			l.hatch(s, id, paused, until)
			paused = -1
		}
	}
	gone := func(until parley.Tick) {
		if down >= 0 {
			l.gone(s, id, down, until)
			down = -1
		}
	}
	for _, e := range l.Events {
		if e.At != id {
			continue
		}
		switch e.Op {
		case trace.Pause:
			paused = e.Time
		case trace.Resume:
			hatch(e.Time)
		case trace.Crash:
			hatch(e.Time)
			down = e.Time
		case trace.Restart:
			gone(e.Time)
			if x := l.at(e.Time); x >= l.left {
				s.again(x, y)
				s.tip(len(s.marks)-1, l.Called(id)+" is started again at "+clock(e.Time))
			}
		}
	}
	hatch(l.Until)
	gone(l.Until)
}

// hatch draws a pause.
func (l *live) hatch(s *sketch, id parley.ID, from, until parley.Tick) {
	x1, x2, y, first := l.inside(from), l.inside(until), l.y(id), len(s.marks)
	if l.at(until) < l.left {
		return
	}
	pausedLook.bar(s, x1, y-9, max(x2-x1, 3), 18)
	s.marks[first].Value = "paused"
	s.tip(first, fmt.Sprintf("%s is paused from %s to %s", l.Called(id), clock(from), clock(until)))
}

var pausedLook = stageLook{hatch: "/"}

// gone draws where a node is down.
func (l *live) gone(s *sketch, id parley.ID, from, until parley.Tick) {
	x1, x2, y, first := l.inside(from), l.inside(until), l.y(id), len(s.marks)
	if l.at(until) < l.left {
		return
	}
	s.line("gap", x1, y, x2, y)
	s.line("down", x1, y, x2, y).Value = "down"
	if l.at(from) >= l.left {
		s.ended(x1, y)
	}
	s.tip(first, fmt.Sprintf("%s is down from %s to %s", l.Called(id), clock(from), clock(until)))
}

// ended draws the sign of a process that was killed, and again that of one that was started again.
func (s *sketch) ended(x, y int) { s.path("ended", "M%d,%d l10,10 m0,-10 l-10,10", x-5, y-5) }

func (s *sketch) again(x, y int) {
	s.path("again", "M%d,%d a6,6 0 1 1 -5,-3 m-3,-3 l4,3 l-3,4", x+6, y)
}

// cut draws the beginning and the end of a cut, between the lanes.
func (l *live) cut(s *sketch, c *Cut) {
	a, b := min(c.A, c.B), max(c.A, c.B)
	mark := func(t parley.Tick, words string, severed bool) {
		x := l.at(t)
		if x < l.left || t > l.Until {
			return
		}
		first, y1, y2 := len(s.marks), l.y(a)+12, l.y(b)-12
		role := "severed"
		if !severed {
			role = "mended"
		}
		s.line(role, x, y1, x, y2)
		s.line(role, x-5, y1, x+5, y1)
		s.line(role, x-5, y2, x+5, y2)
		s.tip(first, fmt.Sprintf("the link between %s and %s is %s at %s", l.Called(a), l.Called(b), words, clock(t)))
	}
	mark(c.From, "cut", true)
	if c.Until != 0 {
		mark(c.Until, "mended", false)
	}
}

// messages draws the messages that arrived, and those that cannot arrive.
func (l *live) messages(s *sketch) {
	for i := range l.moments {
		m := &l.moments[i]
		if !m.Message() || m.Sent.ID == 0 || l.at(m.Sent.Time) < l.left || int(m.At) >= len(l.Lanes) {
			continue
		}
		y1, y2 := l.ends(m.Peer, m.At)
		a := s.line("arrow", l.at(m.Sent.Time), y1, l.at(m.Time), y2)
		a.Arrow, a.Ink = true, senderInk(m.Peer)
		a.Tip = fmt.Sprintf("%s to %s: %s", l.Called(m.Peer), l.Called(m.At), m.Says)
	}
	words := reading.Words{Style: l.Style, Protocol: l.Protocol}
	for _, e := range l.Events {
		if e.Op != trace.Send || l.at(e.Time) < l.left {
			continue
		}
		for to := range parley.ID(len(l.Lanes)) {
			if to == e.At || e.Peer != to && e.Peer != parley.All || l.arrived[arrivalAt{e.ID, to}] {
				continue
			}
			why := l.stopped(e.At, to, e.Time)
			if why == "" {
				continue
			}
			y1, y2 := l.ends(e.At, to)
			x, first := l.at(e.Time), len(s.marks)
			s.stopped("missing", "missed", x, y1, min(x+12, l.right), y1+(y2-y1)*2/3)
			env := parley.Env{From: e.At, To: to, Path: e.Path, Epoch: e.Epoch}
			s.tip(first, fmt.Sprintf("%s to %s: %s; it does not arrive: %s", l.Called(e.At), l.Called(to),
				words.Message(env, e.Msg), why))
		}
	}
}

// ends returns where a message begins and ends.
func (l *live) ends(from, to parley.ID) (y1, y2 int) {
	if from < to {
		return l.y(from) + 1, l.y(to) - 5
	}
	return l.y(from) - 1, l.y(to) + 5
}

func senderInk(id parley.ID) scene.Ink { return scene.Ink(1 + int(id)%scene.Inks) }

// stopped returns why a message that was sent at a time has not arrived, or "" if it may be on its way or its arrival
// may not be recorded.
func (l *live) stopped(from, to parley.ID, sent parley.Tick) string {
	for _, c := range l.Cuts {
		between := c.A == from && c.B == to || c.A == to && c.B == from
		if between && sent >= c.From && (c.Until == 0 || sent < c.Until) {
			return "the link is cut"
		}
	}
	why := ""
	for _, e := range l.Events {
		if e.At != to || e.Time > max(sent, l.Until-liveGrace) {
			continue
		}
		switch e.Op {
		case trace.Pause:
			why = "the receiver is paused"
		case trace.Crash:
			why = "the receiver is down"
		case trace.Resume, trace.Restart:
			why = ""
		}
	}
	return why
}

// sign draws an event of a node, with its words if there is room.
func (l *live) sign(s *sketch, m *reading.Moment) {
	x := l.at(m.Time)
	if m.Message() || x < l.left+4 || int(m.At) >= len(l.Lanes) {
		return
	}
	y, first, text := l.y(m.At), len(s.marks), ""
	switch m.Op {
	case trace.Request:
		s.ring(x, y)
		text = m.Says
	case trace.Deliver:
		s.full(x, y)
	case trace.Indicate:
		s.hollow(x, y)
		text = m.Says
	default:
		return
	}
	s.tip(first, fmt.Sprintf("%s %s", l.Called(m.At), m.Says))
	const most = 26
	text = prose.Cut(text, most)
	if w := wide("says", text); text != "" && x-6+w < l.written[m.At]-8 && x-6+w < l.Width {
		s.rect("plate", x-7, y-23, w+3, 13)
		s.parts("says", x-6, y-13, start, toned(text, false))
		l.written[m.At] = x - 6
	}
}

// legend explains all signs, whether the picture has them or not, so that it always has the same height.
func (l *live) legend() (out legend) {
	out.add(true, "message, in the color of its sender", func(s *sketch, x, y int) {
		a := s.line("arrow", x, y, x+26, y)
		a.Arrow, a.Ink = true, 1
	})
	out.add(true, "request", func(s *sketch, x, y int) { s.ring(x+13, y) })
	out.add(true, "delivery or decision", func(s *sketch, x, y int) { s.full(x+13, y) })
	out.add(true, "paused", func(s *sketch, x, y int) { pausedLook.bar(s, x, y-7, 26, 14) })
	out.add(true, "killed, and down", func(s *sketch, x, y int) {
		s.line("down", x, y, x+26, y)
		s.ended(x+6, y)
	})
	out.add(true, "started again", func(s *sketch, x, y int) { s.again(x+13, y) })
	out.add(true, "link cut", func(s *sketch, x, y int) {
		s.line("severed", x+3, y-7, x+3, y+7)
		s.line("severed", x-2, y-7, x+8, y-7)
		s.line("severed", x-2, y+7, x+8, y+7)
	})
	out.add(true, "message that does not arrive", func(s *sketch, x, y int) { s.stopped("missing", "missed", x, y, x+24, y) })
	return out
}
