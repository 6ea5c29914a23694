package cuts

import (
	"parley"
	"parley/agreement/tetra"
)

// This file is about time. What it does can only make the order faster or slower.

// watch is what a process does about slow slots, slow lanes and lost messages.
type watch struct {
	looking bool     // the timer runs
	seen    []uint64 // by lane: the number of its first batch that was not ordered at the last look; 0: none
	looks   []int    // by lane: how many looks in a row have seen this batch
	claims  []cut    // by process: its last Tips
	strict  []uint64 // by lane: up to this slot, only batches that 2m+1 processes claim to hold are proposed
}

func newWatch(n int) watch {
	return watch{seen: make([]uint64, n), looks: make([]int, n), claims: make([]cut, n), strict: make([]uint64, n)}
}

// wait returns the length of view 0: eight times the usual duration of a slot, within bounds.
func (p *process) wait() parley.Tick { return min(max(8*p.usual, p.c.Least), p.c.Most) }

// beginTimers starts the timer of the current slot, if it is under way: this process holds a batch that is not ordered, or it or
// m+1 processes have spoken in the slot. One faulty process alone cannot start it.
func (p *process) beginTimers(s *parley.Step) {
	k := p.cur
	waits := p.unordered()
	if (waits || len(p.wants) > 0 || p.isBehind()) && !p.looking {
		p.looking = true
		s.SetTimer(lookTimer, p.wait()/4)
	}
	if _, decided := k.in.Decision(); k.timing || decided || !p.member {
		return
	}
	speakers := 0
	for _, at := range p.at {
		if at >= k.number {
			speakers++
		}
	}
	if waits || k.in.Spoke() || speakers > p.c.M {
		k.began = s.Now
		k.Entered(s, k.in.View())
	}
}

// expire: the view takes too long.
func (p *process) expire(s *parley.Step) {
	k := p.cur
	view := k.in.View()
	k.run(s, func(in *tetra.Instance) { in.Timeout(s) })
	if _, decided := k.in.Decision(); !decided && k.in.View() == view {
		k.Entered(s, view)
	}
}

// look repeats requests that got no answer. If a batch has waited since the last look, it tells all others which batches this
// process holds: they may believe m+1 processes.
func (p *process) look(s *parley.Step) {
	p.looking = false
	if !p.member {
		p.knock(s)
	}
	for _, w := range p.wants {
		p.request(s, p.self, w)
	}
	if p.isBehind() {
		p.asked = 0 // the answers may be lost
	}
	stuck := false
	for i := range p.lanes {
		l := &p.lanes[i]
		first := uint64(0)
		if l.tip() != l.done {
			first = l.done.number + 1
		}
		if first != p.seen[i] {
			p.seen[i], p.looks[i] = first, 0
		}
		if first > 0 {
			p.looks[i]++
			stuck = stuck || p.looks[i] > 1
		}
	}
	if stuck && p.member {
		p.tellTips(s)
	}
}

// overdueAfter is the number of looks after which a batch is overdue: four times the length of view 0.
const overdueAfter = 16

// overdue reports whether a batch of a lane has waited for long, and 2m+1 processes claim to hold it. So m+1 correct processes
// told the owner, and a correct owner proposes it.
func (p *process) overdue(source parley.ID) bool {
	return p.looks[source] > overdueAfter && p.seen[source] == p.lanes[source].done.number+1 &&
		p.claimed(source, p.lanes[source].tip()) > 2*p.c.M
}

// tips are the last batches that this process holds.
func (p *process) tips() cut {
	c := make(cut, p.c.N)
	for i := range p.lanes {
		c[i] = p.lanes[i].tip()
	}
	return c
}

func (p *process) tellTips(s *parley.Step) {
	p.claims[p.self] = p.tips()
	s.SendAll(parley.Msg{Kind: Tips, Body: p.claims[p.self].encode()})
}

// takeTips believes m+1 processes that they hold a batch: one of them is correct and has it from its source.
func (p *process) takeTips(s *parley.Step, from parley.ID, m parley.Msg) {
	c, ok := readCut(m.Body, p.c.N)
	if !ok {
		s.Refuse(from, "cut that cannot be read")
		return
	}
	p.claims[from] = c
	for i, t := range c {
		l := &p.lanes[i]
		if t.number > l.done.number && l.at(t) == nil && p.claimed(parley.ID(i), t) > p.c.M {
			p.fetch(s, from, want{lane: parley.ID(i), tip: t})
		}
	}
}

// claimed returns how many processes claim to hold a batch as the last one of its lane.
func (p *process) claimed(source parley.ID, t tip) (count int) {
	for _, c := range p.claims {
		if c != nil && c[source] == t {
			count++
		}
	}
	return count
}

// offered returns the tip of a lane that an owner proposes.
func (p *process) offered(source parley.ID) tip {
	l := &p.lanes[source]
	if t := l.tip(); p.strict[source] < p.cur.number || p.claimed(source, t) > 2*p.c.M {
		return t
	}
	return l.done
}

// strictFor is the number of slots for which a lane is strict.
const strictFor = 1024

// judge takes the duration of a slot into account. If the cut of the owner was not decided in view 0, a source may have sent
// its batches to the owner and not to others. So a lane in which the cut has a batch that fewer than 2m+1 processes claim is
// strict for some time.
func (p *process) judge(s *parley.Step, nothing bool) {
	k := p.cur
	if k.in.View() == 0 && !nothing {
		if k.timing {
			p.usual += (s.Now - k.began - p.usual) / 8
		}
		return
	}
	c, ok := readCut(k.heard[k.owner].body, p.c.N)
	if !ok {
		return
	}
	for i, t := range c {
		if t.number > p.lanes[i].done.number && p.claimed(parley.ID(i), t) <= 2*p.c.M {
			p.strict[i] = k.number + strictFor
		}
	}
}

func (w *watch) state(v *parley.Vars) {
	v.Bool("looking", &w.looking)
	parley.PerProcess(v, "lane", w.seen, func(id parley.ID, first *uint64) {
		parley.Num(v, "not ordered", first)
		parley.Num(v, "looks", &w.looks[id])
		parley.Num(v, "strict up to slot", &w.strict[id])
	})
	parley.PerProcess(v, "claims of", w.claims, func(_ parley.ID, c *cut) {
		parley.Slice(v, "lane", (*[]tip)(c), func(_ int, t *tip) { t.state(v, "tip") })
	})
}
