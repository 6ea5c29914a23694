package parley

import (
	"flag"
	"iter"
	"math"
	"math/bits"
)

// Timing says what a protocol assumes about time.
type Timing uint8

// The timing models.
const (
	Asynchronous Timing = iota // no bound on delays is assumed
	Synchronous                // rounds: a message arrives in the round in which it is sent
)

func (t Timing) String() string { return [...]string{"asynchronous", "synchronous"}[t] }

// FaultModel says what faulty processes may do.
type FaultModel uint8

// The fault models, from the mildest to the worst.
const (
	CrashFaults FaultModel = iota
	OmissionFaults
	SignedByzantineFaults // anything, except that they cannot forge the signature of a correct process
	OralByzantineFaults   // anything
)

func (f FaultModel) String() string {
	return [...]string{"crash", "omission", "Byzantine, signed messages", "Byzantine, oral messages"}[f]
}

// Hearing says how a machine receives the messages of its peers. A message that arrives in another way comes
// from a faulty process, and a stack refuses it.
type Hearing uint8

// The ways to receive messages.
const (
	HearsLinks   Hearing = iota // only from links: its peers Send
	HearsBeneath                // only from the layer below: its peers Broadcast
	HearsBoth                   // from both: Step.Carried distinguishes them
)

// ModelAssumptions says what a protocol assumes about links and clocks. If a bound is zero, the bound that
// the host promises applies.
type ModelAssumptions struct {
	Delay  Tick  // no message takes longer
	Offset Tick  // at time 0 no clock differs more from the true time
	Drift  int64 // no clock drifts more, in parts per million
	FIFO   bool  // links keep the order of messages
}

// And returns the assumptions of two protocols together: for each bound the smaller of the two.
func (r ModelAssumptions) And(q ModelAssumptions) ModelAssumptions {
	return ModelAssumptions{
		Delay: smaller(r.Delay, q.Delay), Offset: smaller(r.Offset, q.Offset), Drift: smaller(r.Drift, q.Drift),
		FIFO: r.FIFO || q.FIFO,
	}
}

// smaller returns the smaller of two bounds; 0 means no bound.
func smaller[T Tick | int64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Protocol holds everything that hosts, the command line, the documentation and the tests need to know about
// a protocol. It is a struct of values and functions, so that adapters can copy and override it. The function
// New of a protocol's package makes the Protocol from the package's Config.
type Protocol struct {
	Name  string // as on the command line
	Title string // one line
	Paper string // where it comes from

	Timing Timing
	Faults FaultModel
	Kinds  []string // the names of the message kinds, by Kind; Kind 0 is not used
	N, M   int

	// Serves means that the protocol handles the Broadcast and Request effects of a layer above.
	Serves bool
	// Hears says how messages of the peers arrive. A protocol that broadcasts through a layer below must set it.
	Hears Hearing
	// Relies is what the protocol assumes about links and clocks.
	Relies ModelAssumptions
	// Relays means that correct processes forward the messages that they receive. Then a path between any two
	// correct processes is enough. Without Relays a missing link counts as a cut.
	Relays bool
	// OnDemand means, for a protocol in rounds, that the rounds may begin at any time: they begin when a process gets
	// a request. Without OnDemand, processes get requests only before the first round.
	OnDemand bool
	// Rejoins means, for a protocol in rounds, that a restarted process detects when it can take part again,
	// and that Promises depends on RunConditions.Away. Without Rejoins nothing is promised for runs with
	// restarts.
	Rejoins bool
	// Graph lists for each process the processes with which it has a link. Links go both ways. If Graph is nil, every
	// process has a link with every other process. With a graph, the promises cover correct processes that a path of
	// correct processes connects.
	Graph []Set
	// Span is the length, in ticks, of a simulated run of a protocol that never comes to rest. 0 means that the
	// protocol comes to rest.
	Span Tick
	// Samples are payloads to broadcast in runs that specify none. If Samples is empty, any payload is
	// suitable.
	Samples []string
	// Proposers are the processes that must get their initial value from a Request of
	// kind Propose before the run begins.
	Proposers Set

	// New makes the machine of one process.
	New func(self ID) Machine
	// Properties are the properties that runs are checked for.
	Properties []Property
	// Promises returns which properties hold under given run conditions, and why.
	Promises func(RunConditions) []Promise
	// Cost returns the cost that the protocol's theorem states for n processes and m faults. The cost is for runs in
	// which all processes are correct.
	Cost func(n, m int) Cost
	// Size returns how much one message to one receiver adds to this cost.
	Size func(e Env, m Msg) Traffic
	// Bound returns why n processes cannot tolerate m faults, or nil if they can.
	Bound func(n, m int) error
	// Memory returns the peak memory of a simulated run in bytes; nil means that it is small.
	Memory func() uint64
	// Explain iterates over the lines that describe a message to users. The function name returns the name that users
	// see for a process.
	Explain func(e Env, m Msg, name func(ID) string) iter.Seq[string]
	// Lies returns the messages that a faulty process sends instead of the honest messages: see Turn.
	Lies func(s *Step, t *Turn) []Outgoing
	// Overhears means that Lies reads the messages that the coalition has received (Turn.Seen). Without it
	// the coalition keeps no messages, and Turn.Seen is empty, also for the Lies of an adapter around this
	// protocol. A faulty process that waits for messages in Turn.Seen is then silent, and no error reports
	// that.
	Overhears bool
	// Rename returns m after renaming the processes that m names: process i becomes perm[i]. The address before
	// renaming is e.
	Rename func(e Env, m Msg, perm []ID) Msg
	// Progress returns the stage that a process reaches by an event. Pictures show these stages for decisions that
	// must be the same at all processes, such as a commit. The event is a request, a delivery, an indication, or a
	// message that the process sends or receives. If record is set, the event is a log record, and m.Body holds this
	// record. If Progress is nil, the protocol makes no such decision.
	Progress func(m Msg, record bool) Progress
	// Clock tells pictures how to show the clocks that the protocol keeps. nil means that it keeps none.
	Clock *ClockView
	// Tree returns the information tree inside a machine of this protocol.
	Tree func(m Machine) Tree
	// Bare, if not nil, is the same protocol without its failure detector. A host that reports crashes itself
	// uses it, because heartbeats never end and would hide the other messages.
	Bare *Protocol
	// Flags declares the protocol's own flags and returns the function that
	// makes the protocol from the parsed values; see the function Flags.
	Flags func(fs *flag.FlagSet) func(Naming) (Protocol, error)
}

// Traffic is an amount of traffic as the papers count it.
type Traffic struct {
	Messages   uint64 `json:"messages"`
	Bits       uint64 `json:"bits"`
	Signatures uint64 `json:"signatures"`
}

// Plus returns the sum of two amounts. A sum that is too large for uint64 becomes the largest number.
func (l Traffic) Plus(k Traffic) Traffic {
	return Traffic{plus(l.Messages, k.Messages), plus(l.Bits, k.Bits), plus(l.Signatures, k.Signatures)}
}

// Times returns k times the amount. A product that is too large for uint64 becomes the largest number.
func (l Traffic) Times(k uint64) Traffic {
	return Traffic{times(l.Messages, k), times(l.Bits, k), times(l.Signatures, k)}
}

func plus(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

func times(a, b uint64) uint64 {
	if over, product := bits.Mul64(a, b); over == 0 {
		return product
	}
	return math.MaxUint64
}

// Cost is the cost that a protocol's theorem states.
type Cost struct {
	Rounds   int
	PerRound []Traffic
	AtMost   bool // the figures are upper bounds
}

// Total returns the sum over the rounds.
func (c Cost) Total() Traffic {
	var sum Traffic
	for _, l := range c.PerRound {
		sum = sum.Plus(l)
	}
	return sum
}

// IDBits returns the number of bits that name one process of n.
func IDBits(n int) uint64 { return uint64(bits.Len(uint(max(n-1, 0)))) }

// ValueBits returns the number of bits of a value of agreement: 1 for the values "0" and "1" of the article
// and the lecture, and 8 per byte for all others.
func ValueBits(v []byte) uint64 {
	if len(v) == 1 && (v[0] == '0' || v[0] == '1') {
		return 1
	}
	return 8 * uint64(len(v))
}

// Outgoing is a message to send, with the part of the machine to which it belongs.
type Outgoing struct {
	Path  Path
	Epoch uint32 // the view or incarnation of the message
	Msg   Msg
}

// Equal reports whether both are the same message to the same part of a machine.
func (s Outgoing) Equal(o Outgoing) bool {
	return s.Path == o.Path && s.Epoch == o.Epoch && s.Msg.Equal(o.Msg)
}

// Received is a message that a member of a coalition received.
type Received struct {
	From, To ID
	Round    int
	Path     Path
	Epoch    uint32
	Msg      Msg
}

// Turn is one move of a faulty process. It has one sender, one receiver and one round (or one step, without rounds),
// and all messages that an honest process would send.
//
// A protocol's Lies is not a list of lies, but a program that calls Step.Choose. The adversary answers each
// Choose. Answer 0 is honest, the last answer is silence, and the answers in between are all lies that the
// protocol knows.
type Turn struct {
	Self, To ID
	Round    int
	Members  Set        // the coalition: Self may sign for all members
	Honest   []Outgoing // may be empty or hold several messages
	// Seen iterates over the messages that the coalition has received in this round and the round before. A
	// coalition may wait for the messages of the others before it sends.
	Seen iter.Seq[Received]
	// Body returns the lie of the layer above that replaces b. A layer calls it if it carries b for the layer above.
	Body func(s *Step, b []byte) []byte
	// Memo is storage for the outermost adapter. The adapter can store a result in one turn, and use it in the next
	// turns, which are of the same member to other receivers.
	Memo any
	// Out is empty memory for building an answer: out := t.Out[:0].
	Out []Outgoing
}

// Child returns the part of the turn that concerns one child of an adapter.
func (t *Turn) Child(bits int, child Path) *Turn {
	mine := func(p Path) bool { return p&(1<<bits-1) == child }
	part := *t
	part.Honest, part.Memo, part.Out = nil, nil, nil
	for _, sent := range t.Honest {
		if mine(sent.Path) {
			sent.Path >>= bits
			part.Honest = append(part.Honest, sent)
		}
	}
	part.Seen = func(yield func(Received) bool) {
		for got := range t.Seen {
			if mine(got.Path) {
				got.Path >>= bits
				if !yield(got) {
					return
				}
			}
		}
	}
	return &part
}

// Lift adds the number of a child to the paths of the messages that the child sends.
func Lift(sent []Outgoing, bits int, child Path) []Outgoing {
	for i := range sent {
		sent[i].Path = sent[i].Path.Push(bits, child)
	}
	return sent
}

// Tree is an information tree that can be walked node by node. The name of a node is a path of processes that
// begins with the source.
type Tree interface {
	// Root returns the path of the root.
	Root() []ID
	// Node returns the value that the process received along the path (in), the value to which the process
	// resolved it (out, nil before the decision), and the processes that relayed it (children). For a path
	// that is not in the tree it returns nil values.
	Node(path []ID) (in, out []byte, children []ID)
}
