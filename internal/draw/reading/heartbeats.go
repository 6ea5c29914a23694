package reading

import (
	"parley"
	"parley/trace"
)

// heartbeatFilter are the kinds of messages by which processes do nothing but show that they
// are alive.
type heartbeatFilter map[beatKind]bool

// beatKind is a kind of message at one place of a machine.
type beatKind struct {
	path parley.Path
	kind parley.Kind
}

// heartbeatsOf finds them in a run of n processes: messages that have nothing in them and
// that most processes send again and again.
func heartbeatsOf(n int, events []trace.Event) heartbeatFilter {
	const often = 3 // that many times on the average are more than a protocol needs
	type count struct {
		from  parley.Set
		times int
	}
	counts := make(map[beatKind]*count)
	for _, e := range events {
		if e.Op != trace.Send || !empty(e.Msg) {
			continue
		}
		k := beatKind{e.Path, e.Msg.Kind}
		if counts[k] == nil {
			counts[k] = new(count)
		}
		counts[k].from.Add(e.At)
		if e.Peer == parley.All {
			counts[k].times += n - 1
		} else {
			counts[k].times++
		}
	}
	out := make(heartbeatFilter)
	// order: a set has none
	for k, c := range counts {
		from := c.from.Len()
		out[k] = 2*from > n && c.times > often*from*(n-1)
	}
	return out
}

// empty tells whether a message says no more than of what kind it is.
func empty(m parley.Msg) bool {
	return m.Kind < parley.Local && m.Origin == 0 && m.Seq == 0 && m.Value == 0 && len(m.Body) == 0
}

// has tells whether an event is a sign of life.
func (b heartbeatFilter) has(e trace.Event) bool {
	switch e.Op {
	case trace.Send, trace.Receive, trace.Lose:
		return empty(e.Msg) && b[beatKind{e.Path, e.Msg.Kind}]
	}
	return false
}

// amid tells whether anything else in the run is worth a line.
func (b heartbeatFilter) amid(events []trace.Event) bool {
	for _, e := range events {
		switch e.Op {
		case trace.Receive, trace.Lose:
			if !b.has(e) {
				return true
			}
		case trace.Request, trace.Deliver, trace.Indicate, trace.Crash:
			return true
		}
	}
	return false
}
