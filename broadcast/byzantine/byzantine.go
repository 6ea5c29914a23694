// Package byzantine is total order broadcast where processes may lie: whatever m of
// them do, all correct processes deliver the same messages in the same order.
//
// The problem: reliable broadcast, and two correct processes deliver any two messages
// in the same order, with n > 3m processes of which m may fail in any way.
//
// The model: rounds on call (lockstep.Schedule.OnCall), oral messages. The order is one
// of consecutive slots; a slot is m+1 rounds. In a slot every process has one batch of
// requests, or none, and all agree on the vector of the digests of the batches: one
// agreement by exponential information gathering for each process, side by side. Who
// has requests calls for the next slot; whoever is called puts all it has into it.
// Many slots are on their way at a time, and are delivered in their order; within a slot
// batches go by the names of processes, and requests within a batch as they came.
// Requests of one sender are numbered; a number that was delivered already, or one below
// it, is left out.
//
// Hold before you vouch. A digest can be agreed on of bytes that nobody correct has; then
// some would wait for ever, or skip. So in round 0 each process sends the batch itself,
// and a lieutenant takes for the source's value the digest of the bytes that it received:
// what it relays, it holds. If the agreement is on a digest, a majority of the lieutenants
// said to have it, more than there are liars, so one correct process holds the bytes.
// Who lacks them asks all others and waits: it never skips. That needs no rounds.
//
// Why it works: a slot's vector is the same everywhere by interactive consistency, and a
// digest stands for one batch; so what is delivered is a function of what is agreed on. A
// correct process's batch is in every vector, for its frames are in time. A slot begins
// at all correct processes, if at one, and its rounds end by the clock. One that lacks a
// batch has it two message delays after it asked.
//
// Guaranteed with n > 3m, at most m faulty, and delays within the schedule: total order,
// agreement, validity, and integrity of correct senders. Not guaranteed: uniformity,
// which means nothing of liars; the order of one sender's requests if it lies; fairness
// to what a liar is asked. With delays beyond the schedule, or more faulty processes,
// nothing is promised, not even safety. A process that missed the end of a round delivers
// nothing more, and one that comes back after a crash takes no part: both need a state
// from others, which is not this package's matter.
//
// Source: the order by slots of interactive consistency as in Lamport, Time, Clocks and
// the state machine approach, The implementation of reliable distributed multiprocess
// systems (1978); agreement by the article's algorithm.
package byzantine

import (
	"slices"

	"parley"
	"parley/lockstep"
	"parley/mux"
)

// The messages on the link beside frames. They are in no round.
const (
	// Fetch asks for a batch. Value: the slot. Origin: whose batch. Body: its digest.
	Fetch parley.Kind = lockstep.Frame + 1 + iota
	// Bytes is the answer. Value: the slot. Origin: whose batch. Body: the batch.
	Bytes
)

// The timers beside that of the slots, 0: to ask once more, and to call for a slot when there
// is room for batches again.
const (
	again parley.Timer = 1 + iota
	room
)

// answers is how often one process asks for one batch, and is told it.
const answers = 3

// process is one process.
type process struct {
	c    Config
	self parley.ID
	when lockstep.Schedule
	line *mux.Pipeline

	queue     [][]byte // requests that are in no slot yet
	size      int      // of them in bytes, as in a batch
	sent      uint64   // number of the last request that is in a slot
	flight    []batch  // own batches that may be under way somewhere
	under     int      // their bytes
	waits     bool     // the timer for room is set
	delivered uint64   // the last slot that was delivered
	done      uint64   // the last slot that was agreed on
	stopped   bool     // it waited for a batch beyond all bounds
	asking    bool     // the timer to ask again is set
	numbers   []uint64 // by sender: of the last request that was delivered
	ring      []outcome
}

// batch is an own one in a slot: when that began here, and its bytes.
type batch struct {
	begun parley.Tick
	size  int
}

// outcome is what was agreed on in a slot, and what is still told of it to others.
type outcome struct {
	slot    uint64
	entries []entry // by process
	told    []uint8 // by process: how many batches of the slot it was told
}

// entry is one process's batch in a slot.
type entry struct {
	body    []byte // nil: none, or not here
	lacking []byte // the digest, if it is not here
	asked   uint8  // how often all were asked for it
}

func newProcess(c Config, when lockstep.Schedule, p lockstep.Protocol, self parley.ID) *process {
	m := &process{c: c, self: self, when: when, numbers: make([]uint64, c.N), ring: make([]outcome, 5*c.Window)}
	m.line = mux.NewPipeline(p, when, c.Window, self, m)
	m.line.Bound(2 * (c.Flight + envelope*c.Window))
	return m
}

// keep is for how many slots batches are kept that were delivered. While one process
// asks and waits for another's answer, no more slots than that may begin.
func (p *process) keep() uint64 { return uint64(2 * p.c.Window) }

// Slots are those of this process, for who looks at how far they are.
func (p *process) Slots() *mux.Pipeline { return p.line }

// Start. Who comes back does not know what has begun.
func (p *process) Start(s *parley.Step) {
	if s.Restart {
		p.line.Mute()
		p.stopped = true
	}
}

// Request: a payload joins the queue, and goes with the next slot.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	switch size := len(m.Body) + overhead; {
	case p.stopped:
		s.Refuse(s.Self, "takes no part any more")
		return
	case m.Kind != parley.Carried || size+head > p.c.Batch:
		s.Refuse(s.Self, "no request to broadcast, or too large")
		return
	case p.size+size > p.c.Queue:
		s.Refuse(s.Self, "queue full")
		return
	default:
		p.queue = append(p.queue, m.Body)
		p.size += size
	}
	p.call(s)
}

// call asks for a slot if there is anything to say, and not too much on its way.
func (p *process) call(s *parley.Step) {
	switch {
	case len(p.queue) == 0 || p.line.Opened()-p.line.Done() >= uint64(p.c.Depth):
	case p.free(s) >= head+overhead+len(p.queue[0]):
		p.line.Call(s, 0)
	case !p.waits:
		p.waits = true
		s.SetTimer(room, p.flight[0].begun+p.line.Age()-s.Now)
	}
}

// Fill: a slot begins, whoever called for it; all that waits goes into it, as far as
// there is room in a batch, and among those under way.
func (p *process) Fill(s *parley.Step, _ uint64) (parley.Msg, bool) {
	k, size := 0, head
	for most := min(p.c.Batch, p.free(s)); k < len(p.queue) && size+len(p.queue[k])+overhead <= most; k++ {
		size += len(p.queue[k]) + overhead
	}
	if k == 0 {
		return parley.Msg{}, false
	}
	p.flight = append(p.flight, batch{s.Now, size})
	p.under += size
	m := parley.Msg{Kind: parley.Propose, Body: encode(p.sent+1, p.queue[:k])}
	p.sent += uint64(k)
	p.size -= size - head
	clear(p.queue[:k])
	p.queue = p.queue[k:]
	return m, true
}

// free is how many bytes there is room for. What began longer ago than a slot may last is under
// way nowhere; by the clock, for others may be slower than this process.
func (p *process) free(s *parley.Step) int {
	for len(p.flight) > 0 && s.Now-p.flight[0].begun >= p.line.Age() {
		p.under -= p.flight[0].size
		p.flight = p.flight[1:]
	}
	return p.c.Flight - p.under
}

// Over: a slot is agreed on. What is lacking is asked for at once.
func (p *process) Over(s *parley.Step, slot uint64, decided []parley.Effect) {
	if p.stopped {
		return
	}
	if slot-p.delivered > p.keep() {
		s.Refuse(s.Self, "waited too long for a batch: stops")
		p.stopped = true
		return
	}
	p.done = slot
	o := p.at(slot)
	for i := range decided {
		switch e := &decided[i]; e.Msg.Kind {
		case parley.Carried:
			o.entries[e.To].body = e.Msg.Body
		case parley.Decide:
			o.entries[e.To].lacking = e.Msg.Body
		}
	}
	p.ask(s, o)
	p.deliver(s)
}

// at returns what is known of a slot that is not too old.
func (p *process) at(slot uint64) *outcome {
	o := &p.ring[slot%uint64(len(p.ring))]
	if o.slot != slot {
		if o.entries == nil {
			o.entries, o.told = make([]entry, p.c.N), make([]uint8, p.c.N)
		}
		o.slot = slot
		clear(o.entries)
		clear(o.told)
	}
	return o
}

// ask asks all others for what is lacking of a slot. One who has it has it by now, and
// links lose nothing; that all are asked again, a few times, is for those that may.
func (p *process) ask(s *parley.Step, o *outcome) {
	for i := range o.entries {
		e := &o.entries[i]
		if e.lacking == nil || e.asked == answers {
			continue
		}
		e.asked++
		s.SendAll(parley.Msg{Kind: Fetch, Origin: parley.ID(i), Value: o.slot, Body: e.lacking})
		if !p.asking {
			p.asking = true
			s.SetTimer(again, p.when.Delta)
		}
	}
}

// deliver delivers slots, in order, as long as nothing is lacking.
func (p *process) deliver(s *parley.Step) {
	for p.delivered < p.done {
		o := p.at(p.delivered + 1)
		if slices.ContainsFunc(o.entries, func(e entry) bool { return e.lacking != nil }) {
			return
		}
		for i, e := range o.entries {
			sender := parley.ID(i)
			each(e.body, func(number uint64, request []byte) {
				if number <= p.numbers[i] {
					return // delivered already
				}
				p.numbers[i] = number
				s.Deliver(sender, parley.Msg{Kind: parley.Carried, Origin: sender, Seq: number, Body: request})
			})
		}
		p.delivered++
		if old := p.delivered - min(p.delivered, p.keep()); old > 0 {
			clear(p.at(old).entries)
		}
	}
}

// Receive.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // an indication of a layer beneath
	case m.Kind == lockstep.Frame:
		p.line.Receive(s, from, m)
		p.call(s)
	case m.Seq != 0 || int(m.Origin) >= p.c.N || m.Value == 0 || m.Kind > Bytes:
		s.Refuse(from, "malformed message")
	case m.Kind == Fetch:
		p.answer(s, from, m)
	default:
		p.take(s, from, m)
	}
}

// answer tells a batch to who asks for it, if it is here: of a slot that goes on too,
// for who asks may be ahead.
func (p *process) answer(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Value+p.keep() <= p.delivered || m.Value > p.line.Opened() {
		s.Refuse(from, "asks for a slot that is too old or has not begun")
		return
	}
	o := p.at(m.Value)
	body := o.entries[m.Origin].body
	if r := p.line.Rounds(m.Value); r != nil {
		body = r.(*vouch).held[m.Origin]
	}
	switch {
	case body == nil || string(digest(body)) != string(m.Body): // others have it
	case o.told[from] >= uint8(min(answers*p.c.N, 255)):
		s.Refuse(from, "asks too often")
	default:
		o.told[from]++
		s.Send(from, parley.Msg{Kind: Bytes, Origin: m.Origin, Value: m.Value, Body: body})
	}
}

// take takes in a batch that was asked for.
func (p *process) take(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Value <= p.delivered || m.Value > p.done {
		s.Refuse(from, "batch that is not asked for")
		return
	}
	e := &p.at(m.Value).entries[m.Origin]
	if e.lacking == nil || len(m.Body) > p.c.Batch || string(digest(m.Body)) != string(e.lacking) {
		s.Refuse(from, "batch that is not asked for")
		return
	}
	e.body, e.lacking = m.Body, nil
	p.deliver(s)
}

// Timeout is the slots' timer, or the time to ask again.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	switch t {
	case room:
		p.waits = false
		p.call(s)
		return
	case again:
	default:
		p.line.Timeout(s)
		p.call(s)
		return
	}
	p.asking = false
	for slot := p.delivered + 1; slot <= p.done && !p.stopped; slot++ {
		p.ask(s, p.at(slot))
	}
}

func (p *process) State(v *parley.Vars) {
	parley.Slice(v, "queue", &p.queue, func(_ int, b *[]byte) { v.Bytes("request", b) })
	parley.Num(v, "size", &p.size)
	parley.Num(v, "sent", &p.sent)
	parley.Num(v, "under way", &p.under)
	parley.Slice(v, "flight", &p.flight, func(_ int, b *batch) {
		v.Time("begun", &b.begun)
		parley.Num(v, "bytes", &b.size)
	})
	v.Bool("waits", &p.waits)
	parley.Num(v, "delivered", &p.delivered)
	parley.Num(v, "done", &p.done)
	v.Bool("stopped", &p.stopped)
	v.Bool("asking", &p.asking)
	parley.PerProcess(v, "numbers", p.numbers, func(_ parley.ID, x *uint64) { parley.Num(v, "number", x) })
	v.Machine("slots", p.line)
	if v.Loading() {
		clear(p.ring)
	}
	last := max(p.done, p.line.Opened())
	first := max(p.delivered+1-min(p.delivered, p.keep()), last+1-min(last, uint64(len(p.ring))))
	for slot := first; slot <= last; slot++ {
		p.at(slot).visit(v)
	}
}

func (o *outcome) visit(v *parley.Vars) {
	parley.PerProcess(v, "batch", o.entries, func(_ parley.ID, e *entry) {
		v.Bytes("body", &e.body)
		v.Bytes("lacking", &e.lacking)
		parley.Num(v, "asked", &e.asked)
	})
	parley.PerProcess(v, "told", o.told, func(_ parley.ID, n *uint8) { parley.Num(v, "times", n) })
}
