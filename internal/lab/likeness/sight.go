// Package likeness compares runs: as a whole, and as one process sees them. For a given run, it also proposes other
// runs that may look the same to a process.
//
// # Decisions
//
// A process sees its own events and nothing else: its start, requests to it, the messages that it receives, its timers,
// notices of crashes, and its own effects. Two runs look the same to the process if these events are equal. Effects
// count because a machine may draw random values, and only its effects show them. In protocols in rounds, the order of
// the messages within a round does not count, because the process handles them together when the round closes. Motive:
// proofs of impossibility use the same relation. Cost: if a protocol reads clocks, times are a part of what a process
// sees, so few runs look the same.
package likeness

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/reading"
	"parley/trace"
)

// Sight is what one process sees of a run.
type Sight struct {
	keys   []string // what it sees, in order
	events []uint64 // the events of the run
}

// Len returns the number of events that the process sees.
func (s Sight) Len() int { return len(s.events) }

// Events returns the numbers of the events that the process sees, in order.
func (s Sight) Events() []uint64 { return s.events }

// Of returns what a process sees of a run of p.
func Of(p parley.Protocol, events []trace.Event, id parley.ID) Sight {
	var s Sight
	rounds := p.Timing == parley.Synchronous && !p.OnDemand
	clocks := p.Relies.Drift > 0 || p.Relies.Offset > 0
	heard := 0 // the first of the messages that the process received one after the other
	for _, e := range events {
		if e.At != id || slices.Contains(unseen, e.Op) {
			continue
		}
		if rounds && e.Op != trace.Receive {
			s.sort(heard)
		}
		at := parley.Tick(0)
		if clocks {
			at = e.Time
		}
		s.keys, s.events = append(s.keys, key(p, e, at)), append(s.events, e.ID)
		if e.Op != trace.Receive {
			heard = len(s.keys)
		}
	}
	if rounds {
		s.sort(heard)
	}
	return s
}

// unseen are the events that a process does not notice: that a message to it is lost, and that it is down or paused.
// That it refuses a message follows from the message.
var unseen = []trace.Op{
	trace.Lose,
	trace.Crash, trace.Pause, trace.Resume, trace.Refuse,
}

// sort puts the events from one on, which are all messages received, into an order that does not depend on when they
// arrived: by round, and then by sender and content.
func (s *Sight) sort(from int) {
	type one struct {
		key   string
		event uint64
	}
	list := make([]one, 0, len(s.keys)-from)
	for i := from; i < len(s.keys); i++ {
		list = append(list, one{s.keys[i], s.events[i]})
	}
	slices.SortStableFunc(list, func(a, b one) int { return strings.Compare(a.key, b.key) })
	for i, o := range list {
		s.keys[from+i], s.events[from+i] = o.key, o.event
	}
}

// key writes everything that a process sees of an event at it. Keys of messages begin alike, up to the round, which
// therefore orders them first.
func key(p parley.Protocol, e trace.Event, at parley.Tick) string {
	round, _ := reading.RoundOf(p, e)
	b := binary.BigEndian.AppendUint32([]byte{byte(e.Op)}, uint32(round+1))
	b = binary.AppendUvarint(b, uint64(e.Peer))
	b = binary.AppendVarint(b, int64(at))
	b = binary.AppendUvarint(b, uint64(e.Epoch))
	b = binary.AppendUvarint(b, uint64(e.Path))
	b = binary.AppendUvarint(append(b, byte(e.Msg.Kind)), uint64(e.Msg.Origin))
	b = binary.AppendUvarint(b, e.Msg.Seq)
	b = binary.AppendUvarint(b, e.Msg.Value)
	return string(append(b, e.Msg.Body...))
}

// Fingerprint is equal for two runs if every process sees the same in both. Runs that differ only in delays that no
// process notices are such runs.
func Fingerprint(p parley.Protocol, events []trace.Event) string {
	sum := sha256.New()
	for id := range parley.ID(p.N) {
		for _, k := range Of(p, events, id).keys {
			fmt.Fprintf(sum, "%d %d %s", id, len(k), k)
		}
	}
	return string(sum.Sum(nil))
}

// Parting is where what a process sees of two runs differs.
type Parting struct {
	Same  bool // it does not
	Equal int  // the number of its equal events before that
	// A and B are the first events that differ. One of them is 0 if the process sees nothing more of its run.
	A, B uint64
}

// Compare returns where two sights differ.
func Compare(a, b Sight) Parting {
	i := 0
	for i < len(a.keys) && i < len(b.keys) && a.keys[i] == b.keys[i] {
		i++
	}
	p := Parting{Same: i == len(a.keys) && i == len(b.keys), Equal: i}
	if i < len(a.keys) {
		p.A = a.events[i]
	}
	if i < len(b.keys) {
		p.B = b.events[i]
	}
	return p
}
