package stream

import (
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/tetra"
	"parley/lockstep"
)

// viewRounds is how many rounds a process waits for the decision of view 0.
const viewRounds = 2

// newViews returns the protocol of a stream without rounds.
func newViews(c Config, when lockstep.Schedule) parley.Protocol {
	wait := viewRounds * when.Delta
	one := tetra.New(tetra.Config{N: c.N, M: c.M, Source: c.Source, Wait: wait})
	j := streamJudge{Config: c, age: 4 * wait}
	return parley.Protocol{
		Name: "stream", Title: "agreements on request, many at a time, safe whatever the timing",
		Paper:  "Yu, Losa and Wang 2024; Bracha 1987; slots and restarts are Parley's own",
		Timing: one.Timing, Faults: one.Faults, N: c.N, M: c.M, Proposers: one.Proposers,
		Kinds:      append(one.Kinds, "SILENCE", "SLOT?", "SLOT"),
		Span:       one.Span,
		New:        func(self parley.ID) parley.Machine { return newViewMachine(c, self, wait) },
		Properties: j.properties(),
		Promises:   c.viewPromises,
		Bound:      c.bound,
		Size:       one.Size,
		Explain:    explainView(one.Explain),
		Lies:       viewLies(one.Lies),
		Flags:      parley.Flags(c, flags, func(c Config) parley.Protocol { return New(c, when) }),
	}
}

// viewPromises returns what holds under given run conditions. A process that restarts with its disk says nothing in
// slots in which it may have spoken. So restarts never put agreement at risk, but a slot has no decision if too few
// processes are left that speak in it.
func (c Config) viewPromises(a parley.RunConditions) []parley.Promise {
	safe := ""
	switch err := c.bound(a.N, a.M); {
	case err != nil:
		safe = err.Error()
	case a.Faulty > a.M:
		safe = a.Excess()
	case a.Processes.LostDisk && a.Faulty+a.Away > a.M:
		safe = a.ExcessOf(a.Faulty+a.Away, "is faulty or restarted without its disk",
			"are faulty or restarted without their disks")
	}
	live := safe
	switch {
	case live != "":
	case a.Faulty+a.Away > a.M:
		live = a.ExcessDown(a.Faulty + a.Away)
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		live = "messages were lost, so no view is certain to succeed in a known time"
	case a.Processes.Paused:
		live = "a process was paused, so no view is certain to succeed in a known time"
	}
	return []parley.Promise{
		parley.Promised(problem.Agreement, "two quorums share a correct process, and a restarted process is silent in "+
			"the slots in which it may have spoken", safe),
		parley.Promised(problem.Validity, "m+1 processes vouch for a value: a correct one received it from the source", safe),
		parley.Promised(problem.Integrity, "a process decides once in a slot, and not in the slots before its restart", safe),
		parley.Promised(problem.Termination, "n > 3m: some view of each slot is long enough and has a correct leader", live),
		parley.Promised(Rejoining, "the source leaves out the slots in which a restarted process is silent", live),
	}
}

// unwrapped returns a message of package tetra as tetra sends it.
func unwrapped(m parley.Msg) parley.Msg {
	m.Seq, m.Value = m.Value>>viewShift, m.Value&(1<<viewShift-1)
	return m
}

// wrapped is the inverse of unwrapped.
func wrapped(m parley.Msg, slot uint64) parley.Msg {
	m.Seq, m.Value = slot, m.Seq<<viewShift|m.Value
	return m
}

// viewLies returns the lies of each slot, and lies about slots.
func viewLies(inSlot lieFunc) lieFunc {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var told []parley.Outgoing
		for _, one := range t.Honest {
			slot := one.Msg.Seq
			switch one.Msg.Kind {
			case silence:
				told = append(told, replyLies(s, one, func(m *parley.Msg) { m.Seq = slot + 3 })...)
			case slotReply:
				// It takes no part, or knows far more slots than the others.
				told = append(told, replyLies(s, one,
					func(m *parley.Msg) { m.Value, m.Seq = 0, 0 }, func(m *parley.Msg) { m.Seq = slot + 1000 })...)
			case slotQuery:
				told = append(told, one)
			default:
				turn := *t
				turn.Memo, turn.Out = nil, nil
				one.Msg = unwrapped(one.Msg)
				turn.Honest = []parley.Outgoing{one}
				for _, lie := range inSlot(s, &turn) {
					lie.Msg = wrapped(lie.Msg, slot)
					told = append(told, lie)
				}
			}
		}
		return told
	}
}

// explainFunc is the type of parley.Protocol.Explain.
type explainFunc = func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string]

// explainView shows a message of package tetra with its slot, and every other message.
func explainView(inSlot explainFunc) explainFunc {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		text := ""
		switch {
		case m.Kind == silence:
			text = fmt.Sprintf("silent up to #%d", m.Seq)
		case m.Kind == slotQuery:
			text = "which slot?"
		case m.Kind == slotReply:
			text = fmt.Sprintf("slot #%d", m.Seq)
			if m.Value == 0 {
				text += ", and takes no part"
			}
		default:
			m.Body = unmarked(m)
			for row := range inSlot(e, unwrapped(m), name) {
				text = fmt.Sprintf("#%d: %s", m.Seq, row)
			}
		}
		return slices.Values([]string{text})
	}
}

// unmarked returns the body of a message of package tetra for users: a value without its mark.
func unmarked(m parley.Msg) []byte {
	if m.Kind != tetra.Enter && len(m.Body) > 0 && m.Body[0] == valueMark {
		return append([]byte{}, m.Body[1:]...)
	}
	return m.Body
}
