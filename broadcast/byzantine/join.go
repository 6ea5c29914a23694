package byzantine

import (
	"slices"

	"parley"
)

// join makes this process a member.
func (p *process) join(s *parley.Step) {
	p.member = true
	p.append(s, memberRecord, 0, nil)
}

// knock asks to be admitted, and for what the others have decided. It repeats this until it is admitted.
func (p *process) knock(s *parley.Step) {
	s.SendAll(parley.Msg{Kind: Knock, Seq: p.lanes[p.self].life + 1, Value: p.life})
	p.ask(s)
	p.looking = true
	s.SetTimer(lookTimer, p.wait())
}

// takeKnock welcomes a process in another life, once. The process must ask for the admission after its last one, so it
// first finds out which that was. A faulty process can ask in ever new lives, and so cause slots, as it can by requests
// of its own. But it cannot keep a later life out, because the names of lives have no order.
func (p *process) takeKnock(from parley.ID, m parley.Msg) {
	x, a := &p.peers[from], admission{m.Seq, m.Value}
	if a.number == p.lanes[from].life+1 && a != x.greeted && a.name < mostLife && p.member {
		x.greeted = a
		p.greets = slices.DeleteFunc(p.greets, func(w welcome) bool { return w.who == from })
		p.greets = append(p.greets, welcome{from, a})
	}
}

// admitted ends the wait of a process that asks to be admitted.
func (p *process) admitted(s *parley.Step) {
	if !p.member && p.life > 0 && p.lanes[p.self].name == p.life {
		p.peers.miss(p.cur.number)
		p.join(s)
		s.Indicate(parley.Msg{Kind: Admitted, Value: p.life})
	}
}

// adopt takes over a checkpoint that m+1 processes tell alike: one of them is correct.
func (p *process) adopt(s *parley.Step, m parley.Msg) {
	if !p.skip(s, m.Seq, m.Body) {
		s.Refuse(p.self, "checkpoint that cannot be read")
		return
	}
	p.append(s, ledgerRecord, m.Seq, m.Body)
	p.shorten(0)
	p.admitted(s)
}

// skip continues after the slot of a checkpoint. The process does not deliver what it missed.
func (p *process) skip(s *parley.Step, number uint64, body []byte) bool {
	if !p.decode(number, body) {
		return false
	}
	p.last, p.cur, p.wants = nil, newSlot(p, number+1, p.tenure.owner), nil
	p.peers.miss(p.cur.number)
	p.renew()
	p.askAgain()
	s.StopTimer(viewTimer)
	s.Indicate(parley.Msg{Kind: Skipped, Seq: p.total})
	if p.member {
		s.Indicate(parley.Msg{Kind: Admitted})
	}
	return true
}

// renew forgets what the earlier lives of processes said that were admitted again: a faulty life counts as faulty up to
// the slot of the admission, and the next life does not.
func (p *process) renew() {
	for i := range p.peers {
		x := &p.peers[i]
		if x.life != p.lanes[i].life {
			*x = peer{life: p.lanes[i].life, lost: p.cur.number, greeted: x.greeted}
			p.early = slices.DeleteFunc(p.early, func(m message) bool { return m.from == parley.ID(i) })
		}
	}
}
