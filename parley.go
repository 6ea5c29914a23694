// Package parley holds the nouns that every protocol of this module is written
// in: a process, a message, a machine, one atomic step and its effects.
//
// A protocol is written once, as a [Machine]: pure, sequential and
// deterministic. It has no clock, no network, no disk and no goroutine of its
// own. It is told what happened (Start, Request, Receive, Timeout) together
// with a [Step], and asks through that Step for effects (send, deliver, set a
// timer, append to the log). A host carries the effects out. Three hosts run
// the same machines: a seeded simulator, an exhaustive explorer and a cluster
// of real processes.
//
// The words are the field's: processes send and receive on links; services
// broadcast and deliver. n is the number of processes and m the number of
// faulty ones that an algorithm is built to tolerate.
package parley

import (
	"bytes"
	"strconv"
)

// ID names a process of a system of n: 0..n-1.
type ID uint16

// All stands for every process but the sender, as the receiver of a message.
const All ID = 0xFFFF

// MaxProcesses is the largest n. A [Set] has room for as many.
const MaxProcesses = 256

// String gives the bare number. What people call the process is a matter of
// the command line's --names.
func (id ID) String() string {
	if id == All {
		return "all"
	}
	return strconv.Itoa(int(id))
}

// Kind tells the messages of one protocol apart. Kinds below [Local] belong to
// the protocol and travel on links. Kinds from Local up pass between the layers
// of one process only: the codec and every host refuse them from a link.
type Kind uint8

// The local kinds, and which fields of [Msg] they use.
const (
	Local   Kind = 0x80 + iota // the first of them; itself unused
	Carried                    // Request: carry Body to my peers. Receive or Deliver: Body came from Origin
	Propose                    // Request: Body is this process's initial value
	Decide                     // Deliver: Body is the value decided on; Origin whom it is about, if anyone
)

// Local kinds from Indication up are those of Indicate, which pass all layers.
const (
	Indication Kind = 0xC0 + iota // the first of them; itself unused
	Suspect                       // Origin is suspected to have failed
	View                          // a new view; Seq is its number, Body its members
	Stable                        // all hold message Seq of Origin
)

// Timer numbers the timers of one machine. Setting a timer that runs replaces it.
type Timer uint16

// Tick is a time or a duration in nanoseconds on the process's own clock.
type Tick int64

// Path says where inside a composed machine a message, timer, log record or
// delivery belongs. An adapter with k children pushes ceil(log2 k) bits on what
// a child asks for and pops them on arrival, so adapters nest in any order. A
// protocol never looks at it.
type Path uint64

// Msg is the one message type. What its fields mean is documented with each
// Kind. The sender is told by the link and is never part of the message.
type Msg struct {
	Kind   Kind
	Origin ID     // whom the message is about
	Seq    uint64 // a round, or a sequence number
	Value  uint64 // a vote, a priority, a clock reading
	Body   []byte // the payload; immutable once sent, and may be shared
}

// Equal tells whether two messages are the same, byte by byte.
func (m Msg) Equal(o Msg) bool {
	return m.Kind == o.Kind && m.Origin == o.Origin && m.Seq == o.Seq && m.Value == o.Value && bytes.Equal(m.Body, o.Body)
}

// Env is the address of a message. Hosts and adapters own it.
type Env struct {
	From, To ID
	Epoch    uint32 // view or incarnation
	Path     Path
	Round    int // not on the wire: filled in by lockstep for Explain, Size and Rename
}

// Machine is one process of one protocol: pure, sequential and deterministic.
// Embed [Base] for the clauses that a paper does not have.
type Machine interface {
	// Start runs once, before anything else. After a crash s.Restart is set and
	// s.Log holds what was appended.
	Start(s *Step)
	// Request comes from above: broadcast this, propose that.
	Request(s *Step, m Msg)
	// Receive comes from a link (m.Kind < Local) or from the layer beneath.
	Receive(s *Step, from ID, m Msg)
	// Timeout is a timer that this machine set.
	Timeout(s *Step, t Timer)
	// State visits every variable of the machine's state, by name.
	State(v *Vars)
}

// Base has an empty clause for each event but State.
type Base struct{}

// Start does nothing.
func (Base) Start(*Step) {}

// Request does nothing.
func (Base) Request(*Step, Msg) {}

// Receive does nothing.
func (Base) Receive(*Step, ID, Msg) {}

// Timeout does nothing.
func (Base) Timeout(*Step, Timer) {}

// Seat is what a host runs: one process, or a coalition of faulty ones that is
// a single machine.
type Seat struct {
	IDs     []ID
	Machine Machine
	// Rushing gives what the seat sends the least delay, so that a coalition
	// which waits to hear the others first is still in time.
	Rushing bool
}
