package explore

import (
	"math/bits"
	"slices"

	"parley"
)

// asleep returns the deliveries that can be omitted in a state that a transition led to: those that were
// explored in the state before it and do not depend on this transition.
func (w *mover) asleep(s, next *state) uint64 {
	x := w.x
	if x.o.Unreduced || x.o.Alike != (parley.Set{}) || x.timed && next.now != s.now {
		return 0
	}
	var sleep uint64
	here, k := x.slot(s, w.transition.at), 0
	for left := w.explored; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if i >= len(s.flight) {
			break
		}
		number := x.message(s.flight[i])
		switch at := x.slot(s, x.messages.at(number).to); {
		case i == w.transition.elem,
			at != here && x.o.Ordered && w.ordered(s.parts[at], number, s.now),
			at == here && !w.commutes(s.parts[at], number, s.now):
			continue
		}
		token := x.token(s.flight[i])
		for k < len(next.flight) && x.token(next.flight[k]) < token {
			k++
		}
		if k < len(next.flight) && k < 64 && x.token(next.flight[k]) == token {
			sleep |= 1 << k
		}
	}
	return sleep
}

// calm returns those messages in flight whose delivery makes no timer due at once: such a timer expires
// before anything else happens, which is another order.
func (w *mover) calm(s *state, which uint64) uint64 {
	x := w.x
	if !x.prompt.Load() {
		return which
	}
	for left := which; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		number := x.message(s.flight[i])
		part := s.parts[x.slot(s, x.messages.at(number).to)]
		if x.processStates.at(part).down {
			continue
		}
		for _, o := range w.outcomes(clauseInput{part, deliver | input(number), s.now}) {
			if o.panics == "" && x.processStates.at(o.next).nextDue() <= s.now {
				which &^= 1 << i
			}
		}
	}
	return which
}

// ordered returns whether both the current transition and the delivery of a message to another process are
// observed, so that their order counts where it does. Otherwise both orders always lead to the same state.
func (w *mover) ordered(part, message uint32, now parley.Tick) bool {
	visible := func(o outcome) bool { return o.observations != 0 }
	return w.outcome != nil && visible(*w.outcome) && !w.x.processStates.at(part).down &&
		slices.ContainsFunc(w.outcomes(clauseInput{part, deliver | input(message), now}), visible)
}

// commutes returns whether the current transition and the delivery of a message to the same process lead to
// the same process state in either order, without any further observation.
func (w *mover) commutes(part, message uint32, now parley.Tick) bool {
	if w.transition.what != OnDelivery || w.transition.cost >= 0 || w.transition.in&amid != 0 || !w.outcome.quiet() {
		return false
	}
	silent := func(part uint32, in input) (uint32, bool) {
		list := w.outcomes(clauseInput{part, in, now})
		if len(list) != 1 || !list[0].quiet() || list[0].choices != nil || list[0].panics != "" {
			return 0, false
		}
		return list[0].next, true
	}
	there := deliver | input(message)
	first, ok := silent(part, there)
	if !ok || len(w.outcome.choices) > 0 {
		return false
	}
	a, ok := silent(first, w.transition.in)
	if !ok {
		return false
	}
	b, ok := silent(w.outcome.next, there)
	return ok && a == b
}
