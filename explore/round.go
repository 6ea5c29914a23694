package explore

import "parley/explore/internal/timer"

// In a search by rounds a transition is everything that happens until timers of correct processes have
// expired again. Messages of one round are delivered in one order: lockstep processes the messages of a
// round when it closes, in the order of the senders, so any other order leads to the same state. Only the
// lies are chosen.

// round takes the transitions of one round from s to its end.
func (w *mover) round(s *state) (due bool) {
	w.origin, w.number, w.level = s, 0, 0
	w.arrive, w.closed = w.enterRound, -1
	due = w.first(s)
	w.origin = nil
	return due
}

// first takes the single next transition within a round.
func (w *mover) first(s *state) (due bool) {
	x := w.x
	if t, ok := x.due(s, s.now); ok {
		w.try(s, &t, 0)
		return true
	}
	if len(s.flight) > 0 {
		number := x.message(s.flight[0])
		q := x.messages.at(number)
		w.try(s, &transition{what: OnDelivery, at: q.to, of: q.from, in: deliver | input(number), cost: -1, now: s.now}, 0)
		return true
	}
	if s.wake == timer.Never {
		return false
	}
	t, _ := x.due(s, s.wake)
	w.try(s, &t, 0)
	return true
}

// enterRound continues from a state within a round, or finishes the round.
func (w *mover) enterRound(from, next *state, _ int) {
	x, closed := w.x, w.closed
	if w.transition.what == OnTimeout && !x.roots[next.root].faulty.Has(w.transition.at) {
		w.closed = next.now
	}
	if w.level == len(w.stack) {
		w.stack = append(w.stack, new(state))
		w.steps = append(w.steps, takenTransition{})
	}
	s := w.stack[w.level]
	next.copyTo(s)
	w.steps[w.level] = w.taken(from)
	w.level++
	if _, more := x.due(s, s.now); !more && w.closed == s.now && s.now > w.origin.now || !w.first(s) {
		w.number++
		if w.number > maxMove {
			panic(tooLarge("too many lies in one round to tell them apart"))
		}
		w.finish(w.origin, s, w.number-1)
	}
	w.level--
	w.closed = closed
}
