// Package guard stops a process that missed a delivery, before it contaminates the others.
//
// Problem: a process that omits a delivery continues from a state that differs from the state of the others. Its next
// broadcasts depend on this wrong state, and all processes deliver them. So the states of all processes may become
// wrong (contamination).
//
// Model: one process omits deliveries, or any number of processes crash. Messages arrive in bounded time. The layer
// below is a FIFO broadcast that omits no message. An example is stack.New(diffusion, fifo, guard).
//
// Source: the lecture (docs/explanation/sources.md), remarks on broadcasts. First, a message contains enough
// information for its receiver to check whether it is safe to deliver the message. Second, a process that fails
// stops.
//
// Why it works: with FIFO order, one number says which messages of a sender a process has delivered. Every message
// carries these numbers for all senders. If two correct processes deliver a message, the times of the two deliveries
// differ by at most Bound. The guard applies two rules.
//
// First, suppose that this process delivered a message A more than Bound ago. It now receives a message that shows
// that its sender had not delivered A. Then the sender has omitted the delivery of A. From then on this process
// refuses all messages of that sender.
//
// Second, suppose that two other processes have delivered a message B, and that this process has not delivered B,
// although Bound has passed. At least one of the two others is correct, so this process has omitted the delivery of
// B. It stops before it sends again.
//
// If two processes omit deliveries, the guard can fail. For example, one of the two may be the only process that has
// delivered a message of the other. Then it treats all other processes as faulty, and its own state as correct. To
// find out which state is correct, the processes would have to agree, as in membership/group.
//
// Correct processes may deliver different messages of a process that omitted a delivery. One process may have
// delivered the last of these messages just before another process refused it. Without a bound on delays, the guard
// cannot distinguish an omission from a slow link. It may then stop a slow process, which is safe.
//
// # Decisions
//
// The guard counts deliveries, and needs a bound on time. Motive: in FIFO order, one number per process says which
// messages were delivered. Cost: without a bound on delays, the guard may stop a process that is only slow.
package guard

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"iter"
	"strconv"

	"parley"
	"parley/broadcast/problem"
)

// Time is the default of Config.Bound, in ticks: it fits broadcasts in two steps in the simulator, whose
// messages take at most 900.
const Time parley.Tick = 5000

// The indications of a guard.
const (
	// Contaminated reports that Origin has omitted a message that this process delivered. Seq is the number of the
	// messages of Origin that this process has delivered. It delivers no more of them.
	Contaminated = parley.Indication + 0x28
	// Behind reports that this process itself has omitted a message of Origin, and has stopped.
	Behind = parley.Indication + 0x29
)

// Config must be identical on all processes.
type Config struct {
	N int
	// Bound is the largest difference between the times at which two correct processes deliver a message, plus the
	// time that a message is in transit, in ticks. 0 means the constant Time.
	Bound parley.Tick
	// Off disables the guard: for runs that show what the guard prevents.
	Off bool
}

// The messages. Body: for each process, one more than the number of its delivered messages, or 0 if it was
// found out; then, for data, the payload.
const (
	data parley.Kind = iota + 1
	// tally has no payload. It follows a delivery within a quarter of the bound if nothing else is broadcast,
	// so that counts become known without traffic.
	tally
)

// New returns the protocol, a layer for the top of a stack. It panics if c is invalid.
func New(c Config) parley.Protocol {
	if c.N < 1 || c.N > parley.MaxProcesses || c.Bound < 0 {
		panic(fmt.Sprintf("guard: n = %d, bound %d", c.N, c.Bound))
	}
	c.Bound = cmp.Or(c.Bound, Time)
	return parley.Protocol{
		Name: "guard", Title: "broadcast that excludes a process that missed a delivery",
		Paper:  "lecture, remarks on broadcasts: inconsistency and contamination",
		Faults: parley.OmissionFaults, Kinds: []string{"", "DATA", "TALLY"}, N: c.N, M: 1,
		Serves: true, Hears: parley.HearsBeneath,
		New: func(parley.ID) parley.Machine { return newProcess(c) },
		Properties: append(problem.Of(problem.Validity, problem.Integrity, problem.FIFOOrder, problem.Delivery),
			Clean(2*c.Bound)),
		Promises: c.promises, Bound: Bound,
		Size:    func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain: explain(c.N),
		Flags:   parley.Flags(c, flags, New),
	}
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.Int64Var((*int64)(&c.Bound), "bound", int64(c.Bound), "maximum number of `ticks` between the "+
		"deliveries of one message at two processes")
	fs.BoolVar(&c.Off, "off", c.Off, "disable the guard, to see what it prevents")
	return func(c *Config, _ parley.Naming) error {
		if err := parley.CheckN(c.N, 1); err != nil || c.Bound >= 1 {
			return err
		}
		return parley.FlagErrorf("bound", "%d ticks: allowed is at least 1", c.Bound)
	}
}

type process struct {
	parley.Base
	c       Config
	seen    []origin   // by process: what was delivered
	refused parley.Set // the processes that have omitted something
	stopped bool
	due     bool // a tally is due
}

// origin is what a process knows about the messages of another.
type origin struct {
	count    uint64
	recent   []parley.Tick // when the last of them were delivered; earlier deliveries are older than the bound
	reported []uint64      // by process: how many of them it says it has delivered
	known    uint64        // how many of them some correct other process has delivered
	since    parley.Tick   // since when known exceeds count
}

func newProcess(c Config) *process {
	p := &process{c: c, seen: make([]origin, c.N)}
	for i := range p.seen {
		p.seen[i].reported = make([]uint64, c.N)
	}
	return p
}

// Request: to broadcast m, broadcast it with what this process has delivered. A stopped process broadcasts
// nothing.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "request of another kind")
		return
	}
	if p.stopped {
		s.Refuse(s.Self, "request to a process that has stopped")
		return
	}
	p.broadcast(s, data, m.Body)
}

// broadcast broadcasts the counts of what was delivered, followed by a payload.
func (p *process) broadcast(s *parley.Step, kind parley.Kind, payload []byte) {
	body := make([]byte, 0, len(payload)+2*p.c.N)
	for i := range p.seen {
		count := p.seen[i].count + 1
		if p.refused.Has(parley.ID(i)) {
			count = 0
		}
		body = binary.AppendUvarint(body, count)
	}
	s.Broadcast(parley.Msg{Kind: kind, Body: append(body, payload...)})
	if p.due {
		p.due = false
		s.StopTimer(parley.Timer(p.c.N))
	}
}

// Receive: upon delivery beneath of a message of q, deliver it if what q had delivered fits what this process
// has.
func (p *process) Receive(s *parley.Step, q parley.ID, m parley.Msg) {
	if m.Kind >= parley.Local || p.stopped {
		return
	}
	counts, payload, ok := decode(m.Body, p.c.N)
	switch {
	case m.Kind != data && m.Kind != tally || m.Kind == tally && len(payload) > 0 || !ok || int(q) >= p.c.N:
		s.Refuse(q, "no message of a guard")
		return
	case p.c.Off:
	case p.refused.Has(q):
		s.Refuse(q, "message of a process that was found out")
		return
	case q != s.Self && p.omitted(s, counts):
		p.refused.Add(q)
		s.Refuse(q, "sender has not delivered what it should have")
		s.Indicate(parley.Msg{Kind: Contaminated, Origin: q, Seq: p.seen[q].count})
		return
	default:
		p.learn(s, q, counts)
	}
	if m.Kind == data {
		p.deliver(s, q, payload)
	}
}

// omitted reports whether a sender with these counts lacks what this process delivered longer ago than the
// bound. This process's own messages count only if two others have them, because otherwise it may itself have
// failed to send them. Messages of a process found out, by this one or by the sender, do not count: one
// process may have delivered more of them than another.
func (p *process) omitted(s *parley.Step, counts []uint64) bool {
	for id, count := range counts {
		mine := &p.seen[id]
		if count--; p.refused.Has(parley.ID(id)) || count >= mine.count ||
			parley.ID(id) == s.Self && count >= mine.known {
			continue // a count of 0 has wrapped around to the largest number
		}
		lacks := mine.count - count // it lacks the last ones, the first of which is the oldest
		if lacks > uint64(len(mine.recent)) || s.Now-mine.recent[len(mine.recent)-int(lacks)] > p.c.Bound {
			return true
		}
	}
	return false
}

// learn records what a sender has delivered. If two others say that they have delivered a message, a correct
// one has, and this process must deliver it in time.
func (p *process) learn(s *parley.Step, q parley.ID, counts []uint64) {
	for id, count := range counts {
		mine := &p.seen[id]
		if q == s.Self || count <= mine.reported[q]+1 || p.refused.Has(parley.ID(id)) {
			continue
		}
		mine.reported[q] = count - 1
		before := mine.known
		mine.known = max(before, confirmed(mine.reported))
		if mine.known > mine.count && before <= mine.count {
			mine.since = s.Now
			s.SetTimer(parley.Timer(id), p.c.Bound+1)
		}
	}
}

// confirmed returns the largest number that at least two processes have reached.
func confirmed(told []uint64) uint64 {
	var first, second uint64
	for _, n := range told {
		first, second = max(first, n), max(second, min(first, n))
	}
	return second
}

// Timeout: if this process has not yet delivered what others had, it has omitted it, and stops. A later lack
// has its own timer.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	if int(t) == p.c.N {
		if p.due && !p.stopped && !p.c.Off {
			p.broadcast(s, tally, nil)
		}
		return
	}
	mine := &p.seen[t]
	if p.stopped || mine.known <= mine.count || p.refused.Has(parley.ID(t)) {
		return
	}
	if left := mine.since + p.c.Bound - s.Now; left >= 0 {
		s.SetTimer(t, left+1)
		return
	}
	p.stopped = true
	s.Indicate(parley.Msg{Kind: Behind, Origin: parley.ID(t), Seq: mine.count})
}

// deliver delivers a message and records the time; it drops times older than the bound.
func (p *process) deliver(s *parley.Step, q parley.ID, payload []byte) {
	mine := &p.seen[q]
	mine.count++
	if mine.since < s.Now {
		mine.since = s.Now // progress: what is still missing is measured from here
	}
	old := 0
	for old < len(mine.recent) && s.Now-mine.recent[old] > p.c.Bound {
		old++
	}
	mine.recent = append(mine.recent[old:], s.Now)
	if !p.due {
		p.due = true
		s.SetTimer(parley.Timer(p.c.N), p.c.Bound/4)
	}
	s.Deliver(q, parley.Msg{Kind: parley.Carried, Origin: q, Body: payload})
}

// decode decodes the counts and the payload of a message.
func decode(b []byte, n int) (counts []uint64, payload []byte, ok bool) {
	r := parley.Reader{Rest: b}
	counts = make([]uint64, n)
	for i := range counts {
		counts[i] = r.Number(1 << 62)
	}
	return counts, r.Rest, !r.Bad
}

func (p *process) State(v *parley.Vars) {
	v.Bool("stopped", &p.stopped)
	v.Bool("due", &p.due)
	v.Set("refused", &p.refused)
	parley.PerProcess(v, "seen", p.seen, func(_ parley.ID, o *origin) {
		parley.Num(v, "count", &o.count)
		parley.Num(v, "known", &o.known)
		parley.PerProcess(v, "told", o.reported, func(_ parley.ID, n *uint64) { parley.Num(v, "count", n) })
		v.Time("since", &o.since)
		parley.Slice(v, "recent", &o.recent, func(_ int, t *parley.Tick) { v.Time("delivered", t) })
	})
}

// shown formats what a sender had delivered: a number for each process, - for one that it found out.
func shown(counts []uint64) string {
	text := ""
	for _, count := range counts {
		if count == 0 {
			text += " -"
		} else {
			text += " " + strconv.FormatUint(count-1, 10)
		}
	}
	return text
}

// explain shows the payload and what its sender had delivered.
func explain(n int) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			switch m.Kind {
			case Contaminated:
				yield("finds out " + name(m.Origin) + ", and refuses it from now on")
			case Behind:
				yield("missed a message of " + name(m.Origin) + ", and stops")
			case data, tally:
				if counts, payload, ok := decode(m.Body, n); ok {
					text := "tally"
					if m.Kind == data {
						text = parley.Printable(payload) + " after"
					}
					yield(text + shown(counts))
				}
			}
		}
	}
}
