package reading

import (
	"parley"
	"parley/trace"
)

// heartbeatFilter is the set of the kinds of messages that only show that their senders are up.
type heartbeatFilter map[beatKind]bool

// beatKind is a kind of message in one part of a machine.
type beatKind struct {
	path parley.Path
	kind parley.Kind
}

// heartbeatsOf returns the heartbeats in a run of n processes: messages without content that most processes send
// repeatedly, and that are not answered.
func heartbeatsOf(n int, events []trace.Event) heartbeatFilter {
	const often = 3 // a protocol needs fewer on average
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
	answers := answered(events)
	out := make(heartbeatFilter)
	// order: a set has none
	for k, c := range counts {
		from := c.from.Len()
		out[k] = 2*from > n && c.times > often*from*(n-1) && !answers[k]
	}
	return out
}

// answered returns the kinds of messages without content that mostly make their receiver send something: those ask.
func answered(events []trace.Event) map[beatKind]bool {
	balance := make(map[beatKind]int)
	for i, e := range events {
		if e.Op != trace.Receive || !empty(e.Msg) {
			continue
		}
		k := beatKind{e.Path, e.Msg.Kind}
		if i+1 < len(events) && events[i+1].Op == trace.Send && events[i+1].At == e.At {
			balance[k]++
		} else {
			balance[k]--
		}
	}
	out := make(map[beatKind]bool)
	// order: a set has none
	for k, n := range balance {
		out[k] = n > 0
	}
	return out
}

// empty reports whether a message contains only its kind.
func empty(m parley.Msg) bool {
	return m.Kind < parley.Local && m.Origin == 0 && m.Seq == 0 && m.Value == 0 && len(m.Body) == 0
}

// has reports whether an event is a heartbeat.
func (b heartbeatFilter) has(e trace.Event) bool {
	switch e.Op {
	case trace.Send, trace.Receive, trace.Lose:
		return empty(e.Msg) && b[beatKind{e.Path, e.Msg.Kind}]
	}
	return false
}

// amid reports whether the run has other events worth showing.
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
