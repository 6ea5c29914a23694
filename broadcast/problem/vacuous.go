package problem

import "parley"

// none returns the Vacuous function of a property about what the given processes deliver or, for senders,
// about what correct processes broadcast.
func none(by whose) func(h *parley.History) string {
	return func(h *parley.History) string {
		r := read(h)
		if by == senders {
			for c := range r.casts[:r.requested] {
				if h.Correct(r.casts[c].from) {
					return ""
				}
			}
			return "no correct process broadcasts anything"
		}
		for _, d := range r.deliveries {
			if by.among(h, d.at) {
				return ""
			}
		}
		if by == correct {
			return "no correct process delivers anything"
		}
		return "nothing is delivered"
	}
}

// apart returns the Vacuous function of a property that compares what two processes deliver: it demands
// something only if two of them deliver the given number of messages in common.
func apart(of whose, number int) func(h *parley.History) string {
	return func(h *parley.History) string {
		r := read(h)
		for a := range parley.ID(h.N) {
			for b := range a {
				both := 0
				for c := range r.casts {
					if r.has(a, c) && r.has(b, c) {
						both++
					}
				}
				if of.among(h, a) && of.among(h, b) && both >= number {
					return ""
				}
			}
		}
		if number == 1 {
			return "no two processes deliver the same message"
		}
		return "no two processes deliver the same two messages"
	}
}

// unrelated returns the Vacuous function of an order between a message and earlier ones: those of its sender
// or, if causal, all that its sender had broadcast or delivered.
func unrelated(causal bool) func(h *parley.History) string {
	return func(h *parley.History) string {
		r := read(h)
		before := func(c int) bool {
			cast := &r.casts[c]
			if cast.invented || cast.place > 0 {
				return cast.place > 0
			}
			for _, d := range r.deliveries {
				if causal && d.at == cast.from && d.order < cast.order {
					return true
				}
			}
			return false
		}
		for _, d := range r.deliveries {
			if h.Correct(d.at) && before(d.cast) {
				return ""
			}
		}
		if causal {
			return "no delivered message depends on another message"
		}
		return "no process delivers the second message of a sender"
	}
}
