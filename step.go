package parley

import "fmt"

// Step is one atomic step of one process. It holds the data that the process may read, and the effects that
// the process requests. A host reuses one Step, and its effect slice, for all steps.
//
// Effects go in four directions. Sideways: Send and SendAll send on links to the same part of the other processes'
// machines. Down: Broadcast and Request go to the layer below. Up: Deliver goes to the layer above or the host, and
// Indicate goes to every layer above. To the host itself: SetTimer, StopTimer, Append, Compact and Keep.
type Step struct {
	Self    ID
	N       int
	Now     Tick
	Restart bool     // in Start: the process restarts after a crash
	Log     []Record // in Start: the records that were appended before, oldest first
	// Life is, in Start, the number of the incarnation of the process. It is greater than the numbers of all earlier
	// incarnations, even if the disk was lost. The first number may be 0.
	Life    uint64
	Members Set // the processes that this machine may sign for: itself, or its coalition
	// Carried is true in Receive if the message has a kind below Local and the layer below carried it. If Carried is
	// false, the message came on a link, and the argument from is only the sender on that link. Stacks set Carried.
	// In all other clauses it is false.
	Carried bool

	Path    Path     // the part of the machine that the event belongs to; for adapters
	Epoch   uint32   // the view or incarnation in which the message was sent; for adapters
	Effects []Effect // in the order of the requests; for adapters and hosts
	Host    Host
}

// Record is one entry of a process's durable log.
type Record struct {
	Path Path
	Body []byte
}

// Host is what a step needs from its host while the step runs. Everything else
// is an effect, which the host carries out when the step is over.
type Host interface {
	// Choose returns a number in 0..n-1. It is the only nondeterminism.
	Choose(n int) int
	// Sign returns the signature of process as on b.
	Sign(as ID, b []byte) []byte
	// Verify reports whether sig is the signature of process id on b.
	Verify(id ID, b, sig []byte) bool
	// Refused counts a refused input. The argument at is the process that refused the input, and from is its sender.
	Refused(at, from ID, why string)
}

// Op says what an effect does.
type Op uint8

// The effects. Each uses From, Path and the fields listed here.
const (
	OpSend      Op = iota + 1 // To (or All), Msg: on the link
	OpKeep                    // Msg: the sender's own copy of what it sends; counted, never delivered
	OpBroadcast               // Msg: down, carried to the peers and back to the process itself
	OpRequest                 // Msg: down, of a kind of the layer below
	OpDeliver                 // To is the origin, Msg: up one layer
	OpIndicate                // Msg: up through all layers
	OpSetTimer                // Timer, After
	OpStopTimer               // Timer
	OpAppend                  // Msg.Body is the record
	OpCompact                 // the durable state replaces the log records
)

// Effect is one request of a step to its host.
type Effect struct {
	Op    Op
	From  ID // the requesting process; differs within a coalition
	To    ID
	Timer Timer
	Path  Path
	Epoch uint32 // of a send: the view or incarnation of the message
	After Tick
	Msg   Msg
}

// Send sends m to the same part of one other process's machine.
func (s *Step) Send(to ID, m Msg) {
	if to == s.Self || int(to) >= s.N || m.Kind >= Local {
		panic(fmt.Sprintf("parley: process %d sends kind %#x to %d of %d", s.Self, m.Kind, to, s.N))
	}
	s.Effects = append(s.Effects, Effect{Op: OpSend, From: s.Self, To: to, Msg: m})
}

// SendTo sends m to every process of the set except the process itself.
func (s *Step) SendTo(to Set, m Msg) {
	for id := range to.All() {
		if id != s.Self {
			s.Send(id, m)
		}
	}
}

// SendAll sends m to all other processes. Hosts store m once.
func (s *Step) SendAll(m Msg) {
	if m.Kind >= Local {
		panic(fmt.Sprintf("parley: process %d sends local kind %#x", s.Self, m.Kind))
	}
	s.Effects = append(s.Effects, Effect{Op: OpSend, From: s.Self, To: All, Msg: m})
}

// Keep records that the process holds its own copy of m, as if it had sent m to itself. Hosts count and trace the
// copy. No process receives it.
func (s *Step) Keep(m Msg) {
	s.Effects = append(s.Effects, Effect{Op: OpKeep, From: s.Self, To: s.Self, Msg: m})
}

// Broadcast makes the nearest serving layer below carry m to the peers of this machine and to the machine itself. If
// no layer below is a serving layer, hosts panic.
func (s *Step) Broadcast(m Msg) {
	if m.Kind >= Local {
		panic(fmt.Sprintf("parley: process %d broadcasts local kind %#x", s.Self, m.Kind))
	}
	s.Effects = append(s.Effects, Effect{Op: OpBroadcast, From: s.Self, To: All, Msg: m})
}

// Request passes m to the nearest serving layer below. The kind of m is one of that layer's kinds.
func (s *Step) Request(m Msg) {
	s.Effects = append(s.Effects, Effect{Op: OpRequest, From: s.Self, To: s.Self, Msg: m})
}

// Deliver passes m, which came from the process from, to the layer above or to the host. For a layer above, m
// is of a local kind. For indications use Indicate.
func (s *Step) Deliver(from ID, m Msg) {
	if m.Kind >= Indication {
		panic(fmt.Sprintf("parley: process %d delivers kind %#x, which is indicated", s.Self, m.Kind))
	}
	s.Effects = append(s.Effects, Effect{Op: OpDeliver, From: s.Self, To: from, Msg: m})
}

// Indicate notifies every layer above, one after another. Each layer receives the indication in a clause. When this
// clause is over, the next layer gets the indication. If layer 2 receives v and requests Deliver(a) and Request(q) in
// that clause, layer 3 gets a, then v, and then what layer 2 delivers later, such as the answer to q.
func (s *Step) Indicate(m Msg) {
	if m.Kind < Indication {
		panic(fmt.Sprintf("parley: process %d indicates kind %#x", s.Self, m.Kind))
	}
	s.Effects = append(s.Effects, Effect{Op: OpIndicate, From: s.Self, To: s.Self, Msg: m})
}

// SetTimer makes Timeout(t) run once, after the given time. It replaces a running
// timer of the same number.
func (s *Step) SetTimer(t Timer, after Tick) {
	s.Effects = append(s.Effects, Effect{Op: OpSetTimer, From: s.Self, Timer: t, After: max(after, 0)})
}

// StopTimer cancels a timer.
func (s *Step) StopTimer(t Timer) {
	s.Effects = append(s.Effects, Effect{Op: OpStopTimer, From: s.Self, Timer: t})
}

// Append makes rec durable before any effect of this step, or of any later step of this machine, leaves the
// process. After a crash, rec is in s.Log of Start.
func (s *Step) Append(rec []byte) {
	s.Effects = append(s.Effects, Effect{Op: OpAppend, From: s.Self, Msg: Msg{Body: rec}})
}

// Compact makes the durable part of the machine's state replace its log records.
func (s *Step) Compact() {
	s.Effects = append(s.Effects, Effect{Op: OpCompact, From: s.Self})
}

// Choose returns a number in 0..n-1. It is a random choice of the protocol, or a choice of the adversary.
func (s *Step) Choose(n int) int {
	if n <= 1 {
		return 0
	}
	return s.Host.Choose(n)
}

// Sign returns this process's signature on b.
func (s *Step) Sign(b []byte) []byte { return s.SignAs(s.Self, b) }

// SignAs returns the signature of id on b, where id is Self or a member of its coalition. It panics for any other id,
// so no program of this module forges a signature.
func (s *Step) SignAs(id ID, b []byte) []byte {
	if id != s.Self && !s.Members.Has(id) {
		panic(fmt.Sprintf("parley: process %d asks for the signature of %d", s.Self, id))
	}
	return s.Host.Sign(id, b)
}

// Verify reports whether sig is the signature of process id on b.
func (s *Step) Verify(id ID, b, sig []byte) bool { return s.Host.Verify(id, b, sig) }

// Omitted is the reason under which a faulty process refuses a message that it fails to receive. Traces show it.
const Omitted = "omitted"

// Reasons of Refuse with which a process abstains from a slot or an instance of rounds: its rounds were late,
// or it received from too few others. Hosts and audits recognize abstentions by these reasons.
const (
	WokeTooLate = "woke too late: abstains"
	HeardTooFew = "heard too few: abstains"
)

// Refuse counts an input that this process ignores. Its sender is faulty or late, which is not an error of this
// process. The reason why is a short constant, such as "late frame".
func (s *Step) Refuse(from ID, why string) { s.Host.Refused(s.Self, from, why) }

// Mark returns the number of effects so far, which is where later effects begin. Adapters use marks to let an
// inner machine finish, and then handle the effects that it requested.
func (s *Step) Mark() int { return len(s.Effects) }

// Lower pushes the child's number, in the given number of bits, onto the path of
// all effects since mark.
func (s *Step) Lower(mark, bits int, child Path) {
	if bits == 0 {
		return
	}
	for i := mark; i < len(s.Effects); i++ {
		s.Effects[i].Path = s.Effects[i].Path.Push(bits, child)
	}
}

// Pop removes the number of a child from the step's path, and returns it. The event is for this child.
func (s *Step) Pop(bits int) Path {
	child := s.Path & (1<<bits - 1)
	s.Path >>= bits
	return child
}

// Push returns the path with one more child in front. It panics if the path needs more than 64 bits, because
// then too many machines are nested.
func (p Path) Push(bits int, child Path) Path {
	if p<<bits>>bits != p || child>>bits != 0 {
		panic(fmt.Sprintf("parley: path %#x has no room for child %d in %d bits", p, child, bits))
	}
	return p<<bits | child
}

// At calls ask, and sets the path and the epoch of every effect that ask requests. The path names a part of
// the machine, and the epoch a view or incarnation.
func (s *Step) At(path Path, epoch uint32, ask func()) {
	mark := s.Mark()
	ask()
	for i := mark; i < len(s.Effects); i++ {
		s.Effects[i].Path, s.Effects[i].Epoch = path, epoch
	}
}

// Take removes the effects since mark for which f returns true. It calls f in order.
func (s *Step) Take(mark int, f func(*Effect) bool) {
	kept := mark
	for i := mark; i < len(s.Effects); i++ {
		if !f(&s.Effects[i]) {
			s.Effects[kept] = s.Effects[i]
			kept++
		}
	}
	s.Effects = s.Effects[:kept]
}

// LogOf returns the log records of one child, with the child's number removed from their paths.
func LogOf(all []Record, bits int, child Path) []Record {
	var own []Record
	for _, r := range all {
		if r.Path&(1<<bits-1) == child {
			own = append(own, Record{Path: r.Path >> bits, Body: r.Body})
		}
	}
	return own
}
