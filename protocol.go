package parley

import (
	"flag"
	"iter"
	"math"
	"math/bits"
)

// Timing is what a protocol assumes about time.
type Timing uint8

// The timing models.
const (
	Asynchronous Timing = iota // no bound on delays is assumed
	Synchronous                // rounds: what is sent in a round arrives in it
)

func (t Timing) String() string { return [...]string{"asynchronous", "synchronous"}[t] }

// FaultModel is what faulty processes may do.
type FaultModel uint8

// The fault models, from the mildest to the worst.
const (
	CrashFaults FaultModel = iota
	OmissionFaults
	SignedByzantineFaults // anything but forge the signature of a correct process
	OralByzantineFaults   // anything
)

func (f FaultModel) String() string {
	return [...]string{"crash", "omission", "Byzantine, signed messages", "Byzantine, oral messages"}[f]
}

// Hearing is how a machine receives the messages of its peers. A message that
// arrives the other way comes from a faulty process, and a stack refuses it.
type Hearing uint8

// The ways to receive messages.
const (
	HearsLinks   Hearing = iota // only from links: its peers Send
	HearsBeneath                // only from the layer beneath: its peers Broadcast
	HearsBoth                   // from both: Step.Carried distinguishes them
)

// ModelAssumptions is what a protocol assumes about links and clocks. A zero bound
// means the bound that the host itself promises.
type ModelAssumptions struct {
	Delay  Tick  // no message takes longer
	Offset Tick  // at time 0 no clock differs more from the true time
	Drift  int64 // no clock drifts more, in parts per million
	FIFO   bool  // links keep the order of messages
}

// And returns what two protocols assume together: of two bounds, the smaller one.
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

// Protocol is all that a host, the command line, the documentation and the
// tests need to know about a protocol: a struct of values and functions, so
// that adapters can copy and override it. A package's New makes it from that
// package's Config, which the functions close over.
type Protocol struct {
	Name  string // as on the command line
	Title string // one line
	Paper string // where it comes from

	Timing Timing
	Faults FaultModel
	Kinds  []string // the names of the message kinds, by Kind; Kind 0 is not used
	N, M   int

	// Serves means that the protocol handles Broadcast and Request of a layer above.
	Serves bool
	// Hears says how messages of its peers arrive. A protocol that broadcasts must set it.
	Hears Hearing
	// Relies is what the protocol assumes about links and clocks.
	Relies ModelAssumptions
	// Relays means that correct processes forward what reaches them, so that a path
	// between any two is enough. Without it a missing link counts as a cut.
	Relays bool
	// OnDemand means, for a protocol in rounds, that the rounds begin at any time, when a process gets a request.
	// Without it processes get requests only before the first round.
	OnDemand bool
	// Rejoins means, for a protocol in rounds, that a process that restarts finds out by
	// itself when it can take part, and that Promises takes RunConditions.Away into account.
	// Without it nothing is promised for runs with restarts.
	Rejoins bool
	// Graph lists the processes that each process sends to directly, if not all; links go
	// both ways. The promises then cover correct processes that are connected by a path of
	// correct ones.
	Graph []Set
	// Span is how long a simulated run is worth watching, for a protocol that never
	// comes to rest by itself; 0 means that it does.
	Span Tick
	// Samples are payloads worth broadcasting in runs that specify none; empty means that
	// any payload will do.
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
	// Cost returns the theorem's count for n processes and m faults, if all processes are correct.
	Cost func(n, m int) Cost
	// Size returns how much of that cost is due to one message to one receiver.
	Size func(e Env, m Msg) Traffic
	// Bound returns why n processes cannot tolerate m faults, or nil if they can.
	Bound func(n, m int) error
	// Memory returns the peak memory of a simulated run in bytes; nil means that it is small.
	Memory func() uint64
	// Explain iterates over the rows that a reader sees for a message; name returns the
	// name that the reader sees for a process.
	Explain func(e Env, m Msg, name func(ID) string) iter.Seq[string]
	// Lies returns what a faulty process sends instead of the honest messages: see
	// Turn.
	Lies func(s *Step, t *Turn) []Outgoing
	// Overhears means that Lies reads what the coalition has received. Without it
	// nothing is kept, and Turn.Seen is empty, for the Lies of this protocol and of an
	// adapter around it: a faulty process that waits for what it receives is
	// then silent, and no error reports that.
	Overhears bool
	// Rename returns m as it would be if the processes had changed names:
	// perm[old] = new, and e is the address before renaming.
	Rename func(e Env, m Msg, perm []ID) Msg
	// Progress returns the stage that a process reaches by an event in a decision that all processes take
	// alike, for pictures. The event is a request, a delivery, an indication, or a message that the process
	// sends or receives; with record set, the body is a log record. nil means that there is no such
	// decision.
	Progress func(m Msg, record bool) Progress
	// Clock is how pictures show the clocks that the protocol keeps; nil means that it keeps none.
	Clock *ClockView
	// Tree returns the information tree inside a machine of this protocol.
	Tree func(m Machine) Tree
	// Bare, if not nil, is the same protocol without its failure detector, for a host that
	// reports crashes itself: heartbeats never end and would hide the other messages.
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

// Plus returns the sum of two amounts; a sum too large to count becomes the largest number.
func (l Traffic) Plus(k Traffic) Traffic {
	return Traffic{plus(l.Messages, k.Messages), plus(l.Bits, k.Bits), plus(l.Signatures, k.Signatures)}
}

// Times returns k times the amount; a product too large to count becomes the largest number.
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

// ValueBits returns the number of bits of a value of agreement: 1 for the values
// "0" and "1" of the sources, 8 per byte for all others.
func ValueBits(v []byte) uint64 {
	if len(v) == 1 && (v[0] == '0' || v[0] == '1') {
		return 1
	}
	return 8 * uint64(len(v))
}

// Outgoing is a message to send and the part of the machine that it belongs to.
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

// Turn is one move of a faulty process: one sender, one receiver and one round
// (or one step, without rounds), with all messages that an honest process would send.
//
// A protocol's Lies is a program over Step.Choose and not a list: in each
// Choose 0 is the honest answer, the last answer is silence, and every lie that
// the protocol knows is in between. The adversary answers the Chooses.
type Turn struct {
	Self, To ID
	Round    int
	Members  Set        // the coalition: Self may sign for all members
	Honest   []Outgoing // may be empty or hold several messages
	// Seen iterates over what the coalition has received in this round and the
	// one before it: a coalition may wait for the messages of the others before it sends.
	Seen iter.Seq[Received]
	// Body returns how the layer above would lie in a body that is carried for it.
	Body func(s *Step, b []byte) []byte
	// Memo is for the outermost adapter: what it computes in this turn it may use again
	// in the turns of the same member to other receivers, which follow.
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

// Lift pushes the path of a child back onto the messages that the child sends.
func Lift(sent []Outgoing, bits int, child Path) []Outgoing {
	for i := range sent {
		sent[i].Path = sent[i].Path.Push(bits, child)
	}
	return sent
}

// Tree is an information tree that can be walked node by node. The path of
// processes from the source on names a node.
type Tree interface {
	// Root returns the path of the root.
	Root() []ID
	// Node returns what the process received along the path (in), what the process
	// resolved it to (out, nil before the decision), and the processes that relayed
	// it (children). For a path that is not in the tree it returns nothing.
	Node(path []ID) (in, out []byte, children []ID)
}
