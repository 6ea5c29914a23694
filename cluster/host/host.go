// Package host runs the machines of protocols in real processes, as package sim runs them in a simulation. A
// [Process] runs one machine of a node. It has its own channel on the links. On this channel it exchanges messages
// with the same machine at each peer.
//
// A Process takes one step at a time. The step runs in the goroutine that has the input: a reader of a connection, a
// timer, or a caller. If the steps of a machine may take long (Options.Long), a separate goroutine takes the messages
// from the link and runs the steps. The host puts the messages that a step sends into the buffers of the links. A
// reader may read several messages in a burst. The host flushes the buffers at the end of the burst.
//
// An effect of a step leaves the node only when all log records of this step, and of earlier steps of the same
// machine, are on the disk.
//
// # Decisions
//
// The clock that machines see also advances while the computer is suspended. So after a suspension, a process knows
// that it is late, and abstains from the rounds that it missed. Motive: an ordinary monotonic clock stops during a
// suspension, so the process would not notice that it missed deadlines. Cost: some operating systems have no clock
// that advances during suspensions. On such a system, only late timers reveal a suspension.
//
// To detect a suspension, the host compares that clock with an ordinary monotonic clock. It cannot read both clocks
// at the same instant, so it reads one clock between two readings of the other. This gives a lower and an upper bound
// of the difference between the clocks. The host assumes a suspension only if the lower bound shows that the
// difference has grown. Motive: otherwise a process that was merely busy between two readings would abstain from
// rounds. Cost: if the process was busy during the comparison, the measured suspension is too short, until the host
// compares the clocks again.
//
// On Linux, alarms use a timer descriptor (timerfd). A node sets the descriptor to the time of its next timer, and
// the descriptor becomes readable at that time. Motive: the Go runtime waits for the network in whole milliseconds,
// so a timer may be 1 ms late. If rounds last only 5 ms, a delay of 1 ms makes a node abstain. Cost: a node needs one
// more descriptor, and some system calls whenever its next timer changes. On other systems timers can be 1 ms late.
// To measure the lateness, run: go test ./cluster/host -run '^$' -bench Alarm.
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

// Transport carries messages to the same channel of other nodes. If it cannot carry a message, it drops and counts
// the message. Machines tolerate missing messages.
type Transport interface {
	// Send puts a frame of head and body into the buffer for one node. It does not block and does not
	// retain head or body. It returns false if the frame is lost.
	Send(to parley.ID, class link.Class, channel uint32, head, body []byte) bool
	// Flush sends the buffered frames for a node.
	Flush(to parley.ID)
}

// Clock is the source of a machine's Now and its timers.
type Clock interface {
	// Now returns the time. It never decreases.
	Now() parley.Tick
}

// Paced is a clock whose ticks differ from nanoseconds.
type Paced interface {
	Clock
	// Until returns the real time until the clock shows t, 0 if it already does.
	Until(t parley.Tick) time.Duration
}

// Signer makes this node's signatures, and verifies the signatures of all nodes. The context separates the signatures
// of different machines.
type Signer interface {
	// Sign returns this node's signature on b.
	Sign(context string, b []byte) []byte
	// Verify returns whether sig is the signature of node id on b.
	Verify(context string, id parley.ID, b, sig []byte) bool
}

// UpperLayer is the layer above a machine. Its methods are called within the step, in the order of the
// machine's deliveries and indications: they must not block, and must not request anything from the same
// process.
type UpperLayer interface {
	// Deliver handles a delivery of the machine.
	Deliver(from parley.ID, path parley.Path, m parley.Msg)
	// Indicate handles an indication of the machine.
	Indicate(path parley.Path, m parley.Msg)
}

// Config configures a host.
type Config struct {
	Self      parley.ID
	N         int
	Transport Transport
	// Store keeps what machines append. If it is nil, nothing survives the node.
	Store *store.Store
	// Life is the number of this incarnation of the node. It is greater than the numbers of all earlier incarnations.
	Life uint64
	// Clock is the clock; nil means the time since the host was made.
	Clock  Clock
	Signer Signer
	Log    *slog.Logger
	// Absent, if not nil, is called when a message arrives for a channel that has no machine and on which no machine
	// is expected. Absent may open a machine. It returns whether there is a machine now. Peers choose the channel, so
	// Absent must limit what they can make it open.
	Absent func(channel uint32) bool
	// Header returns the header of a trace of a machine whose clock shows now. If it is set, Recorder keeps
	// the last events, and Trace, if not nil, returns the function that receives the events of a machine
	// whose options have no Trace.
	Header   func(o Options, now parley.Tick) trace.Header
	Recorder *Recorder
	Trace    func(h trace.Header) func(trace.Event)
	// Punctual makes timers expire as soon as a processor is free, where the system supports it, and not up
	// to a millisecond later. It needs a descriptor.
	Punctual bool
	// Broken is called if a machine panics because of a broken invariant: its further output cannot be
	// trusted. The node must stop.
	Broken func(error)
}

// Host runs the machines of one node. Its methods are safe for concurrent use.
type Host struct {
	c             Config
	dirty         []atomic.Bool // by node: something waits to be flushed
	alarms        *timerfdAlarm // nil: timers are as late as the runtime makes them
	mu            sync.Mutex
	closed        bool
	table         atomic.Pointer[map[uint32]*Process]
	early         map[uint32]*earlyFrames // by channel: frames for expected machines
	unknownFrames []atomic.Uint64         // by node: frames for unknown channels, or without space
	broken        []atomic.Uint64         // by node: frames that are no messages
}

// earlyFrames are the frames for a machine that has not started.
type earlyFrames struct {
	frames []frame
	bytes  []int // by node
}

type frame struct {
	from parley.ID
	b    []byte
}

// earlyLimit is how many bytes from all nodes together wait for one machine. Each node has an equal part,
// so that a faulty node cannot crowd out the others.
const earlyLimit = 1 << 20

// earlyCost is the memory of a waiting frame in bytes, besides its content.
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
		c: c, dirty: make([]atomic.Bool, c.N), early: make(map[uint32]*earlyFrames),
		unknownFrames: make([]atomic.Uint64, c.N), broken: make([]atomic.Uint64, c.N),
	}
	h.table.Store(&map[uint32]*Process{})
	if c.Punctual {
		h.alarms = newTimerfdAlarm(h)
	}
	return h
}

// Options configure one process.
type Options struct {
	// Channel is the number of the machine, which is the same at all nodes. Name is its name for users, the disk and
	// signatures.
	Channel uint32
	Name    string
	Machine parley.Machine
	Upper   UpperLayer
	// Class is the class of all its messages. Links keep no order between classes.
	Class link.Class
	// Long means that a step may take longer than others can wait, for example because the machine copies
	// many megabytes. Its inputs are then processed by a goroutine of their own.
	Long bool
	// Clock is the clock of the process; nil: the clock of the host.
	Clock Clock
	// Beneath, if not nil, receives the broadcasts of the machine, within its step. It is for a machine that uses an
	// order that another machine of the node makes. Beneath must not block, and must not make a request to that other
	// machine. Deliveries of the order go to Carried.
	Beneath func(m parley.Msg)
	// After, if not nil, is called after a step that delivered or indicated something, when requests to the
	// process are allowed again.
	After func()
	// Again means that the machine has run before, although the disk has no data of the machine.
	Again bool
	// Trace receives every event, with At set to the node and without ID and cause, within the step.
	Trace func(trace.Event)
	// Chance is the source of the machine's choices; nil means an unpredictable one.
	Chance mathrand.Source
	// Crash, if not nil, crashes the machine at an exact place, for fault injection.
	Crash Crash
}

// Crash decides where a machine stops as if it crashed: before a step or within a step. Its methods are called within
// the step, and must not request anything from the process.
type Crash interface {
	// Before returns, when a step would begin, whether the machine has crashed by then.
	Before(now parley.Tick) bool
	// Within receives the effects of a step: first records, then the states that replace records, and then all other
	// effects, with one send for each receiver. It returns whether the machine crashes, and how many of these effects
	// are carried out before the crash.
	Within(now parley.Tick, effects []parley.Effect) (carried int, crashes bool)
	// Crashed is called after the crash. By then, the effects that were carried out are durable, and have been given
	// to the links. The links have not been flushed.
	Crashed()
}

// Open starts a machine. If its book in the store contains anything, the machine starts as after a crash.
func (h *Host) Open(o Options) (*Process, error) {
	if h.ended() {
		return nil, ErrStopped
	}
	p := &Process{h: h, o: o, m: o.Machine, refused: make(map[refusal]uint64)}
	p.clock, p.trace, p.crashPlan.Crash = cmp.Or(o.Clock, h.c.Clock), o.Trace, o.Crash
	p.in.room.L, p.in.work = &p.in.mu, p.work
	h.trace(p)
	if o.Chance == nil {
		var seed [32]byte
		_, _ = rand.Read(seed[:]) // it never fails
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
			return nil, fmt.Errorf("%w: machine %s", ErrRecords, o.Name)
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
	// Input during the start waits for the lock.
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

// Process returns the machine of a channel, or nil.
func (h *Host) Process(channel uint32) *Process { return (*h.table.Load())[channel] }

// ended returns whether the host was closed.
func (h *Host) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// trace connects a process to the recorder and the trace.
func (h *Host) trace(p *Process) {
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

// Expect keeps frames for a channel until its machine starts.
func (h *Host) Expect(channel uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.early[channel] = &earlyFrames{bytes: make([]int, h.c.N)}
}

// frameForAbsent handles a frame for a machine that does not exist, or not yet.
func (h *Host) frameForAbsent(from parley.ID, channel uint32, b []byte) *Process {
	p, expected := h.keep(from, channel, b)
	if p == nil && !expected {
		if h.c.Absent != nil && h.c.Absent(channel) {
			p = h.Process(channel)
		}
		if p == nil {
			h.unknownFrames[from].Add(1)
		}
	}
	return p
}

// keep keeps a frame for an expected machine, if there is space, unless the machine has started meanwhile.
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
		h.unknownFrames[from].Add(1)
	default:
		w.frames = append(w.frames, frame{from, bytes.Clone(b)})
		w.bytes[from] += len(b) + earlyCost
	}
	return nil, true
}

// Frame passes a message from another node, as bytes, to the machine of a channel. It does not retain the
// bytes. The caller must call Flush after the last message of a burst.
func (h *Host) Frame(from parley.ID, channel uint32, b []byte) error {
	p := h.Process(channel)
	if p == nil {
		if p = h.frameForAbsent(from, channel, b); p == nil {
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

// Flush sends the buffered output of steps.
func (h *Host) Flush() {
	for id := range h.dirty {
		if h.dirty[id].Load() && h.dirty[id].Swap(false) {
			h.c.Transport.Flush(parley.ID(id))
		}
	}
}

// Durable reports that all records with numbers up to upto are on the disk.
func (h *Host) Durable(upto uint64) {
	for _, p := range *h.table.Load() {
		if p.o.Long {
			p.in.postDurable(upto)
		} else {
			p.release(upto)
		}
	}
	h.Flush()
}

// Strange returns how many messages arrived for unknown channels, or before their machine and beyond the
// space kept for it.
func (h *Host) Strange() uint64 {
	sum := uint64(0)
	for id := range h.unknownFrames {
		sum += h.unknownFrames[id].Load()
	}
	return sum
}

// StrangeOf returns how many of the messages that Strange counts came from one node.
func (h *Host) StrangeOf(from parley.ID) uint64 { return h.unknownFrames[from].Load() }

// Malformed returns how many frames of a node could not be decoded as messages.
func (h *Host) Malformed(from parley.ID) uint64 { return h.broken[from].Load() }

// Refused calls each with the number of messages that a machine refused, by machine, sender and reason.
func (h *Host) Refused(each func(machine string, from parley.ID, why string, times uint64)) {
	for _, p := range *h.table.Load() {
		p.Refused(func(from parley.ID, why string, times uint64) { each(p.o.Name, from, why, times) })
	}
}

// Close stops all machines where they are. Open fails afterwards.
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

// ErrRecords is the error of a machine that does not know the form of its durable records.
var ErrRecords = errors.New("host: the durable records cannot be read")

// ErrStopped is the error of a stopped process and of a closed host.
var ErrStopped = errors.New("host: it has stopped")
