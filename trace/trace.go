// Package trace defines the event log of a run. All hosts write it, and all viewers read it.
//
// A trace file is JSON Lines: a header, one line for each event, and a footer. The header names the program and the
// arguments of the run. The footer has the number of events, a running hash of the events, and a hash of the header.
// The running hash depends only on the events, not on their encoding. So two runs have equal events if and only if
// their running hashes are equal.
//
// # Decisions
//
// The footer has one hash of the events and another hash of the header. Motive: you can compare the events of two
// runs even if different programs recorded them, or encoded them differently.
//
// At each process, one counter numbers requests, deliveries and restarts. Motive: the causal order of a run depends
// on which event came first at a process. Times do not show this, because two events may have the same time. Cost:
// hosts must keep one more counter.
package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"parley"
)

// Op is the kind of an event.
type Op uint8

// The kinds of events. Each event has At, the process, and Time. The other fields in use are listed here.
const (
	Start    Op = iota + 1
	Request     // Msg: the request from above
	Send        // Peer: the receiver (or parley.All), Path, Msg
	Keep        // Path, Msg: the sender's own copy
	Receive     // Peer: the sender, Path, Msg; Cause: the Send
	Lose        // Peer: the sender, Cause: the Send; the link lost a message to At
	Timeout     // Path, Msg.Value: the timer
	Deliver     // Peer: the sender, Msg: delivered to the layer above
	Indicate    // Msg: indicated to the layer above
	Append      // Msg.Body: the record
	Crash       //
	Restart     // Msg.Value: 1 if the durable state is lost
	Refuse      // Peer: the sender of the message that At refuses; Msg.Body: the reason
	Suspect     // Msg.Origin: the process that the host suspects
	Pause       //
	Resume      //
)

var opNames = [...]string{
	"", "start", "request", "send", "keep", "receive", "lose", "timeout", "deliver", "indicate",
	"append", "crash", "restart", "refuse", "suspect", "pause", "resume",
}

func (o Op) String() string { return opNames[o] }

// Event is one event at one process.
type Event struct {
	ID    uint64 // from 1, in the order of the log
	Cause uint64 // the event on another process from which it follows, or 0
	Time  parley.Tick
	Op    Op
	At    parley.ID
	Peer  parley.ID
	Epoch uint32 // of a message that is sent, kept, received or lost
	Path  parley.Path
	Msg   parley.Msg
	// Cut is the number of bytes at the end of the body that a recorder left out.
	Cut uint32
}

// OfEffect returns the event of an effect that was carried out, without the time. The result traced reports whether
// traces record such effects.
func OfEffect(e *parley.Effect) (event Event, traced bool) {
	event = Event{At: e.From, Peer: e.To, Path: e.Path, Msg: e.Msg}
	switch e.Op {
	case parley.OpSend:
		event.Op, event.Epoch = Send, e.Epoch
	case parley.OpKeep:
		event.Op, event.Epoch = Keep, e.Epoch
	case parley.OpDeliver:
		event.Op = Deliver
	case parley.OpIndicate:
		event.Op, event.Peer = Indicate, 0
	case parley.OpAppend:
		event.Op = Append
	default:
		return Event{}, false
	}
	return event, true
}

// Header describes a trace, so that a viewer can construct the protocol again.
type Header struct {
	Version  int      `json:"parley"`           // version of the file format
	Protocol string   `json:"protocol"`         // name of the protocol
	Args     []string `json:"args"`             // arguments of the run, as in "parley run ARGUMENTS"
	N        int      `json:"n"`                // number of processes
	M        int      `json:"m"`                // number of faulty processes that the protocol tolerates
	Seed     uint64   `json:"seed"`             // seed of the run
	Names    string   `json:"names,omitempty"`  // how processes are named: article (P1, P2) or lecture (p0, p1)
	Faulty   []int    `json:"faulty,omitempty"` // faulty processes, counted from 0
	Facts    Facts    `json:"facts"`            // facts about the run that no event shows
	Node     *Node    `json:"node,omitempty"`   // node that wrote the trace, in a run between real processes
}

// Node names the node of a cluster, and its machine, that wrote a trace.
type Node struct {
	Cluster string   `json:"cluster,omitempty"`
	Members []string `json:"members,omitempty"` // names of all nodes, by process
	// Machine is the name of the machine, such as group/news, and Channel is its number. Round is the length of a
	// round. All three are the same at all nodes.
	Machine string `json:"machine,omitempty"`
	Channel uint32 `json:"channel,omitempty"`
	Round   int64  `json:"round,omitempty"` // in ns
	// Level is the promise of the machine's service, if it has a name.
	Level string `json:"level,omitempty"`
	// Self is the process, or Merged in a trace that was merged from all nodes.
	Self int `json:"self"`
	// Life is the number of the node's incarnation, which increases with each restart. Began is the time at which the
	// clock of the trace was 0, in ns of Unix time by the node's own clock.
	Life  uint64 `json:"life,omitempty"`
	Began int64  `json:"began,omitempty"`
	// Lies is the behavior of the node, if it is configured to lie.
	Lies string `json:"lies,omitempty"`
	// Recorded reports that a recorder kept only the last events.
	Recorded bool `json:"recorded,omitempty"`
	// Numbered reports that the Cause of a receipt is the number of its send (see [Sending]). Then a Lose with At the
	// node itself means that the node's last send did not reach Peer.
	Numbered bool `json:"numbered,omitempty"`
}

// Sending returns the number by which a receiver's numbered trace identifies a send: the nth Send, from 1, of an
// incarnation of a sender. There are fewer than 2^40 sends in an incarnation, and fewer than 2^24 incarnations.
func Sending(life, nth uint64) uint64 { return life<<40 | nth }

// Merged is the value of Node.Self in a trace that was merged from the traces of all nodes.
const Merged = -1

// Facts are facts about a finished run that no event shows.
type Facts struct {
	Over      bool                 `json:"over"` // the run reached its end
	Network   parley.NetworkFaults `json:"network,omitzero"`
	Processes parley.ProcessFaults `json:"processes,omitzero"`
	// Worst is the worst fault of any faulty process. Traces of earlier versions lack it.
	Worst parley.FaultModel `json:"worst,omitzero"`
	// Explored reports that an explorer found the run, so no seed reproduces it. Stepped reports that times
	// are step numbers, because no bound on delays is assumed. The clock of a process then changes only when
	// a timer expires, to the time at which the timer was due. Bare reports that the protocol ran as in its
	// field Bare.
	Explored bool `json:"explored,omitempty"`
	Stepped  bool `json:"stepped,omitempty"`
	Bare     bool `json:"bare,omitempty"`
	// Unrepeatable reports that the same arguments and seed can make another run: a process was a program that did not
	// say when its answers were complete.
	Unrepeatable bool `json:"unrepeatable,omitempty"`
}

// Log collects events, in order. The zero value keeps only their hash and number. A Log must not be used
// concurrently.
type Log struct {
	// Keep makes the log keep its events.
	Keep   bool
	Events []Event
	// Gaps are the places of missing events. Broken reports that the trace has no footer, because its writer
	// was killed.
	Gaps   []Gap
	Broken bool
	// Until is the time at which the writer ended, possibly after the last event; 0 means unknown.
	Until parley.Tick

	count   uint64
	hash    hash.Hash
	scratch []byte
}

// Gap is a place with missing events.
type Gap struct {
	After  uint64 // number of the last event before the gap
	Events uint64 // number of missing events
}

// Dropped returns the total number of missing events.
func (l *Log) Dropped() (events uint64) {
	for _, g := range l.Gaps {
		events += g.Events
	}
	return events
}

// Add appends the next event to the log and returns its number.
func (l *Log) Add(e Event) uint64 {
	if l.hash == nil {
		l.hash = sha256.New()
	}
	l.count++
	e.ID = l.count
	b := l.scratch[:0]
	if e.Epoch == 0 {
		b = append(b, byte(e.Op))
	} else {
		b = binary.AppendUvarint(append(b, byte(e.Op)|0x80), uint64(e.Epoch))
	}
	b = binary.AppendUvarint(b, e.Cause)
	b = binary.AppendVarint(b, int64(e.Time))
	b = binary.AppendUvarint(b, uint64(e.At))
	b = binary.AppendUvarint(b, uint64(e.Peer))
	b = parley.AppendMsg(b, e.Path, e.Msg)
	if e.Cut > 0 {
		b = binary.AppendUvarint(append(b, 0), uint64(e.Cut)) // no event begins with a 0
	}
	l.hash.Write(b)
	l.scratch = b
	if l.Keep {
		l.Events = append(l.Events, e)
	}
	return l.count
}

// Len returns the number of events so far.
func (l *Log) Len() uint64 { return l.count }

// Hash returns the running hash: the first 16 bytes of SHA-256, in hexadecimal.
func (l *Log) Hash() string {
	if l.hash == nil {
		l.hash = sha256.New()
	}
	return hex.EncodeToString(l.hash.Sum(nil)[:16])
}
