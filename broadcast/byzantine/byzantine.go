// Package byzantine is total order broadcast where processes may lie: whatever m of
// them do, all correct processes deliver the same messages in the same order.
//
// The problem: reliable broadcast, and two correct processes deliver any two messages
// in the same order, with n > 3m processes of which m may fail in any way.
//
// The model: rounds on call (lockstep.Schedule.OnDemand), oral messages. The order is one
// of consecutive slots; a slot is m+1 rounds. In a slot every process has one batch of
// requests, or none, and all agree on the vector of the digests of the batches: one
// agreement by exponential information gathering for each process, side by side. Who
// has requests calls for the next slot; whoever is called puts into it what it has, as far
// as it may: see pace.
// Many slots are on their way at a time, and are delivered in their order; within a slot
// batches go by the names of processes, and requests within a batch as they came.
// Requests of one sender are numbered, and delivered one after the other; another number than
// the next one is left out. If that befalls its own, a process puts them in once more.
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
// A process that is late counts as faulty, whatever it delivers; but it goes on, so it had better
// deliver what all others do. A source that is late decides as its lieutenants do, see
// [eig.Observed]. A process that hears fewer than n-m-1 others in a round, or is heard by fewer,
// is cut off, and out. And if m > 0, in every slot all tell a mark of what they agreed on some slots
// before: who learns that n-m others have another one is out as well.
//
// Who comes back, after a crash or because it missed the end of a round, cannot join the
// slots that go on: when they may begin goes by when earlier ones did, which it has not
// seen. So the order has eras, each with slots from 1 on. Who is out asks all to let it
// join; each then wishes, in its batches, that the era ends for it. The era ends behind the
// slot in which the wishes of m+1 processes for one are delivered, at least one of them
// correct; that is the same place everywhere. What was agreed on beyond is dropped, and its
// senders put it in again. When an era ends here a process says that it is ready for the
// next one, or when m+1 others have said so, and begins that when 2m+1 are. So nobody
// begins it before one correct process knows the end, and all do within two message delays:
// in eras but the first rounds are longer by one. Each tells those who join the end: how
// many requests were delivered, of whom. What m+1 say alike is true, and who joins delivers
// from the first slot of the era on, in which it has taken part from the beginning.
//
// When more than m are out at a time, that may come to nothing, for those who are in are too few
// to agree, or to let anybody in. So the order can begin anew. Who is out says so; when n-m say
// so, at least m+1 of them truly, they are ready for an era behind all that 2m+1 know of, others
// follow m+1, and it begins when 2m+1 are ready. Those who are in go out as well when m+1 others
// ask in vain. Nobody knows the end of what was before: in the first slot each says what it has
// delivered, and the claims that are agreed on tell where the order goes on, if they are of
// n-m processes. See reform.go. That comes to nothing if one of those who are ready is too late,
// and is tried again, for ever if Config.Tries says so.
//
// Guaranteed with n > 3m, at most m faulty at a time, and delays within the schedule: total
// order, agreement, validity, and integrity of correct senders. Who is out counts as faulty
// until it is told that it is back, by Restored; what was delivered meanwhile it does not
// deliver, and the places in the order, the Value of what is delivered, tell how much that
// was.
//
// When more than m were out, but the others faulty by being silent or late alone, and n-m
// correct ones are up and in time again, they are back after some dozens of rounds, and all of
// the above holds from then on. Of what was before: no place is used for two payloads, unless at
// most m processes knew of it, or all who did have crashed; what was asked of a correct process
// that did not crash is delivered;
// it may be delivered twice, at two places, by the at most m processes of those who began
// anew that had delivered it before; and others deliver nothing of what they missed. A liar
// may have its claim counted, so that places jump ahead, or that what it says it has delivered
// too, like one correct process, is not delivered again.
//
// Not guaranteed: uniformity, which means nothing of liars; the order of one sender's
// requests if it lies; fairness to what a liar is asked; what was asked of a process before
// it crashed. With delays beyond the schedule, or more faulty processes, of which one lies, nothing
// is promised, not even safety: that two correct processes deliver different things then is found
// out later, if at all.
//
// Source: the order by slots of interactive consistency as in Lamport, Time, Clocks and
// the state machine approach, The implementation of reliable distributed multiprocess
// systems (1978); agreement by the article's algorithm.
//
// # Decisions
//
// A Byzantine order has eras. A process that comes back cannot join the slots that go on: when they may
// begin goes by when earlier ones did. It asks to be let in; the wishes of m+1 processes, delivered in
// the order itself, end the era, and all begin the next one from slot 1 as soon as 2m+1 are ready for
// it. Motive: one place for the change everywhere, which liars alone can not bring about, and nobody who
// knows more of the new slots than who comes back. Cost: in later eras, rounds last half as long again
// when somebody is silent, for all begin them within two delays and not one; a process delivers nothing
// of what it missed.
//
// A Byzantine order paces itself. A process has no more bytes in slots that go on than a window, which
// grows while it is in time and halves when it is late itself, or too late for the others; and its
// batches begin one after the other over the time that a slot takes. Motive: while somebody is silent
// rounds end by the clock, and a process that is asked for more than processors can do would be late,
// with all others, and the order begin anew. How long slots take does not count: liars have a say in
// that. Cost: a sender alone reaches its full rate after a dozen slots' time; where all slots end early
// nothing shows that rounds are too short for what is asked.
//
// What a liar makes others keep is bounded by what the correct may send. In a Byzantine order a process
// has so many bytes of batches under way in the time that a slot may last, by its own clock, and others
// keep twice as many of it. Motive: frames of slots that may yet begin must be kept, and a process may
// refuse none of a correct one. Cost: a limit on the rate of one sender, which the length of a round
// decides.
//
// A Byzantine order can begin anew. When n-m processes say that they are out, they agree in the first
// slot of a new era on what each has delivered, and go on behind that. Motive: with more than m out,
// nobody is left who lets anybody in. Cost: places may jump, at most m processes may deliver a payload
// twice, and what only a liar and one correct process had counts as delivered.
//
// Batches are known by BLAKE2b digests. Motive: hashing is a large part of what a Byzantine order costs,
// and takes far less time so where a processor has no instruction for SHA-256. Cost: a library where
// else protocols have the standard one alone; on a processor with that instruction SHA-256 would be
// faster.
package byzantine

import (
	"parley"
	"parley/lockstep"
	"parley/mux"
)

// The messages on the link beside frames. They are in no round. Frames, FETCH and BYTES have
// the era for their Epoch, the others none.
const (
	// Fetch asks for a batch. Value: the slot. Origin: whose batch. Body: its digest.
	Fetch parley.Kind = lockstep.Frame + 1 + iota
	// Bytes is the answer. Value: the slot. Origin: whose batch. Body: the batch.
	Bytes
	// Where says that the sender is out, and asks which era goes on; the answer is Ready.
	// Value: the era that the sender is ready for.
	Where
	// Join asks to end an era, to take part from the next one on. Value: the era. Seq: the
	// number of the sender's life, that is, of this request.
	Join
	// Ready says that the sender knows the end of the era before one, that n-m processes
	// are out and it is to begin anew, or that a correct process knows either. Value: the
	// era. Seq: 1 if the sender is out, and 0 if not.
	Ready
	// State tells who joins what was delivered before an era. Value: the era. Seq: the
	// number of the receiver's life. Body: see encodeState.
	State
)

// What the order indicates beside what it delivers.
const (
	// Out tells that the process delivers nothing more until it is back.
	Out parley.Kind = parley.Indication + 0x34 + iota
	// Restored tells that it is: it delivers what comes behind a position. Value: that. Seq:
	// how many own requests it will put in again.
	Restored
)

// The timers beside that of the slots of even eras, 0: to ask once more, to call for a slot
// when there is room or time for it, that of the slots of odd eras, to look for the era
// that goes on, to wish once more for who was let in lately, and to look at once.
const (
	again parley.Timer = 1 + iota
	room
	odd
	seek
	grant
	hurry
)

// answers is how often one process asks for one batch, and is told it.
const answers = 3

// process is one process.
type process struct {
	c    Config
	self parley.ID
	when lockstep.Schedule
	slot lockstep.Protocol

	queue   [][]byte    // own requests that are not delivered
	sent    int         // so many of them are in slots of this era
	size    int         // bytes of the others, as in a batch
	flight  []batch     // own batches that may be under way somewhere
	said    []part      // own requests in slots that are not delivered
	under   int         // their bytes
	vain    int         // how often own requests had to be put in again since one was asked for, or anything was delivered
	waits   bool        // the timer to call again is set
	until   parley.Tick // to when
	asking  bool        // the timer to ask again is set
	numbers []uint64    // by sender: of the last request that was delivered
	total   uint64      // requests that were delivered

	cur  *era // whose slots are delivered, unless out
	next *era // nil: nobody has said anything in it
	old  *era // that ended last, for who asks for its batches; nil: none
	joining
	pace pace
}

func newProcess(c Config, when lockstep.Schedule, p lockstep.Protocol, self parley.ID) *process {
	m := &process{c: c, self: self, when: when, slot: p, numbers: make([]uint64, c.N), joining: newJoining(c.N),
		pace: newPace(parley.Tick(p.Last+1)*when.Delta, c.Batch),
	}
	m.cur = m.newEra(0)
	return m
}

// Slots are the slots of this process, for whoever looks at how far they are.
func (p *process) Slots() *mux.Pipeline { return p.cur.line }

// Start. Who comes back does not know what has begun.
func (p *process) Start(s *parley.Step) {
	if s.Restart {
		p.cur.line.Deactivate()
		p.leave(s)
	}
}

// Request: a payload joins the queue, and goes with the next slot, or when this process
// is back.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	p.behind(s)
	switch size := len(m.Body) + overhead; {
	case p.out && p.c.Final:
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
		p.vain = 0
	}
	if p.out && p.tries > p.c.Tries {
		p.tries, p.woken = 0, 0
		p.hurry(s, p.when.Delta)
	}
	p.call(s)
}

// deliver delivers slots, in order, as long as nothing is lacking, and ends eras.
func (p *process) deliver(s *parley.Step) {
	for e := p.cur; e.delivered < e.done; e = p.cur {
		o := e.at(e.delivered + 1)
		if !o.whole() {
			return
		}
		wished := false
		for i := range o.entries {
			sender := parley.ID(i)
			wishes, _ := each(o.entries[i].body, func(number uint64, request []byte) {
				p.accept(s, sender, number, request)
			})
			wished = wished || len(wishes) > 0
			eachWish(wishes, func(w wish) { p.vote(sender, w) })
		}
		e.delivered++
		e.trim()
		p.check(s, e.delivered)
		if wished && p.elect() {
			p.end(s)
		}
	}
}

// accept delivers one request, if it is the next one of its sender.
func (p *process) accept(s *parley.Step, sender parley.ID, number uint64, request []byte) {
	if number != p.numbers[sender]+1 {
		return
	}
	if sender == p.self && p.sent > 0 {
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.sent--
	}
	p.numbers[sender] = number
	p.total++
	p.tries, p.woken, p.vain = 0, 0, 0
	s.Deliver(sender, parley.Msg{
		Kind: parley.Carried, Origin: sender, Seq: number, Value: p.total, Body: request,
	})
}

// Receive.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	p.behind(s)
	switch {
	case m.Kind >= parley.Local: // an indication of a layer beneath
		return
	case m.Kind == lockstep.Frame:
		e := p.open(s, uint64(s.Epoch))
		if e == nil {
			if !p.keep(from, uint64(s.Epoch), m) {
				s.Refuse(from, "frame of an era that does not go on")
			}
			return
		}
		mark := s.Mark()
		e.line.Receive(s, from, m)
		e.tag(s, mark)
	case int(m.Origin) >= p.c.N || m.Kind > State:
		s.Refuse(from, "malformed message")
		return
	case m.Kind <= Bytes:
		p.fetched(s, from, m)
	default:
		p.hear(s, from, m)
	}
	p.progress(s)
}

// fetched takes in what is asked and told of batches.
func (p *process) fetched(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Seq != 0 || m.Value == 0 {
		s.Refuse(from, "malformed message")
		return
	}
	for _, e := range [...]*era{p.cur, p.next, p.old} {
		switch {
		case e == nil || e.number != uint64(s.Epoch):
			continue
		case m.Kind == Fetch:
			e.answer(s, from, m)
		default:
			e.take(s, from, m)
		}
		return
	}
	s.Refuse(from, "batch of an era that does not go on")
}

// progress is behind every event: what can be delivered is, and what waits is called for.
func (p *process) progress(s *parley.Step) {
	p.settle(s)
	if !p.out {
		p.deliver(s)
		if p.cur.bad() || p.next != nil && p.next.bad() {
			s.Indicate(parley.Msg{Kind: Out})
			p.leave(s)
		}
	}
	p.call(s)
}

// Timeout is the slots' timer, or one of the others.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	p.behind(s)
	switch t {
	case room:
		p.waits = false
	case grant:
		p.granting = false
	case seek:
		if !p.out || p.tries <= p.c.Tries {
			p.seek(s)
		}
	case hurry:
		if p.hurried = false; !p.running() {
			p.seek(s)
		}
	case again:
		p.asking = false
		p.cur.askAgain(s)
		if p.next != nil {
			p.next.askAgain(s)
		}
	default:
		for _, e := range [...]*era{p.cur, p.next} {
			if e != nil && e.line != nil && e.timer() == t {
				mark := s.Mark()
				e.line.Timeout(s)
				e.tag(s, mark)
			}
		}
	}
	p.progress(s)
}

func (p *process) State(v *parley.Vars) {
	parley.Slice(v, "queue", &p.queue, func(_ int, b *[]byte) { v.Bytes("request", b) })
	parley.Num(v, "sent", &p.sent)
	parley.Num(v, "size", &p.size)
	parley.Num(v, "under way", &p.under)
	parley.Slice(v, "flight", &p.flight, func(_ int, b *batch) {
		v.Time("begun", &b.begun)
		parley.Num(v, "bytes", &b.size)
	})
	parley.Slice(v, "said", &p.said, func(_ int, b *part) {
		parley.Num(v, "slot", &b.slot)
		parley.Num(v, "last", &b.last)
		parley.Num(v, "size", &b.size)
		v.Time("begun", &b.begun)
		v.Bool("held", &b.held)
	})
	parley.Num(v, "in vain", &p.vain)
	v.Bool("waits", &p.waits)
	if p.waits {
		v.Time("until", &p.until)
	}
	v.Bool("asking", &p.asking)
	parley.PerProcess(v, "numbers", p.numbers, func(_ parley.ID, x *uint64) { parley.Num(v, "number", x) })
	parley.Num(v, "total", &p.total)
	p.visit(v, "era", &p.cur)
	p.visit(v, "next era", &p.next)
	p.visit(v, "old era", &p.old)
	p.joining.State(v)
	p.pace.state(v)
}

// visit visits an era, if there is one.
func (p *process) visit(v *parley.Vars, name string, e **era) {
	has, number, other := *e != nil, uint64(0), false
	v.Bool(name, &has)
	if !has {
		*e = nil
		return
	}
	if *e != nil {
		number, other = (*e).number, (*e).other
	}
	parley.Num(v, "number", &number)
	v.Bool("other timer", &other)
	if v.Loading() {
		*e = p.newEra(number)
		(*e).other = other
		(*e).line.Timer((*e).timer())
	}
	v.Machine(name, *e)
}
