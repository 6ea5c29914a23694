package term

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/reading"
	"parley/trace"
)

// lossSign ends the line of a message that does not arrive.
const lossSign = "×"

// flight is a message that is drawn from its sending to its arrival, in a track beside its receiver's lane.
type flight struct {
	from, to     parley.ID
	begins, ends int // rows; ends is beyond the last row if the message arrives later or never
	track        int // from 0, outward from the lane
	lost         bool
}

// bend is the beginning or the end of a flight in a row.
type bend struct {
	*flight
	end  bool
	mark string // in the receiver's lane, at the end
}

// sending is a message to one or several receivers, as one line.
type sending struct {
	event trace.Event
	says  string
	to    []*reading.Moment
}

// step is what one row shows: a sending, or a moment with those that it causes at once at the same process.
type step struct {
	sent *sending
	at   *reading.Moment
	also []*reading.Moment
}

// moments sets the rows of a protocol without rounds.
func (d *diagram) moments(all []reading.Moment) {
	d.follow(stepsOf(all, true))
	if d.fits() {
		return
	}
	d.rows, d.flights, d.tracks, d.left = nil, nil, nil, 0
	d.follow(stepsOf(all, false))
}

// leastText is the room for words beside a diagram with bent lines.
const leastText = 26

// fits assigns the flights to tracks and reports whether there is room for them.
func (d *diagram) fits() bool {
	d.tracks = make([][2]int, d.n)
	free := make(map[[2]int][]int) // by lane and side: the row from which on each track is free
	for _, f := range d.flights {
		side := 0
		if f.from > f.to {
			side = 1
		}
		key := [2]int{int(f.to), side}
		f.track = slices.IndexFunc(free[key], func(row int) bool { return row < f.begins })
		if f.track < 0 {
			f.track = len(free[key])
			free[key] = append(free[key], 0)
		}
		free[key][f.track] = f.ends
		d.tracks[f.to][side] = len(free[key])
	}
	for _, side := range d.tracks {
		if max(side[0], side[1]) > mostTracks {
			return false
		}
	}
	d.layout()
	return d.margin+1+d.width+leastText <= d.o.Columns()
}

// mostTracks is the maximum number of messages drawn in flight at one side of a lane. More lines confuse.
const mostTracks = 4

// trackOf returns the column of a flight.
func (d *diagram) trackOf(f *flight) int {
	if f.from < f.to {
		return d.lanes[f.to] - 2 - f.track
	}
	return d.lanes[f.to] + 2 + f.track
}

// stepsOf groups moments by row. Sendings are rows of their own if they are asked for.
func stepsOf(all []reading.Moment, sendings bool) (steps []step) {
	type content struct {
		at    parley.ID
		time  parley.Tick
		words string
	}
	sent, last := make(map[content]*sending), -1
	for i := range all {
		m := &all[i]
		if m.Message() && m.Sent.ID != 0 && sendings {
			key := content{m.Peer, m.Sent.Time, m.Says}
			s := sent[key]
			if s == nil {
				s = &sending{event: m.Sent, says: m.Says}
				sent[key] = s
				steps = append(steps, step{sent: s})
			}
			s.to = append(s.to, m)
			if m.Op == trace.Lose && m.Time == m.Sent.Time && !m.Omitted {
				continue
			}
		}
		if last >= 0 && steps[last].takes(m) {
			steps[last].also = append(steps[last].also, m)
			continue
		}
		last = len(steps)
		steps = append(steps, step{at: m})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.number()) - int(b.number()) })
	return steps
}

// takes reports whether a moment belongs to a step's row: a process delivers what has just arrived.
func (s *step) takes(m *reading.Moment) bool {
	return s.at != nil && s.at.Op == trace.Receive && s.at.At == m.At && s.at.Time == m.Time &&
		(m.Op == trace.Deliver || m.Op == trace.Indicate)
}

// number returns the number of the event by which steps are in order.
func (s *step) number() uint64 {
	if s.sent != nil {
		return s.sent.event.ID
	}
	return s.at.ID
}

// follow makes a row of each step.
func (d *diagram) follow(steps []step) {
	flying := make(map[*reading.Moment]*flight)
	for i, s := range steps {
		if len(d.rows) == d.most() && (s.sent != nil || s.at.Message()) {
			for _, rest := range steps[i:] {
				if rest.sent == nil {
					d.left += 1 + len(rest.also)
				}
			}
			break
		}
		switch {
		case s.sent != nil:
			d.send(s.sent, flying)
		case s.at.Message():
			d.arrive(&s, flying[s.at])
		default:
			d.add(d.signed(s.at))
		}
	}
}

// send adds the row of a sending.
func (d *diagram) send(s *sending, flying map[*reading.Moment]*flight) {
	r := row{scale: d.timeOf(s.event.Time), at: []parley.ID{s.event.At}, sign: "●", says: s.says}
	var lost, down []parley.ID
	for _, m := range s.to {
		f := &flight{from: s.event.At, to: m.At, begins: len(d.rows), ends: math.MaxInt}
		switch {
		case m.Down:
			f.lost, f.ends = true, f.begins
			down = append(down, m.At)
		case m.Op == trace.Lose && m.Time == m.Sent.Time && !m.Omitted:
			f.lost, f.ends = true, f.begins
			lost = append(lost, m.At)
		}
		flying[m] = f
		if !f.lost {
			d.flights = append(d.flights, f)
		}
		r.bends = append(r.bends, bend{flight: f})
	}
	if len(lost) > 0 {
		r.sent = "(lost on the way to " + d.o.List(lost) + ")"
	}
	if len(down) > 0 {
		r.sent = strings.TrimLeft(r.sent+" (missed by "+d.o.List(down)+")", " ")
	}
	d.rows = append(d.rows, r)
}

// arrive adds the row of an arrival, with what it causes at once.
func (d *diagram) arrive(s *step, f *flight) {
	m := s.at
	r := row{scale: d.timeOf(m.Time), at: []parley.ID{m.At}, says: m.Says}
	mark := ""
	if len(s.also) > 0 {
		mark = signs[s.also[0].Op]
		r.does = d.o.Called(m.At) + " " + s.also[0].Says
		for _, one := range s.also[1:] {
			r.does += ", " + one.Says
		}
	}
	lost := ""
	switch {
	case m.Omitted:
		lost, r.red = lossSign, true
		r.says += ", omitted by " + d.o.Called(m.At)
	case m.Down:
		lost, r.red = lossSign, true
		r.says += ", missed by " + d.o.Called(m.At)
	case m.Op == trace.Lose:
		lost, r.red = lossSign, true
		r.says += ", lost"
	}
	if f != nil {
		f.ends = len(d.rows)
		f.lost = lost != ""
		r.bends = []bend{{f, true, mark}}
	} else {
		r.at = []parley.ID{m.Peer}
		r.heads = []head{{m.At, lost, mark}}
		if m.Sent.ID != 0 && m.Sent.Time != m.Time && !d.o.Untimed {
			r.sent = fmt.Sprintf("(sent at %s)", d.timeOf(m.Sent.Time))
		}
	}
	d.rows = append(d.rows, r)
}

// drawBends draws the beginnings and ends of flights in a row.
func (d *diagram) drawBends(c canvas, r *row) {
	for _, b := range r.bends {
		lane, step, sign := d.lanes[b.to], -1, "▶"
		if b.from > b.to {
			step, sign = 1, "◀"
		}
		ink := d.inkOf(b.from)
		switch {
		case b.end:
			x := d.trackOf(b.flight)
			c.add(x, up, ink)
			c.horizontal(x, lane+step, ink)
			if b.lost {
				sign, ink = lossSign, red
			}
			d.used[sign] = true
			d.used["▶"] = d.used["▶"] || !b.lost
			c.sign(lane+step, sign, ink)
			if b.mark != "" {
				d.used[b.mark] = true
				c.sign(lane, b.mark, d.inkOf(b.to))
			}
		case b.lost && b.ends == b.begins:
			c.horizontal(d.lanes[b.from], lane+step, ink)
		default:
			x := d.trackOf(b.flight)
			c.add(x, below, ink)
			c.horizontal(d.lanes[b.from], x, ink)
		}
	}
	for _, b := range r.bends { // over the lines to farther receivers
		if !b.end && b.lost && b.ends == b.begins {
			step := -1
			if b.from > b.to {
				step = 1
			}
			d.used[lossSign] = true
			c.sign(d.lanes[b.to]+step, lossSign, red)
		}
	}
}
