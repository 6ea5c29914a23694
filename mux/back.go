package mux

import (
	"slices"

	"parley"
)

// Find takes in Where, a question where this process is: Value is 1 if there is something
// to do, and Seq the floor of who asks: who takes part begins what is missing up to there,
// as fast as the window lets, which is no more than a liar can have him do by frames. Who takes
// part, and is asked because there is something to do, reserves slots before he answers. And
// At, an answer: Value is the last slot that has begun there, or may have, and Seq how the
// process stands: 0 it is out and does not know a slot, 1 it is out, 2 it is ready to go
// on with others who are, 3 it takes part.
func (l *Pipeline) Find(s *parley.Step, from parley.ID, q parley.Msg) {
	b := l.back
	switch {
	case q.Origin != 0 || len(q.Body) > 0:
		s.Refuse(from, "fields that are not used")
	case q.Kind == b.Where && q.Seq <= mostSlot && q.Value <= 1:
		if b.phase == in && q.Seq > l.opened && l.wanted <= l.opened {
			l.want(s, l.opened+min(q.Seq-l.opened, l.window), true)
		}
		if q.Value == 1 {
			l.prepare(s)
		}
		s.Send(from, parley.Msg{Kind: b.At, Value: max(b.floor, l.opened), Seq: b.stage()})
		if news := q.Value == 1 && !b.wants || b.told[from].old == stale; news && !b.settled {
			b.wants = b.wants || q.Value == 1
			l.hurry(s)
		}
	case q.Kind == b.At && q.Seq <= takes && q.Value <= mostSlot:
		if b.settled && b.poll == 0 { // it has never asked; else this one may be late
			s.Refuse(from, "an answer that nobody waits for")
			return
		}
		b.told[from] = told{stage: q.Seq, high: q.Value}
	default:
		s.Refuse(from, "no message of who comes back")
		return
	}
	l.catchUp(s)
	l.turn(s)
}

// stage is how this process stands.
func (b *back) stage() uint64 {
	switch {
	case b.phase == in && b.whole:
		return takes
	case b.phase == in || b.phase >= ready:
		return waits
	case b.known:
		return out
	}
	return unknown
}

// count is how many others have said lately that they stand at least so.
func (b *back) count(stage uint64) (sum int) {
	for i := range b.told {
		if b.told[i].old < stale && b.told[i].stage >= stage {
			sum++
		}
	}
	return sum
}

// most is how many others a correct process hears.
func (b *back) most() int { return b.n - 1 - b.M }

// high is what a correct process has begun, or may have, by the answers.
func (b *back) high() uint64 {
	var list []uint64
	for i := range b.told {
		if b.told[i].old < stale && b.told[i].stage > unknown {
			list = append(list, b.told[i].high)
		}
	}
	return b.ranked(list)
}

func (b *back) ranked(list []uint64) uint64 {
	if len(list) < b.rank {
		return 0
	}
	slices.Sort(list)
	return list[len(list)-b.rank]
}

// called tells whether a correct process has begun slot k, by those who were heard.
func (b *back) called(k uint64) bool {
	sum := 0
	for _, last := range b.latest {
		if last >= k {
			sum++
		}
	}
	return sum >= b.rank
}

// let tells whether a slot may begin before this process's own window lets it.
func (l *Pipeline) let(k uint64) bool {
	b := l.back
	return b != nil && b.n >= 2*b.M+2 && k-l.window <= l.over && b.called(k)
}

// opens tells whether this process begins slots, and slot k.
func (b *back) opens(s *parley.Step, l *Pipeline, k uint64) bool {
	switch b.phase {
	case asking, listening:
		return false
	case ready:
		if !b.called(k) {
			return false
		}
		l.at(k).begin = s.Now
	}
	return true
}

// heard notes who begins which slots, and tells whether the frame is of any use.
func (l *Pipeline) heard(s *parley.Step, from parley.ID, q parley.Msg) bool {
	b, k := l.back, q.Value
	if b.phase == asking {
		if q.Seq == 0 && k <= mostSlot {
			b.latest[from] = max(b.latest[from], k)
		}
		return false
	}
	if q.Seq == 0 && k <= mostSlot {
		b.latest[from] = max(b.latest[from], k)
		switch {
		case b.phase == listening:
			l.note(s, from, k)
			if to := b.ranked(slices.Clone(b.latest)); to > l.opened {
				l.advance(to)
			}
		case k > l.opened+l.window || k+l.window < l.opened:
			b.astray.Add(from)
			b.lost = b.lost || b.astray.Len() > b.M
		default:
			b.astray.Remove(from)
		}
	}
	return b.phase != listening || q.Seq == 0 && k > l.opened && k <= l.opened+l.window
}

// touched counts the slots in which this process was cut off.
func (l *Pipeline) touched(s *parley.Step, k uint64, r *slot) {
	b := l.back
	if c, ok := r.one.Rounds().(Cut); ok && !r.apart && c.Apart() {
		s.Refuse(s.Self, "heard too few: abstains")
		r.apart = true
		if l.missed == 0 {
			l.missed = k
		}
	}
	if !r.apart {
		b.apart = 0
		return
	}
	b.apart++
	b.clean = k
	b.lost = b.lost || b.apart >= max(l.window, 3) || b.Whole && b.phase == in && k > b.base
}

// forget forgets what was heard of the others.
func (b *back) forget() {
	for i := range b.told {
		b.told[i] = told{old: stale}
	}
	clear(b.latest)
	b.astray, b.apart, b.lost = parley.Set{}, 0, false
}

// ask begins to return.
func (l *Pipeline) ask(s *parley.Step) {
	b := l.back
	b.forget()
	b.phase, b.since, b.poll, b.pause = asking, s.Now, s.Now, l.when.Delta
	b.settled, b.wants, b.meets = false, false, false
	l.turn(s)
}

// leave lets all go that has begun, and begins to return.
func (l *Pipeline) leave(s *parley.Step) {
	s.Refuse(s.Self, "lost touch: returns")
	l.back.floor, l.back.known = max(l.back.floor, l.opened), true
	l.place(s.Now, l.opened)
	l.ask(s)
}

// place goes to where slots up to k are over, and began long ago.
func (l *Pipeline) place(now parley.Tick, k uint64) {
	for i := range l.ring {
		l.vacate(&l.ring[i])
		clear(l.ring[i].came)
		l.ring[i].begin = now - l.age()
	}
	l.over, l.opened, l.wanted = k, k, 0
}

// vacate leaves nothing in a place but its memory.
func (l *Pipeline) vacate(r *slot) {
	if r.one != nil {
		l.spare = append(l.spare, r.one)
	}
	l.letGo(r)
	clear(r.out)
	*r = slot{begin: r.begin, out: r.out[:0], sizes: r.sizes, came: r.came}
}

// advance notes that slots up to k have begun without this process.
func (l *Pipeline) advance(k uint64) {
	if k > l.opened+l.window {
		l.place(l.back.since, k)
		return
	}
	for ; l.opened < k; l.opened++ {
		r := l.at(l.opened + 1)
		if l.vacate(r); l.count(r) < l.back.rank {
			r.begin = l.back.since - l.age()
		}
		l.vacate(l.at(l.opened + 1 + l.window))
		clear(l.at(l.opened + 1 + l.window).came)
	}
	l.over = k
}

// count is how many processes were heard to begin a slot.
func (l *Pipeline) count(r *slot) (sum int) {
	for _, yes := range r.came {
		if yes {
			sum++
		}
	}
	return sum
}

// note notes that a process begins slot k, while this one listens. The slot's beginning is
// when enough have. Of one that began before it listened fewer may be heard.
func (l *Pipeline) note(s *parley.Step, from parley.ID, k uint64) {
	if k+l.window <= l.opened || k > l.opened+l.window {
		return
	}
	r := l.at(k)
	if r.came == nil {
		r.came = make([]bool, l.p.N)
	}
	if !r.came[from] {
		if r.came[from] = true; l.count(r) == l.back.rank {
			r.begin = s.Now
		}
	}
}

// turn does what is due of a return.
func (l *Pipeline) turn(s *parley.Step) {
	b := l.back
	if b == nil || l.mute {
		return
	}
	if b.lost {
		l.leave(s)
		return
	}
	switch b.phase {
	case asking:
		if due := b.since + l.age(); s.Now < due {
			l.wake(s, due)
		} else if b.count(out) >= b.most() {
			l.place(s.Now, max(b.floor, b.high(), b.ranked(slices.Clone(b.latest))))
			b.known, b.floor = true, max(b.floor, l.opened)
			b.phase, b.since = listening, s.Now
			l.wake(s, s.Now+l.age()+l.when.Delta)
		}
	case listening:
		if due := b.since + l.age() + l.when.Delta; s.Now < due {
			l.wake(s, due)
		} else if b.count(takes) < b.rank || b.high() >= b.floor {
			l.release(s, ready)
		} // or else the others begin what is missing
	case in:
		if b.meets {
			l.greeted(s.Now)
		} else {
			b.settled = b.settled || b.whole && b.count(takes) >= b.most()
		}
	}
	l.goOn(s)
	if b.settled {
		return
	}
	if s.Now >= b.poll {
		l.inquire(s)
	}
	l.wake(s, b.poll)
}

// meet asks the others whether they are prepared.
func (l *Pipeline) meet(s *parley.Step) {
	b := l.back
	b.meets, b.left, b.settled, b.wants = true, false, false, true
	b.since, b.poll, b.pause = s.Now, s.Now, l.when.Delta
	for i := range b.told {
		b.told[i].old = stale
	}
	l.prepare(s)
	l.turn(s)
}

// asked is for when the timer runs out: it was set with the question, and the disk held both.
func (b *back) asked(now parley.Tick) {
	if b != nil && b.meets && !b.left {
		b.left, b.since = true, now
	}
}

// greeted is for when all are prepared; or n-1-m are, and the others have had a round more; or fewer
// are in all the time there is, and it is up to the rounds to find out.
func (l *Pipeline) greeted(now parley.Tick) {
	b := l.back
	answers, waited := b.count(takes), now-b.since
	if answers == b.n-1 || b.left &&
		(answers >= b.most() && waited >= l.when.Delta || waited >= patience*l.when.Delta) {
		b.settled, b.met, b.meets, b.wants = true, true, false, false
	}
}

// goOn is for who is ready, or goes on already.
func (l *Pipeline) goOn(s *parley.Step) {
	b := l.back
	if b.phase < ready {
		return
	}
	if b.count(takes) >= b.rank {
		l.enter(s, l.opened)
		return
	}
	if b.phase == ready && b.wants && b.count(waits) >= b.most() {
		b.clean = l.opened
		l.release(s, going)
	}
	if b.phase != going {
		return
	}
	last := b.clean + 3*(l.window+1)
	if l.over >= last {
		l.enter(s, l.over)
		return
	}
	// At half of what the window lets, so that it keeps nobody from beginning a slot who
	// hears of it. One calls, for the others see that it goes on.
	group := max(1, l.window*uint64(l.when.Delta)/(8*uint64(l.age())))
	every := max(l.when.Delta/4, parley.Tick(2*uint64(l.age())*group/l.window))
	next := max(b.since+2*l.when.Delta, l.at(l.opened).begin+every)
	if s.Now >= next && l.opened < last && l.wanted <= l.opened {
		l.want(s, l.opened+min(group, l.window), false)
		next = s.Now + every
	}
	if l.opened < last {
		l.wake(s, max(next, s.Now+1))
	}
}

// release begins a phase in which slots may begin: those that were called for before begin
// now.
func (l *Pipeline) release(s *parley.Step, to phase) {
	b := l.back
	b.phase, b.since, b.pause = to, s.Now, l.when.Delta
	for k := l.opened + 1; k <= l.wanted; k++ {
		l.at(k).begin = s.Now
	}
	if to == ready && b.count(takes) >= b.rank {
		l.enter(s, l.opened)
	}
	l.open(s)
}

// enter has the process take part in slots behind base.
func (l *Pipeline) enter(s *parley.Step, base uint64) {
	b := l.back
	b.phase, b.since, b.pause, b.base, b.wants = in, s.Now, l.when.Delta, base, false
	l.missed, b.apart = 0, 0
	for k := l.opened + 1; k <= l.wanted; k++ {
		l.at(k).begin = s.Now
	}
	l.open(s)
	b.settled = b.whole && b.count(takes) >= b.most()
}

// inquire asks all where they are.
func (l *Pipeline) inquire(s *parley.Step) {
	b := l.back
	for i := range b.told {
		b.told[i].old = min(b.told[i].old+1, stale)
	}
	m := parley.Msg{Kind: b.Where, Seq: b.floor}
	if b.wants {
		m.Value = 1
	}
	s.SendAll(m)
	b.poll = s.Now + b.pause
	if b.phase == ready && !b.wants || s.Now > b.since+4*l.age() {
		b.pause = min(2*b.pause, 32*l.when.Delta)
	}
}

// hurry asks soon, for something has changed.
func (l *Pipeline) hurry(s *parley.Step) {
	b := l.back
	b.pause = l.when.Delta
	if b.poll > s.Now+b.pause {
		b.poll = s.Now + b.pause
		l.wake(s, b.poll)
	}
}
