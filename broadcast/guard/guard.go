// Package guard keeps a process that missed a delivery from contaminating the
// others.
//
// Problem: a process that omits to deliver what all others delivered goes on from a
// state that is not theirs. What it broadcasts then reflects that state, is delivered
// by everybody, and with it the whole system may become wrong.
//
// Model: one process that omits, or any number that crash; messages in bounded time. A
// broadcast in FIFO order, with nothing left out, lies beneath: stack.New(diffusion,
// fifo, guard).
//
// Source: the lecture, remarks on broadcasts: a message carries what its receiver
// needs to see whether it is safe to deliver it, and a process that fails stops.
//
// Why it works: with FIFO order what a process has delivered of another is told by
// a number. Every message carries these numbers. Of any two correct processes one
// has delivered a message at most Bound later than the other. So who has not
// delivered what I did, and that longer ago than Bound before it could have been
// sent, has omitted it: I refuse its message, and all that it broadcasts later. And
// if two others have delivered what I still have not, longer ago than Bound, one of them
// is correct and it is I who omitted it: I stop, before I send again.
//
// With two that omit, one may alone have delivered a message of the other: then it takes
// all others for those that omit, and its state for the right one. To tell who is right
// they would have to agree, as in membership/group.
//
// Not promised: that correct processes agree on the messages of a process that was
// found out. One may have delivered the last of them just before another refused it.
// Without a bound on time nothing tells an omission from a slow link: then the guard
// takes a slow process for a failed one, which is safe, and stops it.
//
// # Decisions
//
// The contamination guard counts and has a bound on time. A message tells how much of each sender its
// own sender had delivered, over FIFO order; who lacks what I have had for longer than the bound is
// refused, and who finds himself so far behind stops. Motive: a number a process is all that FIFO order
// needs to tell one's history. Cost: without a bound on delays a slow process is stopped; and of the
// last messages of a process that was found out, correct processes may have delivered different ones.
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

// Time is the default of Config.Bound, in ticks: it fits broadcasts by two steps
// in the simulator, whose messages take at most 900.
const Time parley.Tick = 5000

// The indications of a guard.
const (
	// Contaminated tells that Origin has omitted what this process delivered: Seq
	// counts its messages delivered so far, and no more of them follow.
	Contaminated = parley.Indication + 0x28
	// Behind tells that this process itself has omitted a message of Origin, and
	// that it has stopped.
	Behind = parley.Indication + 0x29
)

// Config is what all processes know beforehand, and know alike.
type Config struct {
	N int
	// Bound is how much later than one correct process another one delivers a
	// message at most, plus the time that a message is on its way. 0 stands for the
	// constant Time.
	Bound parley.Tick
	// Off lets everything pass: for runs that show what the guard prevents.
	Off bool
}

// The messages. Body: of each process one more than how much of it was delivered, or 0
// if it was found out; then, of data, the payload.
const (
	data parley.Kind = iota + 1
	// tally has no payload. It follows a delivery within a quarter of the bound, if
	// nothing else is broadcast, so that what is true becomes known without traffic.
	tally
)

// New returns the protocol, a layer for the top of a stack.
func New(c Config) parley.Protocol {
	if c.N < 1 || c.N > parley.MaxProcesses || c.Bound < 0 {
		panic(fmt.Sprintf("guard: n = %d, bound %d", c.N, c.Bound))
	}
	c.Bound = cmp.Or(c.Bound, Time)
	return parley.Protocol{
		Name: "guard", Title: "broadcast that keeps out who missed a delivery",
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
	fs.Int64Var((*int64)(&c.Bound), "bound", int64(c.Bound), "how much later one delivers than another, in `ticks`")
	fs.BoolVar(&c.Off, "off", c.Off, "let everything pass, to see what the guard prevents")
	return func(c *Config, _ parley.Naming) error {
		if err := parley.CheckN(c.N, 1); err != nil || c.Bound >= 1 {
			return err
		}
		return parley.FlagErrorf("bound", "%d: at least 1 tick", c.Bound)
	}
}

// process is one process.
type process struct {
	parley.Base
	c       Config
	seen    []origin   // of each process, what was delivered
	refused parley.Set // who has omitted something
	stopped bool
	due     bool // a tally
}

// origin is what a process knows of the messages of another.
type origin struct {
	count  uint64
	recent []parley.Tick // when the last of them were delivered; older ones are older than the bound
	told   []uint64      // how many of them each process says it has delivered
	known  uint64        // how many of them a correct one of the others has delivered
	since  parley.Tick   // since when that is more than count
}

func newProcess(c Config) *process {
	p := &process{c: c, seen: make([]origin, c.N)}
	for i := range p.seen {
		p.seen[i].told = make([]uint64, c.N)
	}
	return p
}

// Request: to broadcast m, broadcast it with what I have delivered. Who has stopped
// broadcasts nothing.
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

// broadcast broadcasts what was delivered, and a payload behind it.
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

// Receive: upon delivery beneath of a message of q, deliver it if what q had
// delivered fits what I have.
func (p *process) Receive(s *parley.Step, q parley.ID, m parley.Msg) {
	if m.Kind >= parley.Local || p.stopped {
		return
	}
	counts, payload, ok := open(m.Body, p.c.N)
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

// omitted tells whether a sender with these counts lacks what it should have: what I
// delivered longer ago than the bound. My own messages count if
// two others have them, for else it may be I who has not sent them; and those of who was found out, by me or by the
// sender, do not: of these one may have delivered more than another.
func (p *process) omitted(s *parley.Step, counts []uint64) bool {
	for id, count := range counts {
		mine := &p.seen[id]
		if count--; p.refused.Has(parley.ID(id)) || count >= mine.count ||
			parley.ID(id) == s.Self && count >= mine.known {
			continue // a count of 0 has become the largest number there is
		}
		lacks := mine.count - count // the oldest of these that it lacks is the first
		if lacks > uint64(len(mine.recent)) || s.Now-mine.recent[len(mine.recent)-int(lacks)] > p.c.Bound {
			return true
		}
	}
	return false
}

// learn takes note of what a sender has delivered. What two others say they have, a
// correct one has, and then so must I in time.
func (p *process) learn(s *parley.Step, q parley.ID, counts []uint64) {
	for id, count := range counts {
		mine := &p.seen[id]
		if q == s.Self || count <= mine.told[q]+1 || p.refused.Has(parley.ID(id)) {
			continue
		}
		mine.told[q] = count - 1
		before := mine.known
		mine.known = max(before, confirmed(mine.told))
		if mine.known > mine.count && before <= mine.count {
			mine.since = s.Now
			s.SetTimer(parley.Timer(id), p.c.Bound+1)
		}
	}
}

// confirmed is the largest number that two have told, or exceeded.
func confirmed(told []uint64) uint64 {
	var first, second uint64
	for _, n := range told {
		first, second = max(first, n), max(second, min(first, n))
	}
	return second
}

// Timeout: if by now I have not delivered what others had, it is I who omitted it,
// and I stop. A later lack has a timer of its own.
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

// deliver delivers and keeps the time, and forgets those that are old.
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

// open reads the counts and the payload of a message.
func open(b []byte, n int) (counts []uint64, payload []byte, ok bool) {
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
		parley.PerProcess(v, "told", o.told, func(_ parley.ID, n *uint64) { parley.Num(v, "count", n) })
		v.Time("since", &o.since)
		parley.Slice(v, "recent", &o.recent, func(_ int, t *parley.Tick) { v.Time("delivered", t) })
	})
}

// shown writes what a sender had delivered: a number a process, - for one that it
// found out.
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
				if counts, payload, ok := open(m.Body, n); ok {
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
