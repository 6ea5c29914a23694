package explore

import (
	"math/bits"
	"slices"

	"parley"
)

// asleep returns what need not be done in a state that deliver moves led to: what was
// explored in the state before it and does not depend on this move.
func (w *mover) asleep(s, next *state) uint64 {
	x := w.x
	if x.o.Unreduced || x.o.Alike != (parley.Set{}) || x.timed && next.now != s.now {
		return 0
	}
	var sleep uint64
	here, k := x.slot(s, w.turn.at), 0
	for left := w.explored; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if i >= len(s.flight) {
			break
		}
		number := x.message(s.flight[i])
		switch at := x.slot(s, x.messages.at(number).to); {
		case i == w.turn.elem,
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

// calm returns those of the messages on the way after whose arrival no timer is due at
// once: that runs out before anything else happens, which is another order.
func (w *mover) calm(s *state, which uint64) uint64 {
	x := w.x
	if !x.prompt.Load() {
		return which
	}
	for left := which; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		number := x.message(s.flight[i])
		part := s.parts[x.slot(s, x.messages.at(number).to)]
		if x.components.at(part).down {
			continue
		}
		for _, o := range w.outcomes(clauseInput{part, deliver | input(number), s.now}) {
			if o.panics == "" && x.components.at(o.next).wakes() <= s.now {
				which &^= 1 << i
			}
		}
	}
	return which
}

// ordered tells whether something is seen of the present move and of the arrival of a
// message at another component, so that their order counts where it does. Else they
// always come to the same in either order.
func (w *mover) ordered(part, message uint32, now parley.Tick) bool {
	visible := func(o outcome) bool { return o.outs != 0 }
	return w.outcome != nil && visible(*w.outcome) && !w.x.components.at(part).down &&
		slices.ContainsFunc(w.outcomes(clauseInput{part, deliver | input(message), now}), visible)
}

// commutes tells whether the present move and the arrival of a message at the same
// component come to the same in either order: the component is in the end the same, and
// nobody sees more of it.
func (w *mover) commutes(part, message uint32, now parley.Tick) bool {
	if w.turn.what != OnDelivery || w.turn.cost >= 0 || w.turn.in&amid != 0 || !w.outcome.quiet() {
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
	a, ok := silent(first, w.turn.in)
	if !ok {
		return false
	}
	b, ok := silent(w.outcome.next, there)
	return ok && a == b
}
