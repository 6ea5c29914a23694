package explore

import (
	"errors"
	"fmt"
	"slices"

	"parley"
)

// What happens in a move.
type What uint8

// The moves.
const (
	Arrival   What = iota // a message is delivered
	Loss                  // a message is lost
	Doubling              // a message is delivered, and will be once more
	Asking                // a process is asked from above
	Expiry                // a timer runs out
	Crash                 // a process crashes between two steps
	Restart               // a process comes back
	LostDisk              // a process comes back without what was durable
	Suspicion             // a process is told that another one has crashed
	Slander               // the same, and it has not
	Start                 // a process begins
)

func (w What) String() string {
	return [...]string{
		"delivery", "loss", "delivery that comes twice", "request", "timeout", "crash", "restart",
		"restart without a disk", "suspicion", "false suspicion", "start",
	}[w]
}

// turn is a move that a state allows; what comes of it may depend on choices.
type turn struct {
	what What
	at   parley.ID // whose move it is
	of   parley.ID // the sender, or who is suspected
	in   input     // what happens to the component; 0 if nothing does
	elem int       // the element of the flight that it takes away, or -1
	cost int       // the budget that it takes from, or -1
	now  parley.Tick
	wait parley.Tick // how long nothing happened before it, where it is always time 0
	lost uint32      // the message that is lost
}

// made is a move, what came of it, and the component before; none if a message is lost.
type made struct {
	turn    turn
	outcome *outcome
	before  uint32
}

// made is the present move in a state.
func (w *worker) made(s *state) made {
	return made{w.turn, w.outcome, s.parts[w.x.slot(s, w.turn.at)]}
}

// Moves of a state are numbered by what they are about, and then by what comes of it, so
// that a number means the same however many of the others are left out.
const (
	variantBits = 20
	maxVariant  = 1<<variantBits - 1
	maxGroup    = maxMove >> variantBits
)

// successors makes the moves of a state and calls w.arrive with every state that one
// leads to. Messages on the way that are asleep are not delivered. With again, if not 0,
// only those messages are delivered, which were asleep when the other moves were made:
// they come after nothing, for after the others they were asleep too. It tells whether
// anything is due: if not, the run is over.
func (w *worker) successors(s *state, asleep, again uint64) (due bool) {
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
func (w *worker) along(s *state, i int, awake, beside bool) {
	x, n := w.x, len(s.flight)
	number := x.message(s.flight[i])
	q := x.messages.at(number)
	t := turn{what: Arrival, at: q.to, of: q.from, in: deliver | input(number), elem: i, cost: -1, now: s.now}
	down := !x.reliable && x.components.at(s.parts[x.slot(s, q.to)]).down
	if down {
		t.what, t.in, t.lost = Loss, 0, number
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
		w.try(s, &turn{what: Loss, at: q.to, of: q.from, elem: i, cost: losses, now: s.now, lost: number}, n+i)
	}
	if x.may(s, doubles) {
		t.what, t.elem, t.cost = Doubling, -1, doubles
		w.try(s, &t, 2*n+i)
	}
	t.what, t.elem, t.cost = Arrival, i, -1
	w.crashing(s, &t, 3*n+i)
}

// local makes the moves that no message causes, numbered from base on, and tells
// whether one of them must happen at last.
func (w *worker) local(s *state, base int) (due bool) {
	x := w.x
	w.ties = base + x.p.N*turns + 2
	for p := range parley.ID(x.p.N) {
		if x.still {
			break
		}
		part := x.components.at(s.parts[x.slot(s, p)])
		group := base + int(p)*turns
		t := turn{at: p, elem: -1, cost: -1, now: s.now}
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
			t.what, t.in, t.cost = Crash, crash, crashes
			w.try(s, &t, group+4)
		}
		due = w.suspect(s, part, t, group+8) || due
	}
	if !x.timed {
		return due
	}
	next, ok := s.wake, s.wake < never
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
func (w *worker) expire(s *state, t turn, group int) {
	x := w.x
	list := x.components.at(s.parts[x.slot(s, t.at)]).timers
	for k := range list {
		if list[k].due > list[0].due {
			break
		}
		if list[k].of == t.at {
			t.in = expire | input(k)
			w.try(s, &t, group)
			w.crashing(s, &t, group+1)
			group, w.ties = w.ties, w.ties+2
		}
	}
}

// crashing makes a move in which the process crashes, if it may.
func (w *worker) crashing(s *state, t *turn, group int) {
	if w.x.may(s, crashes) && !w.x.roots[s.root].faulty.Has(t.at) {
		amidst := *t
		amidst.in |= amid
		w.try(s, &amidst, group)
	}
}

// spontaneous makes the moves in which a process is asked or a timer of it runs out, at
// any time.
func (w *worker) spontaneous(s *state, part *component, t turn, group int) (due bool) {
	x := w.x
	if x.askedOf(part, t.at) < len(x.roots[s.root].requests[t.at]) {
		t.what, t.in = Asking, ask|input(t.at)
		w.try(s, &t, group)
		w.crashing(s, &t, group+1)
		due = true
	}
	if len(part.timers) == 0 || x.timed {
		return due
	}
	if x.may(s, timeouts) && part.timers[0].of == t.at {
		t.what, t.in, t.cost = Expiry, expire, timeouts
		w.expire(s, t, group+2)
	}
	return true
}

// comeBack makes the moves in which a process that is down restarts.
func (w *worker) comeBack(s *state, t turn, group int) {
	if !w.x.may(s, restarts) {
		return
	}
	t.what, t.in, t.cost = Restart, restart, restarts
	w.try(s, &t, group)
	w.crashing(s, &t, group+2)
	if w.x.may(s, disks) {
		t.what, t.in = LostDisk, restart|1
		w.try(s, &t, group+1)
		w.crashing(s, &t, group+3)
	}
}

// suspect makes the moves in which a process is told of another one's crash.
func (w *worker) suspect(s *state, part *component, t turn, group int) (due bool) {
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
				t.what, t.cost = Suspicion, -1
				w.try(s, &t, group+int(of))
				w.crashing(s, &t, group+most+int(of))
			}
			due = true
		case !down && x.may(s, suspicions):
			t.what, t.cost = Slander, suspicions
			w.try(s, &t, group+int(of))
			w.crashing(s, &t, group+most+int(of))
		}
	}
	return due
}

// try makes a move, with everything that may come of it.
func (w *worker) try(s *state, t *turn, group int) {
	if group > maxGroup {
		panic(tooLarge(fmt.Sprintf("a state has more than %d kinds of moves", maxGroup)))
	}
	x := w.x
	if t.what == Loss {
		next := &w.next
		s.copyTo(next)
		w.turn, w.outcome = *t, nil
		x.leave(next, t.elem)
		x.spend(next, t)
		w.arrive(s, next, group<<variantBits)
		return
	}
	slot := x.slot(s, t.at)
	list := w.outcomes(call{s.parts[slot], t.in, t.now})
	for k := range list {
		if w.halted() {
			return
		}
		if list[k].panics != "" {
			w.falls(s, t, &list[k])
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

// falls keeps that a machine panics in a move. One that is to crash in the midst of this
// move panics without that too.
func (w *worker) falls(s *state, t *turn, o *outcome) {
	if w.again || t.in&amid != 0 {
		return
	}
	q := w.question(s, false)
	if t.cost >= 0 {
		q.had |= 1 << t.cost
	}
	last := []made{{*t, o, s.parts[w.x.slot(s, t.at)]}}
	if w.origin != nil {
		s, last = w.origin, append(slices.Clone(w.steps[:w.level]), last...)
	}
	h := parley.History{Naming: w.x.o.Naming}
	w.x.judge.keep([]found{{
		root: s.root, id: s.id, trail: slices.Clone(w.trail), last: last, property: NoPanic, promised: true,
		why: fmt.Sprintf("%s panics on a %s: %s", h.Name(t.at), t.what, o.panics), question: q,
	}})
}

// tooLarge is why something cannot be explored.
type tooLarge string

var tooMany = tooLarge(fmt.Sprintf("a step has more than %d outcomes: "+
	"search by rounds, or with fewer liars", maxVariant))

// halted tells whether a worker stops in the middle of a step, which may have a million
// outcomes. Runs are made again after a search, unless its context has ended.
func (w *worker) halted() bool { return w.x.Interrupted() || !w.again && w.x.Halted() }

// fail ends a search that cannot be made.
func (x *search) fail(err error) {
	x.failure.CompareAndSwap(nil, &err)
	x.Stop()
}

// heed ends the search if something cannot be explored. It is to be deferred.
func (x *search) heed() {
	switch why := recover().(type) {
	case nil:
	case tooLarge:
		x.fail(errors.New(string(why)))
	default:
		panic(why)
	}
}

// may tells whether something that is bounded may still happen.
func (x *search) may(s *state, budget int) bool { return s.used[budget] < x.limits[budget] }

// spend takes a move from the budgets. What is on its way to a process that is down for
// good is forgotten.
func (x *search) spend(s *state, t *turn) {
	if t.cost >= 0 {
		s.used[t.cost]++
	}
	if t.what == LostDisk {
		s.used[disks]++
	}
	if t.in&amid != 0 && t.cost != crashes {
		s.used[crashes]++
	}
	if t.cost != crashes && t.in&amid == 0 {
		return
	}
	s.flight = slices.DeleteFunc(s.flight, func(elem uint32) bool {
		if !x.forgotten(s, x.messages.at(x.message(elem)).to) {
			return false
		}
		s.sum -= x.share(elem)
		return true
	})
}

// forgotten tells whether a process is down for good: nothing is on its way to it.
func (x *search) forgotten(s *state, p parley.ID) bool {
	return x.limits[restarts] == 0 && x.limits[crashes] > 0 && x.components.at(s.parts[x.slot(s, p)]).down
}

// slot returns where among the parts of a state the component of a process is.
func (x *search) slot(s *state, p parley.ID) int { return int(x.roots[s.root].slot[p]) }

// askedOf is how many requests a process has got.
func (x *search) askedOf(part *component, p parley.ID) int {
	seat := &x.roots[part.root].seats[part.seat]
	return part.asked >> (4 * seat.place[p]) & 15
}

// apply carries an outcome into a state.
func (w *worker) apply(s *state, slot int, o *outcome) {
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

// due returns the turn of the first process of which a timer is due at a time.
func (x *search) due(s *state, at parley.Tick) (turn, bool) {
	if s.wake > at {
		return turn{}, false
	}
	for i := range x.roots[s.root].seats {
		seat := &x.roots[s.root].seats[i]
		if part := x.components.at(s.parts[seat.ids[0]]); part.wakes() <= at {
			return turn{what: Expiry, at: part.timers[0].of, in: expire, elem: -1, cost: -1, now: at}, true
		}
	}
	panic("explore: a timer is due and is not found")
}

// rewake finds out when the next timer is due.
func (x *search) rewake(s *state) {
	s.wake = never
	for i := range x.roots[s.root].seats {
		s.wake = min(s.wake, x.components.at(s.parts[x.roots[s.root].seats[i].ids[0]]).wakes())
	}
}
