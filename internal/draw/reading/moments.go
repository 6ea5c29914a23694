package reading

import (
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
}

// Message reports whether a message arrived or was lost, so that there is an arrow.
func (m *Moment) Message() bool { return m.Op == trace.Receive || m.Op == trace.Lose }

// Moments are the events of a run shown in a space-time diagram, in order.
type Moments struct {
	Moments []Moment
	// Alive is the number of heartbeats that are not shown, and Sign describes the first.
	Alive uint64
	Sign  string
}

// SpaceTime reads the moments from a run.
func SpaceTime(p parley.Protocol, events []trace.Event, o SpaceTimeOptions) Moments {
	words := Words{o.Style, p}
	beating := heartbeatsOf(p.N, events)
	if o.Beats || !beating.amid(events) {
		beating = heartbeatFilter{}
	}
	var out Moments
	sent := make(map[uint64]trace.Event)
	for _, e := range events {
		m := Moment{Event: e}
		switch {
		case omits(e):
			out.omit(e)
			continue
		case int(e.At) >= p.N || m.Message() && int(e.Peer) >= p.N:
			continue
		case e.Op == trace.Send:
			sent[e.ID] = e
			continue
		case !m.Message():
			m.Says = words.Does(e)
		case beating.has(e):
			if out.Alive++; out.Sign == "" {
				out.Sign = words.arrived(e)
			}
			continue
		default:
			m.Says, m.Sent = words.arrived(e), sent[e.Cause]
		}
		if m.Says != "" {
			out.Moments = append(out.Moments, m)
		}
	}
	return out
}

// omits reports whether an event says that a faulty process failed to receive what has just arrived.
func omits(e trace.Event) bool { return e.Op == trace.Refuse && string(e.Msg.Body) == parley.Omitted }

// omit marks the last message as omitted by its receiver.
func (m *Moments) omit(e trace.Event) {
	if i := len(m.Moments) - 1; i >= 0 && m.Moments[i].Op == trace.Receive && m.Moments[i].At == e.At {
		m.Moments[i].Op, m.Moments[i].Omitted = trace.Lose, true
	}
}
