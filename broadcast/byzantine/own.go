package byzantine

import (
	"cmp"
	"slices"

	"parley"
)

// part is the own part of a slot: the number of the last own request in it, the size of the batch in bytes,
// when the slot began here, and whether the requests had to wait.
type part struct {
	slot, last uint64
	size       int
	begun      parley.Tick
	held       bool
}

// batch is an own batch in a slot: when the slot began here, and the bytes of the batch.
type batch struct {
	begun parley.Tick
	size  int
}

// call opens a slot if there is something to propose, and not too much in flight.
func (p *process) call(s *parley.Step) {
	if p.out || p.cur.line.Paused() {
		return
	}
	need, wishing := 0, p.wishes && p.due(s)
	if wishing {
		need = head + wishSize
	} else if p.sent < len(p.queue) && !p.few() && p.vain <= p.c.Tries {
		need = head + overhead + len(p.queue[p.sent])
	}
	line := p.cur.line
	switch unfinished := line.Opened() - line.Done(); {
	case need == 0 || unfinished >= uint64(p.c.Depth) && p.size < p.c.Batch/4:
	case p.free(s) < need:
		p.wait(s, p.flight[0].begun+line.Age())
	case !wishing && p.pace.holds(s.Now):
		p.pace.held = true
		p.wait(s, p.pace.next())
	default:
		mark := s.Mark()
		line.OpenSlot(s, 0)
		p.cur.tag(s, mark)
	}
}

// wait sets the timer to call again, if until is in the future and earlier than the timer's present time.
func (p *process) wait(s *parley.Step, until parley.Tick) {
	if until > s.Now && (!p.waits || until < p.until) {
		p.waits, p.until = true, until
		s.SetTimer(room, until-s.Now)
	}
}

// fill puts what waits into a slot, as far as there is room in a batch and in flight, and unless the pace
// delays it.
func (p *process) fill(s *parley.Step, slot uint64) (parley.Msg, bool) {
	most := min(p.c.Batch, p.free(s))
	var wishes []wish
	if p.wishes {
		wishes = p.wish(s, (most-head)/wishSize)
	}
	waiting := p.queue[p.sent:]
	if p.few() {
		waiting = nil
	} else if len(waiting) > 0 && p.pace.holds(s.Now) {
		p.pace.held = true
		if p.pace.full() || !p.crowded() {
			waiting = nil
		}
	}
	k, size := 0, head+wishSize*len(wishes)
	for ; k < len(waiting) && size+len(waiting[k])+overhead <= most; k++ {
		size += len(waiting[k]) + overhead
		p.size -= len(waiting[k]) + overhead
	}
	if k+len(wishes) == 0 {
		return parley.Msg{}, false
	}
	p.flight = append(p.flight, batch{s.Now, size})
	p.under += size
	first := p.numbers[p.self] + uint64(p.sent) + 1
	if p.sent += k; k > 0 {
		p.said = append(p.said, part{slot, first + uint64(k) - 1, size, s.Now, p.pace.begun(s.Now, size)})
	}
	return parley.Msg{Kind: parley.Propose, Body: encode(first, waiting[:k], wishes...)}, true
}

// crowded reports whether most slots that may begin have begun: a liar can open all of them, and then none
// are left over which to spread what waits.
func (p *process) crowded() bool {
	return 4*(p.cur.line.Opened()-p.cur.line.Done()) > 3*uint64(p.c.Window)
}

// free returns for how many bytes there is room. A batch that began longer ago than a slot may last is in
// flight nowhere. The time counts, not the end of the slot here, because others may be slower than this
// process.
func (p *process) free(s *parley.Step) int {
	for len(p.flight) > 0 && s.Now-p.flight[0].begun >= p.cur.line.Age() {
		p.under -= p.flight[0].size
		p.flight = p.flight[1:]
	}
	return p.c.Flight - p.under
}

// behind records how late this process is itself.
func (p *process) behind(s *parley.Step) {
	if line := p.cur.line; line != nil {
		p.pace.late = max(p.pace.late, line.Behind(s.Now))
	}
}

// timed records how long a slot took, if this process has a batch in it, and whether the others counted that.
func (p *process) timed(s *parley.Step, e *era, slot uint64, counts bool) {
	i, own := slices.BinarySearchFunc(p.said, slot, func(a part, slot uint64) int { return cmp.Compare(a.slot, slot) })
	if own && e == p.cur {
		p.pace.over(s.Now, &p.said[i], counts, In(e.number, p.when), p.c.Batch)
	}
}

// check proposes own requests again if a slot was delivered without those that this process had put into it:
// they were late. It opens slots for that up to Config.Tries times; after that it uses slots that others
// open.
func (p *process) check(s *parley.Step, slot uint64) {
	if len(p.said) == 0 || p.said[0].slot != slot {
		return
	}
	if p.numbers[p.self] < p.said[0].last {
		p.vain++
		p.afresh()
		p.pace.again(s.Now)
		return
	}
	p.said = p.said[1:]
}

// afresh puts all own undelivered requests into future slots.
func (p *process) afresh() {
	p.sent, p.size, p.said = 0, 0, nil
	for _, r := range p.queue {
		p.size += len(r) + overhead
	}
}
