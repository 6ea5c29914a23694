// Package phaseking implements the phase king algorithm: consensus with few and short messages. The algorithm is not
// in the article or the lecture (docs/explanation/sources.md). With their algorithms for oral messages, the total
// length of messages grows exponentially with m.
//
// The problem: consensus. Every process proposes a value, and all correct processes must decide on the same value. If
// all correct processes propose v, they must decide on v. Messages are oral (unsigned). At most m of the n processes
// are faulty, and faulty processes may do anything.
//
// The bound: n > 3m, with m+1 phases of three rounds each. A second form has phases of two rounds, and needs n >
// 4m. In each phase another process is the king: process 0 in the first phase, process 1 in the second, and so on.
//
// In the first round of a phase, each process sends its value. In the second round, a process proposes a value if it
// received this value from n-m processes. Then each process adopts a value that more than m processes proposed. In
// the third round the king sends its value. A process that received n-m proposals for its value keeps its value, and
// all other processes adopt the king's value.
//
// Why it works, with three rounds: any two sets of n-m processes share a correct process. So correct processes
// propose at most one value, and no other value gets more than m proposals. If a process receives n-m proposals for
// its value, more than m of these are from correct processes. So every correct process, including a correct king,
// has adopted that value, and the process need not follow the king. All other processes adopt the king's value. So
// after a phase with a correct king, all correct processes hold the same value. In every later phase they receive
// n-m proposals for this value, and no king can change it. At least one of m+1 kings is correct.
//
// Phases of two rounds have no proposals. In the first round, a process adopts the value that it received most often.
// In the second round, it keeps this value if more than n/2 + m processes sent it, and otherwise adopts the king's
// value. Suppose that a process keeps its value. At most m of the senders are faulty, so every correct process
// received the value from more than n/2 processes, and also adopted it. If n > 4m, the n-m correct processes are more
// than n/2 + m.
//
// The algorithm does not promise that a correct process proposed the decision. If correct processes start with
// different values, all of them may decide on the value of a faulty king. If this king is silent, they may decide on
// the default.
//
// Source: Berman, Garay and Perry, "Towards Optimal Distributed Consensus", FOCS 1989. The two-round form is from
// Berman and Garay, as textbooks present it. The paper has two values; here values are byte strings. In the paper, a
// process with nothing to propose sends a third value; here it is silent.
package phaseking

import (
	"flag"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
)

// The messages. In each, Seq is the round and Body the value; Origin and Value are
// not used.
const (
	// Value is what the sender holds. First round of a phase.
	Value parley.Kind = iota + 1
	// Proposal is a value that the sender received from n-m processes. Second round of three.
	Proposal
	// King is what the king of the phase holds. Last round of a phase.
	King
)

// Form is the form of a phase.
type Form uint8

// The forms.
const (
	ThreeRound Form = iota // n > 3m
	TwoRound               // n > 4m
)

// phases are the kinds of message due in the rounds of a phase.
var phases = [...][]parley.Kind{
	ThreeRound: {Value, Proposal, King},
	TwoRound:   {Value, King},
}

// Config configures one instance. Its Source is not used, because every process proposes.
// Its Default is the value of a process that proposes nothing and of a king that is silent.
type Config struct {
	problem.Instance
	Form Form
}

// New returns the protocol as machines on the given schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, func(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
		fs.TextVar(&c.Form, "form", c.Form, "rounds of a phase: `threeround|tworound`; threeround needs n > "+
			"3m, tworound needs n > 4m")
		instance := problem.Flags(fs, &c.Instance, func(n int) int { return c.Form.Most(n) })
		fs.Lookup("source").Usage = "ignored: every `process` proposes"
		return func(c *Config, naming parley.Naming) error { return instance(&c.Instance, naming) }
	}, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// Rounds returns the protocol at the level of rounds.
func Rounds(c Config) lockstep.Protocol {
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:       "phaseking",
			Title:      "consensus with polynomially many messages, in phases with one king each",
			Paper:      "Berman, Garay and Perry 1989; beyond the source documents",
			Faults:     parley.OralByzantineFaults,
			Kinds:      []string{"", "VALUE", "PROPOSAL", "KING"},
			N:          c.N,
			M:          c.M,
			Proposers:  parley.Everyone(c.N),
			Properties: problem.Consensus(),
			Promises:   c.Form.promises,
			Bound:      c.Form.Bound,
			Cost:       c.Form.Cost,
			Size:       size,
			Explain:    explain,
			Lies:       lies(c),
			// No Rename: no message names a process, but the processes 0 to m are kings
			// in this order and cannot be renamed.
		},
		Last: c.last(),
		New: func(self parley.ID) lockstep.Rounds {
			return &process{c: c, self: self, value: c.Default}
		},
	}
}

// last is the number of the last round: there are m+1 phases.
func (c Config) last() int { return len(phases[c.Form])*(c.M+1) - 1 }

type process struct {
	c    Config
	self parley.ID

	given    bool   // the initial value has arrived
	value    []byte // the value that it holds
	proposes bool   // it has something to propose in this phase: proposal
	proposal []byte // the value to propose
	sure     bool   // enough processes hold its value to ignore the king of this phase

	votes parley.Tally // scratch: the votes of the round that is being closed
}

func (p *process) due(r int) parley.Kind {
	phase := phases[p.c.Form]
	return phase[uint32(r)%uint32(len(phase))]
}

func (p *process) king(r int) parley.ID {
	return parley.ID(r / len(phases[p.c.Form]) % p.c.N)
}

// Request: the initial value. The first is final.
func (p *process) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && !p.given && len(m.Body) <= problem.MaxValue {
		p.given, p.value = true, m.Body
	}
}

func (p *process) Emit(s *parley.Step, r int) {
	switch p.due(r) {
	// First round: everyone sends its value.
	case Value:
		s.SendAll(parley.Msg{Kind: Value, Seq: uint64(r), Body: p.value})
	// Second of three: whoever saw n-m processes hold a value proposes it.
	case Proposal:
		if p.proposes {
			s.SendAll(parley.Msg{Kind: Proposal, Seq: uint64(r), Body: p.proposal})
		}
	// Last round: the king sends its value.
	case King:
		if p.self == p.king(r) {
			s.SendAll(parley.Msg{Kind: King, Seq: uint64(r), Body: p.value})
		}
	}
}

// Absorb counts a vote, the first from each sender.
func (p *process) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	switch {
	case m.Seq != uint64(r) || m.Kind != p.due(r):
		s.Refuse(from, "message not due in this round")
	case m.Origin != 0 || m.Value != 0:
		s.Refuse(from, "fields that are not used")
	case m.Kind == King && from != p.king(r):
		s.Refuse(from, "king's word from another")
	case len(m.Body) > problem.MaxValue:
		s.Refuse(from, "oversized value")
	case !p.votes.Vote(from, m.Body):
		s.Refuse(from, "second message of a round")
	}
}

// Close. A process counts its own vote without a message. Beyond the
// bound several values may reach a threshold: then the most frequent counts, and
// of several such values the least.
func (p *process) Close(s *parley.Step, r int) {
	n, m := p.c.N, p.c.M
	switch p.due(r) {
	case Value:
		p.votes.Vote(p.self, p.value)
		most, votes := p.votes.Best()
		if p.c.Form == ThreeRound {
			// If some value came from n-m or more, propose it.
			if votes >= n-m {
				p.proposes, p.proposal = true, most
			}
		} else {
			// Hold the most frequent value; be sure if its count exceeds n/2 + m.
			p.value, p.sure = most, 2*votes > n+2*m
		}
	case Proposal:
		if p.proposes {
			p.votes.Vote(p.self, p.proposal)
		}
		// If some value is proposed by more than m, hold it; be sure of the held
		// one if n-m or more propose it.
		if most, votes := p.votes.Best(); votes > m {
			p.value = most
		}
		p.sure = p.votes.Of(p.value) >= n-m
		p.proposes, p.proposal = false, nil
	case King:
		if p.self == p.king(r) {
			p.votes.Vote(p.self, p.value)
		}
		// A process that is not sure adopts the king's value, which is the only vote; if
		// the king is silent, the default.
		if !p.sure {
			p.value = p.votes.Majority(p.c.Default)
		}
		p.sure = false
	}
	p.votes.Reset()
	// After m+1 phases: decide.
	if r == p.c.last() {
		s.Deliver(p.self, parley.Msg{Kind: parley.Decide, Body: p.value})
	}
}

func (p *process) State(v *parley.Vars) {
	v.Bool("given", &p.given)
	v.Bytes("value", &p.value)
	v.Bool("proposes", &p.proposes)
	v.Bytes("proposal", &p.proposal)
	v.Bool("sure", &p.sure)
}
