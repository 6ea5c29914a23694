package conform

import (
	"cmp"
	"fmt"
	"slices"

	"parley"
)

// scriptHost runs the machines of a protocol clause by clause, as a case says. Time passes
// and messages arrive only when the case says so.
type scriptHost struct {
	protocol parley.Protocol
	machines []parley.Machine
	step     parley.Step
	now      parley.Tick
	down     parley.Set
	links    []onLink // oldest first
	timers   []alarm

	sent, kept []onLink               // all sent messages, and own copies
	broadcast  []parley.Effect        // requests to the layer below
	above      []parley.ExternalEvent // deliveries and indications
}

// onLink is a message in flight.
type onLink struct {
	from, to parley.ID
	msg      parley.Msg
}

// alarm is a running timer.
type alarm struct {
	at     parley.ID
	number parley.Timer
	due    parley.Tick
}

// newHost makes the machines of all processes and starts them.
func newHost(p parley.Protocol) *scriptHost {
	t := &scriptHost{protocol: p}
	for id := range parley.ID(p.N) {
		t.machines = append(t.machines, p.New(id))
		t.run(id, func(m parley.Machine, s *parley.Step) { m.Start(s) })
	}
	return t
}

// Choose and the other methods implement parley.Host. These machines choose and sign nothing. The effects show what
// they refuse.
func (t *scriptHost) Choose(int) int                        { panic("conform: a choice") }
func (t *scriptHost) Sign(parley.ID, []byte) []byte         { panic("conform: a signature") }
func (t *scriptHost) Verify(parley.ID, []byte, []byte) bool { panic("conform: a signature") }
func (t *scriptHost) Refused(_, _ parley.ID, _ string)      {}

// run runs a clause of a process that is up, and executes its effects.
func (t *scriptHost) run(at parley.ID, clause func(m parley.Machine, s *parley.Step)) {
	if !t.down.Has(at) {
		t.happen(t.clause(at, clause))
	}
}

// request returns the clause for a request, and receive that for a message.
func request(q parley.Msg) func(parley.Machine, *parley.Step) {
	return func(m parley.Machine, s *parley.Step) { m.Request(s, q) }
}

func receive(from parley.ID, q parley.Msg) func(parley.Machine, *parley.Step) {
	return func(m parley.Machine, s *parley.Step) { m.Receive(s, from, q) }
}

// carried returns the clause for a message that the layer below delivers to the layer that requested it.
func carried(from parley.ID, q parley.Msg) func(parley.Machine, *parley.Step) {
	return func(m parley.Machine, s *parley.Step) {
		s.Carried = true
		m.Receive(s, from, q)
	}
}

// clause runs a clause of a process and returns its effects, with a send to all as one send to each. It does not
// execute them.
func (t *scriptHost) clause(at parley.ID, clause func(m parley.Machine, s *parley.Step)) []parley.Effect {
	t.step = parley.Step{Self: at, N: t.protocol.N, Now: t.now, Host: t}
	clause(t.machines[at], &t.step)
	return parley.Singly(t.step.Effects, t.protocol.N)
}

// happen executes effects. It ignores log records, because no process restarts here.
func (t *scriptHost) happen(effects []parley.Effect) {
	for _, e := range effects {
		switch e.Op {
		case parley.OpSend:
			m := onLink{e.From, e.To, e.Msg}
			t.links, t.sent = append(t.links, m), append(t.sent, m)
		case parley.OpKeep:
			t.kept = append(t.kept, onLink{e.From, e.From, e.Msg})
		case parley.OpBroadcast:
			t.broadcast = append(t.broadcast, e)
		case parley.OpDeliver, parley.OpIndicate:
			t.above = append(t.above, parley.ExternalEvent{At: e.From, From: e.To, When: t.now, Msg: e.Msg})
		case parley.OpSetTimer, parley.OpStopTimer:
			t.timers = slices.DeleteFunc(t.timers, func(a alarm) bool { return a.at == e.From && a.number == e.Timer })
			if e.Op == parley.OpSetTimer {
				t.timers = append(t.timers, alarm{e.From, e.Timer, t.now + e.After})
			}
		case parley.OpAppend, parley.OpCompact:
		default:
			panic(fmt.Sprintf("conform: effect %d", e.Op))
		}
	}
}

// take removes the oldest matching message from the links.
func (t *scriptHost) take(fits func(m onLink) bool) (onLink, bool) {
	i := slices.IndexFunc(t.links, fits)
	if i < 0 {
		return onLink{}, false
	}
	m := t.links[i]
	t.links = slices.Delete(t.links, i, i+1)
	return m, true
}

// rest delivers all messages on links, oldest first, and those that result from them.
func (t *scriptHost) rest() {
	for len(t.links) > 0 {
		m := t.links[0]
		t.links = t.links[1:]
		t.run(m.to, receive(m.from, m.msg))
	}
}

// tick advances the time until the next timer expires, and reports whether there is one. Of timers with the same
// time, the one set first expires first.
func (t *scriptHost) tick() bool {
	t.timers = slices.DeleteFunc(t.timers, func(a alarm) bool { return t.down.Has(a.at) })
	if len(t.timers) == 0 {
		return false
	}
	a := slices.MinFunc(t.timers, func(a, b alarm) int { return cmp.Compare(a.due, b.due) })
	t.timers = slices.DeleteFunc(t.timers, func(b alarm) bool { return b == a })
	t.now = max(t.now, a.due)
	t.run(a.at, func(m parley.Machine, s *parley.Step) { m.Timeout(s, a.number) })
	return true
}

// delivered returns what a process has delivered, in order.
func (t *scriptHost) delivered(at parley.ID) []parley.ExternalEvent {
	var out []parley.ExternalEvent
	for _, h := range t.above {
		if h.At == at && h.Msg.Kind < parley.Indication {
			out = append(out, h)
		}
	}
	return out
}

// named returns a cast of correct processes with the given names.
func named(what string, names []string) cast {
	if len(names) < 1 || len(names) > parley.MaxProcesses {
		check(what, fmt.Errorf("%d processes: allowed are 1 to %d", len(names), parley.MaxProcesses))
	}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			check(what, fmt.Errorf("process %q: names are different, and not empty", name))
		}
	}
	return cast{names: names}
}

// maxSteps is the maximum length of a script, in steps.
const maxSteps = 2000

func checkSteps(what string, n int) {
	if n > maxSteps {
		fail("%d %s: allowed are %d", n, what, maxSteps)
	}
}
