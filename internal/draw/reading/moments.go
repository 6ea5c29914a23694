package reading

import (
	"parley"
	"parley/trace"
)

// SpaceTimeOptions say how a space-time diagram looks.
type SpaceTimeOptions struct {
	Style
	// Most is how many events are written in text before the rest is counted; 200 if 0.
	Most int
	// Beats draws signs of life too. Otherwise they are counted, unless there is
	// nothing else to draw.
	Beats bool
}

// Moment is an event that is shown in space and time.
type Moment struct {
	trace.Event
	Says string      // what the message says, or what the process does
	Sent trace.Event // the sending of a message; ID is 0 if it is not known
}

// Message tells whether a message came or was lost, so that there is an arrow.
func (m *Moment) Message() bool { return m.Op == trace.Receive || m.Op == trace.Lose }

// Moments are what of a run is shown in space and time, in order.
type Moments struct {
	Moments []Moment
	// Alive counts the signs of life that are not shown, and Sign is what the first says.
	Alive uint64
	Sign  string
}

// SpaceTime reads the moments off a run.
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
