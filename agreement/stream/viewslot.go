package stream

import (
	"bytes"

	"parley"
	"parley/agreement/tetra"
)

// viewSlot is one agreement.
type viewSlot struct {
	m       *viewMachine
	number  uint64
	in      *tetra.Instance
	heard   parley.Set // processes that spoke in it
	request uint64     // at the source: the number of its request
	pending bool       // at the source: the request waits for the decision
	tries   uint64     // time-outs of the current view
	timing  bool       // its timer runs
}

func (m *viewMachine) newSlot(number uint64) *viewSlot {
	k := &viewSlot{m: m, number: number}
	k.in = tetra.NewInstance(m.self, m.Source, m.N, m.M, m.Limit()+1, k)
	return k
}

// slotTimers is the number of timers of slots. Slots whose numbers differ by less have different timers.
const slotTimers = 1 << 15

func (k *viewSlot) timer() parley.Timer { return slotsTimer + 1 + parley.Timer(k.number%slotTimers) }

// Holds: a value stands for itself. It begins with the mark.
func (k *viewSlot) Holds(value []byte) bool { return value[0] == valueMark }

// Entered sets the timer of the view.
func (k *viewSlot) Entered(s *parley.Step, _ uint64) {
	k.tries = 0
	k.setTimer(s)
}

func (k *viewSlot) setTimer(s *parley.Step) {
	k.timing = true
	s.SetTimer(k.timer(), k.m.wait<<min(max(k.in.View(), min(k.tries, doublings)), 2*doublings))
}

// Decided delivers the decision.
func (k *viewSlot) Decided(s *parley.Step, value []byte) {
	s.StopTimer(k.timer())
	switch {
	case k.m.self == k.m.Source && !k.pending: // it has given up the slot
	case len(value) == 0:
		s.Indicate(parley.Msg{Kind: Nothing, Seq: k.number, Value: k.request})
	default:
		s.Deliver(k.m.Source, parley.Msg{
			Kind: parley.Decide, Origin: k.m.Source, Seq: k.number, Value: k.request, Body: bytes.Clone(value[1:]),
		})
	}
	k.timing, k.pending = false, false
}

// run runs a clause of the agreement, and gives what it sends the form that has a slot. What it appends is dropped: a
// process that restarts says nothing more in the slot.
func (k *viewSlot) run(s *parley.Step, clause func(in *tetra.Instance)) {
	mark := s.Mark()
	clause(k.in)
	speaks := false
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op == parley.OpSend {
			e.Msg = wrapped(e.Msg, k.number)
			speaks = true
		}
		return e.Op == parley.OpAppend
	})
	if speaks && k.number > k.m.reserve {
		k.m.save(s, k.number+k.m.behind()-1)
	}
}

// receive handles a message of this slot.
func (k *viewSlot) receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if !asks(q) {
		k.heard.Add(from)
	}
	k.run(s, func(in *tetra.Instance) { in.Receive(s, from, q) })
	k.watch(s)
}

// asks reports whether a message of tetra only asks others to repeat what they said. A process may ask in slots that
// the source has not begun.
func asks(q parley.Msg) bool { return q.Kind == tetra.Wish && q.Seq == 0 }

// underway reports whether the source or m+1 processes have spoken in the slot: then a correct process has begun it.
func (k *viewSlot) underway() bool { return k.in.Spoke() || k.heard.Len() > k.m.M }

// watch starts the timer, if it does not run and the slot is not decided.
func (k *viewSlot) watch(s *parley.Step) {
	if _, decided := k.in.Decision(); !decided && !k.timing && (k.underway() || k.tries < mostAsks) {
		k.setTimer(s)
	}
}

// expire: the decision takes too long. In a slot in which perhaps only faulty processes speak, this process asks the
// others to repeat what they said.
func (k *viewSlot) expire(s *parley.Step) {
	k.timing = false
	view := k.in.View()
	k.run(s, func(in *tetra.Instance) {
		if k.underway() {
			in.Timeout(s)
		} else {
			in.Ask(s)
		}
	})
	if k.in.View() == view {
		k.tries++
	}
	k.watch(s)
}

// state visits every variable.
func (k *viewSlot) state(v *parley.Vars) {
	v.Machine("agreement", k.in)
	v.Set("heard", &k.heard)
	parley.Num(v, "request", &k.request)
	v.Bool("pending", &k.pending)
	parley.Num(v, "tries", &k.tries)
	v.Bool("timing", &k.timing)
}
