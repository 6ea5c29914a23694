package ordered

import (
	"parley"
	"parley/broadcast/byzantine"
)

// thisLayer is the path of this layer in a tower: the second of three layers.
const thisLayer parley.Path = 1

// withPositions returns an order for a tower. A stack passes only the carried message to this layer, without the
// position of the delivery. So this order writes the position into the message. A liar may have broadcast something
// that is no message of this layer: it becomes Void. The indications of package byzantine become those of this package.
func withPositions(order parley.Protocol) parley.Protocol {
	inner := order.New
	order.New = func(self parley.ID) parley.Machine { return &positions{inner(self)} }
	return order
}

type positions struct{ parley.Machine }

// Start runs the clause of the order.
func (p *positions) Start(s *parley.Step) {
	mark := s.Mark()
	p.Machine.Start(s)
	rewrite(s, mark)
}

// Request runs the clause of the order.
func (p *positions) Request(s *parley.Step, m parley.Msg) {
	mark := s.Mark()
	p.Machine.Request(s, m)
	rewrite(s, mark)
}

// Receive runs the clause of the order.
func (p *positions) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	mark := s.Mark()
	p.Machine.Receive(s, from, m)
	rewrite(s, mark)
}

// Timeout runs the clause of the order.
func (p *positions) Timeout(s *parley.Step, t parley.Timer) {
	mark := s.Mark()
	p.Machine.Timeout(s, t)
	rewrite(s, mark)
}

// rewrite changes the deliveries and the indications of a clause.
func rewrite(s *parley.Step, mark int) {
	s.Take(mark, func(e *parley.Effect) bool {
		switch {
		case e.Op == parley.OpDeliver:
			e.Msg.Body = withPosition(e.Msg.Body, e.Msg.Value)
		case e.Op != parley.OpIndicate:
		case e.Msg.Kind == byzantine.Repeats || e.Msg.Kind == byzantine.Skipped:
			e.Msg = parley.Msg{Kind: From, Seq: e.Msg.Seq}
		case e.Msg.Kind == byzantine.Admitted:
			e.Msg = parley.Msg{Kind: Live}
		case e.Msg.Kind == byzantine.Out:
			return true
		}
		return false
	})
}

// withPosition returns a carried message with its position in Seq.
func withPosition(body []byte, position uint64) []byte {
	path, m, rest, err := parley.ReadMsg(body)
	if err != nil || len(rest) > 0 || path != thisLayer || m.Kind < Begin || m.Kind > Expire {
		m = parley.Msg{Kind: Void, Body: body}
	}
	m.Seq = position
	return parley.AppendMsg(nil, thisLayer, m)
}
