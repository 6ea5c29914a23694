package byzantine

import (
	"slices"

	"parley"
)

// tenure says which process owns the current slot. It follows from the decided slots alone, so all correct processes
// agree on it. No suspicion has an influence.
//
// The owner stays for Config.Tenure slots, or until a slot is decided on nothing. Then the next process in cyclic
// order that is not benched becomes the owner. An owner whose tenure ends with nothing is benched for 2^f tenures,
// where f is the number of such ends in a row. At most m processes are benched, namely the last ones. So a dead
// process costs a time-out when it owns a slot, and then ever more rarely. The batches of a benched process are
// ordered as before.
type tenure struct {
	owner parley.ID
	used  int     // slots of this tenure that are decided
	fails []uint8 // by process: f
	bench []benched
}

// benched is a process that does not become the owner.
type benched struct {
	who  parley.ID
	left int // tenures
}

// mostFails bounds the length of a bench: 2^10 tenures.
const mostFails = 10

// decided takes the outcome of the current slot into account.
func (t *tenure) decided(nothing bool, length, m int) {
	t.used++
	switch {
	case nothing:
		t.fails[t.owner] = min(t.fails[t.owner]+1, mostFails)
	case t.used < length:
		return
	default:
		t.fails[t.owner] = 0
	}
	for i := range t.bench {
		t.bench[i].left--
	}
	t.bench = slices.DeleteFunc(t.bench, func(b benched) bool { return b.left == 0 })
	if nothing {
		t.bench = append(t.bench, benched{t.owner, 1 << t.fails[t.owner]})
		t.bench = slices.Clone(t.bench[max(0, len(t.bench)-m):])
	}
	t.used = 0
	for {
		t.owner = (t.owner + 1) % parley.ID(len(t.fails))
		if !slices.ContainsFunc(t.bench, func(b benched) bool { return b.who == t.owner }) {
			return
		}
	}
}

func (t *tenure) state(v *parley.Vars) {
	v.ID("owner", &t.owner)
	parley.Num(v, "slots used", &t.used)
	parley.PerProcess(v, "ends with nothing", t.fails, func(_ parley.ID, f *uint8) { parley.Num(v, "in a row", f) })
	parley.Slice(v, "benched", &t.bench, func(_ int, b *benched) {
		v.ID("process", &b.who)
		parley.Num(v, "tenures", &b.left)
	})
}
