package run

import "slices"

// minimize removes from a drawn plan everything that a failure does not need, faults first and then requests.
// fails reports whether a plan still fails; for a plan of k parts it is called about k log k times. No single
// part of the result can be removed.
func (p Plan) minimize(fails func(Plan) bool) Plan {
	for smaller := true; smaller; {
		smaller = false
		smaller = without(&p, &p.Suspicions, fails) || smaller
		smaller = without(&p, &p.Pauses, fails) || smaller
		smaller = without(&p, &p.Clocks, fails) || smaller
		smaller = without(&p, &p.Links, fails) || smaller
		smaller = without(&p, &p.Crashes, fails) || smaller
		smaller = without(&p, &p.Requests, fails) || smaller
		for _, chance := range []*float64{&p.Loss, &p.Twice} {
			if was := *chance; was > 0 {
				*chance = 0
				if fails(p) {
					smaller = true
				} else {
					*chance = was
				}
			}
		}
	}
	return p
}

// without removes from one list of the plan whatever can go, long pieces first.
func without[T any](p *Plan, list *[]T, fails func(Plan) bool) (smaller bool) {
	for piece := len(*list); piece > 0; piece /= 2 {
		for from := 0; from < len(*list); {
			was := *list
			*list = slices.Concat(was[:from], was[min(from+piece, len(was)):])
			if fails(*p) {
				smaller = true
				continue
			}
			*list = was
			from += piece
		}
	}
	return smaller
}

// Faults returns the number of planned faults.
func (p Plan) Faults() int {
	n := len(p.Suspicions) + len(p.Pauses) + len(p.Clocks) + len(p.Links) + len(p.Crashes)
	if p.Loss > 0 {
		n++
	}
	if p.Twice > 0 {
		n++
	}
	return n
}
