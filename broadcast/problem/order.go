package problem

import (
	"fmt"

	"parley"
)

// sequence is what one incarnation of a process delivered, in order, each message once.
type sequence struct {
	at    parley.ID
	casts []int
	place map[int]int // of each cast in casts
}

// sequences returns the sequences of the given processes, ordered by process and incarnation.
func (r *run) sequences(of whose) []sequence {
	lives := make([][]sequence, r.h.N)
	for _, d := range r.deliveries {
		if d.again || !of.among(r.h, d.at) {
			continue
		}
		for len(lives[d.at]) <= d.life {
			lives[d.at] = append(lives[d.at], sequence{at: d.at, place: make(map[int]int)})
		}
		s := &lives[d.at][d.life]
		s.place[d.cast] = len(s.casts)
		s.casts = append(s.casts, d.cast)
	}
	var out []sequence
	for _, all := range lives {
		out = append(out, all...)
	}
	return out
}

// pairs calls check for each two sequences of the given processes.
func pairs(h *parley.History, of whose, check func(r *run, a, b *sequence) error) error {
	r := read(h)
	all := r.sequences(of)
	for i := range all {
		for k := range i {
			if err := check(r, &all[k], &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameOrder checks that what a delivered has increasing places at b.
func sameOrder(r *run, a, b *sequence) error {
	if len(b.casts) < len(a.casts) {
		a, b = b, a
	}
	last, lastPlace := -1, -1
	for _, c := range a.casts {
		place, both := b.place[c]
		if !both {
			continue
		}
		if place < lastPlace {
			return fmt.Errorf("%s delivered %s before %s, and %s delivered them in the opposite order",
				r.h.Name(a.at), r.name(last), r.name(c), r.h.Name(b.at))
		}
		last, lastPlace = c, place
	}
	return nil
}

// prefix compares, of the messages to both processes, what each has delivered.
func prefix(r *run, a, b *sequence) error {
	common := func(s *sequence) (out []int) {
		for _, c := range s.casts {
			if r.casts[c].to.Has(a.at) && r.casts[c].to.Has(b.at) {
				out = append(out, c)
			}
		}
		return out
	}
	x, y := common(a), common(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Errorf("of the messages to both, the one at place %d is %s at %s and %s at %s",
				i+1, r.name(x[i]), r.h.Name(a.at), r.name(y[i]), r.h.Name(b.at))
		}
	}
	return nil
}
