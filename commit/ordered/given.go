package ordered

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"parley"
)

// given is an order without faults: process 0 numbers the broadcasts and sends them to all. It lets an
// explorer check transactions alone, because an order that tolerates liars has far more states. Process 0 must
// not lie in this layer. It keeps all broadcasts on its disk; if it loses them, the order ends.
//
// A process that restarts asks process 0 for all broadcasts, and delivers them again.
type given struct {
	parley.Base
	self  parley.ID
	list  [][]byte     // at process 0: all broadcasts, each after its broadcaster
	last  uint64       // number of the last delivery
	early []parley.Msg // messages that wait for a lower number, by number
	waits bool         // for all broadcasts, after a restart
	out   bool         // process 0 has restarted without broadcasts
}

// The messages of the order.
const (
	giveNumber parley.Kind = 1 + iota // asks process 0 for a number. Body: the broadcast
	numbered                          // from process 0. Seq: the number. Origin: the broadcaster. Body: the broadcast
	giveAll                           // asks process 0 for all broadcasts
	allGiven                          // from process 0. Body: the broadcasts, each after its broadcaster
)

// newGiven returns the order.
func newGiven(n, m int) parley.Protocol {
	return parley.Protocol{
		Name: "given", Title: "an order that one process makes", Paper: "Parley's own", N: n, M: m,
		Faults: parley.OralByzantineFaults, Serves: true,
		Kinds:   []string{"", "BROADCAST", "NUMBERED", "GIVE ALL", "ALL"},
		New:     func(self parley.ID) parley.Machine { return &given{self: self} },
		Lies:    givenLies,
		Explain: givenExplain,
		Size:    func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
	}
}

// Start delivers again after a restart.
func (g *given) Start(s *parley.Step) {
	switch {
	case !s.Restart:
	case g.self != 0:
		g.waits = true
		s.Send(0, parley.Msg{Kind: giveAll})
	default:
		for _, r := range s.Log {
			g.list = append(g.list, r.Body)
		}
		g.out = len(g.list) == 0
		g.again(s, g.list)
	}
}

// again delivers all broadcasts up to now again.
func (g *given) again(s *parley.Step, list [][]byte) {
	s.Indicate(parley.Msg{Kind: From})
	for _, b := range list {
		g.deliver(s, parley.ID(b[0]), b[1:])
	}
	s.Indicate(parley.Msg{Kind: Live})
}

// deliver delivers the next broadcast.
func (g *given) deliver(s *parley.Step, from parley.ID, body []byte) {
	g.last++
	s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Value: g.last, Body: body})
}

func (g *given) Request(s *parley.Step, m parley.Msg) {
	switch {
	case m.Kind != parley.Carried || g.out:
		s.Refuse(s.Self, "the order has ended")
	case g.self == 0:
		g.number(s, 0, m.Body)
	default:
		s.Send(0, parley.Msg{Kind: giveNumber, Body: m.Body})
	}
}

// number assigns the next number, at process 0.
func (g *given) number(s *parley.Step, from parley.ID, body []byte) {
	record := append([]byte{byte(from)}, body...)
	g.list = append(g.list, record)
	s.Append(record)
	g.deliver(s, from, body)
	s.SendAll(parley.Msg{Kind: numbered, Origin: from, Seq: g.last, Body: body})
}

// Receive delivers in the order of the numbers.
func (g *given) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local:
	case g.out:
		s.Refuse(from, "the order has ended")
	case m.Kind == giveNumber && g.self == 0 && m.Origin == 0 && m.Seq == 0 && m.Value == 0:
		g.number(s, from, m.Body)
	case m.Kind == giveAll && g.self == 0 && m.Equal(parley.Msg{Kind: giveAll}):
		reply := parley.Msg{Kind: allGiven}
		for _, b := range g.list {
			reply.Body = parley.AppendBytes(reply.Body, b)
		}
		s.Send(from, reply)
	case m.Kind == allGiven && from == 0 && m.Origin == 0 && m.Seq == 0 && m.Value == 0:
		g.restart(s, m.Body)
	case m.Kind != numbered || from != 0 || int(m.Origin) >= s.N || m.Value != 0:
		s.Refuse(from, "no message of the order")
	case m.Seq > g.last:
		i, known := slices.BinarySearchFunc(g.early, m.Seq, func(e parley.Msg, seq uint64) int {
			return cmp.Compare(e.Seq, seq)
		})
		if !known {
			g.early = slices.Insert(g.early, i, m)
		}
	}
	for !g.waits && len(g.early) > 0 && g.early[0].Seq <= g.last+1 {
		if m, g.early = g.early[0], g.early[1:]; m.Seq > g.last {
			g.deliver(s, m.Origin, m.Body)
		}
	}
}

// restart handles the answer of process 0, once.
func (g *given) restart(s *parley.Step, body []byte) {
	r := parley.Reader{Rest: body}
	var list [][]byte
	for len(r.Rest) > 0 && !r.Bad {
		b := r.Bytes()
		if r.Bad = r.Bad || len(b) == 0 || int(b[0]) >= s.N; !r.Bad {
			list = append(list, b)
		}
	}
	if r.Bad {
		s.Refuse(0, "no message of the order")
	} else if g.waits {
		g.waits = false
		g.again(s, list)
	}
}

func (g *given) State(v *parley.Vars) {
	v.Durable(func() { parley.Slice(v, "list", &g.list, func(_ int, b *[]byte) { v.Bytes("broadcast", b) }) })
	parley.Num(v, "last", &g.last)
	parley.Slice(v, "early", &g.early, func(_ int, m *parley.Msg) { v.Msg("message", parley.Env{}, m) })
	v.Bool("waits", &g.waits)
	v.Bool("out", &g.out)
}

// spared drops the liveness demands on a run in which process 0 was down for a time, because it makes the
// order.
func spared(list []parley.Property) []parley.Property {
	for i, p := range list {
		if p.Mode != parley.Eventually {
			continue
		}
		down := func(h *parley.History) string {
			if slices.ContainsFunc(h.Restarts, func(r parley.ExternalEvent) bool { return r.At == 0 }) {
				return h.Name(0) + " was down, and makes the order"
			}
			return ""
		}
		list[i].Check = func(h *parley.History) error {
			if down(h) != "" {
				return nil
			}
			return p.Check(h)
		}
		list[i].Vacuous = func(h *parley.History) string {
			if why := down(h); why != "" || p.Vacuous == nil {
				return why
			}
			return p.Vacuous(h)
		}
	}
	return list
}

// givenLies lets a liar broadcast something else instead of its message, or in addition to it. Process 0 does
// not lie in this layer.
func givenLies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for _, one := range t.Honest {
		if one.Msg.Kind != giveNumber || t.Body == nil {
			out = append(out, one)
			continue
		}
		if s.Choose(2) == 1 {
			out = append(out, one)
		}
		if one.Msg.Body = t.Body(s, one.Msg.Body); one.Msg.Body != nil {
			out = append(out, one)
		}
	}
	return out
}

func givenExplain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case m.Kind == giveNumber && e.From != e.To:
			yield("broadcast " + parley.Printable(m.Body))
		case m.Kind == giveAll:
			yield("send me everything")
		case m.Kind == numbered && e.From != e.To:
			yield(fmt.Sprintf("#%d of %s: %s", m.Seq, name(m.Origin), parley.Printable(m.Body)))
		case m.Kind == parley.Carried:
			yield(parley.Printable(m.Body))
		}
	}
}
