package service

import "parley"

// When a copy serves: in a view, with the state of the others.

// Receive is from beneath, or from a link.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	before := p.serves()
	p.receive(s, from, m)
	p.tell(s, before)
}

// serves tells whether this copy carries out what it is asked.
func (p *process) serves() bool { return p.in && p.fetch == nil && !p.stopped }

// tell says whether it does, if that has changed.
func (p *process) tell(s *parley.Step, before bool) {
	if now := p.serves(); p.c.Piece > 0 && now != before {
		m := parley.Msg{Kind: Serving, Origin: s.Self, Seq: p.position}
		if now {
			m.Value = 1
		}
		s.Indicate(m)
	}
}
