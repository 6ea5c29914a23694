// Package parley holds the types with which every protocol of this module is written: processes, messages,
// machines, and steps with their effects.
//
// A protocol is written once, as a [Machine]: pure, sequential and deterministic. It has no clock, no network, no
// disk and no goroutine. A host is the code that runs machines. It calls the methods of a machine (Start, Request,
// Receive, Timeout), which are called its clauses, and passes a [Step]. Through the Step, the machine requests
// effects: send, deliver, set a timer, append to the log. Then the host carries out the effects. Three hosts run the
// same machines: a seeded simulator, an exhaustive explorer and a cluster of real processes.
//
// On links, processes send and receive messages. At a broadcast service, they broadcast and deliver messages. The
// letter n is the number of processes, and m is the number of faulty processes that an algorithm can tolerate.
// Comments cite two sources as the article and the lecture. See docs/explanation/sources.md.
package parley

import (
	"bytes"
	"strconv"
)

// ID names one of n processes: 0..n-1.
type ID uint16

// All, as the receiver of a message, means every process but the sender.
const All ID = 0xFFFF

// MaxProcesses is the largest n, and the capacity of a [Set].
const MaxProcesses = 256

// String returns the number. Users see another name, which the flag --names of the command line sets.
func (id ID) String() string {
	if id == All {
		return "all"
	}
	return strconv.Itoa(int(id))
}

// Kind distinguishes the messages of one protocol. Kinds below [Local] belong to the protocol and travel on links.
// Kinds from Local up pass only between the layers of one process. The codec and every host refuse a message of such
// a kind from a link.
type Kind uint8

// The local kinds, and which fields of [Msg] they use.
const (
	Local   Kind = 0x80 + iota // the first local kind; itself unused
	Carried                    // Request: carry Body to the peers. Receive or Deliver: Body came from Origin
	Propose                    // Request: Body is this process's initial value
	Decide                     // Deliver: Body is the value decided; Origin is the process it is about, if any
)

// Local kinds from Indication up are for Indicate. Messages of these kinds pass through all layers.
const (
	Indication Kind = 0xC0 + iota // the first of these kinds; itself unused
	Suspect                       // Origin is suspected to have failed
	View                          // a new view; Seq is its number, Body its members
	Stable                        // all members hold message Seq of Origin
)

// Timer numbers the timers of one machine. Setting a timer that is running replaces it.
type Timer uint16

// SpeakTimer is the timer by which faulty processes wait until they send. A machine that uses this number panics if it
// is faulty.
const SpeakTimer Timer = 0xFFFF

// Tick is a time or a duration on the process's own clock. At a node a tick is a nanosecond. In a simulation it has
// no fixed length.
type Tick int64

// Path is the address of a part of a composed machine. Messages, timers, log records and deliveries have the
// path of the part to which they belong. An adapter with k children pushes ceil(log2 k) bits, the child's
// number, on the path of each effect of a child. It pops them from the path of each event for the child. So
// adapters nest in any order. A protocol never reads a path.
type Path uint64

// Msg is the type of all messages. Each Kind documents what the fields mean. The link names the sender, which is
// never part of the message.
type Msg struct {
	Kind   Kind
	Origin ID     // the process that the message is about
	Seq    uint64 // a round, or a sequence number
	Value  uint64 // a vote, a priority, a clock reading
	Body   []byte // the payload; immutable once sent, and may be shared
}

// Equal reports whether two messages are the same in every field and byte.
func (m Msg) Equal(o Msg) bool {
	return m.Kind == o.Kind && m.Origin == o.Origin && m.Seq == o.Seq && m.Value == o.Value && bytes.Equal(m.Body, o.Body)
}

// Env is the address of a message. Hosts and adapters own it.
type Env struct {
	From, To ID
	Epoch    uint32 // view or incarnation
	Path     Path
	Round    int // not on the wire: set by lockstep for Explain, Size and Rename
}

// Machine is one process of one protocol: pure, sequential and deterministic. Embed [Base] to get empty clauses for
// the events that the protocol ignores.
type Machine interface {
	// Start runs once, before anything else. After a crash, s.Restart is set, and s.Log holds the records that were
	// appended before.
	Start(s *Step)
	// Request handles a request from the layer above or from the host, such as a request to broadcast or to propose.
	Request(s *Step, m Msg)
	// Receive handles a message from a link (m.Kind < Local) or from the layer below.
	Receive(s *Step, from ID, m Msg)
	// Timeout runs when a timer that this machine set expires.
	Timeout(s *Step, t Timer)
	// State visits every variable of the machine's state by name.
	State(v *Vars)
}

// Base has an empty clause for each event. It has no State.
type Base struct{}

// Start does nothing.
func (Base) Start(*Step) {}

// Request does nothing.
func (Base) Request(*Step, Msg) {}

// Receive does nothing.
func (Base) Receive(*Step, ID, Msg) {}

// Timeout does nothing.
func (Base) Timeout(*Step, Timer) {}

// Outside has a State that visits nothing. It is for machines whose state is outside of this program, such as in a
// child process. Only the simulator can run them, because nobody can save or load their state.
type Outside struct{}

// State visits nothing.
func (Outside) State(*Vars) {}

// Seat is one machine that a host runs: a process, or a coalition of faulty processes.
type Seat struct {
	IDs     []ID
	Machine Machine
	// Rushing gives the messages of the seat the smallest delay. So a coalition that first waits for the
	// messages of the others is still in time.
	Rushing bool
}
