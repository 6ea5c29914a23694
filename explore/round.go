package explore

import "parley/explore/internal/timer"

// In a search by rounds a move is all that happens until timers of correct processes
// have run out again. What arrives within a round is delivered in one order: with
// lockstep, which takes in what a round brought when it closes, and in the order of the
// senders, any other leads to the same. Only what liars say is chosen.

// round makes one move of one round, and goes on from there until it ends.
func (w *mover) round(s *state) (due bool) {
	w.origin, w.number, w.level = s, 0, 0
	w.arrive, w.closed = w.within, -1
	due = w.first(s)
	w.origin = nil
	return due
}

// first makes the one move that is made next within a round.
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

// within takes in a state in the middle of a round, or at its end.
func (w *mover) within(from, next *state, _ int) {
	x, closed := w.x, w.closed
	if w.turn.what == OnTimeout && !x.roots[next.root].faulty.Has(w.turn.at) {
		w.closed = next.now
	}
	if w.level == len(w.stack) {
		w.stack = append(w.stack, new(state))
		w.steps = append(w.steps, takenTransition{})
	}
	s := w.stack[w.level]
	next.copyTo(s)
	w.steps[w.level] = w.made(from)
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
