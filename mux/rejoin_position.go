package mux

import (
	"slices"

	"parley"
)

// Timeout handles the timer. The timer was set with the question: when it expires, the disk has the reserve.
func (b *Rejoining) Timeout(s *parley.Step) {
	if !b.mute && s.Now >= b.due && b.meets && !b.left {
		b.left, b.since = true, s.Now
	}
	b.Pipeline.Timeout(s)
}

// HandlePosition handles the messages of rejoining. In a PositionQuery, Value is 1 if there is something
// to do, and Seq is the floor of the sender: a process that takes part begins the slots missing up to there,
// as fast as the window allows, which is no more than a faulty process can cause by frames. If it is
// asked because there is something to do, it also reserves slots before it answers. In a PositionReply,
// Value is the last slot that has begun there, or may have, and Seq is the stage of the sender: 0 it takes
// no part and knows no slot, 1 it takes no part, 2 it is ready to continue with others that are ready,
// 3 it takes part.
func (b *Rejoining) HandlePosition(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Origin != 0 || len(q.Body) > 0:
		s.Refuse(from, "fields that are not used")
	case q.Kind == b.c.PositionQuery && q.Seq <= mostSlot && q.Value <= 1:
		if b.phase == participating && q.Seq > b.opened && b.wanted <= b.opened {
			b.want(s, b.opened+min(q.Seq-b.opened, b.window), true)
		}
		if q.Value == 1 {
			b.prepare(s)
		}
		s.Send(from, parley.Msg{Kind: b.c.PositionReply, Value: max(b.floor, b.opened), Seq: b.stage(b.known)})
		if news := q.Value == 1 && !b.wants || b.told[from].old == stale; news && !b.settled {
			b.wants = b.wants || q.Value == 1
			b.hurry(s)
		}
	case q.Kind == b.c.PositionReply && q.Seq <= takes && q.Value <= mostSlot:
		if b.settled && b.poll == 0 { // it has never asked; otherwise this answer may be late
			s.Refuse(from, "an answer that nobody waits for")
			return
		}
		b.told[from] = peerPosition{stage: q.Seq, high: q.Value}
	default:
		s.Refuse(from, "no message of who comes back")
		return
	}
	b.catchUp(s)
	b.turn(s)
}

func (b *Rejoining) early(k uint64) bool {
	return b.n >= 2*b.c.M+2 && k-b.window <= b.over && b.called(k)
}

func (b *Rejoining) opens(s *parley.Step, k uint64) bool {
	switch b.phase {
	case locating, listening:
		return false
	case ready:
		if !b.called(k) {
			return false
		}
		b.slot(k).begin = s.Now
	}
	return true
}

func (b *Rejoining) hears(s *parley.Step, from parley.ID, q parley.Msg) bool {
	k := q.Value
	if b.phase == locating {
		if q.Seq == 0 && k <= mostSlot {
			b.latest[from] = max(b.latest[from], k)
		}
		return false
	}
	if q.Seq == 0 && k <= mostSlot {
		b.latest[from] = max(b.latest[from], k)
		switch {
		case b.phase == listening:
			b.note(s.Now, from, k, b.rank)
			if to := b.ranked(slices.Clone(b.latest)); to > b.opened {
				b.advance(to, b.rank, b.since-b.Age())
			}
		case k > b.opened+b.window || k+b.window < b.opened:
			b.astray.Add(from)
			b.lost = b.lost || b.astray.Len() > b.c.M
		default:
			b.astray.Remove(from)
		}
	}
	return b.phase != listening || q.Seq == 0 && k > b.opened && k <= b.opened+b.window
}

// ends counts the slots in which this process was late or cut off.
func (b *Rejoining) ends(s *parley.Step, k uint64, r *slot) bool {
	if c, ok := r.one.Rounds().(Isolation); ok && !r.apart && c.Isolated() {
		s.Refuse(s.Self, "heard too few: abstains")
		r.apart = true
		if b.missed == 0 {
			b.missed = k
		}
	}
	if !r.apart {
		b.apart = 0
		return b.Tells(k)
	}
	b.apart++
	b.clean = k
	b.lost = b.lost || b.apart >= max(b.window, 3) || b.c.Whole && b.phase == participating && k > b.base
	return false
}

// ask begins to rejoin.
func (b *Rejoining) ask(s *parley.Step) {
	b.forget()
	b.astray, b.apart, b.lost = parley.Set{}, 0, false
	b.phase, b.since, b.poll, b.pause = locating, s.Now, s.Now, b.when.Delta
	b.settled, b.wants, b.meets = false, false, false
	b.turn(s)
}

// leave abandons all slots that have begun, and begins to rejoin.
func (b *Rejoining) leave(s *parley.Step) {
	s.Refuse(s.Self, "lost touch: returns")
	b.floor, b.known = max(b.floor, b.opened), true
	b.place(b.opened, s.Now-b.Age())
	b.ask(s)
}

func (b *Rejoining) turn(s *parley.Step) {
	if b.mute {
		return
	}
	if b.lost {
		b.leave(s)
		return
	}
	switch b.phase {
	case locating:
		if due := b.since + b.Age(); s.Now < due {
			b.wake(s, due)
		} else if b.count(out) >= b.most() {
			b.place(max(b.floor, b.high(), b.ranked(slices.Clone(b.latest))), s.Now-b.Age())
			b.known, b.floor = true, max(b.floor, b.opened)
			b.phase, b.since = listening, s.Now
			b.wake(s, s.Now+b.Age()+b.when.Delta)
		}
	case listening:
		if due := b.since + b.Age() + b.when.Delta; s.Now < due {
			b.wake(s, due)
		} else if b.count(takes) < b.rank || b.high() >= b.floor {
			b.release(s, ready)
		} // otherwise the others begin what is missing
	case participating:
		if b.meets {
			b.greeted(s.Now)
		} else {
			b.settled = b.settled || b.whole && b.count(takes) >= b.most()
		}
	}
	b.goOn(s)
	if b.settled {
		return
	}
	if s.Now >= b.poll {
		b.inquire(s)
	}
	b.wake(s, b.poll)
}

// meet asks the others whether they are prepared.
func (b *Rejoining) meet(s *parley.Step) {
	b.meets, b.left, b.settled, b.wants = true, false, false, true
	b.since, b.poll, b.pause = s.Now, s.Now, b.when.Delta
	for i := range b.told {
		b.told[i].old = stale
	}
	b.prepare(s)
	b.turn(s)
}

// greeted ends the wait when all are prepared; or when n-1-m are, and the others have had a round more; or
// when patience is over, and the rounds show which processes are missing.
func (b *Rejoining) greeted(now parley.Tick) {
	answers, waited := b.count(takes), now-b.since
	if answers == b.n-1 || b.left &&
		(answers >= b.most() && waited >= b.when.Delta || waited >= patience*b.when.Delta) {
		b.settled, b.met, b.meets, b.wants = true, true, false, false
	}
}

// goOn advances a process that is ready or advancing.
func (b *Rejoining) goOn(s *parley.Step) {
	if b.phase < ready {
		return
	}
	if b.count(takes) >= b.rank {
		b.enter(s, b.opened)
		return
	}
	if b.phase == ready && b.wants && b.count(waits) >= b.most() {
		b.clean = b.opened
		b.release(s, advancing)
	}
	if b.phase != advancing {
		return
	}
	last := b.clean + 3*(b.window+1)
	if b.over >= last {
		b.enter(s, b.over)
		return
	}
	// Open slots at half the rate that the window allows, so that a process that hears of a slot
	// may begin it. One process opens them, because the others see that slots continue.
	group := max(1, b.window*uint64(b.when.Delta)/(8*uint64(b.Age())))
	every := max(b.when.Delta/4, parley.Tick(2*uint64(b.Age())*group/b.window))
	next := max(b.since+2*b.when.Delta, b.slot(b.opened).begin+every)
	if s.Now >= next && b.opened < last && b.wanted <= b.opened {
		b.want(s, b.opened+min(group, b.window), false)
		next = s.Now + every
	}
	if b.opened < last {
		b.wake(s, max(next, s.Now+1))
	}
}

// release enters a phase in which slots may begin: slots requested before begin now.
func (b *Rejoining) release(s *parley.Step, to phase) {
	b.phase, b.since, b.pause = to, s.Now, b.when.Delta
	if to == ready && b.count(takes) >= b.rank {
		b.enter(s, b.opened)
	}
	b.begin(s)
}

// enter makes the process take part in slots after base.
func (b *Rejoining) enter(s *parley.Step, base uint64) {
	b.phase, b.since, b.pause, b.base, b.wants = participating, s.Now, b.when.Delta, base, false
	b.missed, b.apart = 0, 0
	b.begin(s)
	b.settled = b.whole && b.count(takes) >= b.most()
}

// inquire asks all others for their positions.
func (b *Rejoining) inquire(s *parley.Step) {
	for i := range b.told {
		b.told[i].old = min(b.told[i].old+1, stale)
	}
	m := parley.Msg{Kind: b.c.PositionQuery, Seq: b.floor}
	if b.wants {
		m.Value = 1
	}
	s.SendAll(m)
	b.poll = s.Now + b.pause
	if b.phase == ready && !b.wants || s.Now > b.since+4*b.Age() {
		b.pause = min(2*b.pause, 32*b.when.Delta)
	}
}

// hurry asks again soon, because something has changed.
func (b *Rejoining) hurry(s *parley.Step) {
	b.pause = b.when.Delta
	if b.poll > s.Now+b.pause {
		b.poll = s.Now + b.pause
		b.wake(s, b.poll)
	}
}
