package byzantine

import (
	"slices"

	"parley"
)

// This file is about time. What it does can only make the order faster or slower.

// watch is what a process knows of slow slots and slow lanes.
type watch struct {
	ledger
	self   parley.ID
	member bool // this process takes part
	peers  peers
	usual  parley.Tick // the smoothed duration of a slot
}

const (
	overdueAfter = 16   // looks after which a batch is overdue: four times the length of view 0
	strictFor    = 1024 // slots for which a lane is strict
)

// wait returns the length of view 0: eight times the usual duration of a slot, within bounds.
func (w *watch) wait() parley.Tick { return min(max(8*w.usual, w.c.Least), w.c.Most) }

// look notes which batches are not ordered, and reports whether one of them has waited since the last look.
func (w *watch) look() (waits bool) {
	for i := range w.peers {
		x, l, first := &w.peers[i], &w.lanes[i], uint64(0)
		if l.tip() != l.done {
			first = l.done.number + 1
		}
		if first != x.first {
			x.first, x.looks = first, 0
		}
		if first > 0 {
			x.looks++
			waits = waits || x.looks > 1
		}
	}
	return waits
}

// sayTips says to all which batches this process holds. The others answer the owner of the slot.
func (w *watch) sayTips(s *parley.Step) {
	w.peers[w.self].claim = w.tips()
	s.SendAll(parley.Msg{Kind: Tips, Body: w.tips().encode()})
}

// answerTips says to the owner which batches this process holds.
func (w *watch) answerTips(s *parley.Step, owner parley.ID) {
	if w.member && owner != w.self {
		s.Send(owner, parley.Msg{Kind: Tips, Value: 1, Body: w.tips().encode()})
	}
}

// heldBy returns the last batch of a lane that at least so many processes claim to hold: done if there is none after
// it.
func (w *watch) heldBy(least int, source parley.ID) tip {
	l := &w.lanes[source]
	var held []uint64
	for i := range w.peers {
		if c := w.peers[i].claim; c != nil && l.inChain(c[source]) != nil {
			held = append(held, c[source].number)
		}
	}
	slices.Sort(held)
	if i := len(held) - least; i >= 0 && held[i] > l.done.number {
		return l.chain[held[i]-l.base.number-1].tip
	}
	return l.done
}

// backed reports whether a correct process claims to hold a batch that is not ordered.
func (w *watch) backed() bool {
	for i := range w.lanes {
		if w.heldBy(w.c.M+1, parley.ID(i)) != w.lanes[i].done {
			return true
		}
	}
	return false
}

// overdue reports whether a batch of a lane has waited for long, and 2m+1 processes claim to hold it. So m+1 correct
// processes said so to the owner, and a correct owner proposes it.
func (w *watch) overdue(source parley.ID) bool {
	x, done := &w.peers[source], w.lanes[source].done
	return x.looks > overdueAfter && x.first == done.number+1 && w.heldBy(2*w.c.M+1, source) != done
}

// useful reports whether a cut orders any batch, only batches that this process holds and that lead to the last
// delivered ones, and leaves out no lane that is overdue. A process does not echo other cuts. So a decided cut has no
// fork: its batches would be in no chain, and a process that is behind could fetch them nowhere.
func (w *watch) useful(c cut) bool {
	orders := false
	for i, t := range c {
		_, leads := w.lanes[i].follow(t)
		more := t.number > w.lanes[i].done.number
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
	if w.peers[source].strict < slot {
		return w.lanes[source].tip()
	}
	return w.heldBy(2*w.c.M+1, source)
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
	c, _ := readCut(k.heard[k.owner].body, w.c.N)
	for i, t := range c {
		if t.number > w.lanes[i].done.number && w.peers.claimed(parley.ID(i), t) <= 2*w.c.M {
			w.peers[i].strict = k.number + strictFor
		}
	}
}
