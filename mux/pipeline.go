package mux

import (
	"fmt"

	"parley"
	"parley/lockstep"
)

// Pipeline is one process in consecutive instances of one protocol in rounds. The instances are called slots, and are
// numbered from 1. Each slot begins on demand, and many slots may be in flight. A machine embeds a Pipeline and
// passes its events to the Pipeline. The frames of slot k have k in their Value. A slot is opened by a call of
// OpenSlot, or by its first frame of round 0 from any process. Opening a slot also opens all earlier slots. Slots
// deliver in the order of their numbers.
//
// Slot k may begin when the duration of a slot plus one round has passed since slot k-window began. By then slot
// k-window is over at every correct process. So at most window slots are unfinished at the same time, whichever
// process opens them, and at most window slots begin within that time. Like deadlines, the rule uses only the time
// since a slot began, and not which slots this process has finished. All correct processes begin a slot within one
// delay of each other, so by the clock they may also begin the slot one window later within one delay. But a process
// that gets fewer frames from a faulty process may finish slots long after the others. If a frame arrives before its
// slot may begin, the process keeps the frame, at most window slots ahead. A frame further ahead comes from a faulty
// process, and is refused.
//
// Why processes stay together: assume that all correct processes began slot k-window within one delay of each other
// (plus twice the slack, see lockstep). When the first of them begins slot k, all others receive its frame at most
// one delay later. By then they may also begin slot k, because they began slot k-window at most one delay after the
// first.
//
// A process that abstains in a slot takes part in later slots, but delivers neither this slot nor later slots. A
// process that restarts after a crash takes no part in any slot, because it cannot know which slots have begun. A
// process of a [Rejoining] can find out. A protocol with signatures is refused, because a signature from one slot
// would be valid in all slots.
type Pipeline struct {
	p             lockstep.Protocol
	when          lockstep.Schedule
	self          parley.ID
	handler       SlotHandler
	participation participation

	ring
	alarm
	deactivated bool   // restarted after a crash: it cannot know which slots have begun
	missed      uint64 // the first slot in which this process abstained; 0: none
}

// participation is how a process takes part in the slots.
type participation interface {
	// currentPhase returns the phase of this process.
	currentPhase() phase
	// mayOpen reports whether this process begins slots, and slot k in particular.
	mayOpen(s *parley.Step, k uint64) bool
	// mayOpenEarly reports whether slot k may begin before this process's own window allows it.
	mayOpenEarly(k uint64) bool
	// beforeSending runs before this process sends in a slot.
	beforeSending(s *parley.Step, k uint64)
	// observe records which process begins which slot, and reports whether the frame is of any use.
	observe(s *parley.Step, from parley.ID, q parley.Msg) bool
	// slotEnded runs when a slot is over, and reports whether its decision counts.
	slotEnded(s *parley.Step, k uint64, r *slot) bool
	// runDue does what is due besides the slots.
	runDue(s *parley.Step)
	// visitSlot visits what this participation records of a slot.
	visitSlot(v *parley.Vars, r *slot)
}

// noRejoin is the participation of a process that never rejoins: after a restart it is inactive.
type noRejoin struct{ missed *uint64 }

func (noRejoin) currentPhase() phase                              { return participating }
func (noRejoin) mayOpen(*parley.Step, uint64) bool                { return true }
func (noRejoin) mayOpenEarly(uint64) bool                         { return false }
func (noRejoin) beforeSending(*parley.Step, uint64)               {}
func (noRejoin) observe(*parley.Step, parley.ID, parley.Msg) bool { return true }
func (noRejoin) runDue(*parley.Step)                              {}
func (noRejoin) visitSlot(*parley.Vars, *slot)                    {}

func (a noRejoin) slotEnded(_ *parley.Step, k uint64, _ *slot) bool {
	return *a.missed == 0 || k < *a.missed
}

// SlotHandler is the machine that embeds a pipeline. Its two methods must not call the pipeline.
type SlotHandler interface {
	// ProposalFor returns what this process proposes in a slot. The pipeline calls it when the slot begins, whichever
	// process opened the slot. The frame of round 0 contains the value.
	ProposalFor(s *parley.Step, slot uint64) (m parley.Msg, ok bool)
	// SlotDone receives the deliveries of this process's instance of a slot. The slots come in order, without
	// gaps. The pipeline reuses delivered.
	SlotDone(s *parley.Step, slot uint64, delivered []parley.Effect)
}

// NewPipeline makes one process. It panics if the schedule is not on demand, the window is less than 1,
// or the protocol signs.
func NewPipeline(p lockstep.Protocol, when lockstep.Schedule, window int, self parley.ID, above SlotHandler) *Pipeline {
	switch {
	case !when.OnDemand:
		panic("mux: slots begin on call")
	case window < 1:
		panic("mux: slots need a window")
	case p.Faults == parley.SignedByzantineFaults:
		panic(fmt.Sprintf("mux: what is signed in one slot of %s counts in all", p.Name))
	}
	l := &Pipeline{p: p, when: when, self: self, handler: above, ring: newRing(window, p.N), alarm: alarm{due: never}}
	l.participation = noRejoin{&l.missed}
	return l
}

func (l *Pipeline) beginRequested(s *parley.Step) {
	for k := l.opened + 1; k <= l.requested; k++ {
		l.slot(k).begin = s.Now
	}
	l.openRequested(s)
}

// Age returns the time from the beginning of slot k to the earliest beginning of slot
// k+window. It is longer than the time from the beginning of slot k at one correct process to
// its end at any other.
func (l *Pipeline) Age() parley.Tick { return parley.Tick(l.p.Last+2) * l.when.Delta }

// Missed returns the first slot in which this process abstained, and 0 if there is none. The process takes
// part in later slots, but SlotDone reports no slot from the missed one on. For a process that can rejoin,
// Missed returns the first missed slot since the last rejoin, and SlotDone omits only the missed slots.
func (l *Pipeline) Missed() uint64 { return l.missed }

// Inactive reports whether this process takes no part: after Deactivate, or while it rejoins.
func (l *Pipeline) Inactive() bool {
	return l.deactivated || l.participation.currentPhase() != participating
}

// Waits reports whether the process takes part, or is ready to take part. A ready process starts when there
// is a request.
func (l *Pipeline) Waits() bool { return !l.deactivated && l.participation.currentPhase() >= ready }

// Deactivate makes the process take no part from now on, as after a restart.
func (l *Pipeline) Deactivate() { l.deactivated = true }

// OpenSlot requests that a slot and all slots before it begin, at once if the window allows that. Slot 0
// means the next slot.
func (l *Pipeline) OpenSlot(s *parley.Step, k uint64) { l.openSlot(s, k, false) }

// openSlot is OpenSlot. If own is true, the slot waits for half a round unless another process requests it.
func (l *Pipeline) openSlot(s *parley.Step, k uint64, own bool) {
	if l.Inactive() {
		return
	}
	l.catchUp(s)
	if k == 0 {
		k = l.opened + 1
	}
	if k > l.opened+l.window {
		s.Refuse(s.Self, "call of a slot past the window")
		return
	}
	l.requestSlots(s, k, own)
	l.participation.runDue(s)
}

// requestSlots requests slots up to k, and begins those that may begin.
func (l *Pipeline) requestSlots(s *parley.Step, k uint64, own bool) {
	for l.requested = max(l.requested, l.opened); l.requested < k; {
		l.requested++
		r := l.slot(l.requested)
		r.begin, r.ownOnly = s.Now, own
	}
	for ; !own && k > l.opened; k-- {
		if r := l.slot(k); r.ownOnly { // this process held it back
			r.begin, r.ownOnly = s.Now, false
		}
	}
	l.openRequested(s)
}

// openRequested begins slots that are requested and may begin. A slot that had to wait for the window
// has begun when the window allowed it, even if the timer is late.
func (l *Pipeline) openRequested(s *parley.Step) {
	for l.opened < l.requested {
		k := l.opened + 1
		r := l.slot(k)
		if !l.participation.mayOpen(s, k) {
			return
		}
		if k > l.window {
			from := l.slot(k-l.window).begin + l.Age()
			if r.ownOnly {
				from += l.when.Delta / 2
			}
			if s.Now < from {
				if !l.participation.mayOpenEarly(k) {
					l.wake(s, from)
					return
				}
				from = s.Now
			}
			r.begin = max(r.begin, from)
		}
		l.opened = k
		// Its place held slot k-window, which is over everywhere.
		old := l.slot(k + l.window)
		*old = slot{delivered: old.delivered[:0], beganBy: old.beganBy}
		one := l.instance(k)
		mark := s.Mark()
		if by := s.Now - r.begin; l.when.Late(by) {
			s.Refuse(s.Self, parley.WokeTooLate)
			l.abstain(k, one)
		} else {
			l.participation.beforeSending(s, k)
			if m, ok := l.handler.ProposalFor(s, k); ok {
				one.Request(s, m)
			}
			one.Open(s, r.begin)
		}
		l.settle(s, k, mark)
		if r.instance == one && !one.Over() {
			l.wake(s, one.Deadline())
		}
	}
}

// instance returns the instance of slot k, and makes it if there is none.
func (l *Pipeline) instance(k uint64) *lockstep.Instance {
	r := l.slot(k)
	if r.instance == nil {
		if last := len(l.spare) - 1; last >= 0 {
			r.instance, l.spare = l.spare[last], l.spare[:last]
			r.instance.Reset(k)
		} else {
			r.instance = lockstep.NewInstance(l.p, l.when, l.self, k)
		}
	}
	return r.instance
}

func (l *Pipeline) abstain(k uint64, one *lockstep.Instance) {
	one.Abstain()
	l.slot(k).missed = true
	if l.missed == 0 || k < l.missed {
		l.missed = k
	}
}

// Receive handles a frame. A frame of a slot that has not begun opens it.
func (l *Pipeline) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if l.deactivated {
		return
	}
	l.catchUp(s)
	l.receive(s, from, q)
	l.participation.runDue(s)
}

func (l *Pipeline) receive(s *parley.Step, from parley.ID, q parley.Msg) {
	k := q.Value
	if q.Kind != lockstep.Frame || q.Origin != 0 || k == 0 {
		s.Refuse(from, "not a frame")
		return
	}
	if !l.participation.observe(s, from, q) {
		return
	}
	switch {
	case k <= l.over:
		s.Refuse(from, "frame of a slot that is over")
		return
	case k > l.opened+l.window:
		s.Refuse(from, "frame of a slot past the window")
		return
	case k > l.opened:
		if !lockstep.Opens(q) {
			s.Refuse(from, "frame of a slot that has not begun")
			return
		}
		if l.requestSlots(s, k, false); k <= l.over {
			return // the kept frames completed it
		}
	}
	one := l.instance(k)
	mark := s.Mark()
	one.Receive(s, from, q)
	if s.Mark() > mark || one.Over() {
		l.settle(s, k, mark)
	}
}

// settle keeps what slot k delivered until those before it are over.
func (l *Pipeline) settle(s *parley.Step, k uint64, mark int) {
	r := l.slot(k)
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpDeliver {
			return false
		}
		r.delivered = append(r.delivered, *e)
		return true
	})
	for l.over < l.opened && k == l.over+1 {
		r := l.slot(k)
		if r.instance == nil || !r.instance.Over() {
			return
		}
		counts := l.participation.slotEnded(s, k, r)
		l.spare, r.instance = append(l.spare, r.instance), nil
		l.over = k
		if counts {
			l.handler.SlotDone(s, k, r.delivered)
		}
		clear(r.delivered)
		r.delivered = r.delivered[:0]
		k++
	}
}

// Timeout handles the timer.
func (l *Pipeline) Timeout(s *parley.Step) {
	if !l.deactivated {
		l.catchUp(s)
	}
}

// catchUp ends the rounds whose time is over, and begins slots that the window now
// allows.
func (l *Pipeline) catchUp(s *parley.Step) {
	if s.Now < l.due {
		return
	}
	l.due = never
	for k := l.over + 1; k <= l.opened; k++ {
		one := l.slot(k).instance
		if one == nil {
			continue
		}
		mark := s.Mark()
		for !one.Over() && s.Now >= one.Deadline() {
			if !one.Expire(s) {
				l.abstain(k, one)
			}
		}
		late := never
		if !one.Over() {
			late = one.Deadline()
		}
		l.settle(s, k, mark)
		if late < never {
			l.wake(s, late)
		}
	}
	l.openRequested(s)
	l.participation.runDue(s)
}

// State visits the slots that are not over, and when the other slots of the window began.
func (l *Pipeline) State(v *parley.Vars) {
	if v.Skips() {
		return
	}
	v.Bool("mute", &l.deactivated)
	parley.Num(v, "over", &l.over)
	parley.Num(v, "opened", &l.opened)
	parley.Num(v, "wanted", &l.requested)
	parley.Num(v, "missed", &l.missed)
	l.alarm.state(v)
	if v.Loading() {
		clear(l.slots)
	}
	for k := l.opened + 1 - min(l.opened, l.window); k <= l.opened+l.window; k++ {
		l.visit(v, k)
	}
}

// visit visits one slot. Delivered messages stay within the process, and only their origin
// names another one.
func (l *Pipeline) visit(v *parley.Vars, k uint64) {
	r := l.slot(k)
	if k <= max(l.opened, l.requested) {
		v.Time("begin", &r.begin)
	}
	l.participation.visitSlot(v, r)
	if k <= l.over {
		return
	}
	has := r.instance != nil
	v.Bool("has", &has)
	if has {
		l.instance(k)
		v.Machine("instance", r.instance)
	}
	parley.Slice(v, "delivered", &r.delivered, func(_ int, e *parley.Effect) {
		e.Op, e.From = parley.OpDeliver, l.self
		v.ID("of", &e.To)
		parley.Num(v, "path", &e.Path)
		if parley.Num(v, "kind", &e.Msg.Kind); e.Msg.Kind == 0 {
			return
		}
		v.ID("origin", &e.Msg.Origin)
		parley.Num(v, "seq", &e.Msg.Seq)
		parley.Num(v, "value", &e.Msg.Value)
		v.Bytes("body", &e.Msg.Body)
	})
}
