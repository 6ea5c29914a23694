package parley

import (
	"flag"
	"iter"
	"math"
	"math/bits"
)

// Timing is what a protocol assumes of time.
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

// Hearing is how the messages of its peers come to a machine. Those that come
// otherwise are a liar's, and a stack refuses them.
type Hearing uint8

// The ways of hearing.
const (
	HearsLinks   Hearing = iota // from links alone: its peers Send
	HearsBeneath                // from the layer beneath alone: its peers Broadcast
	HearsBoth                   // from both: it tells them apart by Step.Carried
)

// ModelAssumptions is what a protocol was told of links and clocks, and relies on. A zero
// bound stands for what the host itself promises.
type ModelAssumptions struct {
	Delay  Tick  // no message takes longer
	Offset Tick  // at time 0 no clock is further from the true time
	Drift  int64 // no clock drifts by more, in parts in a million
	FIFO   bool  // links keep the order of messages
}

// And is what two rely on together: of two bounds the smaller one.
func (r ModelAssumptions) And(q ModelAssumptions) ModelAssumptions {
	return ModelAssumptions{
		Delay: smaller(r.Delay, q.Delay), Offset: smaller(r.Offset, q.Offset), Drift: smaller(r.Drift, q.Drift),
		FIFO: r.FIFO || q.FIFO,
	}
}

// smaller returns the smaller of two bounds, of which one that is 0 is none.
func smaller[T Tick | int64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Protocol is all that a host, the command line, the documentation and the
// tests need to know of a protocol: a struct of values and functions, so that
// adapters copy it and override. It is made by a package's New from that
// package's own Config, which the functions close over.
type Protocol struct {
	Name  string // as on the command line
	Title string // one line
	Paper string // where it comes from

	Timing Timing
	Faults FaultModel
	Kinds  []string // the names of the message kinds, by Kind; Kind 0 is not used
	N, M   int

	// Serves tells that it answers Broadcast and Request of a layer above.
	Serves bool
	// Hears tells how messages of its peers come to it. What Broadcasts must say.
	Hears Hearing
	// Relies is what it was told of links and clocks.
	Relies ModelAssumptions
	// Relays tells that correct processes pass on what reaches them, so that it is
	// enough if a path joins any two. Without it a link that is not there is a cut.
	Relays bool
	// OnDemand says, of a protocol in rounds, that they begin when a process is asked, at any time.
	// Without it processes are asked for agreement before the first round.
	OnDemand bool
	// Rejoins says, of a protocol in rounds, that a process which starts again finds out by
	// itself when it can take part, and that Promises says what holds of such runs, by
	// Assumptions.Away. Without it nothing is promised of them.
	Rejoins bool
	// Graph has whom each process sends to directly, where that is not everybody; links go
	// both ways. What it promises then is promised of correct processes that a path of
	// correct ones joins.
	Graph []Set
	// Span is how long a simulated run is worth watching, for a protocol that never
	// comes to rest by itself; 0: it does.
	Span Tick
	// Samples are payloads worth broadcasting, for runs in which nobody says what is
	// broadcast; empty: any will do.
	Samples []string
	// Proposers are the processes that are to be given their initial value by a
	// Request of kind Propose before the run begins.
	Proposers Set

	// New makes the machine of one process.
	New func(self ID) Machine
	// Properties are what runs are checked for.
	Properties []Property
	// Promises says which properties hold under given assumptions, and why.
	Promises func(RunConditions) []Promise
	// Cost is the theorem's count for n processes and m faults, all correct.
	Cost func(n, m int) Cost
	// Size is how much of that cost one message to one receiver is.
	Size func(e Env, m Msg) Traffic
	// Bound tells why n processes cannot tolerate m faults, nil if they can.
	Bound func(n, m int) error
	// Memory is what a simulated run holds at its peak, in bytes, if that is much.
	Memory func() uint64
	// Explain goes through the rows that a reader would see for a message, with
	// processes named as the reader names them.
	Explain func(e Env, m Msg, name func(ID) string) iter.Seq[string]
	// Lies answers what a faulty process sends instead of what it honestly
	// would: see Turn.
	Lies func(s *Step, t *Turn) []Outgoing
	// Overhears tells that Lies looks at what the coalition has seen. Without it
	// nothing of that is kept, and a Lies that looks at Turn.Seen all the same, its
	// own or an adapter's around it, finds it empty: a liar who waits for what it
	// hears is then silent, and nobody says so.
	Overhears bool
	// Rename returns m as it would be if the processes had changed names:
	// perm[old] = new, and e is the address before renaming.
	Rename func(e Env, m Msg, perm []ID) Msg
	// Tree returns the information tree inside a machine of this protocol.
	Tree func(m Machine) Tree
	// Bare, if not nil, is the same protocol without the detector that it stands on, for a
	// host that tells of crashes itself: heartbeats, which never end, would bury the rest.
	Bare *Protocol
	// Flags declares the protocol's own flags and returns the function that
	// makes the protocol of their values once they are parsed; see the function Flags.
	Flags func(fs *flag.FlagSet) func(Naming) (Protocol, error)
}

// Traffic is an amount of traffic as the papers count it.
type Traffic struct {
	Messages   uint64 `json:"messages"`
	Bits       uint64 `json:"bits"`
	Signatures uint64 `json:"signatures"`
}

// Plus adds two loads; sums too large to count stay at the largest number.
func (l Traffic) Plus(k Traffic) Traffic {
	return Traffic{plus(l.Messages, k.Messages), plus(l.Bits, k.Bits), plus(l.Signatures, k.Signatures)}
}

// Times multiplies a load; products too large to count stay at the largest number.
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

// Cost is what a protocol's theorem says of its price.
type Cost struct {
	Rounds   int
	PerRound []Traffic
	AtMost   bool // the figures are upper bounds
}

// Total is the sum over the rounds.
func (c Cost) Total() Traffic {
	var sum Traffic
	for _, l := range c.PerRound {
		sum = sum.Plus(l)
	}
	return sum
}

// IDBits is the number of bits that name one process of n.
func IDBits(n int) uint64 { return uint64(bits.Len(uint(max(n-1, 0)))) }

// ValueBits is the number of bits of a value of agreement: one for the values
// "0" and "1" of the sources, eight a byte for all others.
func ValueBits(v []byte) uint64 {
	if len(v) == 1 && (v[0] == '0' || v[0] == '1') {
		return 1
	}
	return 8 * uint64(len(v))
}

// Outgoing is a message and the place in the machine that it belongs to.
type Outgoing struct {
	Path  Path
	Epoch uint32 // the view or incarnation it belongs to
	Msg   Msg
}

// Equal tells whether the same is sent, to the same part of a machine.
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
// (or, without rounds, one step), with all that it would honestly send.
//
// A protocol's Lies is a program over Step.Choose and not a list: in each
// Choose 0 is the honest answer and the last is silence, with every lie the
// protocol knows of in between. Whoever answers the Chooses is the adversary.
type Turn struct {
	Self, To ID
	Round    int
	Members  Set        // the coalition: Self may sign for all of them
	Honest   []Outgoing // may be empty, may be several
	// Seen goes through what the coalition has received in this round and the
	// one before it: it may wait to hear the others before it speaks.
	Seen iter.Seq[Received]
	// Body returns how the layer above would lie in what is carried for it.
	Body func(s *Step, b []byte) []byte
	// Memo is for the adapter that is asked first: what it made of this turn it
	// may use in those of the same member to other receivers, which follow.
	Memo any
	// Out is empty memory that an answer may be built in: out := t.Out[:0].
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

// Lift puts the path of a child back on what it sends.
func Lift(sent []Outgoing, bits int, child Path) []Outgoing {
	for i := range sent {
		sent[i].Path = sent[i].Path.Push(bits, child)
	}
	return sent
}

// Tree is an information tree that can be walked node by node. A node is named
// by its path of processes from the source on.
type Tree interface {
	// Root returns the path of the root.
	Root() []ID
	// Node returns what the process heard along the path (in), what it makes of
	// it (out, nil before the decision) and who relayed to it: the children. For
	// a path that is none in this tree it returns nothing.
	Node(path []ID) (in, out []byte, children []ID)
}
