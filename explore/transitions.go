package explore

import (
	"fmt"
	"slices"

	"parley"
	"parley/explore/internal/timer"
)

// mover makes the moves of states.
type mover struct {
	runner
	queues memo[pair, uint32] // by queue and message: the queue with it
	pasts  memo[pair, uint32] // by past and events: the past with them

	// The move that is being made.
	next     state
	aged     state
	turn     transition
	outcome  *outcome
	explored uint64 // messages of the flight that need not be delivered after it
	ties     int    // the number of the next move of a timer that is due with another one
	arrive   func(s, next *state, number int)
	fell     func(s *state, t transition, o *outcome) // a machine panics

	// Searches by rounds: how many moves deep within the round that began in origin.
	origin *state
	level  int
	stack  []*state
	steps  []takenTransition
	number int
	closed parley.Tick // when a correct process closed a round last
	finish func(s, next *state, number int)
}

// made is the present move in a state.
func (w *mover) made(s *state) takenTransition {
	return takenTransition{w.turn, w.outcome, s.parts[w.x.slot(s, w.turn.at)]}
}

// successors makes the moves of a state and calls w.arrive with every state that one
// leads to. Messages on the way that are asleep are not delivered. With again, if not 0,
// only those messages are delivered, which were asleep when the other moves were made:
// they come after nothing, for after the others they were asleep too. It tells whether
// anything is due: if not, the run is over.
func (w *mover) successors(s *state, asleep, again uint64) (due bool) {
	x := w.x
	if x.timed {
		if t, ok := x.due(s, s.now); ok {
			w.explored, w.ties = 0, 2
			w.expire(s, t, 0)
			return true
		}
	}
	awake := ^asleep
	if again != 0 {
		awake = again
	}
	w.explored = w.calm(s, asleep)
	for i, elem := range s.flight {
		if i > 0 && elem == s.flight[i-1] {
			continue
		}
		due := i >= 64 || awake>>i&1 == 1
		if due || again == 0 && !x.reliable {
			w.along(s, i, due, again == 0)
		}
	}
	if again != 0 {
		return true
	}
	return w.local(s, 4*len(s.flight)) || len(s.flight) > 0
}

// along makes the moves of element i of the flight: its delivery, unless that is asleep,
// and, unless they have been made, what the model allows beside it.
func (w *mover) along(s *state, i int, awake, beside bool) {
	x, n := w.x, len(s.flight)
	number := x.message(s.flight[i])
	q := x.messages.at(number)
	t := transition{what: OnDelivery, at: q.to, of: q.from, in: deliver | input(number), elem: i, cost: -1, now: s.now}
	down := !x.reliable && x.components.at(s.parts[x.slot(s, q.to)]).down
	if down {
		t.what, t.in, t.lost = OnLoss, 0, number
	}
	if awake {
		w.try(s, &t, i)
		if i < 64 {
			w.explored |= w.calm(s, 1<<i)
		}
	}
	if !beside || down || x.reliable {
		return
	}
	if x.may(s, losses) {
		w.try(s, &transition{what: OnLoss, at: q.to, of: q.from, elem: i, cost: losses, now: s.now, lost: number}, n+i)
	}
	if x.may(s, doubles) {
		t.what, t.elem, t.cost = OnDuplicate, -1, doubles
		w.try(s, &t, 2*n+i)
	}
	t.what, t.elem, t.cost = OnDelivery, i, -1
	w.crashing(s, &t, 3*n+i)
}

// local makes the moves that no message causes, numbered from base on, and tells
// whether one of them must happen at last.
func (w *mover) local(s *state, base int) (due bool) {
	x := w.x
	w.ties = base + x.p.N*turns + 2
	for p := range parley.ID(x.p.N) {
		if x.still {
			break
		}
		part := x.components.at(s.parts[x.slot(s, p)])
		group := base + int(p)*turns
		t := transition{at: p, elem: -1, cost: -1, now: s.now}
		switch {
		case part.down:
			w.comeBack(s, t, group)
			continue
		case x.asks:
			due = w.spontaneous(s, part, t, group) || due
		}
		if x.roots[s.root].faulty.Has(p) {
			continue
		}
		if x.may(s, crashes) {
			t.what, t.in, t.cost = OnCrash, crash, crashes
			w.try(s, &t, group+4)
		}
		due = w.suspect(s, part, t, group+8) || due
	}
	if !x.timed {
		return due
	}
	next, ok := s.wake, s.wake < timer.Never
	if ok && (!due || !x.relative) && !x.owes(s, next) {
		at, passed := s, parley.Tick(0)
		if x.relative {
			at, passed, next = w.later(s, next), next, 0
		}
		t, _ := x.due(at, next)
		t.wait = passed
		w.explored = 0
		w.expire(at, t, base+x.p.N*turns)
	}
	return due || ok
}

// turns is how many numbers of moves a process has beside those of messages to it.
const turns = 8 + 2*most

// expire makes the moves in which the timer runs out that is due first, or another one of
// the same process that is due then, and those in which the process crashes on it.
func (w *mover) expire(s *state, t transition, group int) {
	x := w.x
	list := x.components.at(s.parts[x.slot(s, t.at)]).timers
	for k := range list {
		if list[k].Due > list[0].Due {
			break
		}
		if list[k].Of == t.at {
			t.in = expire | input(k)
			w.try(s, &t, group)
			w.crashing(s, &t, group+1)
			group, w.ties = w.ties, w.ties+2
		}
	}
}

// crashing makes a move in which the process crashes, if it may.
func (w *mover) crashing(s *state, t *transition, group int) {
	if w.x.may(s, crashes) && !w.x.roots[s.root].faulty.Has(t.at) {
		amidst := *t
		amidst.in |= amid
		w.try(s, &amidst, group)
	}
}

// spontaneous makes the moves in which a process is asked or a timer of it runs out, at
// any time.
func (w *mover) spontaneous(s *state, part *processState, t transition, group int) (due bool) {
	x := w.x
	if x.askedOf(part, t.at) < len(x.roots[s.root].requests[t.at]) {
		t.what, t.in = OnRequest, ask|input(t.at)
		w.try(s, &t, group)
		w.crashing(s, &t, group+1)
		due = true
	}
	if len(part.timers) == 0 || x.timed {
		return due
	}
	if x.may(s, timeouts) && part.timers[0].Of == t.at {
		t.what, t.in, t.cost = OnTimeout, expire, timeouts
		w.expire(s, t, group+2)
	}
	return true
}

// comeBack makes the moves in which a process that is down restarts.
func (w *mover) comeBack(s *state, t transition, group int) {
	if !w.x.may(s, restarts) {
		return
	}
	t.what, t.in, t.cost = OnRestart, restart, restarts
	w.try(s, &t, group)
	w.crashing(s, &t, group+2)
	if w.x.may(s, disks) {
		t.what, t.in = OnLostDisk, restart|1
		w.try(s, &t, group+1)
		w.crashing(s, &t, group+3)
	}
}

// suspect makes the moves in which a process is told of another one's crash.
func (w *mover) suspect(s *state, part *processState, t transition, group int) (due bool) {
	x := w.x
	for of := range parley.ID(x.p.N) {
		other := x.components.at(s.parts[x.slot(s, of)])
		if of == t.at || part.told>>(4*of)&15 == other.life() {
			continue
		}
		t.of, t.in = of, suspect|input(of)|input(other.life()*most)
		down := other.down
		switch {
		case down && x.o.Model.Detect:
			if x.o.Model.Overtaking || !x.sent(s, of, t.at) {
				t.what, t.cost = OnSuspicion, -1
				w.try(s, &t, group+int(of))
				w.crashing(s, &t, group+most+int(of))
			}
			due = true
		case !down && x.may(s, suspicions):
			t.what, t.cost = OnFalseSuspicion, suspicions
			w.try(s, &t, group+int(of))
			w.crashing(s, &t, group+most+int(of))
		}
	}
	return due
}

// try makes a move, with everything that may come of it.
func (w *mover) try(s *state, t *transition, group int) {
	if group > maxGroup {
		panic(tooLarge(fmt.Sprintf("a state has more than %d kinds of moves", maxGroup)))
	}
	x := w.x
	if t.what == OnLoss {
		next := &w.next
		s.copyTo(next)
		w.turn, w.outcome = *t, nil
		x.leave(next, t.elem)
		x.spend(next, t)
		w.arrive(s, next, group<<variantBits)
		return
	}
	slot := x.slot(s, t.at)
	list := w.outcomes(clauseInput{s.parts[slot], t.in, t.now})
	for k := range list {
		if w.halted() {
			return
		}
		if list[k].panics != "" {
			w.fell(s, *t, &list[k])
			continue
		}
		next := &w.next
		s.copyTo(next)
		w.turn, w.outcome = *t, &list[k]
		next.now = t.now
		if t.elem >= 0 {
			x.leave(next, t.elem)
		}
		w.apply(next, slot, w.outcome)
		x.spend(next, t)
		w.arrive(s, next, group<<variantBits|k)
	}
}

// apply carries an outcome into a state.
func (w *mover) apply(s *state, slot int, o *outcome) {
	x := w.x
	before, after := x.components.at(s.parts[slot]), x.components.at(o.next)
	s.sum += after.share - before.share
	s.parts[slot] = o.next
	if x.timed && before.wakes() != after.wakes() {
		x.rewake(s)
	}
	for _, m := range o.sends {
		if !x.forgotten(s, x.messages.at(m).to) {
			w.enter(s, m)
		}
	}
	if o.outs != 0 {
		before := s.past
		s.past = w.then(before, o.outs)
		s.sum += x.pasts.at(s.past).share - x.pasts.at(before).share
	}
}

// enter puts a message on its way.
func (w *mover) enter(s *state, m uint32) {
	x := w.x
	if !x.o.Model.FIFO {
		i, _ := slices.BinarySearch(s.flight, m)
		s.flight = slices.Insert(s.flight, i, m)
		s.sum += x.messages.at(m).share
		return
	}
	q := x.messages.at(m)
	l := link(q.from, q.to)
	i, there := slices.BinarySearchFunc(s.flight, l, func(elem, l uint32) int {
		return int(x.queues.at(elem).link) - int(l)
	})
	if !there {
		elem := w.queue(0, m)
		s.flight = slices.Insert(s.flight, i, elem)
		s.sum += x.share(elem)
		return
	}
	s.sum -= x.share(s.flight[i])
	s.flight[i] = w.queue(s.flight[i], m)
	s.sum += x.share(s.flight[i])
}

// queue returns the number of a queue with one more message at its end.
func (w *mover) queue(before, m uint32) uint32 {
	return w.queues.of(pair{before, m}, func() uint32 { return w.x.longer(before, m) })
}

// then returns the past after some events.
func (w *mover) then(before, what uint32) uint32 {
	return w.pasts.of(pair{before, what}, func() uint32 { return w.x.extended(before, what) })
}

// later returns a state after some time in which nothing happened.
func (w *mover) later(s *state, d parley.Tick) *state {
	x, t := w.x, &w.aged
	s.copyTo(t)
	if d == 0 {
		return t
	}
	for i := range x.roots[s.root].seats {
		slot := int(x.roots[s.root].seats[i].ids[0])
		old := s.parts[slot]
		t.parts[slot] = w.outcomes(clauseInput{old, pass, d})[0].next
		t.sum += x.components.at(t.parts[slot]).share - x.components.at(old).share
	}
	x.rewake(t)
	t.flight = t.flight[:0]
	for _, elem := range s.flight {
		t.sum -= x.share(elem)
		for elem != 0 {
			number := elem
			if x.o.Model.FIFO {
				number, elem = x.queues.at(elem).first, x.queues.at(elem).rest
			} else {
				elem = 0
			}
			q := x.messages.at(number)
			w.enter(t, w.onTheWay(&message{from: q.from, to: q.to, epoch: q.epoch, path: q.path, msg: q.msg, due: q.due - d}))
		}
	}
	return t
}
