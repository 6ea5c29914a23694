package byzantine

import (
	"slices"

	"parley"
	"parley/lockstep"
)

// If more than m processes are out, there may be too few left to admit them. The remaining members, if any,
// receive from too few; they go out too, when enough others have asked twice. When a process that has asked
// without success knows n-m processes that are out, including itself, it is ready for an era that resets the
// order. No process needs to know the end of an earlier era: in the first slot of such an era each process
// states what it has delivered, its claim, and the claims that are agreed on determine where the order
// continues.
//
// The last 8 bits of the number of an era that resets the order are 0. Its successors count on from it; at
// 128 they continue in the next family, in the upper half. So an era that resets the order never has the
// number of an era that runs elsewhere.

const (
	family = 1 << 8
	branch = family / 2
)

// fresh reports whether an era is a reset.
func fresh(number uint64) bool { return number > 0 && number%family == 0 }

// anew returns the era of a reset after an era; it is the same for all eras of a family.
func anew(number uint64) uint64 { return (number/family + 1) * family }

// successor returns the era after one that ends.
func successor(number uint64) uint64 {
	if number%branch == branch-1 {
		return anew(number) + branch
	}
	return number + 1
}

// leap bounds by how many positions the order may jump because of the claims of m processes, which may be
// lies.
const leap = 1 << 36

// several reports whether enough processes are out to reset the order.
func (p *process) several() bool { return p.outs.Len()+1 >= p.c.N-p.c.M }

// few reports whether more than m others are out, so that not all may deliver what is delivered now. Then
// slots carry only wishes.
func (p *process) few() bool { return p.outs.Len() > p.c.M }

// entered returns the last era that 2m+1 processes are ready for.
func (p *process) entered() uint64 {
	all := slices.Clone(p.ready)
	slices.Sort(all)
	return all[max(0, p.c.N-1-2*p.c.M)]
}

// enough reports whether 2m+1 processes are ready for an era, or for one of its successors.
func (p *process) enough(number uint64) bool {
	count := 0
	for _, r := range p.ready {
		if r >= number && r/branch == number/branch {
			count++
		}
	}
	return count >= min(p.c.N, 2*p.c.M+1)
}

// settled reports whether a correct process is in a reset era, or in one of its successors.
func (p *process) settled(number uint64) bool {
	count := 0
	for i, r := range p.ready {
		if id := parley.ID(i); id != p.self && !p.outs.Has(id) && r >= number && r/branch == number/branch {
			count++
		}
	}
	return count > p.c.M
}

// early is a frame of the first slot of an era that this process does not know yet.
type early struct {
	number uint64
	body   []byte
}

// keep keeps a frame of a reset era, which may arrive before the messages of processes that are ready for it:
// the last frame of each process.
func (p *process) keep(from parley.ID, number uint64, m parley.Msg) bool {
	if !fresh(number) || number <= p.cur.number || p.next != nil && number == p.next.number || p.c.Final ||
		m.Value != 1 || !lockstep.Opens(m) || len(m.Body) > p.c.longest(0) {
		return false
	}
	p.early[from] = early{number, m.Body}
	return true
}

// attend takes part in a reset era, once enough processes are ready for it.
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

// reform: n-m processes are out. The reset era is the one after the last that 2m+1 were ready for, even if
// this process was ready for a later one, which too few still know.
func (p *process) reform(s *parley.Step) {
	number := anew(p.entered())
	if p.next == nil || p.next.number != number {
		p.attend(s, number)
	}
	if p.ready[p.self] != number {
		p.say(s, number)
	}
}

// away handles a message of a process that is out. If others are ready for the era that this process would be
// ready for when it asks the next time, it asks at once.
func (p *process) away(s *parley.Step, from parley.ID, number uint64) {
	more := p.outs.Add(from)
	if p.out && p.tries > 0 && p.several() &&
		(more || number >= anew(p.entered()) && p.ready[p.self] < number) {
		p.hurry(s, p.when.Delta)
	}
}

// hurry asks again after the given time, whenever that was due.
func (p *process) hurry(s *parley.Step, after parley.Tick) {
	if !p.hurried {
		p.hurried = true
		s.SetTimer(hurry, after)
	}
}

// running reports whether a reset era has begun, and has not failed.
func (p *process) running() bool {
	return p.out && p.next != nil && fresh(p.next.number) && !p.next.line.Paused() && !p.next.bad()
}

// claim encodes what this process has delivered, in place of a batch.
func claim(total uint64, numbers []uint64) []byte {
	return append([]byte{0}, encodeState(total, numbers)...)
}

// readClaim decodes a claim.
func readClaim(b []byte, n int) (total uint64, numbers []uint64, ok bool) {
	if len(b) == 0 || b[0] != 0 {
		return 0, nil, false
	}
	return decodeState(b[1:], n)
}

// base returns where the order continues, from the claims of processes: after all that any process claims to
// have delivered, limited so that m liars cannot choose an arbitrary position. The numbers of each sender
// continue after what m+1 claim, one of them correct, and after what the sender claims itself; delivered has
// only the former.
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

// settle continues in a reset era when its first slot is agreed on. If that has the claims of fewer than n-m
// processes, too few take part, and the era fails.
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

// renew updates own requests: it removes those that others have delivered although this process has not, and
// proposes again those that were delivered only here.
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
