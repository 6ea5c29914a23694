package conform

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// recoveryCase has the answers of the other receivers of a message to the one that takes it over from its sender.
type recoveryCase struct {
	kinded
	Status map[string]status `json:"status"`
}

// status is one answer: a state and, unless the state is unknown, the priority.
type status struct {
	State    string `json:"state"`
	Priority *mixed `json:"priority"`
}

type recoveryExpect struct {
	Action   *string `json:"action"`
	Priority *mixed  `json:"priority"`
}

// The actions.
const (
	multicastFinal = "multicast-final"
	restartPhase1  = "restart-phase-1"
)

func recovery(c recoveryCase, want recoveryExpect, report reporter) {
	k, answers := c.prepare()
	action, priority := takeOver(k, answers)
	if a := want.Action; a != nil && *a != multicastFinal && *a != restartPhase1 {
		fail("expect: action %q: allowed are %s and %s", *a, multicastFinal, restartPhase1)
	}
	report("action", want.Action, action)
	if want.Priority != nil {
		number, by := want.Priority.numberFirst("expect: priority")
		report("priority", [2]any{number, by}, priority)
	}
}

// prepare reads the answers. The processes are those that answer, and those whose priorities they report, sorted by
// name.
func (c recoveryCase) prepare() (k cast, answers map[parley.ID]atomic.Answer) {
	names := form.Keys(c.Status)
	for _, name := range form.Keys(c.Status) {
		if p := c.Status[name].Priority; p != nil {
			_, by := p.numberFirst("status: " + name + ": priority")
			names = append(names, by)
		}
	}
	slices.Sort(names)
	k = named("", slices.Compact(names))
	if len(k.names) > parley.MaxProcesses-2 {
		fail("%d processes: there are two beside them, and %d is the most", len(k.names), parley.MaxProcesses)
	}
	answers = make(map[parley.ID]atomic.Answer)
	var final *atomic.Priority
	for _, name := range form.Keys(c.Status) {
		id := k.id("", name)
		within("status: "+name, func() {
			a := k.answer(c.Status[name])
			answers[id] = a
			switch {
			case a.State == atomic.Undeliverable && a.Priority.By != id:
				fail("undeliverable: the priority is its own proposal")
			case a.State == atomic.Deliverable || a.State == atomic.Delivered:
				if final != nil && *final != a.Priority {
					fail("there is one final priority, and others have another")
				}
				final = &a.Priority
			}
		})
	}
	return k, answers
}

// maxPriority is the maximum number of a priority.
const maxPriority = 1 << 50

func (c cast) answer(s status) (a atomic.Answer) {
	for a.State = atomic.Unknown; a.State.String() != s.State; a.State++ {
		if a.State == atomic.Delivered {
			fail("state %q: allowed are undeliverable, deliverable, delivered and unknown", s.State)
		}
	}
	switch {
	case (s.Priority == nil) != (a.State == atomic.Unknown):
		fail("there is a priority unless the state is unknown")
	case s.Priority == nil:
		return a
	}
	number, by := s.Priority.numberFirst("")
	if number < 1 || number > maxPriority {
		fail("priority: %d: allowed are 1 to %d", number, uint64(maxPriority))
	}
	a.Priority = atomic.Priority{Number: number, By: c.id("", by)}
	return a
}

// takeOver runs a machine that takes a message over. It is an additional receiver: it has proposed when the sender
// crashes, gets the answers of the others, and does the same to all of them.
func takeOver(k cast, answers map[parley.ID]atomic.Answer) (action string, priority [2]any) {
	n := parley.ID(len(k.names))
	heir, sender := n, n+1
	t := newHost(atomic.New(atomic.Config{N: int(n) + 2, Detector: true}))
	to := parley.SetOf(heir)
	for id := range n {
		if _, answers := answers[id]; answers {
			to.Add(id)
		}
	}
	others := to
	others.Remove(heir)
	t.run(sender, request(problem.RequestTo(to, payload)))
	asked, _ := t.take(func(m onLink) bool { return m.to == heir })
	t.run(heir, receive(sender, asked.msg))
	before := len(t.sent)
	t.run(heir, receive(heir, parley.Msg{Kind: parley.Suspect, Origin: sender}))
	for _, m := range t.sent[before:] {
		if m.msg.Kind != atomic.Status || !others.Has(m.to) {
			fail("who takes over sends a message of kind %d first", m.msg.Kind)
		}
	}
	questions := slices.Clone(t.sent[before:])
	before = len(t.sent)
	for _, m := range questions {
		t.run(heir, receive(m.to, known(m.msg, answers[m.to])))
	}
	return outcomeOf(k, t, t.sent[before:], others)
}

// known returns the message with an answer to a status question.
func known(question parley.Msg, a atomic.Answer) parley.Msg {
	m := question // about the same message and under the same ballot
	m.Kind, m.Value = atomic.Known, a.Priority.Number
	m.Body = append(slices.Clone(m.Body), byte(a.State))
	m.Body = binary.AppendUvarint(m.Body, uint64(a.Priority.By))
	return m
}

// outcomeOf returns what the process that took over sends to all others.
func outcomeOf(k cast, t *scriptHost, sent []onLink, others parley.Set) (action string, priority [2]any) {
	left := others
	for i, m := range sent {
		if !left.Has(m.to) || m.msg.Kind != sent[0].msg.Kind {
			fail("who takes over sends message %d of kind %d to %d", i, m.msg.Kind, m.to)
		}
		left.Remove(m.to)
		switch m.msg.Kind {
		case atomic.Final:
			p, _ := atomic.PriorityOf(m.msg, m.from, t.protocol.N)
			action, priority = multicastFinal, [2]any{p.Number, k.name(p.By)}
		case atomic.Req:
			action = restartPhase1
		}
	}
	if left != (parley.Set{}) {
		action = "nothing to all of them"
	}
	return action, priority
}
