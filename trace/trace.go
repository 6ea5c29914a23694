// Package trace is the one event log: every host writes it and every viewer
// reads it.
//
// A trace file is JSON Lines: a header, one line an event, and a footer with
// the number of events, the running hash and the hash of the header. The running
// hash covers what happened and not how it is written down, so two runs are the
// same exactly if their hashes are; who ran it and with which arguments is the
// header's, and covered by the other.
//
// # Decisions
//
// The trace's hash covers what happened; the header has a hash of its own. Motive: two runs are the same
// exactly if their hashes are, whoever made them and however they are written down. Cost: two hashes in
// a file's last line.
//
// Happenings are numbered across requests, deliveries and restarts. Motive: the causal order of a run is
// what came first at one process, and times tie. Cost: one counter, and hosts must keep it.
package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"parley"
)

// Op is what happened.
type Op uint8

// The events. Each has At, the process, and Time; the others are named here.
const (
	Start    Op = iota + 1
	Request     // Msg: asked from above
	Send        // Peer: to whom (or parley.All), Path, Msg
	Keep        // Path, Msg: the sender's own copy
	Receive     // Peer: from whom, Path, Msg; Cause is the Send
	Lose        // Peer: the sender, Cause the Send: the link lost what was on its way to At
	Timeout     // Path, Msg.Value: the timer
	Deliver     // Peer: from whom, Msg: to above
	Indicate    // Msg: to above
	Append      // Msg.Body: the record
	Crash       //
	Restart     // Msg.Value: 1 if what was durable is lost
	Refuse      // Peer: whose message At does not accept; Msg.Body: why
	Suspect     // Msg.Origin: the host tells At that this process is suspected
	Pause       //
	Resume      //
)

var opNames = [...]string{
	"", "start", "request", "send", "keep", "receive", "lose", "timeout", "deliver", "indicate",
	"append", "crash", "restart", "refuse", "suspect", "pause", "resume",
}

func (o Op) String() string { return opNames[o] }

// Event is one thing that happened at one process.
type Event struct {
	ID    uint64 // from 1, in the order of the log
	Cause uint64 // the event it follows from on another process, or 0
	Time  parley.Tick
	Op    Op
	At    parley.ID
	Peer  parley.ID
	Epoch uint32 // of what is sent, kept, received or lost
	Path  parley.Path
	Msg   parley.Msg
	// Cut is how many bytes of the body are left out at its end, as a recorder does.
	Cut uint32
}

// OfEffect returns the event of an effect that was carried out, without its time, and whether
// traces have such effects.
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

// Header says what a trace is a trace of, so that a viewer can make the
// protocol again.
type Header struct {
	Version  int      `json:"parley"`
	Protocol string   `json:"protocol"`
	Args     []string `json:"args"` // as after "parley run"
	N        int      `json:"n"`
	M        int      `json:"m"`
	Seed     uint64   `json:"seed"`
	Names    string   `json:"names,omitempty"`
	Faulty   []int    `json:"faulty,omitempty"`
	Facts    Facts    `json:"facts"`
	Node     *Node    `json:"node,omitempty"` // whose trace it is, of a run between real processes
}

// Node says which machine of which node of a cluster a trace is of.
type Node struct {
	Cluster string   `json:"cluster,omitempty"`
	Members []string `json:"members,omitempty"` // the names of all nodes, by process
	// Machine is what the nodes know the machine by, such as group/news, and Channel its
	// number. They are the same at all nodes, and so is Round, the length of a round.
	Machine string `json:"machine,omitempty"`
	Channel uint32 `json:"channel,omitempty"`
	Round   int64  `json:"round,omitempty"` // in ns
	// Level is what the machine's service promises, where it has a word for that.
	Level string `json:"level,omitempty"`
	// Self is the process, and Merged in a trace that was made of those of all.
	Self int `json:"self"`
	// Life is the number of this life of the node: those of a node that came back are
	// in order. Began is when the clock of the trace was 0, in ns of Unix time by the
	// node's own clock.
	Life  uint64 `json:"life,omitempty"`
	Began int64  `json:"began,omitempty"`
	// Lies is how the node behaves, if it is a traitor in a laboratory.
	Lies string `json:"lies,omitempty"`
	// Recorded tells that these are the last events only: a recorder has forgotten those
	// before.
	Recorded bool `json:"recorded,omitempty"`
	// Numbered tells that the Cause of a receipt names what was sent, as [Sending] does, and
	// that a Lose with At the node itself says that what it sent last did not reach Peer.
	Numbered bool `json:"numbered,omitempty"`
}

// Sending names, in a numbered trace of a receiver, what was sent: the nth Send, from 1, in a
// life of its sender. There are less than 2^40 of them in a life, and less than 2^24 lives.
func Sending(life, nth uint64) uint64 { return life<<40 | nth }

// Merged is the Self of a trace that was made of those of all nodes.
const Merged = -1

// Facts are what is known of a run when it has ended and no event tells.
type Facts struct {
	Over      bool                 `json:"over"` // it was not given up before its end
	Network   parley.NetworkFaults `json:"network,omitzero"`
	Processes parley.ProcessFaults `json:"processes,omitzero"`
	// Worst is the worst that any faulty process does. Traces of earlier versions lack it.
	Worst parley.FaultModel `json:"worst,omitzero"`
	// Explored tells that an explorer found the run: no seed makes it again. Stepped tells
	// that its times are the numbers of its steps, where no bound on delays is assumed: the
	// clock of a process moves only when a timer of it runs out, to when that is due. Bare
	// tells that the protocol ran as its Bare says.
	Explored bool `json:"explored,omitempty"`
	Stepped  bool `json:"stepped,omitempty"`
	Bare     bool `json:"bare,omitempty"`
}

// Log takes in events, in order. The zero value keeps nothing but the hash.
type Log struct {
	// Keep makes the log remember its events.
	Keep   bool
	Events []Event
	// Gaps are where events are missing. Broken tells that the trace ended without its last
	// line: whoever wrote it was ended.
	Gaps   []Gap
	Broken bool
	// Until is when whoever wrote it ended, with nothing more to tell; 0: nobody knows.
	Until parley.Tick

	count   uint64
	hash    hash.Hash
	scratch []byte
}

// Gap is a place in which events are missing.
type Gap struct {
	After  uint64 // the event with this number
	Events uint64 // how many
}

// Dropped is how many events are missing in all.
func (l *Log) Dropped() (events uint64) {
	for _, g := range l.Gaps {
		events += g.Events
	}
	return events
}

// Add puts the next event into the log and returns its number.
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

// Hash returns the running hash, in hexadecimal: the first 16 bytes of SHA-256.
func (l *Log) Hash() string {
	if l.hash == nil {
		l.hash = sha256.New()
	}
	return hex.EncodeToString(l.hash.Sum(nil)[:16])
}
