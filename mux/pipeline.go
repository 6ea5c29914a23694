package mux

import (
	"fmt"

	"parley"
	"parley/lockstep"
)

// Pipeline is one process in consecutive instances of one protocol in rounds, each on
// call and many of them at a time: the slots, numbered from 1. A machine embeds it and hands it
// its events; the frames of slot k have k for their Value. Calling a slot calls all before it, and
// the first frame of round 0 from whomever calls too. What slots deliver is delivered in their order.
//
// A slot may begin when so much time has passed since the one that is window slots
// before it began that this one is over at every correct process: one round more than
// it has. So at most window slots are unfinished at a time, whoever calls, and at most
// as many begin in that time. The rule goes by time, and not by what this process has
// finished, for the same reason that deadlines do: all correct processes begin a slot
// within one delay, so that by the clock all of them may begin the next one within one
// delay too, while one that a liar says less to may finish slots long after others. A
// frame that comes before its slot may begin is kept, at most window slots ahead; past
// that it comes from a liar, and is refused.
//
// Why processes stay together: say that a slot's beginnings are at most one delay apart
// (and twice the slack, see lockstep). If the first correct process begins slot k at a
// time, all others have its frame one delay later; and by then they may begin slot k
// too, for they began slot k-window at most so much later than it did.
//
// A process that abstains in a slot takes part in later ones and delivers none from that
// on. One that comes back after a crash takes no part in any: it cannot know which have
// begun; see [Rejoining] for how it may find out. Signed protocols are
// refused, for what is signed in one instance would count in all.
type Pipeline struct {
	p     lockstep.Protocol
	when  lockstep.Schedule
	self  parley.ID
	above SlotHandler
	part  part

	ring
	alarm
	waits  bool   // no slot begins before it is released
	mute   bool   // it came back after a crash: what may have begun cannot be known
	missed uint64 // the first slot that this process abstained from; 0: none
}

// part is what part a process takes in the slots.
type part interface {
	// at is how far it is.
	at() phase
	// opens tells whether this process begins slots, and slot k.
	opens(s *parley.Step, k uint64) bool
	// early tells whether a slot may begin before this process's own window lets it.
	early(k uint64) bool
	// speaks is for a slot in which this process is to speak.
	speaks(s *parley.Step, k uint64)
	// hears notes who begins which slots, and tells whether the frame is of any use.
	hears(s *parley.Step, from parley.ID, q parley.Msg) bool
	// ends is for a slot that is over, and tells whether what is agreed on in it counts.
	ends(s *parley.Step, k uint64, r *slot) bool
	// turn does what is due beside the slots.
	turn(s *parley.Step)
	// noted visits what is noted of a slot beside what is of all pipelines.
	noted(v *parley.Vars, r *slot)
}

// always is the part of a process that is never out: after a crash it is mute.
type always struct{ missed *uint64 }

func (always) at() phase                                      { return participating }
func (always) opens(*parley.Step, uint64) bool                { return true }
func (always) early(uint64) bool                              { return false }
func (always) speaks(*parley.Step, uint64)                    {}
func (always) hears(*parley.Step, parley.ID, parley.Msg) bool { return true }
func (always) turn(*parley.Step)                              {}
func (always) noted(*parley.Vars, *slot)                      {}

func (a always) ends(_ *parley.Step, k uint64, _ *slot) bool { return *a.missed == 0 || k < *a.missed }

// SlotHandler is the machine that embeds a pipeline. Neither function may call the pipeline.
type SlotHandler interface {
	// ProposalFor is asked what this process says in a slot, at the moment in which it begins,
	// whoever called for it: the value is in round 0's frame.
	ProposalFor(s *parley.Step, slot uint64) (m parley.Msg, ok bool)
	// SlotDone tells what this process's instance of a slot delivered: slot by slot, in
	// order, none left out. delivered is the pipeline's own.
	SlotDone(s *parley.Step, slot uint64, delivered []parley.Effect)
}

// NewPipeline makes one process. It panics if the schedule is not on call, the window is less than 1,
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
	l := &Pipeline{p: p, when: when, self: self, above: above, ring: newRing(window, p.N), alarm: alarm{due: never}}
	l.part = always{&l.missed}
	return l
}

// Pause keeps all slots from beginning; what comes of them is kept. Release lets those begin
// that are called for. All correct processes must be released within the time that the
// schedule allows for a call to be heard by all.
func (l *Pipeline) Pause() { l.waits = true }

// Resume is the end of a Hold.
func (l *Pipeline) Resume(s *parley.Step) {
	if !l.waits {
		return
	}
	l.waits = false
	l.begin(s)
}

// begin has slots that were called for begin now.
func (l *Pipeline) begin(s *parley.Step) {
	for k := l.opened + 1; k <= l.wanted; k++ {
		l.slot(k).begin = s.Now
	}
	l.open(s)
}

// Paused tells whether the pipeline waits to be released.
func (l *Pipeline) Paused() bool { return l.waits }

// Age is how long after slot k has begun slot k+window may begin: longer than any
// correct process takes until slot k is over, counted from when another one began it.
func (l *Pipeline) Age() parley.Tick { return parley.Tick(l.p.Last+2) * l.when.Delta }

// Missed is the first slot that this process abstained from, and 0 if there is none. It
// goes on in later ones, but Over tells of none from that one on, unless the process can
// return: then it is the first since it came back last, and Over leaves out what it missed.
func (l *Pipeline) Missed() uint64 { return l.missed }

// Inactive tells whether this process takes no part: see Mute, or none yet: see Returns.
func (l *Pipeline) Inactive() bool { return l.mute || l.part.at() != participating }

// Waits tells of a muted process that it could take part, and does when there is something to do.
func (l *Pipeline) Waits() bool { return !l.mute && l.part.at() >= ready }

// Rounds are this process's own in a slot that has begun and is not over; nil otherwise.
func (l *Pipeline) Rounds(k uint64) lockstep.Rounds {
	if k <= l.over || k > l.opened || l.slot(k).one == nil {
		return nil
	}
	return l.slot(k).one.Rounds()
}

// Deactivate ends all part that the process takes: for one that comes back after a crash.
func (l *Pipeline) Deactivate() { l.mute = true }

// OpenSlot asks for a slot, and all before it, to begin: at once if the window allows.
// Slot 0 stands for the next one.
func (l *Pipeline) OpenSlot(s *parley.Step, k uint64) { l.call(s, k, false) }

// call is Call. own tells that the slot waits for half a round if nobody else has asked for it.
func (l *Pipeline) call(s *parley.Step, k uint64, own bool) {
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
	l.want(s, k, own)
	l.part.turn(s)
}

// want notes that slots up to k are to begin, and begins those that may.
func (l *Pipeline) want(s *parley.Step, k uint64, own bool) {
	for l.wanted = max(l.wanted, l.opened); l.wanted < k; {
		l.wanted++
		r := l.slot(l.wanted)
		r.begin, r.own = s.Now, own
	}
	for ; !own && k > l.opened; k-- {
		if r := l.slot(k); r.own { // this process held it back
			r.begin, r.own = s.Now, false
		}
	}
	l.open(s)
}

// open begins what is wanted and may begin. A slot that had to wait for the window has
// begun when the window let it, though a timer may be late.
func (l *Pipeline) open(s *parley.Step) {
	for !l.waits && l.opened < l.wanted {
		k := l.opened + 1
		r := l.slot(k)
		if !l.part.opens(s, k) {
			return
		}
		if k > l.window {
			from := l.slot(k-l.window).begin + l.Age()
			if r.own {
				from += l.when.Delta / 2
			}
			if s.Now < from {
				if !l.part.early(k) {
					l.wake(s, from)
					return
				}
				from = s.Now
			}
			r.begin = max(r.begin, from)
		}
		l.opened = k
		// What stood there was slot k-window, which is over everywhere.
		old := l.slot(k + l.window)
		*old = slot{out: old.out[:0], sizes: old.sizes, came: old.came}
		one := l.instance(k)
		mark := s.Mark()
		if by := s.Now - r.begin; l.when.Late(by) {
			s.Refuse(s.Self, "woke too late: abstains")
			l.abstain(k, one)
		} else {
			l.part.speaks(s, k)
			if m, ok := l.above.ProposalFor(s, k); ok {
				one.Request(s, m)
			}
			one.Open(s, r.begin)
		}
		l.settle(s, k, mark)
		if r.one == one && !one.Over() {
			l.wake(s, one.Deadline())
		}
	}
}

// instance returns the process in slot k.
func (l *Pipeline) instance(k uint64) *lockstep.Instance {
	r := l.slot(k)
	if r.one == nil {
		if last := len(l.spare) - 1; last >= 0 {
			r.one, l.spare = l.spare[last], l.spare[:last]
			r.one.Reset(k)
		} else {
			r.one = lockstep.NewInstance(l.p, l.when, l.self, k)
		}
	}
	return r.one
}

func (l *Pipeline) abstain(k uint64, one *lockstep.Instance) {
	one.Abstain()
	l.slot(k).apart = true
	if l.missed == 0 || k < l.missed {
		l.missed = k
	}
}

// Receive takes in a frame. One of a slot that has not begun calls for it.
func (l *Pipeline) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if l.mute {
		return
	}
	l.catchUp(s)
	l.receive(s, from, q)
	l.part.turn(s)
}

func (l *Pipeline) receive(s *parley.Step, from parley.ID, q parley.Msg) {
	k := q.Value
	if q.Kind != lockstep.Frame || q.Origin != 0 || k == 0 {
		s.Refuse(from, "not a frame")
		return
	}
	if !l.part.hears(s, from, q) {
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
		if l.want(s, k, false); k <= l.over {
			return // what was kept of it was all that it needed
		}
	}
	if q.Seq == 0 && !l.keeps(l.slot(k), from, len(q.Body)) {
		s.Refuse(from, "more of one process than is kept")
		return
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
		r.out = append(r.out, *e)
		return true
	})
	for l.over < l.opened && k == l.over+1 {
		r := l.slot(k)
		if r.one == nil || !r.one.Over() {
			return
		}
		counts := l.part.ends(s, k, r)
		l.spare, r.one = append(l.spare, r.one), nil
		l.letGo(r)
		l.over = k
		if counts {
			l.above.SlotDone(s, k, r.out)
		}
		clear(r.out)
		r.out = r.out[:0]
		k++
	}
}

// Timeout is the timer.
func (l *Pipeline) Timeout(s *parley.Step) {
	if !l.mute {
		l.catchUp(s)
	}
}

// catchUp ends the rounds whose time is over, and begins slots that the window lets
// begin by now.
func (l *Pipeline) catchUp(s *parley.Step) {
	if s.Now < l.due {
		return
	}
	l.due = never
	for k := l.over + 1; k <= l.opened; k++ {
		one := l.slot(k).one
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
	l.open(s)
	l.part.turn(s)
}

// State visits the slots that are not over, and when the others of the window began.
func (l *Pipeline) State(v *parley.Vars) {
	if v.Skips() {
		return
	}
	v.Bool("waits", &l.waits)
	v.Bool("mute", &l.mute)
	parley.Num(v, "over", &l.over)
	parley.Num(v, "opened", &l.opened)
	parley.Num(v, "wanted", &l.wanted)
	parley.Num(v, "missed", &l.missed)
	l.alarm.state(v)
	if v.Loading() {
		clear(l.slots)
		clear(l.held)
	}
	for k := l.opened + 1 - min(l.opened, l.window); k <= l.opened+l.window; k++ {
		l.visit(v, k)
	}
}

// visit visits one slot. The messages that it delivered stay within the process, and name
// another one by their origin alone.
func (l *Pipeline) visit(v *parley.Vars, k uint64) {
	r := l.slot(k)
	if k <= max(l.opened, l.wanted) {
		v.Time("begin", &r.begin)
	}
	l.part.noted(v, r)
	if k <= l.over {
		return
	}
	has := r.one != nil
	v.Bool("has", &has)
	if has {
		l.instance(k)
		v.Machine("instance", r.one)
	}
	if l.limit > 0 {
		parley.PerProcess(v, "bytes", l.sizes(r), func(id parley.ID, size *int) {
			parley.Num(v, "kept", size)
			if v.Loading() {
				l.held[id] += *size
			}
		})
	}
	parley.Slice(v, "delivered", &r.out, func(_ int, e *parley.Effect) {
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
