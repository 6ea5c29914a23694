package reading

import (
	"maps"
	"math"
	"slices"
	"sync"

	"parley"
	"parley/trace"
)

// SpaceTimeOptions configure a space-time diagram.
type SpaceTimeOptions struct {
	Style
	// Beats shows heartbeats too. Otherwise they are counted, unless there is nothing else to show.
	Beats bool
}

// Moment is an event in a space-time diagram.
type Moment struct {
	trace.Event
	Says string      // the message, or what the process does
	Sent trace.Event // the sending of a message; its ID is 0 if unknown
	// Omitted says that the message arrived, and that its faulty receiver failed to receive it: it counts as lost.
	Omitted bool
	// Down says that the message never arrives because its receiver is down, since Fell at the latest.
	Down bool
	Fell parley.Tick
}

// Message reports whether a message arrived or was lost, so that there is an arrow.
func (m *Moment) Message() bool { return m.Op == trace.Receive || m.Op == trace.Lose }

// Moments are the events of a run shown in a space-time diagram, in order.
type Moments struct {
	Moments []Moment
	// Unarrived are messages whose receivers are down: each is a loss with the number and the time of its sending.
	Unarrived []Moment
	// Alive is the number of heartbeats that are not shown, and Sign describes the first.
	Alive uint64
	Sign  string
}

// Labels returns the texts of the messages, each once.
func (m Moments) Labels() []string {
	labels := make(map[string]bool)
	for _, some := range [][]Moment{m.Moments, m.Unarrived} {
		for i := range some {
			if some[i].Message() {
				labels[some[i].Says] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(labels))
}

// OnceSpaceTime returns a function that reads the moments from a run when it is first called, and keeps them. Reading
// takes most of the time that the picture of a large run takes.
func OnceSpaceTime(p parley.Protocol, events []trace.Event, o SpaceTimeOptions) func() Moments {
	return sync.OnceValue(func() Moments { return SpaceTime(p, events, o) })
}

// SpaceTime reads the moments from a run.
func SpaceTime(p parley.Protocol, events []trace.Event, o SpaceTimeOptions) Moments {
	words := Words{o.Style, p}
	beating := heartbeatsOf(p.N, events)
	if o.Beats || !beating.amid(events) {
		beating = heartbeatFilter{}
	}
	shown := 0
	for i := range events {
		if events[i].Op != trace.Send && !beating.has(events[i]) {
			shown++
		}
	}
	out := Moments{Moments: slices.Grow([]Moment(nil), shown)}
	sent, falls := make(map[uint64]int), newFalls(events)
	for i, e := range events {
		m := Moment{Event: e}
		falls.add(e)
		switch {
		case omits(e):
			out.omit(e)
			continue
		case int(e.At) >= p.N || m.Message() && int(e.Peer) >= p.N:
			continue
		case e.Op == trace.Send:
			sent[e.ID] = i
			continue
		case !m.Message():
			m.Says = words.Does(e)
		case beating.has(e):
			if out.Alive++; out.Sign == "" {
				out.Sign = words.arrived(e)
			}
			continue
		default:
			m.Says = words.arrived(e)
			if at, known := sent[e.Cause]; known {
				m.Sent = events[at]
			}
		}
		if m.Says != "" {
			out.Moments = append(out.Moments, m)
		}
	}
	for _, e := range events {
		if len(falls.down) > 0 && e.Op == trace.Send && !beating.has(e) {
			out.Unarrived = append(out.Unarrived, falls.missed(words, e)...)
		}
	}
	return out
}

// fallen follows which processes are down when, and which messages arrive.
type fallen struct {
	any     bool // a process crashes, so it matters which messages arrive
	down    map[parley.ID][]outage
	arrived map[arrival]bool
}

// outage is the time between two events during which a process is down.
type outage struct {
	from  trace.Event
	until uint64 // the number of the restart
}

func newFalls(events []trace.Event) *fallen {
	crash := slices.ContainsFunc(events, func(e trace.Event) bool { return e.Op == trace.Crash })
	return &fallen{any: crash, down: make(map[parley.ID][]outage), arrived: make(map[arrival]bool)}
}

// add follows an event.
func (f *fallen) add(e trace.Event) {
	switch e.Op {
	case trace.Crash:
		f.down[e.At] = append(f.down[e.At], outage{e, math.MaxUint64})
	case trace.Restart:
		if last := len(f.down[e.At]) - 1; last >= 0 {
			f.down[e.At][last].until = e.ID
		}
	case trace.Receive, trace.Lose:
		if f.any {
			f.arrived[arrival{e.Cause, e.At}] = true
		}
	}
}

// missed returns what becomes of a message at the receivers that are down after its sending and never get it.
func (f *fallen) missed(w Words, e trace.Event) (out []Moment) {
	for to := range parley.ID(w.Protocol.N) {
		if to == e.At || e.Peer != to && e.Peer != parley.All || f.arrived[arrival{e.ID, to}] {
			continue
		}
		i := slices.IndexFunc(f.down[to], func(o outage) bool { return e.ID < o.until })
		if i < 0 {
			continue
		}
		m := Moment{Event: e, Sent: e, Down: true, Fell: max(e.Time, f.down[to][i].from.Time)}
		m.Op, m.At, m.Peer = trace.Lose, to, e.At
		if m.Says = w.arrived(m.Event); m.Says != "" {
			out = append(out, m)
		}
	}
	return out
}

// omits reports whether an event says that a faulty process failed to receive what has just arrived.
func omits(e trace.Event) bool { return e.Op == trace.Refuse && string(e.Msg.Body) == parley.Omitted }

// omit marks the last message that a process received as omitted.
func (m *Moments) omit(e trace.Event) {
	for i := len(m.Moments) - 1; i >= 0; i-- {
		if last := &m.Moments[i]; last.At == e.At {
			if last.Op == trace.Receive && last.Peer == e.Peer {
				last.Op, last.Omitted = trace.Lose, true
			}
			return
		}
	}
}
