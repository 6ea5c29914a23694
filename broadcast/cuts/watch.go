package cuts

import (
	"slices"

	"parley"
)

// This file is about time. What it does can only make the order faster or slower.

const (
	overdueAfter = 16   // looks after which a batch is overdue: four times the length of view 0
	strictFor    = 1024 // slots for which a lane is strict
)

// wait returns the length of view 0: eight times the usual duration of a slot, within bounds.
func (p *process) wait() parley.Tick { return min(max(8*p.usual, p.c.Least), p.c.Most) }

// look notes which batches are not ordered, and reports whether one of them has waited since the last look.
func (p *process) look() (waits bool) {
	for i := range p.peers {
		x, l, first := &p.peers[i], &p.lanes[i], uint64(0)
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
func (p *process) sayTips(s *parley.Step) {
	p.peers[p.self].claim = p.tips()
	s.SendAll(parley.Msg{Kind: Tips, Body: p.tips().encode()})
}

// answerTips says to the owner which batches this process holds.
func (p *process) answerTips(s *parley.Step, owner parley.ID) {
	if p.member && owner != p.self {
		s.Send(owner, parley.Msg{Kind: Tips, Value: 1, Body: p.tips().encode()})
	}
}

// takeTips believes m+1 processes that they hold a batch: one of them is correct and has it from its source. If only
// the source says so, this process may have refused the batch when it was itself behind, and lets the source repeat it.
func (p *process) takeTips(s *parley.Step, from parley.ID, m parley.Msg) {
	c, ok := readCut(m.Body, p.c.N)
	if !ok || m.Value > 1 {
		s.Refuse(from, "cut that cannot be read")
		return
	}
	p.peers[from].claim = c
	if from == p.cur.owner && m.Value == 0 {
		p.answerTips(s, from)
	}
	for i, t := range c {
		lack, _ := p.lanes[i].follow(t)
		w := want{lane: parley.ID(i), tip: lack}
		switch {
		case lack == tip{}:
		case p.claimed(w.lane, t) > p.c.M:
			p.fetch(s, from, w)
		case w.lane == from:
			p.request(s, from, w)
		}
	}
}

// claims reports whether a process claims to hold a batch as the last one of its lane.
func (x *peer) claims(source parley.ID, t tip) bool { return x.claim != nil && x.claim[source] == t }

// claimed returns how many processes claim to hold a batch as the last one of its lane.
func (p *process) claimed(source parley.ID, t tip) (count int) {
	for i := range p.peers {
		if p.peers[i].claims(source, t) {
			count++
		}
	}
	return count
}

// heldBy returns the last batch of a lane that at least so many processes claim to hold: done if there is none after it.
func (p *process) heldBy(least int, source parley.ID) tip {
	l := &p.lanes[source]
	var held []uint64
	for i := range p.peers {
		if c := p.peers[i].claim; c != nil && l.inChain(c[source]) != nil {
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
func (p *process) backed() bool {
	for i := range p.lanes {
		if p.heldBy(p.c.M+1, parley.ID(i)) != p.lanes[i].done {
			return true
		}
	}
	return false
}

// overdue reports whether a batch of a lane has waited for long, and 2m+1 processes claim to hold it. So m+1 correct
// processes said so to the owner, and a correct owner proposes it.
func (p *process) overdue(source parley.ID) bool {
	x, done := &p.peers[source], p.lanes[source].done
	return x.looks > overdueAfter && x.first == done.number+1 && p.heldBy(2*p.c.M+1, source) != done
}

// useful reports whether a cut orders any batch, only batches that this process holds and that lead to the last
// delivered ones, and leaves out no lane that is overdue. A process does not echo other cuts. So a decided cut has no
// fork: its batches would be in no chain, and a process that is behind could fetch them nowhere.
func (p *process) useful(c cut) bool {
	orders := false
	for i, t := range c {
		_, leads := p.lanes[i].follow(t)
		more := t.number > p.lanes[i].done.number
		orders = orders || more
		if more && !leads || !more && p.overdue(parley.ID(i)) {
			return false
		}
	}
	return orders
}

// offered returns the batch of a lane that an owner proposes in a slot: the last one, or in a strict lane the last one
// that 2m+1 processes claim to hold.
func (p *process) offered(source parley.ID, slot uint64) tip {
	if p.peers[source].strict < slot {
		return p.lanes[source].tip()
	}
	return p.heldBy(2*p.c.M+1, source)
}

// judge takes the outcome of a slot into account. If the cut of the owner was not decided in view 0, a source may have
// sent its batches to the owner and not to others. So a lane of which the cut has a batch that fewer than 2m+1
// processes claim is strict for some time.
func (p *process) judge(k *slot, nothing bool, now parley.Tick) {
	if k.in.View() == 0 && !nothing {
		if k.timing {
			p.usual += (now - k.began - p.usual) / 8
		}
		return
	}
	c, _ := readCut(k.heard[k.owner].body, p.c.N)
	for i, t := range c {
		if t.number > p.lanes[i].done.number && p.claimed(parley.ID(i), t) <= 2*p.c.M {
			p.peers[i].strict = k.number + strictFor
		}
	}
}
