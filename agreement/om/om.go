// Package om implements the Oral Messages algorithm OM(m): Byzantine agreement on the value of one source. It is
// the recursion of the lecture (docs/explanation/sources.md) and of Lamport's paper.
//
// The problem: there are n processes, and at most m of them are faulty. Faulty processes may do anything. One
// process, the source, has a value for all others, its lieutenants. All correct lieutenants must decide on the same
// value. If the source is correct, they must decide on its value. Messages are oral, that is, unsigned: the receiver
// of a message knows its sender, but a sender may lie about what it received from another process.
//
// The bound: n > 3m, m+1 rounds, (n-1) + (n-1)(n-2) + ... messages.
//
// The recursion: in OM(k) a source sends its value to its lieutenants. If k > 0, each lieutenant then relays the
// received value to the other lieutenants. For this it runs OM(k-1), with itself as the source and the others as its
// lieutenants. So no process sends a value to itself, or to a process that the value has passed through. Now each
// lieutenant has one value for every lieutenant. For itself, this is the value that it received directly. For each
// other lieutenant, it is the decision of the OM(k-1) in which that lieutenant is the source. The lieutenant decides
// on the majority of these values.
//
// All instances of OM(m-r) begin in round r. The name of an instance is the path of the sources above it, with its
// own source last. For example, 1.3.2 means "P2 says that P3 said that P1 said".
//
// Why it works, if the source is correct: in an OM(k) among more than 2m+k processes, all correct lieutenants decide
// on the source's value. The proof is by induction on k. Every correct lieutenant receives the value from the source.
// By induction, it also gets this value from the OM(k-1) of each correct lieutenant, because OM(k-1) has only one
// process less. There are at least 2m+k lieutenants, so for k > 0 more than half of them are correct. If n > 3m, this
// covers OM(m).
//
// Why it works, if the source is faulty: at most m-1 of the n-1 lieutenants are faulty, and n-1 > 3(m-1). So by
// induction each OM(m-1) gives all correct lieutenants the same value. Therefore they compute the same majority.
//
// Source: lecture, "Oral Messages Algorithm OM(m)"; Lamport, Shostak and Pease
// (1982), section 3.
package om

import (
	"iter"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
)

// Value is the only message: one message of the paper, a value and its path.
// Seq: the round. Body: the path without the source, one byte per process and the
// sender last, Seq bytes in all; then the value. Origin and Value: unused.
const Value parley.Kind = 1

// Config configures one instance. Its Default replaces a missing value and
// is decided if no value has a majority.
type Config = problem.Instance

// New returns the protocol as machines on the given schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, problem.OralFlags, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// Rounds returns the protocol at the level of rounds.
func Rounds(c Config) lockstep.Protocol {
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:       "om",
			Title:      "Byzantine agreement by oral messages, OM(m)",
			Paper:      "lecture, Oral Messages Algorithm OM(m); Lamport, Shostak, Pease 1982",
			Faults:     parley.OralByzantineFaults,
			Kinds:      []string{"", "VALUE"},
			N:          c.N,
			M:          c.M,
			Proposers:  parley.SetOf(c.Source),
			Properties: problem.Byzantine(c.Source),
			Promises: func(a parley.RunConditions) []parley.Promise {
				return parley.Proved(problem.Promises(a, c.Bounded(problem.OralBound),
					"OM(m) solves Byzantine agreement for 3m+1 or more processes (lecture; Lamport, "+
						"Shostak, Pease 1982, theorem 1)"), proofs)
			},
			Bound:  c.Bounded(problem.OralBound),
			Cost:   c.Costing(Cost),
			Memory: func() uint64 { return memory(c) },
			Size:   size(c),
			Explain: func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
				return problem.Explain(Items(c, m), c.N, name)
			},
			Lies:   lies(c),
			Rename: rename,
		},
		Last: c.Last(),
		New:  func(self parley.ID) lockstep.Rounds { return newProcess(c, self) },
		Tree: func(r lockstep.Rounds) parley.Tree { return view{r.(*process)} },
	}
}

// memory estimates the peak memory of a simulated run in bytes: each message counts in the
// frame that carries it, in the tree into which it is entered, and in flight.
func memory(c Config) uint64 {
	const each = 350
	return parley.Traffic{Messages: Cost(c.N, c.Last()).Total().Messages}.Times(each).Messages
}

type process struct {
	c    Config
	self parley.ID
	path []byte // scratch

	value   []byte    // the source's value
	top     *instance // OM(m), as a lieutenant takes part in it; nil at the source
	decided bool
}

// Request: the source gets its value.
func (p *process) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && p.self == p.c.Source && len(m.Body) <= problem.MaxValue {
		p.value = m.Body
	}
}

func (p *process) Emit(s *parley.Step, r int) {
	switch {
	// OM(m), step 1: the source sends its value to every process.
	case r == 0 && p.top == nil:
		s.SendAll(message(nil, p.value))
	// OM(k), step 2: with the value it has from the source, each lieutenant
	// becomes the source of an OM(k-1), and in step 1 of that sends the value to
	// each of the others. These are the OM(k) of the round before.
	case r > 0 && p.top != nil:
		p.top.each(r-1, p.path, func(om *instance, path []byte) {
			m := message(append(path, byte(p.self)), om.value)
			for j, below := range om.below {
				if below != nil {
					s.Send(parley.ID(j), m)
				}
			}
		})
	}
}

// Absorb enters the first value that the source of an OM(m-r) sends to this process.
// A message that does not fit comes from an adversary, and is ignored.
func (p *process) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	path, value, ok := split(m)
	switch {
	case p.top == nil:
		s.Refuse(from, "message to the source")
		return
	case !ok || m.Seq != uint64(r) || m.Origin != 0 || m.Value != 0:
		s.Refuse(from, "not a message of this round")
		return
	case len(value) > problem.MaxValue:
		s.Refuse(from, "oversized value")
		return
	case p.last(path) != from:
		s.Refuse(from, "path that does not end in its sender")
		return
	}
	switch om := at(p.top, path); {
	case om == nil:
		s.Refuse(from, "path with a cycle or through its receiver")
	case om.held:
		s.Refuse(from, "second value along a path")
	default:
		om.value, om.held = value, true
	}
}

// last returns the process at the end of a path without the source.
func (p *process) last(path []byte) parley.ID {
	if len(path) == 0 {
		return p.c.Source
	}
	return parley.ID(path[len(path)-1])
}

// Close: a process that received no value from the source of an instance uses
// the default. When round m closes everything has come, and it decides.
func (p *process) Close(s *parley.Step, r int) {
	if p.top != nil {
		p.top.each(r, p.path, func(om *instance, _ []byte) {
			if !om.held {
				om.value, om.held = p.c.Default, true
			}
		})
	}
	if r == p.c.Last() {
		p.decided = true
		s.Deliver(p.c.Source, parley.Msg{Kind: parley.Decide, Origin: p.c.Source, Body: p.decide()})
	}
}

// decide returns the value that OM(m) gives; the source knows its own.
func (p *process) decide() []byte {
	if p.top == nil {
		return p.value
	}
	return p.result(p.c.Last(), p.top)
}

// result returns the value that an OM(k) gives this process once all rounds are over.
func (p *process) result(k int, om *instance) []byte {
	// OM(0), step 2: the value received from the source.
	if k == 0 {
		return om.value
	}
	// OM(k), step 3: the majority of what it received itself in step 1 and, for
	// each other lieutenant, of what it has from that one by OM(k-1).
	var votes parley.Tally
	votes.Vote(p.self, om.value)
	for j, below := range om.below {
		if below != nil {
			votes.Vote(parley.ID(j), p.result(k-1, below))
		}
	}
	return votes.Majority(p.c.Default)
}

// State visits the value and the instances.
func (p *process) State(v *parley.Vars) {
	v.Bytes("value", &p.value)
	v.Bool("decided", &p.decided)
	if p.top != nil {
		p.top.state(v)
	}
}

// Cost counts what the processes send if all are correct: in round r there are
// (n-1)(n-2)...(n-r) instances, each with n-1-r lieutenants to send to. A
// message is one value, of one bit, with the names of its path.
func Cost(n, m int) parley.Cost {
	cost := parley.Cost{Rounds: m + 1}
	all := parley.Traffic{Messages: 1}
	for r := range m + 1 {
		all = all.Times(uint64(max(n-1-r, 0)))
		one := parley.Traffic{Messages: 1, Bits: 1 + uint64(r+1)*parley.IDBits(n)}
		cost.PerRound = append(cost.PerRound, one.Times(all.Messages))
	}
	return cost
}
