package mux

import (
	"slices"

	"parley"
)

// Timeout handles the timer. The timer was set together with the PositionQuery, so when it expires, the disk
// has the reserve.
func (b *Rejoining) Timeout(s *parley.Step) {
	if !b.deactivated && s.Now >= b.due && b.preparing && !b.querySent {
		b.querySent, b.phaseBegan = true, s.Now
	}
	b.Pipeline.Timeout(s)
}

// HandlePosition handles the messages of rejoining. In a PositionQuery, Value is 1 if the sender has a request, and
// Seq is the floor of the sender. A process that takes part then begins the missing slots up to this floor, as fast
// as the window allows. (A faulty process could cause the same by frames.) If Value is 1, the process also reserves
// slots before it answers. In a PositionReply, Value is the last slot that has begun, or may have begun, at the
// sender. Seq is the stage of the sender: 0 means that it takes no part and knows no slot, 1 that it takes no part, 2
// that it is ready to continue with others that are ready, and 3 that it takes part.
func (b *Rejoining) HandlePosition(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Origin != 0 || len(q.Body) > 0:
		s.Refuse(from, "fields that are not used")
	case q.Kind == b.config.PositionQuery && q.Seq <= maxSlot && q.Value <= 1:
		if b.phase == participating && q.Seq > b.opened && b.requested <= b.opened {
			b.requestSlots(s, b.opened+min(q.Seq-b.opened, b.window), true)
		}
		if q.Value == 1 {
			b.reserveNext(s)
		}
		s.Send(from, parley.Msg{Kind: b.config.PositionReply, Value: max(b.floor, b.opened), Seq: b.stage(b.known)})
		if news := q.Value == 1 && !b.hasWork || b.positions[from].unanswered == staleAfter; news && !b.settled {
			b.hasWork = b.hasWork || q.Value == 1
			b.querySoon(s)
		}
	case q.Kind == b.config.PositionReply && q.Seq <= stageParticipating && q.Value <= maxSlot:
		if b.settled && b.nextQuery == 0 { // it has never asked; otherwise this answer may be late
			s.Refuse(from, "an answer that nobody waits for")
			return
		}
		b.positions[from] = peerPosition{stage: q.Seq, slot: q.Value}
	default:
		s.Refuse(from, "no message of a process that rejoins")
		return
	}
	b.catchUp(s)
	b.runDue(s)
}

func (b *Rejoining) mayOpenEarly(k uint64) bool {
	return b.n >= 2*b.config.M+2 && k-b.window <= b.over && b.begunByCorrect(k)
}

func (b *Rejoining) mayOpen(s *parley.Step, k uint64) bool {
	switch b.phase {
	case locating, listening:
		return false
	case ready:
		if !b.begunByCorrect(k) {
			return false
		}
		b.slot(k).begin = s.Now
	}
	return true
}

func (b *Rejoining) observe(s *parley.Step, from parley.ID, q parley.Msg) bool {
	k := q.Value
	if b.phase == locating {
		if q.Seq == 0 && k <= maxSlot {
			b.latestBegun[from] = max(b.latestBegun[from], k)
		}
		return false
	}
	if q.Seq == 0 && k <= maxSlot {
		b.latestBegun[from] = max(b.latestBegun[from], k)
		switch {
		case b.phase == listening:
			b.recordBeginning(s.Now, from, k, b.rank)
			if to := b.ranked(slices.Clone(b.latestBegun)); to > b.opened {
				b.skipTo(to, b.rank, b.phaseBegan-b.Age())
			}
		case k > b.opened+b.window || k+b.window < b.opened:
			b.outOfWindow.Add(from)
			b.lost = b.lost || b.outOfWindow.Len() > b.config.M
		default:
			b.outOfWindow.Remove(from)
		}
	}
	return b.phase != listening || q.Seq == 0 && k > b.opened && k <= b.opened+b.window
}

// slotEnded counts the slots in which this process was late or cut off.
func (b *Rejoining) slotEnded(s *parley.Step, k uint64, r *slot) bool {
	if c, ok := r.instance.Rounds().(Isolation); ok && !r.missed && c.Isolated() {
		s.Refuse(s.Self, parley.HeardTooFew)
		r.missed = true
		if b.missed == 0 {
			b.missed = k
		}
	}
	if !r.missed {
		b.missedInRow = 0
		return b.Tells(k)
	}
	b.missedInRow++
	b.lastMissed = k
	b.lost = b.lost || b.missedInRow >= max(b.window, 3) || b.config.Whole && b.phase == participating && k > b.base
	return false
}

func (b *Rejoining) beginRejoin(s *parley.Step) {
	b.forget()
	b.outOfWindow, b.missedInRow, b.lost = parley.Set{}, 0, false
	b.phase, b.phaseBegan, b.nextQuery, b.queryInterval = locating, s.Now, s.Now, b.when.Delta
	b.settled, b.hasWork, b.preparing = false, false, false
	b.runDue(s)
}

// abandon abandons all slots that have begun, and begins to rejoin.
func (b *Rejoining) abandon(s *parley.Step) {
	s.Refuse(s.Self, "lost touch: returns")
	b.floor, b.known = max(b.floor, b.opened), true
	b.reset(b.opened, s.Now-b.Age())
	b.beginRejoin(s)
}

func (b *Rejoining) runDue(s *parley.Step) {
	if b.deactivated {
		return
	}
	if b.lost {
		b.abandon(s)
		return
	}
	switch b.phase {
	case locating:
		if due := b.phaseBegan + b.Age(); s.Now < due {
			b.wake(s, due)
		} else if b.count(stageOut) >= b.othersHeard() {
			b.reset(max(b.floor, b.highestBegun(), b.ranked(slices.Clone(b.latestBegun))), s.Now-b.Age())
			b.known, b.floor = true, max(b.floor, b.opened)
			b.phase, b.phaseBegan = listening, s.Now
			b.wake(s, s.Now+b.Age()+b.when.Delta)
		}
	case listening:
		if due := b.phaseBegan + b.Age() + b.when.Delta; s.Now < due {
			b.wake(s, due)
		} else if b.count(stageParticipating) < b.rank || b.highestBegun() >= b.floor {
			b.enterPhase(s, ready)
		} // otherwise the others begin what is missing
	case participating:
		if b.preparing {
			b.checkPrepared(s.Now)
		} else {
			b.settled = b.settled || b.whole && b.count(stageParticipating) >= b.othersHeard()
		}
	}
	b.continueSlots(s)
	if b.settled {
		return
	}
	if s.Now >= b.nextQuery {
		b.queryAll(s)
	}
	b.wake(s, b.nextQuery)
}

func (b *Rejoining) askPrepared(s *parley.Step) {
	b.preparing, b.querySent, b.settled, b.hasWork = true, false, false, true
	b.phaseBegan, b.nextQuery, b.queryInterval = s.Now, s.Now, b.when.Delta
	for i := range b.positions {
		b.positions[i].unanswered = staleAfter
	}
	b.reserveNext(s)
	b.runDue(s)
}

// checkPrepared ends the wait when all are prepared; or when n-1-m are, and the others have had a round more; or
// when patience is over, and the rounds show which processes are missing.
func (b *Rejoining) checkPrepared(now parley.Tick) {
	answers, waited := b.count(stageParticipating), now-b.phaseBegan
	if answers == b.n-1 || b.querySent &&
		(answers >= b.othersHeard() && waited >= b.when.Delta || waited >= maxPrepareRounds*b.when.Delta) {
		b.settled, b.prepared, b.preparing, b.hasWork = true, true, false, false
	}
}

// continueSlots advances a process that is ready or advancing.
func (b *Rejoining) continueSlots(s *parley.Step) {
	if b.phase < ready {
		return
	}
	if b.count(stageParticipating) >= b.rank {
		b.participate(s, b.opened)
		return
	}
	if b.phase == ready && b.hasWork && b.count(stageReady) >= b.othersHeard() {
		b.lastMissed = b.opened
		b.enterPhase(s, advancing)
	}
	if b.phase != advancing {
		return
	}
	last := b.lastMissed + 3*(b.window+1)
	if b.over >= last {
		b.participate(s, b.over)
		return
	}
	// Open slots at half the rate that the window allows, so that a process that hears of a slot
	// may begin it. One process opens them, because the others see that slots continue.
	group := max(1, b.window*uint64(b.when.Delta)/(8*uint64(b.Age())))
	every := max(b.when.Delta/4, parley.Tick(2*uint64(b.Age())*group/b.window))
	next := max(b.phaseBegan+2*b.when.Delta, b.slot(b.opened).begin+every)
	if s.Now >= next && b.opened < last && b.requested <= b.opened {
		b.requestSlots(s, b.opened+min(group, b.window), false)
		next = s.Now + every
	}
	if b.opened < last {
		b.wake(s, max(next, s.Now+1))
	}
}

// enterPhase enters a phase in which slots may begin: slots requested before begin now.
func (b *Rejoining) enterPhase(s *parley.Step, to phase) {
	b.phase, b.phaseBegan, b.queryInterval = to, s.Now, b.when.Delta
	if to == ready && b.count(stageParticipating) >= b.rank {
		b.participate(s, b.opened)
	}
	b.beginRequested(s)
}

// participate makes the process take part in slots after base.
func (b *Rejoining) participate(s *parley.Step, base uint64) {
	b.phase, b.phaseBegan, b.queryInterval, b.base, b.hasWork = participating, s.Now, b.when.Delta, base, false
	b.missed, b.missedInRow = 0, 0
	b.beginRequested(s)
	b.settled = b.whole && b.count(stageParticipating) >= b.othersHeard()
}

func (b *Rejoining) queryAll(s *parley.Step) {
	for i := range b.positions {
		b.positions[i].unanswered = min(b.positions[i].unanswered+1, staleAfter)
	}
	m := parley.Msg{Kind: b.config.PositionQuery, Seq: b.floor}
	if b.hasWork {
		m.Value = 1
	}
	s.SendAll(m)
	b.nextQuery = s.Now + b.queryInterval
	if b.phase == ready && !b.hasWork || s.Now > b.phaseBegan+4*b.Age() {
		b.queryInterval = min(2*b.queryInterval, 32*b.when.Delta)
	}
}

// querySoon asks again soon, because something has changed.
func (b *Rejoining) querySoon(s *parley.Step) {
	b.queryInterval = b.when.Delta
	if b.nextQuery > s.Now+b.queryInterval {
		b.nextQuery = s.Now + b.queryInterval
		b.wake(s, b.nextQuery)
	}
}
