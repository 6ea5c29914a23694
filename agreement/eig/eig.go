// Package eig implements Exponential Information Gathering (EIG): Byzantine agreement on the value of one source with
// oral messages, in two stages.
//
// The problem: there are n processes, and at most m of them are faulty. Faulty processes may do anything. One process,
// the source (the General), has a value for all others (its lieutenants). All correct lieutenants must decide on the
// same value. If the source is correct, they must decide on its value. Messages are oral, that is, unsigned: the
// receiver of a message knows its sender, but a sender may lie about what it received from another process.
//
// The bound: n > 3m, m+1 rounds.
//
// First stage, the gathering. In round 0 the source sends its value. In round r every lieutenant relays all values
// that it received in round r-1 to all lieutenants, itself included. Each value has a path, which names the processes
// that the value has passed through. Each relay appends its own name to the path. For example, the path 1.3.2 means
// "P2 says that P3 said that P1 said". A process does not relay a value whose path already contains its own name. No
// process sends to the source. A missing value counts as the default value.
//
// Second stage, the decision. Each lieutenant arranges the received values in a tree: one level (rank) for each round,
// and one node for each path. To find the parent of a node, remove the last name of the path. The values of the tree
// are computed from the leaves upward. If more than half of the children of a node have the same value, the node takes
// this value. Otherwise it takes the default value. The value of the root is the decision.
//
// Why it works: consider a node whose path ends in a correct process. That process sent the same value to all, so all
// correct processes hold the same value at this node. A node has more than 2m children, because n > 3m and a path
// names at most m processes before the last round. At most m of the children have paths that end in faulty processes.
// So more than half of the children have paths that end in correct processes. From the leaves upward, each of these
// children takes the value that its parent's process sent, and this value wins the majority. Now consider any path
// from the root to a leaf. It names m+1 processes, so at least one of them is correct. All correct processes have the
// same value at the node of this process. Because every path from the root to a leaf has such a node, all correct
// processes compute the same value for the root.
//
// [Observed] is a variant in which the source decides as the lieutenants do. The lieutenants also relay to the source,
// and the source keeps a tree. In the article (docs/explanation/sources.md) the source receives nothing, and decides
// on its own value. This is not safe if the source is late without knowing it. Then the source counts as one of the m
// faulty processes, and the lieutenants may decide on a value other than the source's value. Use Observed if the
// source continues to work with the decision.
//
// Source: the article on the Byzantine generals, its first and second stage. The bound is from the lecture, which
// follows Lamport, Shostak and Pease (1982).
//
// # Decisions
//
// EIG stores its tree as the messages that it received. A message contains the values that one process relayed in one
// round. Receivers in the same program share the bytes of a message. Motive: nothing is copied, and a message is
// stored once for all its receivers. Cost: to find the value of a tree node, the code must compute its place in a
// message from the path of the node.
//
// A missing value is stored as the default value. A message has a place for every path, and cannot mark a value as
// missing. Motive: a receiver takes the default for a missing value anyway. Cost: a trace does not show whether a
// sender sent the default or sent nothing.
package eig

import (
	"iter"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
)

// The messages.
const (
	// Order is the source's value. Seq: 0. Body: the value.
	Order parley.Kind = iota + 1
	// Level is all that a lieutenant relays in one round. Seq: the round. Body:
	// the level, see level.go.
	Level
)

// Config configures one instance. Its Default is decided on a tie.
type Config = problem.Instance

// New returns the protocol as machines on the given schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, problem.OralFlags, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// Rounds returns the protocol at the level of rounds.
func Rounds(c Config) lockstep.Protocol { return rounds(c, false) }

// Observed returns the protocol with a source that decides as its lieutenants do. The source needs the values that
// they relay, so lieutenants send every level to one more process. With m = 0 nothing is relayed, and no process is
// late.
func Observed(c Config) lockstep.Protocol {
	p := rounds(c, c.Last() > 0)
	p.Title += ", observed by the source"
	p.Properties = problem.ByzantineOfAll(c.Source)
	return p
}

func rounds(c Config, observed bool) lockstep.Protocol {
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:       "eig",
			Title:      "Byzantine agreement by exponential information gathering",
			Paper:      "article, first and second stage",
			Faults:     parley.OralByzantineFaults,
			Kinds:      []string{"", "ORDER", "LEVEL"},
			N:          c.N,
			M:          c.M,
			Proposers:  parley.SetOf(c.Source),
			Properties: problem.Byzantine(c.Source),
			Promises: func(a parley.RunConditions) []parley.Promise {
				return parley.Proved(problem.Promises(a, c.Bounded(problem.OralBound),
					"with n > 3m, m+1 rounds of gathering suffice (lecture; Lamport, Shostak, Pease 1982)"), proofs)
			},
			Bound:  c.Bounded(problem.OralBound),
			Cost:   c.Costing(func(n, last int) parley.Cost { return cost(n, last, observed) }),
			Memory: func() uint64 { return memory(c) },
			Size:   size(c),
			Explain: func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
				return problem.Explain(Items(c, e, m), c.N, name)
			},
			Lies:   lies(c),
			Rename: rename(c),
		},
		Last: c.Last(),
		New:  func(self parley.ID) lockstep.Rounds { return newProcess(c, self, observed) },
		Tree: func(r lockstep.Rounds) parley.Tree { return r.(*process).view() },
	}
}

// memory returns the peak memory of a simulated run in bytes: the levels of the last
// round, one of each correct process, shared by all, and one of each faulty process for
// each receiver; and the outputs of one rank, at every process.
func memory(c Config) uint64 {
	paths := parley.Traffic{Messages: 1}
	for k := 2; k <= c.Last(); k++ {
		paths = paths.Times(uint64(max(c.N-k, 0)))
	}
	n := uint64(c.N)
	return paths.Times(n * uint64(c.Last()+2)).Plus(paths.Times(n)).Messages
}

type process struct {
	tree
	self     parley.ID
	observed bool // the source gathers too

	value   []byte // the source's value
	heard   bool   // the source's order has come
	decided bool   // the last round is over
}

func newProcess(c Config, self parley.ID, observed bool) *process {
	return &process{tree: newTree(c), self: self, observed: observed}
}

// Reset returns the process to the state that New makes, and keeps its memory.
func (p *process) Reset() {
	p.value, p.heard, p.decided = nil, false, false
	p.tree.reset()
}

func (p *process) lieutenant() bool { return p.self != p.c.Source }

// gathers reports whether this process receives what is relayed, and decides by it.
func (p *process) gathers() bool { return p.observed || p.lieutenant() }

// Request: the General gets the order.
func (p *process) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && p.self == p.c.Source && len(m.Body) <= problem.MaxValue {
		p.value = m.Body
	}
}

func (p *process) Emit(s *parley.Step, r int) {
	switch {
	// Round 0: the source sends the order to all. It never does anything else.
	case r == 0 && !p.lieutenant():
		s.SendAll(parley.Msg{Kind: Order, Body: p.value})
		if p.observed {
			p.root = p.code(p.value) // for the tree that is shown
		}
	// Each other round: each lieutenant sends all it received in the round
	// before, with its own name appended where that makes no cycle, to all
	// lieutenants, itself included, and to a source that observes.
	case r > 0 && p.lieutenant():
		m := parley.Msg{Kind: Level, Seq: uint64(r), Body: encodeLevel(p.dict, p.gather(r, p.self), p.width)}
		if p.observed {
			s.SendAll(m)
		} else {
			s.SendTo(lieutenants(p.c), m)
		}
		s.Keep(m)
		p.Absorb(s, r, p.self, m)
	}
}

// Absorb enters a message into the tree, the first from each sender. A message that does
// not fit comes from an adversary or belongs to another round, and is ignored.
func (p *process) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	switch {
	case m.Seq != uint64(r):
		s.Refuse(from, "message not due in this round")
	case m.Origin != 0 || m.Value != 0:
		s.Refuse(from, "fields that are not used")
	case !p.gathers() || r == 0 && !p.lieutenant():
		s.Refuse(from, "message to the source")
	case r == 0 && m.Kind == Order && from == p.c.Source:
		if p.heard || len(m.Body) > problem.MaxValue {
			s.Refuse(from, "second or oversized order")
			return
		}
		p.heard = true
		p.root = p.code(m.Body)
	case r > 0 && m.Kind == Level && from != p.c.Source:
		if p.columns[r][from] != nil {
			s.Refuse(from, "second level of a round")
			return
		}
		l, why := decodeLevel(m.Body, slots(p.c.N, r), p.c.Default)
		if why != "" {
			s.Refuse(from, why)
			return
		}
		p.columns[r][from] = p.translate(l)
	default:
		s.Refuse(from, "message not due in this round")
	}
}

// Close: a missing value is the default. After round m the tree is complete.
func (p *process) Close(s *parley.Step, r int) {
	if r == p.c.Last() {
		p.decided = true
		s.Deliver(p.c.Source, parley.Msg{Kind: parley.Decide, Origin: p.c.Source, Body: p.decision()})
	}
}

// decision returns the output of the root; a source that does not gather has its own value.
func (p *process) decision() []byte {
	if !p.gathers() {
		return p.value
	}
	return p.dict[p.resolve()[0].at(0, p.width)]
}

func (p *process) State(v *parley.Vars) {
	v.Bytes("value", &p.value)
	v.Bool("heard", &p.heard)
	v.Bool("decided", &p.decided)
	p.tree.state(v)
}

// Cost counts messages as the article does, including a process's copies to itself. In round 0 there are n-1
// messages. In round r each of the n-1 lieutenants sends (n-2)...(n-r) paths to n-1 lieutenants. A message is one
// value, of one bit, with its path.
func Cost(n, m int) parley.Cost { return cost(n, m, false) }

func cost(n, m int, observed bool) parley.Cost {
	cost := parley.Cost{Rounds: m + 1}
	paths, to := uint64(1), uint64(n-1)
	for r := range m + 1 {
		if r > 0 {
			paths = parley.Traffic{Messages: paths}.Times(uint64(max(n-r, 0))).Messages
		}
		if r == 1 && observed {
			to++
		}
		one := parley.Traffic{Messages: 1, Bits: 1 + uint64(r+1)*parley.IDBits(n)}
		cost.PerRound = append(cost.PerRound, one.Times(paths).Times(to))
	}
	return cost
}
