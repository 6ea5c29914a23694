// Package live draws a cluster of real nodes while the cluster runs.
package live

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

// Picture is the last seconds of a cluster that runs: a lane for each node, time from left to right. Time has a
// constant pace, and is stretched where events are close together. The places of lanes depend on nothing but their
// number, so that consecutive pictures differ only where something happened.
type Picture struct {
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

const second parley.Tick = 1e9

// Sizes in pixels.
const (
	pace  = 44 // of a second without events
	step  = 7  // minimum between two times with events
	head  = 92 // width of the names
	pitch = 60 // from one lane to the next
	top   = 34 // of the first lane
	apart = 14 // minimum between two messages that do not arrive, on the same link
	edge  = 10 // margin
)

// layout is the picture under construction.
type layout struct {
	Picture
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
func (d Picture) Scene() scene.Scene {
	l := layout{Picture: d, left: edge + head, sent: make(map[uint64]trace.Event), arrived: make(map[arrivalAt]bool)}
	l.Width = max(l.Width, head+160)
	l.Events = slices.DeleteFunc(slices.Clone(d.Events), func(e trace.Event) bool { return e.Time > d.Until })
	l.right = l.Width - edge - 6
	l.moments = reading.SpaceTime(d.Protocol, l.Events, reading.SpaceTimeOptions{Style: d.Style, Beats: true}).Moments
	l.place()
	var ground, lanes, arrows, events sketch
	low := top + len(d.Lanes)*pitch - pitch/2 + 16
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
		l.sign(&events, &l.moments[i])
	}
	body := sketch{slices.Concat(ground.marks, arrows.marks, lanes.marks, events.marks)}
	height := body.legend(l.Width, low+34) + 14
	return scene.Scene{
		Title: "The last seconds of the cluster", About: l.words(), Width: l.Width, Height: height, Marks: body.marks,
	}
}

// words says what the lanes show now.
func (l *layout) words() string {
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
func (l *layout) place() {
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
			gap := int(float64(times[i-1]-t) / float64(second) * pace)
			least := step
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
func (l *layout) at(t parley.Tick) int {
	i, found := slices.BinarySearchFunc(l.times, t, func(one, t parley.Tick) int { return cmp.Compare(t, one) })
	switch {
	case found:
		return l.places[i]
	case i == 0:
		return l.right
	case i == len(l.times):
		return l.places[i-1] - int(float64(min(l.times[i-1]-t, 1000*second))/float64(second)*pace)
	}
	later, earlier := l.times[i-1], l.times[i]
	share := float64(t-earlier) / float64(later-earlier)
	return l.places[i] + int(share*float64(l.places[i-1]-l.places[i]))
}

// inside returns the place of a time, or the nearest place in the picture.
func (l *layout) inside(t parley.Tick) int { return min(max(l.at(t), l.left), l.right) }

func (l *layout) y(id parley.ID) int { return top + int(id)*pitch }

// scale draws the whole seconds.
func (l *layout) scale(s *sketch, low int) {
	last := l.right + 100
	for t := l.Until / second * second; t >= 0; t -= second {
		x := l.at(t)
		if x < l.left+4 {
			return
		}
		s.line("guide", x, 12, x, low)
		text := clockTime(t)
		if x+scene.Wide("words", text)/2+12 < last && x+scene.Wide("words", text)/2 < l.Width-2 {
			s.text("words", x, low+14, middle, "faint", text)
			last = x - scene.Wide("words", text)/2
		}
	}
}

// clockTime formats a time in minutes and seconds.
func clockTime(t parley.Tick) string { return fmt.Sprintf("%d:%02d", t/second/60, t/second%60) }

// lane draws the lane of a node with its name and state, and where it is paused or down.
func (l *layout) lane(s *sketch, id parley.ID) {
	y, first, now := l.y(id), len(s.marks), l.Lanes[id]
	s.line("lane", l.left, y, l.right, y)
	name := prose.Cut(l.Called(id), 11)
	w := scene.Wide("name", name) + 14
	s.rect("process", edge, y-15, w, 20).Faulty = now.Bad
	s.text("name", edge+w/2, y-1, middle, tone(now.Bad), name)
	s.text("note", edge, y+20, start, tone(now.Bad), prose.Cut(now.State, 13))
	s.ref(first, scene.Process(id))
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
				s.tip(len(s.marks)-1, l.Called(id)+" is started again at "+clockTime(e.Time))
			}
		}
	}
	hatch(l.Until)
	gone(l.Until)
}

// hatch draws a pause.
func (l *layout) hatch(s *sketch, id parley.ID, from, until parley.Tick) {
	x1, x2, y, first := l.inside(from), l.inside(until), l.y(id), len(s.marks)
	if l.at(until) < l.left {
		return
	}
	s.paused(x1, y-9, max(x2-x1, 3), 18)
	s.marks[first].Value = "paused"
	s.tip(first, fmt.Sprintf("%s is paused from %s to %s", l.Called(id), clockTime(from), clockTime(until)))
}

// gone draws where a node is down.
func (l *layout) gone(s *sketch, id parley.ID, from, until parley.Tick) {
	x1, x2, y, first := l.inside(from), l.inside(until), l.y(id), len(s.marks)
	if l.at(until) < l.left {
		return
	}
	s.line("gap", x1, y, x2, y).Value = "down"
	s.line("down", x1, y, x2, y)
	if l.at(from) >= l.left {
		s.ended(x1, y)
	}
	s.tip(first, fmt.Sprintf("%s is down from %s to %s", l.Called(id), clockTime(from), clockTime(until)))
}

// cut draws the beginning and the end of a cut, between the lanes.
func (l *layout) cut(s *sketch, c *Cut) {
	a, b := min(c.A, c.B), max(c.A, c.B)
	mark := func(t parley.Tick, words string, severed bool) {
		x := l.at(t)
		if x < l.left || t > l.Until {
			return
		}
		first, role := len(s.marks), "severed"
		if !severed {
			role = "mended"
		}
		s.severed(role, x, l.y(a)+12, l.y(b)-12)
		s.tip(first, fmt.Sprintf("the link between %s and %s is %s at %s", l.Called(a), l.Called(b), words, clockTime(t)))
	}
	mark(c.From, "cut", true)
	if c.Until != 0 {
		mark(c.Until, "mended", false)
	}
}

// messages draws the messages that arrived, and those that cannot arrive.
func (l *layout) messages(s *sketch) {
	for i := range l.moments {
		m := &l.moments[i]
		if !m.Message() || m.Sent.ID == 0 || l.at(m.Sent.Time) < l.left || int(m.At) >= len(l.Lanes) {
			continue
		}
		y1, y2 := l.ends(m.Peer, m.At)
		a := s.arrow(l.at(m.Sent.Time), y1, l.at(m.Time), y2, senderInk(m.Peer))
		a.Tip = fmt.Sprintf("%s to %s: %s", l.Called(m.Peer), l.Called(m.At), m.Says)
	}
	words := reading.Words{Style: l.Style, Protocol: l.Protocol}
	drawn := make(map[[2]parley.ID]int) // the last such message from one to the other
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
			if last, is := drawn[[2]parley.ID{e.At, to}]; is && x-last < apart {
				continue // it is sent again and again
			}
			drawn[[2]parley.ID{e.At, to}] = x
			s.stopped(x, y1, min(x+12, l.right), y1+(y2-y1)*2/3)
			env := parley.Env{From: e.At, To: to, Path: e.Path, Epoch: e.Epoch}
			s.tip(first, fmt.Sprintf("%s to %s: %s; it does not arrive: %s", l.Called(e.At), l.Called(to),
				words.Message(env, e.Msg), why))
		}
	}
}

// ends returns where a message begins and ends.
func (l *layout) ends(from, to parley.ID) (y1, y2 int) {
	if from < to {
		return l.y(from) + 1, l.y(to) - 5
	}
	return l.y(from) - 1, l.y(to) + 5
}

func senderInk(id parley.ID) scene.Ink { return scene.Ink(1 + int(id)%scene.Inks) }

// stopped returns why a message that was sent at a time has not arrived, or "" if it may be on its way or its arrival
// may not be recorded.
func (l *layout) stopped(from, to parley.ID, sent parley.Tick) string {
	for _, c := range l.Cuts {
		between := c.A == from && c.B == to || c.A == to && c.B == from
		if between && sent >= c.From && (c.Until == 0 || sent < c.Until) {
			return "the link is cut"
		}
	}
	why := ""
	for _, e := range l.Events {
		if e.At != to {
			continue
		}
		before := e.Time <= sent
		switch e.Op {
		case trace.Pause:
			if before {
				why = "the receiver is paused"
			}
		case trace.Crash:
			if before || why != "" {
				why = "the receiver is down"
			}
		case trace.Resume:
			why = ""
		case trace.Restart:
			if before {
				why = ""
			}
		}
	}
	return why
}

// sign draws an event of a node, with its words if there is room.
func (l *layout) sign(s *sketch, m *reading.Moment) {
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
		text, _, _ = strings.Cut(m.Says, " of ") // the members of a view have no room
	default:
		return
	}
	s.tip(first, fmt.Sprintf("%s %s", l.Called(m.At), m.Says))
	const most = 26
	text = prose.Cut(text, most)
	if w := scene.Wide("says", text); text != "" && x-6+w < l.written[m.At]-8 && x-6+w < l.Width {
		s.rect("plate", x-7, y-23, w+3, 13)
		s.text("says", x-6, y-13, start, "text", text)
		l.written[m.At] = x - 6
	}
}
