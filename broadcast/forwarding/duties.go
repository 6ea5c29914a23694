package forwarding

import "parley"

// serve sends a broadcast to the processes that this one must serve: to its children, to those of a child
// that has failed, and so on; and if all above it have failed, in place of the root to the root's children,
// and so on. A suspected process still gets the message, before those below it.
func (p *process) serve(s *parley.Step, root parley.ID, l *life, c *cast) {
	m := parley.Msg{Kind: Data, Origin: root, Seq: c.seq, Value: l.number, Body: c.body}
	p.forward(s, c, p.self, m)
	if p.heads(root, c) {
		p.forward(s, c, root, m)
	}
}

// forward serves the children of process q.
func (p *process) forward(s *parley.Step, c *cast, q parley.ID, m parley.Msg) {
	for child := range parley.ID(p.c.N) {
		if child == q || child == p.self || c.tree.parent(child) != q {
			continue
		}
		if c.written.Add(child) {
			s.Send(child, m)
		}
		if c.failed.Has(child) && !c.acked.Has(child) {
			p.forward(s, c, child, m)
		}
	}
}

// heads reports whether all processes above this one have failed, including the root.
func (p *process) heads(root parley.ID, c *cast) bool {
	for q := p.self; q != root; {
		if q = c.tree.parent(q); !c.failed.Has(q) {
			return false
		}
	}
	return p.self != root
}

// settle acts on news about the processes below: if all are served it acknowledges, and if that is the whole
// tree it releases the broadcast.
func (p *process) settle(s *parley.Step, root parley.ID, l *life, c *cast) {
	if !c.served {
		if !p.below(c, p.self) {
			return
		}
		c.served = true
		s.SendTo(c.owed, parley.Msg{Kind: Ack, Origin: root, Seq: c.seq, Value: l.number})
		c.owed = parley.Set{}
	}
	if root != p.self {
		if p.heads(root, c) && p.below(c, root) {
			l.held.Drop(c.seq)
		}
		return
	}
	l.held.Drop(c.seq)
	before := l.done
	if l.done = p.sent; len(l.held) > 0 {
		l.done = l.held[0].seq - 1
	}
	if p.c.Notice && l.done > before {
		p.sendNotice(s, root, l, c)
	}
}

// below reports whether all processes below q are served: each child has acknowledged, or has failed and all
// below it are served.
func (p *process) below(c *cast, q parley.ID) bool {
	for child := range parley.ID(p.c.N) {
		if child == q || c.tree.parent(child) != q {
			continue
		}
		switch {
		case child == p.self && c.served:
		case c.acked.Has(child):
		case c.failed.Has(child) && p.below(c, child):
		default:
			return false
		}
	}
	return true
}

// replace treats q as failed in all incomplete broadcasts, except q's own broadcasts of incarnation but and
// later ones.
func (p *process) replace(s *parley.Step, q parley.ID, but uint64) {
	for sender := range parley.ID(p.c.N) {
		for number, l := range p.senders[sender].All() {
			if sender == q && number >= but {
				continue
			}
			for i := 0; i < len(l.held); {
				c := l.held[i]
				c.failed.Add(q)
				p.serve(s, sender, l, c)
				p.settle(s, sender, l, c)
				if i < len(l.held) && l.held[i] == c { // it is still held
					i++
				}
			}
		}
	}
}

// sendNotice passes the notice on to the children in the tree of a broadcast.
func (p *process) sendNotice(s *parley.Step, root parley.ID, l *life, c *cast) {
	for id := range parley.ID(p.c.N) {
		if id != root && c.tree.parent(id) == p.self {
			s.Send(id, parley.Msg{Kind: Done, Origin: root, Value: l.number, Seq: l.done})
		}
	}
}
