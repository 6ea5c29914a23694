package explore

import (
	"encoding/binary"
	"slices"

	"parley"
)

// symmetry holds the permutations of symmetric processes, and the shares of parts of a state under them. Of
// the states that are equal up to renaming, the one reached first is visited; its fingerprint is the
// smallest of all their fingerprints.
type symmetry struct {
	w        *runner
	perms    [][]parley.ID
	parts    map[renamed]uint64
	messages map[renamed]uint64
	threads  map[renamed]uint64
}

// renamed is a part of a state under one permutation.
type renamed struct {
	perm int
	part uint32
}

// newSymmetry returns every permutation of the symmetric processes except the identity.
func newSymmetry(w *runner, who parley.Set) symmetry {
	a := symmetry{
		w: w, parts: make(map[renamed]uint64), messages: make(map[renamed]uint64),
		threads: make(map[renamed]uint64),
	}
	ids := slices.Collect(who.All())
	perm := make([]parley.ID, w.x.p.N)
	for i := range perm {
		perm[i] = parley.ID(i)
	}
	var place func(k int, left []parley.ID)
	place = func(k int, left []parley.ID) {
		if len(left) == 0 {
			a.perms = append(a.perms, slices.Clone(perm))
			return
		}
		for i, id := range left {
			perm[ids[k]] = id
			place(k+1, slices.Delete(slices.Clone(left), i, i+1))
		}
	}
	place(0, ids)
	a.perms = a.perms[1:]
	return a
}

// print returns the common fingerprint of a state and of all states that differ from it only by a renaming
// of symmetric processes.
func (a *symmetry) print(s *state) uint64 {
	x := a.w.x
	least := s.print(s.sum)
	for k := range a.perms {
		var sum uint64
		for i := range x.roots[s.root].seats {
			sum += a.part(k, s.parts[x.roots[s.root].seats[i].ids[0]])
		}
		for _, elem := range s.flight {
			sum += a.message(k, elem)
		}
		for _, t := range x.histories.at(s.history).threads {
			sum += a.thread(k, t)
		}
		least = min(least, s.print(sum))
	}
	return least
}

// part returns the share of a process state under permutation k.
func (a *symmetry) part(k int, number uint32) uint64 {
	x, at := a.w.x, renamed{k, number}
	share, known := a.parts[at]
	if known {
		return share
	}
	perm := a.perms[k]
	c := *x.processStates.at(number)
	r := x.roots[c.root]
	ids := r.seats[c.seat].ids
	if len(ids) == 1 {
		c.seat = slices.IndexFunc(r.seats, func(s seat) bool { return s.ids[0] == perm[ids[0]] })
	}
	told := c.noticed
	c.noticed = 0
	for id := range parley.ID(x.p.N) {
		c.noticed |= told >> (4 * id) & 15 << (4 * perm[id])
	}
	c.timers = slices.Clone(c.timers)
	for i := range c.timers {
		c.timers[i].Of = perm[c.timers[i].Of]
	}
	if !c.down {
		m := a.w.machine(x.processStates.at(number))
		if !parley.Load(m, 0, c.machine) {
			panic("explore: a machine does not load the state that it saved")
		}
		c.machine = parley.SaveRenamed(m, 0, parley.Renaming{Perm: perm, Msg: x.p.Rename}, nil)
	}
	share = digest('c', c.key(nil))
	a.parts[at] = share
	return share
}

// message returns the share of an element of the flight under permutation k.
func (a *symmetry) message(k int, elem uint32) uint64 {
	x, at := a.w.x, renamed{k, elem}
	share, known := a.messages[at]
	if known {
		return share
	}
	perm := a.perms[k]
	m := *x.messages.at(x.message(elem))
	m.msg = x.p.Rename(parley.Env{From: m.from, To: m.to, Epoch: m.epoch, Path: m.path}, m.msg, perm)
	m.from, m.to = perm[m.from], perm[m.to]
	share = digest('m', m.key(nil))
	if x.o.Model.FIFO {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], share)
		if rest := x.queues.at(elem).rest; rest != 0 {
			binary.LittleEndian.PutUint64(b[8:], a.message(k, rest))
		}
		share = digest('q', b[:])
	}
	a.messages[at] = share
	return share
}

// thread returns the share of one process's history under permutation k.
func (a *symmetry) thread(k int, number uint32) uint64 {
	if number == 0 {
		return 0
	}
	x, at := a.w.x, renamed{k, number}
	share, known := a.threads[at]
	if known {
		return share
	}
	perm := a.perms[k]
	t := x.threads.at(number)
	e := t.last
	e.At, e.From = perm[e.At], perm[e.From]
	if int(e.Msg.Origin) < len(perm) {
		e.Msg.Origin = perm[e.Msg.Origin]
	}
	b := binary.LittleEndian.AppendUint64(nil, a.thread(k, t.parent))
	share = digest('t', eventKey(b, &e))
	a.threads[at] = share
	return share
}
