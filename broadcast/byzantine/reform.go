package byzantine

import (
	"slices"

	"parley"
	"parley/lockstep"
)

// When more than m processes are out, nobody may be left who lets them in. Those who are in,
// if any, hear too few; they go out too, when so many have asked twice. When a process that
// has asked in vain knows of n-m processes that are out, itself among them, it is ready for an
// era that begins anew. Nobody needs to know the end of one before: in the first slot of such
// an era each process says what it has delivered, its claim, and where the order goes on is a
// function of the claims that are agreed on.
//
// The last 8 bits of an era's number are 0 in those that begin anew. The eras that come of one
// count on from it; when that comes to 128, they go on in the next family, in the upper half.
// So an era that begins anew has no number of one that goes on somewhere else.

const (
	family = 1 << 8
	branch = family / 2
)

// fresh tells whether an era begins anew.
func fresh(number uint64) bool { return number > 0 && number%family == 0 }

// anew is the era that begins anew behind another one, whichever it is of its family.
func anew(number uint64) uint64 { return (number/family + 1) * family }

// successor is the era behind another one that ends.
func successor(number uint64) uint64 {
	if number%branch == branch-1 {
		return anew(number) + branch
	}
	return number + 1
}

// leap is by how many places the order may jump at most because of the claims of m processes,
// which may be lies.
const leap = 1 << 36

// several tells whether so many processes are out that the order can begin anew.
func (p *process) several() bool { return p.outs.Len()+1 >= p.c.N-p.c.M }

// few tells whether more than m others are out, so that what is delivered now may not be
// delivered by all. Then slots are for wishes alone.
func (p *process) few() bool { return p.outs.Len() > p.c.M }

// entered is the last era that 2m+1 processes are ready for.
func (p *process) entered() uint64 {
	all := slices.Clone(p.ready)
	slices.Sort(all)
	return all[max(0, p.c.N-1-2*p.c.M)]
}

// enough tells whether 2m+1 processes are ready for an era, or for one that came of it.
func (p *process) enough(number uint64) bool {
	count := 0
	for _, r := range p.ready {
		if r >= number && r/branch == number/branch {
			count++
		}
	}
	return count >= min(p.c.N, 2*p.c.M+1)
}

// settled tells whether a correct process is in an era that began anew, or one that came of it.
func (p *process) settled(number uint64) bool {
	count := 0
	for i, r := range p.ready {
		if id := parley.ID(i); id != p.self && !p.outs.Has(id) && r >= number && r/branch == number/branch {
			count++
		}
	}
	return count > p.c.M
}

// early is a frame of the first slot of an era that this process does not know of yet.
type early struct {
	number uint64
	body   []byte
}

// keep keeps a frame of an era that begins anew, which may come before the words of those
// who are ready for it: of each process the last one.
func (p *process) keep(from parley.ID, number uint64, m parley.Msg) bool {
	if !fresh(number) || number <= p.cur.number || p.next != nil && number == p.next.number || p.c.Final ||
		m.Value != 1 || !lockstep.Opens(m) || len(m.Body) > p.c.longest(0) {
		return false
	}
	p.early[from] = early{number, m.Body}
	return true
}

// attend takes part in an era that begins anew, once enough processes are ready for it.
func (p *process) attend(s *parley.Step, number uint64) {
	p.asked, p.next = true, p.newEra(number)
	clear(p.states)
	for i, f := range p.early {
		if f.number == number {
			p.next.line.Receive(s, parley.ID(i), parley.Msg{Kind: lockstep.Frame, Value: 1, Body: f.body})
		}
	}
	clear(p.early)
}

// reform: n-m processes are out. The era is the one behind that which 2m+1 were ready for,
// also if this process was ready for a later one, of which too few know any more.
func (p *process) reform(s *parley.Step) {
	number := anew(p.entered())
	if p.next == nil || p.next.number != number {
		p.attend(s, number)
	}
	if p.ready[p.self] != number {
		p.say(s, number)
	}
}

// away takes in a word of a process that is out. If others are ready for what this process would
// be ready for when it asks the next time, it does so at once.
func (p *process) away(s *parley.Step, from parley.ID, number uint64) {
	more := p.outs.Add(from)
	if p.out && p.tries > 0 && p.several() &&
		(more || number >= anew(p.entered()) && p.ready[p.self] < number) {
		p.hurry(s, p.when.Delta)
	}
}

// hurry asks once more after some time, whenever that was due.
func (p *process) hurry(s *parley.Step, after parley.Tick) {
	if !p.hurried {
		p.hurried = true
		s.SetTimer(hurry, after)
	}
}

// running tells whether an era that begins anew has begun, and has not failed.
func (p *process) running() bool {
	return p.out && p.next != nil && fresh(p.next.number) && !p.next.line.Paused() && !p.next.bad()
}

// claim is what this process says of what it delivered, in the place of a batch.
func claim(total uint64, numbers []uint64) []byte {
	return append([]byte{0}, encodeState(total, numbers)...)
}

// readClaim is its reverse.
func readClaim(b []byte, n int) (total uint64, numbers []uint64, ok bool) {
	if len(b) == 0 || b[0] != 0 {
		return 0, nil, false
	}
	return decodeState(b[1:], n)
}

// base is where the order goes on, by the claims of processes: behind all that anybody claims
// to have delivered, as far as m liars can not make that anything. The numbers of each sender go
// on behind what m+1 claim, one of them correct, and what it claims itself; delivered are the
// first of these.
func base(m int, totals []uint64, numbers [][]uint64) (total uint64, last, delivered []uint64) {
	claimed := func(of func(i int) uint64) uint64 { // by m+1 processes
		var all []uint64
		for i, c := range numbers {
			if c != nil {
				all = append(all, of(i))
			}
		}
		slices.Sort(all)
		return all[len(all)-1-m]
	}
	sure := claimed(func(i int) uint64 { return totals[i] })
	for i, c := range numbers {
		if c != nil {
			total = max(total, min(totals[i], sure+leap))
		}
	}
	last, delivered = make([]uint64, len(numbers)), make([]uint64, len(numbers))
	for of, own := range numbers {
		delivered[of] = claimed(func(i int) uint64 { return numbers[i][of] })
		last[of] = delivered[of]
		if own != nil {
			last[of] = max(last[of], own[of])
		}
	}
	return total, last, delivered
}

// settle goes on in an era that began anew, when its first slot is agreed on. If it has the
// claims of less than n-m processes, too few take part, and the era comes to nothing.
func (p *process) settle(s *parley.Step) {
	e := p.next
	if !p.out || e == nil || !fresh(e.number) || e.done == 0 || e.delivered > 0 || e.bad() || !e.at(1).whole() {
		return
	}
	totals, numbers, count := make([]uint64, p.c.N), make([][]uint64, p.c.N), 0
	for i, one := range e.at(1).entries {
		if total, said, ok := readClaim(one.body, p.c.N); ok {
			totals[i], numbers[i] = total, said
			count++
		}
	}
	if count < p.c.N-p.c.M {
		s.Refuse(s.Self, "too few claims")
		e.lost = true
		return
	}
	total, last, delivered := base(p.c.M, totals, numbers)
	p.renew(delivered[p.self])
	p.total, p.numbers = total, last
	e.delivered = 1
	e.trim()
	p.join(s)
}

// renew is for own requests: those that were put into slots, and not delivered here but by
// others, are done with, and those that were delivered here and not by others go in again.
func (p *process) renew(delivered uint64) {
	own := p.numbers[p.self]
	if delivered >= own {
		p.queue = p.queue[min(delivered-own, uint64(p.sent)):]
		return
	}
	var lost [][]byte
	for _, e := range [...]*era{p.old, p.cur} {
		if e == nil {
			continue
		}
		for slot := e.oldest; slot <= e.delivered; slot++ {
			each(e.at(slot).entries[p.self].body, func(number uint64, request []byte) {
				if number > delivered && number <= own {
					delivered = number
					lost = append(lost, request)
				}
			})
		}
	}
	p.queue = append(lost, p.queue...)
}
