package interactive

import (
	"iter"
	"slices"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/seq"
)

// Announced is the only kind of message in the announcement round.
// Body: the source's value. No other field is used.
const Announced parley.Kind = 1

// FromSource returns Byzantine agreement on the value of one source, in.Source, by a consensus. This is the third
// reduction of the lecture. In an extra first round the source sends its value to all. Then all processes run the
// consensus. Each of them proposes the value that it received, or the default if it received nothing.
//
// Why it works: all correct processes decide the same value, because consensus has agreement. If the source is
// correct, they all start with its value, and decide on it, because consensus has validity. The source decides like
// all others.
func FromSource(in problem.Instance, consensus lockstep.Protocol) lockstep.Protocol {
	p := seq.Of(consensus.Name, announce(in), consensus)
	p.Title = "Byzantine agreement: the source sends its value to all, then " + consensus.Name
	p.Paper = "lecture, relations among the agreement problems, question 3"
	p.Properties = problem.ByzantineOfAll(in.Source)
	p.Promises = consensus.Promises
	return p
}

// announce is the first round.
func announce(in problem.Instance) lockstep.Protocol {
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:      "announce",
			Faults:    parley.OralByzantineFaults,
			Kinds:     []string{"", "ANNOUNCED"},
			N:         in.N,
			M:         in.M,
			Proposers: parley.SetOf(in.Source),
			Cost: func(n, _ int) parley.Cost {
				one := parley.Traffic{Messages: 1, Bits: 1}
				return parley.Cost{Rounds: 1, PerRound: []parley.Traffic{one.Times(uint64(n - 1))}}
			},
			Size: func(_ parley.Env, m parley.Msg) parley.Traffic {
				return parley.Traffic{Messages: 1, Bits: parley.ValueBits(m.Body)}
			},
			Explain: func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
				return slices.Values([]string{"{" + parley.Printable(m.Body) + "," + name(e.From) + "}"})
			},
			Lies:   in.Lies, // a faulty source sends another value, or none
			Rename: func(_ parley.Env, m parley.Msg, _ []parley.ID) parley.Msg { return m },
		},
		New: func(self parley.ID) lockstep.Rounds { return &announcement{in: in, self: self, value: in.Default} },
	}
}

type announcement struct {
	in   problem.Instance
	self parley.ID

	known bool   // the value was given, or has arrived
	value []byte // the default until then
}

// Request: the source gets its value. The first is final.
func (p *announcement) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && p.self == p.in.Source && !p.known && len(m.Body) <= problem.MaxValue {
		p.known, p.value = true, m.Body
	}
}

// Emit: the source sends its value to all.
func (p *announcement) Emit(s *parley.Step, _ int) {
	if p.self == p.in.Source {
		s.SendAll(parley.Msg{Kind: Announced, Body: p.value})
	}
}

func (p *announcement) Absorb(s *parley.Step, _ int, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind != Announced || m.Seq != 0:
		s.Refuse(from, "message not due in this round")
	case m.Origin != 0 || m.Value != 0:
		s.Refuse(from, "fields that are not used")
	case from != p.in.Source:
		s.Refuse(from, "announcement by another than the source")
	case p.known || len(m.Body) > problem.MaxValue:
		s.Refuse(from, "second or oversized announcement")
	default:
		p.known, p.value = true, m.Body
	}
}

// Close: this process starts the consensus with what it received.
func (p *announcement) Close(s *parley.Step, _ int) {
	s.Deliver(p.in.Source, parley.Msg{Kind: parley.Decide, Origin: p.in.Source, Body: p.value})
}

func (p *announcement) State(v *parley.Vars) {
	v.Bool("known", &p.known)
	v.Bytes("value", &p.value)
}
