// Package host runs machines between real processes: it is to the cluster what a
// simulator is to a simulated run. Each machine of a node, a [Process], has a channel
// of its own on the links, which has the same machine at its other end.
//
// A process is made to take one step at a time, by whoever brings what happened: the
// goroutine that reads a connection, a timer, or a caller. There is no goroutine between
// a link and a machine, unless steps of the machine may take long (Options.Long). What a step
// sends is put into the buffers of the links. These are flushed when the burst of messages that
// caused the step is used up.
//
// Nothing that a step asks for leaves the node before what the same step or an earlier
// one of the machine appended is on the disk.
//
// # Decisions
//
// Machines go by a clock that counts suspension. A process that wakes from a suspension is late, and
// abstains. Motive: a monotonic clock stands still while its machine does, and deadlines would not have
// passed. Cost: where the system has no such clock, only the lateness of timers tells.
//
// Two clocks are never read at one instant. What one of them shows between two readings of the other
// bounds how far they differ, from both sides, and a suspension is what is beyond both bounds. Motive: a
// machine that is busy between two readings takes no part in rounds if that counts as a suspension.
// Cost: right after a busy moment a suspension is taken for shorter than it was, until the next look.
//
// On Linux alarms are a descriptor's. A node's next timer sets one that becomes readable then. Motive:
// the runtime waits for the network in whole milliseconds, and a timer that is late by one makes a node
// abstain where rounds are 5 ms (go test ./cluster/host -run '^$' -bench Alarm tells how late they are).
// Cost: a descriptor, and some system calls for each timer that is the next; elsewhere timers are late
// as before.
package host

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/cluster/link"
	"parley/cluster/store"
	"parley/trace"
)

// Transport carries messages to the same channel of other nodes. What it cannot carry
// it drops and counts: machines know what to do about what is missing.
type Transport interface {
	// Send puts a frame of head and body into the buffer for one node. It does not block
	// and keeps nothing of either. It is false if the frame is lost.
	Send(to parley.ID, class link.Class, channel uint32, head, body []byte) bool
	// Flush sends what is in the buffer for a node.
	Flush(to parley.ID)
}

// Clock is what a machine's Now and its timers go by.
type Clock interface {
	// Now is the time. It never goes back.
	Now() parley.Tick
}

// Paced is a clock whose ticks are not nanoseconds, or not nearly.
type Paced interface {
	Clock
	// Until is how long it is until the clock shows a time, 0 if it does.
	Until(t parley.Tick) time.Duration
}

// Signer makes this node's signatures and checks all nodes'. The context keeps
// signatures of different machines apart.
type Signer interface {
	// Sign returns this node's signature on b.
	Sign(context string, b []byte) []byte
	// Verify tells whether sig is the signature of a node on b.
	Verify(context string, id parley.ID, b, sig []byte) bool
}

// UpperLayer is what stands above a machine. It is called in the order of what the machine
// delivers and indicates, within the step: it must not block, and not ask the same
// process for anything.
type UpperLayer interface {
	// Deliver takes what the machine delivers to above it.
	Deliver(from parley.ID, path parley.Path, m parley.Msg)
	// Indicate takes what the machine indicates.
	Indicate(path parley.Path, m parley.Msg)
}

// Config configures a host.
type Config struct {
	Self      parley.ID
	N         int
	Transport Transport
	// Store keeps what machines append. Without one nothing outlives the node.
	Store *store.Store
	// Life is the number of this life of the node, greater than that of every one before.
	Life uint64
	// Clock is by default the time since the host was made.
	Clock  Clock
	Signer Signer
	Log    *slog.Logger
	// Absent, if it is set, is asked when a message comes for a channel on which there is no
	// machine, and none is expected. It may open one, and tells whether there is one now. The
	// channel is what a peer says: it is for Absent to bound what peers can have opened.
	Absent func(channel uint32) bool
	// Header says of a machine whose clock shows a time now what a trace of it is a trace
	// of. With it, Recorder keeps the last events, and Trace, if it is set, says who is to
	// be given the events of a machine whose own options do not say so.
	Header   func(o Options, now parley.Tick) trace.Header
	Recorder *Recorder
	Trace    func(h trace.Header) func(trace.Event)
	// Punctual has timers run out as soon as there is a processor for them where the system knows
	// how, and not up to a millisecond later. It takes a descriptor.
	Punctual bool
	// Broken is called if a machine breaks: a broken invariant of its own, after which
	// nothing that it says can be trusted. The node must stop.
	Broken func(error)
}

// Host runs the machines of one node.
type Host struct {
	c       Config
	dirty   []atomic.Bool // by node: something waits to be flushed
	alarms  *timerfdAlarm // nil: timers are as late as may be
	mu      sync.Mutex
	closed  bool
	table   atomic.Pointer[map[uint32]*Process]
	early   map[uint32]*early // by channel: of those that are expected
	strange []atomic.Uint64   // by node: frames for channels there are not, or for which there is no room
	broken  []atomic.Uint64   // by node: frames that are no message
}

// early are the frames for a machine that has not begun.
type early struct {
	frames []frame
	bytes  []int // by node
}

type frame struct {
	from parley.ID
	b    []byte
}

// earlyLimit is how many bytes of all others together wait for one machine: each has its
// part of it, so that a liar does not crowd out the rest.
const earlyLimit = 1 << 20

// earlyCost is what a frame that waits takes beside its bytes.
const earlyCost = 64

// New returns a host without processes.
func New(c Config) *Host {
	if c.Clock == nil {
		c.Clock = NewElapsed()
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Broken == nil {
		c.Broken = func(err error) { panic(err) }
	}
	h := &Host{
		c: c, dirty: make([]atomic.Bool, c.N), early: make(map[uint32]*early),
		strange: make([]atomic.Uint64, c.N), broken: make([]atomic.Uint64, c.N),
	}
	h.table.Store(&map[uint32]*Process{})
	if c.Punctual {
		h.alarms = newTimerfdAlarm(h)
	}
	return h
}

// Options describe one process.
type Options struct {
	// Channel is its number, the same at all nodes, and Name what people, the disk and
	// signatures know it by.
	Channel uint32
	Name    string
	Machine parley.Machine
	Upper   UpperLayer
	// Class is the class of all its messages: between classes links keep no order.
	Class link.Class
	// Long tells that a step may take longer than others can wait, as with a machine that copies
	// many megabytes. What comes for it is then taken by a goroutine of its own.
	Long bool
	// Clock is the clock of the process; nil: the clock of the host.
	Clock Clock
	// Beneath takes what the machine broadcasts, within the step, if it stands on an order that
	// another machine of the node makes: it must not block, and not ask that one for anything.
	// What is delivered there is given to Carried.
	Beneath func(m parley.Msg)
	// After is called, if it is set, after a step that delivered or indicated something,
	// when the process can be asked again.
	After func()
	// Again tells that the machine has lived before although nothing of it is on the disk.
	Again bool
	// Trace is given every event, with At the node and no ID or cause, within the step.
	Trace func(trace.Event)
	// Chance is where the machine's choices come from, by default nobody knows where.
	Chance mathrand.Source
	// Crash, if it is set, has the machine crash at an exact place: for laboratories.
	Crash Crash
}

// Crash says where a machine stops, as one that crashes, before a step or in the middle of
// it. Its methods are called within the step, and must not ask the process for anything.
type Crash interface {
	// Before tells, when a step would begin, whether the machine has crashed by then.
	Before(now parley.Tick) bool
	// Within is given what a step asks for: records first, then what replaces them, then the
	// rest, with one sending for each receiver. It tells whether the machine crashes, and how
	// many of these effects are carried out before.
	Within(now parley.Tick, effects []parley.Effect) (carried int, crashes bool)
	// Crashed is called when that has come: what was carried out is durable, and has been given
	// to the links, which have not been flushed.
	Crashed()
}

// Open starts a machine. If its book in the store has anything, it starts as one that
// comes back after a crash.
func (h *Host) Open(o Options) (*Process, error) {
	if h.ended() {
		return nil, ErrStopped
	}
	p := &Process{h: h, o: o, m: o.Machine, refused: make(map[refusal]uint64)}
	p.clock, p.trace, p.doom.Crash = cmp.Or(o.Clock, h.c.Clock), o.Trace, o.Crash
	p.in.room.L, p.in.work = &p.in.mu, p.work
	h.watch(p)
	if o.Chance == nil {
		var seed [32]byte
		_, _ = rand.Read(seed[:]) // which never fails
		o.Chance = mathrand.NewChaCha8(seed)
	}
	p.chance = mathrand.New(o.Chance)
	p.step = parley.Step{Self: h.c.Self, N: h.c.N, Host: (*stepHost)(p)}
	p.step.Members.Add(h.c.Self)
	var records []parley.Record
	var state []byte
	restart := o.Again
	if h.c.Store != nil {
		var err error
		if p.outbox.book, state, records, err = h.c.Store.Open(o.Name); err != nil {
			return nil, err
		}
		restart = restart || state != nil || len(records) > 0
		if state != nil && !parley.LoadDurable(p.m, p.clock.Now(), state) {
			return nil, fmt.Errorf("host: what %s had made durable cannot be read", o.Name)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrStopped
	}
	old := *h.table.Load()
	if old[o.Channel] != nil {
		return nil, fmt.Errorf("host: channel %d is %s's already", o.Channel, old[o.Channel].o.Name)
	}
	// What comes while it starts waits for the lock.
	p.mu.Lock()
	table := maps.Clone(old)
	table[o.Channel] = p
	h.table.Store(&table)
	p.start(restart, restart && state == nil && len(records) == 0, records)
	if waiting := h.early[o.Channel]; waiting != nil {
		delete(h.early, o.Channel)
		for _, f := range waiting.frames {
			if e, m, err := parley.Decode(f.b); err == nil {
				e.From = f.from
				p.receiveLocked(e, m)
			}
		}
	}
	err := p.broken
	p.unlock()
	h.Flush()
	return p, err
}

// Process returns the machine of a channel, nil if there is none.
func (h *Host) Process(channel uint32) *Process { return (*h.table.Load())[channel] }

// ended tells whether the host was closed.
func (h *Host) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// watch has the events of a process recorded and traced.
func (h *Host) watch(p *Process) {
	if h.c.Header == nil {
		return
	}
	header := h.c.Header(p.o, p.clock.Now())
	if h.c.Trace != nil && p.trace == nil {
		p.trace = h.c.Trace(header)
	}
	if h.c.Recorder != nil {
		node := *header.Node
		node.Recorded, header.Node = true, &node
		p.tape = h.c.Recorder.track(header)
	}
}

// Expect keeps what comes for a channel until its machine begins.
func (h *Host) Expect(channel uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.early[channel] = &early{bytes: make([]int, h.c.N)}
}

// absent is a frame for a machine that there is not, or not yet.
func (h *Host) absent(from parley.ID, channel uint32, b []byte) *Process {
	p, expected := h.keep(from, channel, b)
	if p == nil && !expected {
		if h.c.Absent != nil && h.c.Absent(channel) {
			p = h.Process(channel)
		}
		if p == nil {
			h.strange[from].Add(1)
		}
	}
	return p
}

// keep keeps a frame for a machine that is expected, as far as there is room, unless it has
// begun meanwhile.
func (h *Host) keep(from parley.ID, channel uint32, b []byte) (p *Process, expected bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.Process(channel); p != nil {
		return p, true
	}
	w := h.early[channel]
	switch {
	case w == nil:
		return nil, false
	case w.bytes[from]+len(b)+earlyCost > earlyLimit/h.c.N:
		h.strange[from].Add(1)
	default:
		w.frames = append(w.frames, frame{from, bytes.Clone(b)})
		w.bytes[from] += len(b) + earlyCost
	}
	return nil, true
}

// Frame is a message from another node, as bytes, on one of its channels. The bytes are
// not kept. Flush is due when the burst that it belongs to has come.
func (h *Host) Frame(from parley.ID, channel uint32, b []byte) error {
	p := h.Process(channel)
	if p == nil {
		if p = h.absent(from, channel, b); p == nil {
			return nil
		}
	}
	e, m, err := parley.Decode(b)
	if err != nil {
		h.broken[from].Add(1)
		return err
	}
	m.Body = bytes.Clone(m.Body)
	e.From, e.To = from, h.c.Self
	if p.o.Long {
		p.in.post(letter{Env: e, msg: m})
	} else {
		p.receive(e, m)
	}
	return nil
}

// send puts a frame into the buffer for a node.
func (h *Host) send(to parley.ID, o *Options, head, body []byte) {
	if h.c.Transport.Send(to, o.Class, o.Channel, head, body) && !h.dirty[to].Load() {
		h.dirty[to].Store(true)
	}
}

// Flush sends what steps have put into the buffers of links.
func (h *Host) Flush() {
	for id := range h.dirty {
		if h.dirty[id].Load() && h.dirty[id].Swap(false) {
			h.c.Transport.Flush(parley.ID(id))
		}
	}
}

// Durable says that all that the store was given up to a number is on the disk.
func (h *Host) Durable(upto uint64) {
	for _, p := range *h.table.Load() {
		if p.o.Long {
			p.in.settled(upto)
		} else {
			p.release(upto)
		}
	}
	h.Flush()
}

// Strange is how many messages came for channels that there are not, or before their machine
// and beyond what is kept for it.
func (h *Host) Strange() uint64 {
	sum := uint64(0)
	for id := range h.strange {
		sum += h.strange[id].Load()
	}
	return sum
}

// StrangeOf is how many of those were a node's.
func (h *Host) StrangeOf(from parley.ID) uint64 { return h.strange[from].Load() }

// Malformed is how many frames of a node were no message.
func (h *Host) Malformed(from parley.ID) uint64 { return h.broken[from].Load() }

// Refused counts what machines did not accept, by machine and reason and by whom it came from.
func (h *Host) Refused(each func(machine string, from parley.ID, why string, times uint64)) {
	for _, p := range *h.table.Load() {
		p.Refused(func(from parley.ID, why string, times uint64) { each(p.o.Name, from, why, times) })
	}
}

// Close stops all machines where they are. None is opened afterwards.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, p := range *h.table.Load() {
		p.stop()
	}
	h.table.Store(&map[uint32]*Process{})
	h.alarms.close()
}

// ErrStopped is the error of a process that takes no more steps, and of a host that is closed.
var ErrStopped = errors.New("host: it has stopped")
