package explore

import (
	"fmt"
	"slices"

	"parley"
	"parley/explore/internal/timer"
)

// mover takes the transitions of states.
type mover struct {
	runner
	queues    memo[pair, uint32] // by queue and message: the queue with the message appended
	histories memo[pair, uint32] // by history and observations: the history with them appended

	// The current transition.
	next       state
	aged       state
	transition transition
	outcome    *outcome
	explored   uint64 // messages in flight that need not be delivered after it
	ties       int    // the number of the next transition of a timer due at the same time as another one
	arrive     func(s, next *state, number int)
	onPanic    func(s *state, t transition, o *outcome) // called when a machine panics

	// Searches by rounds: the number of transitions since the round began in origin.
	origin *state
	level  int
	stack  []*state
	steps  []takenTransition
	number int
	closed parley.Tick // when a correct process last closed a round
	finish func(s, next *state, number int)
}

// taken returns the current transition, taken in s.
func (w *mover) taken(s *state) takenTransition {
	return takenTransition{w.transition, w.outcome, s.parts[w.x.slot(s, w.transition.at)]}
}

// successors takes the transitions of a state and calls w.arrive with each resulting state. It does not
// deliver messages in flight that are asleep. If again is not 0, it delivers only those messages. They were
// asleep when the other transitions were taken; nothing is explored before them, because after the others
// they were asleep too. It returns whether anything is due; if not, the run is over.
func (w *mover) successors(s *state, asleep, again uint64) (due bool) {
	x := w.x
	if x.timed {
		if t, ok := x.due(s, s.now); ok {
			w.explored, w.ties = 0, 2
			w.tryTimers(s, t, 0)
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
			w.tryElement(s, i, due, again == 0)
		}
	}
	if again != 0 {
		return true
	}
	return w.tryLocal(s, 4*len(s.flight)) || len(s.flight) > 0
}

// tryElement takes the transitions of element i of the flight: its delivery, unless that is asleep, and,
// with beside, its loss, duplication and crashes on delivery as the model allows.
func (w *mover) tryElement(s *state, i int, awake, beside bool) {
	x, n := w.x, len(s.flight)
	number := x.message(s.flight[i])
	q := x.messages.at(number)
	t := transition{what: OnDelivery, at: q.to, of: q.from, in: deliver | input(number), elem: i, cost: -1, now: s.now}
	down := !x.reliable && x.processStates.at(s.parts[x.slot(s, q.to)]).down
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
	w.tryCrash(s, &t, 3*n+i)
}

// tryLocal takes the transitions that no message causes, numbered from base. It returns whether one of them
// must happen eventually.
func (w *mover) tryLocal(s *state, base int) (due bool) {
	x := w.x
	w.ties = base + x.p.N*turns + 2
	for p := range parley.ID(x.p.N) {
		if x.onlyMessages {
			break
		}
		part := x.processStates.at(s.parts[x.slot(s, p)])
		group := base + int(p)*turns
		t := transition{at: p, elem: -1, cost: -1, now: s.now}
		switch {
		case part.down:
			w.tryRestarts(s, t, group)
			continue
		case x.requestsAnytime:
			due = w.tryUnprompted(s, part, t, group) || due
		}
		if x.roots[s.root].faulty.Has(p) {
			continue
		}
		if x.mayCrash(s, p) {
			t.what, t.in, t.cost = OnCrash, crash, crashes
			w.try(s, &t, group+4)
		}
		due = w.trySuspicions(s, part, t, group+8) || due
	}
	if !x.timed {
		return due
	}
	next, ok := s.wake, s.wake < timer.Never
	if ok && (!due || !x.relative) && !x.arrivesBefore(s, next) {
		at, passed := s, parley.Tick(0)
		if x.relative {
			at, passed, next = w.afterDelay(s, next), next, 0
		}
		t, _ := x.due(at, next)
		t.wait = passed
		w.explored = 0
		w.tryTimers(at, t, base+x.p.N*turns)
	}
	return due || ok
}

// turns is how many transition numbers each process has besides those of messages to it.
const turns = 8 + 2*most

// tryTimers takes the transitions in which the timer expires that is due first, or another one of the same
// process that is due at the same time, and those in which the process crashes in that step.
func (w *mover) tryTimers(s *state, t transition, group int) {
	x := w.x
	list := x.processStates.at(s.parts[x.slot(s, t.at)]).timers
	for k := range list {
		if list[k].Due > list[0].Due {
			break
		}
		if list[k].Of == t.at {
			t.in = expire | input(k)
			w.try(s, &t, group)
			w.tryCrash(s, &t, group+1)
			group, w.ties = w.ties, w.ties+2
		}
	}
}

// tryCrash takes a transition in which the process crashes within the step, if the model allows it.
func (w *mover) tryCrash(s *state, t *transition, group int) {
	if w.x.mayCrash(s, t.at) {
		amidst := *t
		amidst.in |= amid
		w.try(s, &amidst, group)
	}
}

// tryUnprompted takes the transitions in which a process gets a request or one of its timers expires, at
// any time.
func (w *mover) tryUnprompted(s *state, part *processState, t transition, group int) (due bool) {
	x := w.x
	if x.askedOf(part, t.at) < len(x.roots[s.root].requests[t.at]) {
		t.what, t.in = OnRequest, ask|input(t.at)
		w.try(s, &t, group)
		w.tryCrash(s, &t, group+1)
		due = true
	}
	if len(part.timers) == 0 || x.timed {
		return due
	}
	if x.may(s, timeouts) && part.timers[0].Of == t.at {
		t.what, t.in, t.cost = OnTimeout, expire, timeouts
		w.tryTimers(s, t, group+2)
	}
	return true
}

// tryRestarts takes the transitions in which a crashed process restarts.
func (w *mover) tryRestarts(s *state, t transition, group int) {
	if !w.x.may(s, restarts) {
		return
	}
	t.what, t.in, t.cost = OnRestart, restart, restarts
	w.try(s, &t, group)
	w.tryCrash(s, &t, group+2)
	if w.x.may(s, disks) {
		t.what, t.in = OnLostDisk, restart|1
		w.try(s, &t, group+1)
		w.tryCrash(s, &t, group+3)
	}
}

// trySuspicions takes the transitions in which a process is notified of another one's crash.
func (w *mover) trySuspicions(s *state, part *processState, t transition, group int) (due bool) {
	x := w.x
	for of := range parley.ID(x.p.N) {
		other := x.processStates.at(s.parts[x.slot(s, of)])
		if of == t.at || part.noticed>>(4*of)&15 == other.incarnation() {
			continue
		}
		t.of, t.in = of, suspect|input(of)|input(other.incarnation()*most)
		down := other.down
		switch {
		case down && x.o.Model.Detect:
			if x.o.Model.Overtaking || !x.inFlight(s, of, t.at) {
				t.what, t.cost = OnSuspicion, -1
				w.try(s, &t, group+int(of))
				w.tryCrash(s, &t, group+most+int(of))
			}
			due = true
		case !down && x.may(s, suspicions):
			t.what, t.cost = OnFalseSuspicion, suspicions
			w.try(s, &t, group+int(of))
			w.tryCrash(s, &t, group+most+int(of))
		}
	}
	return due
}

// try takes a transition, with each of its outcomes.
func (w *mover) try(s *state, t *transition, group int) {
	if group > maxGroup {
		panic(tooLarge(fmt.Sprintf("a state has more than %d kinds of moves", maxGroup)))
	}
	x := w.x
	if t.what == OnLoss {
		next := &w.next
		s.copyTo(next)
		w.transition, w.outcome = *t, nil
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
			w.onPanic(s, *t, &list[k])
			continue
		}
		next := &w.next
		s.copyTo(next)
		w.transition, w.outcome = *t, &list[k]
		next.now = t.now
		if t.elem >= 0 {
			x.leave(next, t.elem)
		}
		w.apply(next, slot, w.outcome)
		x.spend(next, t)
		w.arrive(s, next, group<<variantBits|k)
	}
}

// apply applies an outcome to a state.
func (w *mover) apply(s *state, slot int, o *outcome) {
	x := w.x
	before, after := x.processStates.at(s.parts[slot]), x.processStates.at(o.next)
	s.sum += after.share - before.share
	s.parts[slot] = o.next
	if x.timed && before.nextDue() != after.nextDue() {
		x.rewake(s)
	}
	for _, m := range o.sends {
		if !x.forgotten(s, x.messages.at(m).to) {
			w.enter(s, m)
		}
	}
	if o.observations != 0 {
		before := s.history
		s.history = w.extendHistory(before, o.observations)
		s.sum += x.histories.at(s.history).share - x.histories.at(before).share
	}
}

// enter puts a message in flight.
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
		elem := w.enqueue(0, m)
		s.flight = slices.Insert(s.flight, i, elem)
		s.sum += x.share(elem)
		return
	}
	s.sum -= x.share(s.flight[i])
	s.flight[i] = w.enqueue(s.flight[i], m)
	s.sum += x.share(s.flight[i])
}

// enqueue returns the number of a queue with one more message at its end.
func (w *mover) enqueue(before, m uint32) uint32 {
	return w.queues.of(pair{before, m}, func() uint32 { return w.x.longer(before, m) })
}

// extendHistory returns the number of a history with some observations appended.
func (w *mover) extendHistory(before, what uint32) uint32 {
	return w.histories.of(pair{before, what}, func() uint32 { return w.x.extendedHistory(before, what) })
}

// afterDelay returns a state after time d in which nothing happened.
func (w *mover) afterDelay(s *state, d parley.Tick) *state {
	x, t := w.x, &w.aged
	s.copyTo(t)
	if d == 0 {
		return t
	}
	for i := range x.roots[s.root].seats {
		slot := int(x.roots[s.root].seats[i].ids[0])
		old := s.parts[slot]
		t.parts[slot] = w.outcomes(clauseInput{old, pass, d})[0].next
		t.sum += x.processStates.at(t.parts[slot]).share - x.processStates.at(old).share
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
			w.enter(t, w.messageID(&message{from: q.from, to: q.to, epoch: q.epoch, path: q.path, msg: q.msg, due: q.due - d}))
		}
	}
	return t
}
