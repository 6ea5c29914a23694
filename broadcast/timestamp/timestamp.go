// Package timestamp implements uniform total order broadcast among the members of a view, in two message delays. A
// view is a set of processes on which the processes agree (see membership/group).
//
// The problem: reliable broadcast in one total order. There is one sequence of messages. The deliveries of any
// process are a prefix of this sequence, even if the process crashed or was excluded. All processes that install two
// consecutive views have delivered the same messages in between.
//
// The bound: asynchronous messages, crash faults, false suspicions. Links are FIFO and may lose messages, but neither
// reorder nor duplicate them. Safety does not depend on time. Progress needs a majority of all processes (see
// membership/group). One silent member stops all deliveries until a view excludes it. If a message is in flight when
// its sender crashes or is excluded, all remaining members deliver it, or none. The protocol also promises FIFO order
// and causal order, within a view and across views.
//
// Each message has a key, which the sender chooses when it sends the message. The key consists of the sender's
// logical clock and the sender's ID. Keys are ordered by clock, and keys with the same clock by ID. Each member sends
// all others a vector of acknowledgements: how many messages it has received from each member. A member delivers the
// message with the smallest key when every member of the view has acknowledged this message. This happens two message
// delays after the broadcast of the message. It takes up to three delays if another process, whose clock is behind,
// broadcasts at the same time. The message of that process has a smaller key, so all members must acknowledge it
// first.
//
// Why the order is total: when member q acknowledges message m, q's clock has passed the clock value in m's key. So
// later messages of q have larger keys than m. Earlier messages of q arrived before the acknowledgement, because
// links are FIFO. The acknowledgement also says how many messages q itself has sent, so the receiver detects whether
// one of them is missing. So when a process has the acknowledgements of m from all members, every message with a
// smaller key has arrived there.
//
// Why it is uniform: a process that delivers m knows that every member has received m. When the view ends, every
// member reports the messages that it holds. So each member reports m or has delivered it, and the union of the
// reports contains all messages that any process has delivered.
//
// A member can drop a message after its delivery, because all members have received it. A sender has at most W
// undelivered messages. So when a sender sends its message number s, it has delivered its message number s-W. Then
// all members have received its messages up to number s-W, and a receiver of message s can deliver these messages. So
// a member stores at most n*W messages, even if a link is slow.
//
// Clocks and counts restart in each view. If the clock of a member reaches its maximum, 2^56, the member broadcasts
// nothing more in this view, and its messages wait. If messages wait too long, the group changes the view.
//
// Source: logical clocks and their total order are from Lamport (1978). Package membership/group describes the end of
// a view.
package timestamp

import (
	"cmp"
	"flag"
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/views"
	"parley/membership/group"
)

// The messages of the layer. The Value of Data is the sender's clock. After its vector comes the payload.
const (
	Data = views.Data
	Ack  = views.Ack
)

// Config must be identical on all members, see group.Config.
type Config struct {
	group.Config
	// Window is how many of its own messages a member may have undelivered, by default 64. Up to Queue further
	// messages wait in the sender. The sender refuses more messages.
	Window int
	// Hold is how long, in ticks, an acknowledgement may wait for more messages to acknowledge; 0: no wait.
	Hold parley.Tick
}

// New returns the protocol. A problem.Request at a member of the view broadcasts to all members. A delivery has the
// sender of the message and, as Seq, its position, from 1. New panics if c is invalid.
func New(c Config) parley.Protocol {
	if err := c.check(); err != nil {
		panic("timestamp: " + err.Error())
	}
	p := group.New(c.Config, LayerSpec(c))
	p.Name = "timestamp"
	p.Title = "uniform total order in two message delays, by logical clocks in views"
	p.Paper = "Lamport 1978; Birman and Joseph 1987"
	views.Complete(&p, c.Config, properties(), c.promises)
	p.Cost = views.Cost
	p.Flags = parley.Flags(c, flags, New)
	return p
}

func (c Config) check() error {
	switch {
	case c.Window < 0:
		return parley.FlagErrorf("window", "%d messages: allowed is at least 1", c.Window)
	case c.Hold < 0:
		return parley.FlagErrorf("hold", "%d ticks: allowed are times from 0", c.Hold)
	}
	return c.Config.Check()
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	ofViews := group.Flags(fs, &c.Config)
	fs.IntVar(&c.Window, "window", cmp.Or(c.Window, 64), "maximum `number` of a process's own messages that "+
		"it has not delivered yet, 1 or more")
	fs.Int64Var((*int64)(&c.Hold), "hold", int64(c.Hold), "how long a process delays an "+
		"acknowledgement so that it can acknowledge several messages together, in `ticks`, 0 or more")
	return func(c *Config, naming parley.Naming) error {
		if err := ofViews(&c.Config, naming); err != nil {
			return err
		}
		if c.Window == 0 { // it would mean the default
			return parley.FlagErrorf("window", "0 messages: allowed is at least 1")
		}
		return c.check()
	}
}

// LayerSpec describes the broadcast as a layer of a group.
func LayerSpec(c Config) group.LayerSpec {
	c.Config = c.Config.WithDefaults()
	c.Window = cmp.Or(c.Window, 64)
	layer := func(self parley.ID, n int) group.Layer { return newLayer(c, self, n) }
	return views.LayerSpec("timestamp", layer, func(m parley.Msg, payload []byte) (string, []byte) {
		return fmt.Sprintf("message %d at time %d", m.Seq, m.Value), payload
	})
}

// key is the place of a message in the order of its view. No message has the zero key.
type key struct {
	time   uint64
	sender parley.ID
}

func (k key) after(o key) bool { return k.time > o.time || k.time == o.time && k.sender > o.sender }

// held is a message that is not yet delivered.
type held struct {
	key
	seq  uint64
	body []byte
}

// pending holds the messages that are not yet delivered, by key.
type pending []held

func (p *pending) insert(h held) {
	at := len(*p)
	for at > 0 && (*p)[at-1].after(h.key) {
		at--
	}
	*p = slices.Insert(*p, at, h)
}

// layer is one member.
type layer struct {
	views.Member
	c Config
	n int

	clock   uint64
	recv    []uint64 // by process: messages received; for this process, sent
	done    []uint64 // by process: messages delivered
	pending pending
	last    key      // of the last delivery
	known   key      // some process is known to have delivered up to here
	queue   [][]byte // own messages beyond the window
}

func newLayer(c Config, self parley.ID, n int) *layer {
	return &layer{
		Member: views.NewMember(self, n, c.Hold), c: c, n: n, recv: make([]uint64, n), done: make([]uint64, n),
	}
}

// Request: upon broadcast(m), fewer than W own messages undelivered, else queue.
func (l *layer) Request(s *parley.Step, m parley.Msg) {
	if len(l.queue) >= l.c.Queue {
		s.Refuse(l.Self, "too many requests for the window")
		return
	}
	l.queue = append(l.queue, m.Body)
	l.try(s)
}

// send broadcasts the next own message if there is one and the window allows it.
func (l *layer) send(s *parley.Step) bool {
	if len(l.queue) == 0 || l.recv[l.Self]-l.done[l.Self] >= uint64(l.c.Window) || l.clock >= views.Limit {
		return false
	}
	body := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	// clock++; seq++; hold m with key (clock, self)
	l.clock++
	l.recv[l.Self]++
	h := held{key{l.clock, l.Self}, l.recv[l.Self], body}
	l.hold(s, h)
	// send DATA(clock, seq, recv, m) to all others of the view
	b := append(l.Acknowledge(s, l.recv, len(body)), body...)
	s.SendTo(l.View.Members, parley.Msg{Kind: Data, Seq: h.seq, Value: h.time, Body: b})
	return true
}

// hold keeps a message in key order.
func (l *layer) hold(s *parley.Step, h held) {
	if l.c.Durable {
		s.Append(record(h))
	}
	l.pending.insert(h)
}

// Receive handles DATA or ACK of another member.
func (l *layer) Receive(s *parley.Step, q parley.ID, m parley.Msg) (gap bool) {
	body, why := l.Open(q, m, l.recv[l.Self], views.Limit, "no such time")
	if why != "" {
		s.Refuse(q, why)
		return false
	}
	if m.Kind == Data {
		// seq' != recv[q]+1, or a key that no correct member sends now -> gap
		if m.Seq != l.recv[q]+1 || !l.follows(key{m.Value, q}) {
			return true
		}
		// recv[q] := seq'; clock := max(clock, t); hold m with key (t, q); owe := true
		l.recv[q] = m.Seq
		l.clock = max(l.clock, m.Value)
		l.hold(s, held{key{m.Value, q}, m.Seq, body})
		l.learn(q, m.Seq)
		l.Owe(s, l.recv, false)
	}
	// upon ACK(vec): vec[q] != recv[q] -> gap
	if l.Said(q) != l.recv[q] {
		return true
	}
	// ack[q] := max(ack[q], vec) by component
	l.Note(q)
	l.try(s)
	return false
}

// follows reports whether a key is greater than the keys of all messages of its sender so far, and than that
// of the last delivery. All messages of a sender that does not lie satisfy this.
func (l *layer) follows(k key) bool {
	for i := len(l.pending) - 1; i >= 0 && !k.after(l.pending[i].key); i-- {
		if l.pending[i].sender == k.sender {
			return false
		}
	}
	return k.after(l.last)
}

// learn: the sender of message number seq has delivered the one W before it.
func (l *layer) learn(q parley.ID, seq uint64) {
	if seq <= l.done[q]+uint64(l.c.Window) {
		return
	}
	for i := range l.pending {
		h := &l.pending[i]
		if h.sender == q && h.seq+uint64(l.c.Window) == seq && h.after(l.known) {
			l.known = h.key
		}
	}
}

// Timeout ends a batch of acknowledgements.
func (l *layer) Timeout(s *parley.Step, t parley.Timer) {
	l.Flush(s, t, l.recv)
	l.try(s)
}
