package cuts

import (
	"slices"

	"parley"
)

// This file is about time. What it does can only make the order faster or slower.

// watch is what a process knows about slow slots and slow lanes.
type watch struct {
	l      *ledger
	usual  parley.Tick // the smoothed duration of a slot
	seen   []uint64    // by lane: the number of its first batch that was not ordered at the last look; 0: none
	looks  []int       // by lane: how many looks in a row have seen this batch
	claims []cut       // by process: its last Tips
	strict []uint64    // by lane: up to this slot, only batches that 2m+1 processes claim to hold are proposed
}

const (
	overdueAfter = 16   // looks after which a batch is overdue: four times the length of view 0
	strictFor    = 1024 // slots for which a lane is strict
)

func newWatch(l *ledger) watch {
	n := l.c.N
	return watch{
		l: l, seen: make([]uint64, n), looks: make([]int, n), claims: make([]cut, n), strict: make([]uint64, n),
	}
}

// wait returns the length of view 0: eight times the usual duration of a slot, within bounds.
func (w *watch) wait() parley.Tick { return min(max(8*w.usual, w.l.c.Least), w.l.c.Most) }

// look notes which batches are not ordered, and reports whether one of them has waited since the last look.
func (w *watch) look() (waits bool) {
	for i := range w.seen {
		x := &w.l.lanes[i]
		first := uint64(0)
		if x.tip() != x.done {
			first = x.done.number + 1
		}
		if first != w.seen[i] {
			w.seen[i], w.looks[i] = first, 0
		}
		if first > 0 {
			w.looks[i]++
			waits = waits || w.looks[i] > 1
		}
	}
	return waits
}

// sayTips says to all which batches this process holds. The others answer the owner of the slot.
func (w *watch) sayTips(s *parley.Step, self parley.ID) {
	w.claims[self] = w.l.tips()
	s.SendAll(parley.Msg{Kind: Tips, Body: w.claims[self].encode()})
}

// claimed returns how many processes claim to hold a batch as the last one of its lane.
func (w *watch) claimed(source parley.ID, t tip) (count int) {
	for _, c := range w.claims {
		if c != nil && c[source] == t {
			count++
		}
	}
	return count
}

// heldBy returns the last batch of a lane that at least so many processes claim to hold: done if there is none after it.
func (w *watch) heldBy(least int, source parley.ID) tip {
	x := &w.l.lanes[source]
	var held []uint64
	for _, c := range w.claims {
		if c != nil && x.inChain(c[source]) != nil {
			held = append(held, c[source].number)
		}
	}
	slices.Sort(held)
	if i := len(held) - least; i >= 0 && held[i] > x.done.number {
		return x.chain[held[i]-x.base.number-1].tip
	}
	return x.done
}

// backed reports whether a correct process claims to hold a batch that is not ordered.
func (w *watch) backed() bool {
	for i := range w.l.lanes {
		if w.heldBy(w.l.c.M+1, parley.ID(i)) != w.l.lanes[i].done {
			return true
		}
	}
	return false
}

// overdue reports whether a batch of a lane has waited for long, and 2m+1 processes claim to hold it. So m+1 correct
// processes said so to the owner, and a correct owner proposes it.
func (w *watch) overdue(source parley.ID) bool {
	done := w.l.lanes[source].done
	return w.looks[source] > overdueAfter && w.seen[source] == done.number+1 && w.heldBy(2*w.l.c.M+1, source) != done
}

// useful reports whether a cut orders any batch, only batches that this process holds and that lead to the last
// delivered ones, and leaves out no lane that is overdue. A process does not echo other cuts. So a decided cut has no
// fork: its batches would be in no chain, and a process that is behind could fetch them nowhere.
func (w *watch) useful(c cut) bool {
	orders := false
	for i, t := range c {
		_, leads := w.l.lanes[i].follow(t)
		more := t.number > w.l.lanes[i].done.number
		orders = orders || more
		if more && !leads || !more && w.overdue(parley.ID(i)) {
			return false
		}
	}
	return orders
}

// offered returns the batch of a lane that an owner proposes in a slot: the last one, or in a strict lane the last one
// that 2m+1 processes claim to hold.
func (w *watch) offered(source parley.ID, slot uint64) tip {
	if w.strict[source] < slot {
		return w.l.lanes[source].tip()
	}
	return w.heldBy(2*w.l.c.M+1, source)
}

// judge takes the outcome of a slot into account. If the cut of the owner was not decided in view 0, a source may have
// sent its batches to the owner and not to others. So a lane of which the cut has a batch that fewer than 2m+1
// processes claim is strict for some time.
func (w *watch) judge(k *slot, nothing bool, now parley.Tick) {
	if k.in.View() == 0 && !nothing {
		if k.timing {
			w.usual += (now - k.began - w.usual) / 8
		}
		return
	}
	c, _ := readCut(k.heard[k.owner].body, w.l.c.N)
	for i, t := range c {
		if t.number > w.l.lanes[i].done.number && w.claimed(parley.ID(i), t) <= 2*w.l.c.M {
			w.strict[i] = k.number + strictFor
		}
	}
}

func (w *watch) state(v *parley.Vars) {
	parley.Num(v, "usual", &w.usual)
	parley.PerProcess(v, "lane", w.seen, func(id parley.ID, first *uint64) {
		parley.Num(v, "not ordered", first)
		parley.Num(v, "looks", &w.looks[id])
		parley.Num(v, "strict up to slot", &w.strict[id])
	})
	parley.PerProcess(v, "claims of", w.claims, func(_ parley.ID, c *cut) {
		parley.Slice(v, "lane", (*[]tip)(c), func(_ int, t *tip) { t.state(v, "tip") })
	})
}
