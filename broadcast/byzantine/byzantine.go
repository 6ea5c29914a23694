// Package byzantine is total order broadcast among processes that may lie: whatever m of them do, all correct
// processes deliver the same messages in the same order.
//
// The problem: reliable broadcast, and two correct processes deliver any two messages in the same order, with
// n > 3m processes of which m may fail in any way.
//
// The model: rounds on demand (lockstep.Schedule.OnDemand), oral messages. The order consists of consecutive
// slots; a slot is m+1 rounds. In a slot every process has at most one batch of requests, and all agree on
// the vector of the digests of the batches: one agreement by exponential information gathering for each
// process, side by side. A process with requests opens the next slot; each other process then adds its own
// requests, as many as its congestion window allows: see pace. Many slots are in flight at a time, and are
// delivered in order; within a slot batches are ordered by process, and requests within a batch by arrival.
// Requests of one sender are numbered, and delivered in this order; a request with another number than the
// next one is left out. A process whose own request is left out proposes it again.
//
// A process holds a batch before it vouches for it. Otherwise processes could agree on a digest although no
// correct process has the bytes. Then some would wait forever, or skip the batch. So in round 0 each
// process sends the batch itself. A lieutenant uses the digest of the received bytes as the source's value,
// so it holds what it relays. If the agreement is on a digest, a majority of the lieutenants claimed to
// have the batch, more than there are liars, so a correct process holds the bytes. A process without the
// bytes requests them from all others and waits: it never skips. That needs no rounds.
//
// Why it works: a slot's vector is the same everywhere by interactive consistency, and a digest identifies
// one batch; so what is delivered is a function of the agreed value. The batch of a correct process is in
// every vector, because its frames are in time. If a slot begins at one correct process, it begins at all,
// and its rounds end by the clock. A process without a batch has it two message delays after its request.
//
// A late process counts as faulty, whatever it delivers; but it continues, so it should deliver what all
// others do. A late source decides as its lieutenants do, see [eig.Observed]. A process that receives from
// fewer than n-m-1 others in a round, or whose frames reach fewer, is cut off, and counts as out: it
// delivers nothing until it has rejoined. And if m > 0, in every slot all send a mark of what they agreed on
// some slots before: a process that learns that n-m others have another mark is out as well.
//
// A process that restarts, or missed the end of a round, cannot join the running slots: when they may begin
// depends on when earlier ones did, which it has not seen. So the order has eras, each with slots from 1. A
// process that is out asks all to admit it; each then puts a wish for it into its batches. The era ends after
// the slot in which wishes for one process by m+1 processes, at least one of them correct, are delivered;
// that slot is the same at all processes. What was agreed on beyond is dropped, and its senders propose it
// again. When an era ends at a process, or when m+1 others have reported that they are ready for the next
// one, the process reports that it is ready, and it begins the next era when 2m+1 are ready. So no process
// begins it before a correct process knows the end, and all begin it within two message delays: in all eras
// but the first, rounds are longer by one delay. Each process sends the end to those that join: how many
// requests were delivered, by sender. What m+1 report identically is true. A process that joins delivers from
// the first slot of the era on, in which it has taken part from the beginning.
//
// If more than m are out at a time, that may fail, because the remaining processes are too few to agree,
// or to admit any. So the order can be reset. A process that is out reports that; when n-m report it, at
// least m+1 of them truthfully, they report that they are ready for a new era, after the last one that
// 2m+1 were ready for. The other processes follow when m+1 have reported that, and the era begins when
// 2m+1 are ready. Members go out as well when m+1 others ask repeatedly to be admitted, without success.
// No process knows the end of what was before: in the first slot each states what it has delivered, and
// the claims that are agreed on determine where the order continues, if they come from n-m processes. See
// reform.go. A reset fails if a ready process is too late, and is tried again, without limit if
// Config.Tries is large enough.
//
// Guaranteed with n > 3m, at most m faulty at a time, and delays within the schedule: total order, agreement,
// validity, and integrity of correct senders. A process that is out counts as faulty until it indicates
// Restored. It does not deliver what was delivered meanwhile; the positions in the order, the Value of a
// delivery, show how much that was.
//
// If more than m were out, but the others were faulty only by silence or lateness, and n-m correct ones
// are up and in time again, these have rejoined after tens of rounds, and all of the above holds from then
// on. About what was before: no position is used for two payloads, unless at most m processes knew of its
// first use, or all that knew of it have crashed. A request to a correct process that did not crash is
// delivered. At most m of the resetting processes, those that had delivered it before, may deliver it
// twice, at two positions; the others deliver nothing of what they missed. A liar may have its claim
// counted, so that positions jump ahead, or so that a request that it and one correct process claim to
// have delivered is not delivered again.
//
// Not guaranteed: uniformity, which has no meaning for liars; the order of one sender's requests if it lies;
// fairness to requests to a liar; requests to a process before its crash. With delays beyond the schedule, or
// more faulty processes one of which lies, nothing is promised, not even safety: that two correct processes
// deliver different messages is then detected later, if at all.
//
// Source: the order by slots of interactive consistency as in Lamport, Time, Clocks and
// the state machine approach, The implementation of reliable distributed multiprocess
// systems (1978); agreement by the article's algorithm.
//
// # Decisions
//
// A Byzantine order has eras. A restarted process cannot join the running slots: when they may begin depends
// on when earlier ones did. It asks to be admitted; the wishes of m+1 processes, delivered in the order
// itself, end the era, and all begin the next one from slot 1 as soon as 2m+1 are ready for it. Motive: one
// place for the change everywhere, which liars alone cannot cause, and no process knows more of the new slots
// than the one that joins. Cost: in later eras, rounds last half as long again while a process is silent,
// because all begin them within two delays and not one; a process delivers nothing of what it missed.
//
// A Byzantine order limits its own rate. The bytes of a process in running slots are at most a window, which
// grows while the process is in time and halves when it is late itself, or too late for the others; and its
// batches are spread over the time that a slot takes. Motive: while a process is silent, rounds end by the
// clock. A process with more requests than processors can handle would be late, with all others, and the
// order would be reset. The duration of slots does not count: liars can influence it. Cost: a single sender
// reaches its full rate only after the time of a dozen slots; where all slots end early nothing shows that
// rounds are too short for the load.
//
// What a liar makes others store is bounded by what correct processes may send. In a Byzantine order a
// process has a bounded number of bytes of batches in flight in the time that a slot may last, by its own
// clock, and others store at most twice as many of it. Motive: frames of slots that may yet begin must be
// stored, and a process may refuse none of a correct one. Cost: a limit on the rate of one sender, which the
// length of a round determines.
//
// A Byzantine order can be reset. When n-m processes report that they are out, they agree in the first slot
// of a new era on what each has delivered, and continue after that. Motive: with more than m out, too few are
// left to admit any. Cost: positions may jump, at most m processes may deliver a payload twice, and what only
// a liar and one correct process had counts as delivered.
//
// BLAKE2b digests identify batches. Motive: hashing is a large part of the cost of a Byzantine order, and
// takes far less time this way where a processor has no instruction for SHA-256. Cost: a library, where other
// protocols use only the standard one; on a processor with that instruction SHA-256 would be faster.
package byzantine

import (
	"parley"
	"parley/lockstep"
	"parley/mux"
)

// The messages on the link in addition to frames. They belong to no round. Frames, Fetch and Bytes have the
// era in their Epoch, the others have none.
const (
	// Fetch requests a batch. Value: the slot. Origin: the process of the batch. Body: its digest.
	Fetch parley.Kind = lockstep.Frame + 1 + iota
	// Bytes is the answer. Value: the slot. Origin: the process of the batch. Body: the batch.
	Bytes
	// Where reports that the sender is out, and asks which era is running; the answer is Ready. Value: the
	// era that the sender is ready for.
	Where
	// Join asks to end an era, to take part from the next one on. Value: the era. Seq: the sender's
	// incarnation, that is, the number of this request.
	Join
	// Ready reports that the sender knows the end of the previous era, that n-m processes are out and the
	// order must be reset, or that a correct process knows one of these. Value: the era. Seq: 1 if the sender
	// is out, otherwise 0.
	Ready
	// State carries to a joining process what was delivered before an era. Value: the era. Seq: the
	// receiver's incarnation. Body: see encodeState.
	State
)

// The indications.
const (
	// Out reports that the process delivers nothing until it is back.
	Out parley.Kind = parley.Indication + 0x34 + iota
	// Restored reports that the process is back: it delivers what comes after position Value. Seq: how many
	// of its own requests it will propose again.
	Restored
)

// The timers. Timer 0 is for the slots of even eras, odd for the slots of odd eras. again repeats requests for
// batches, room opens a slot when there is space or time for it, seek looks for the running
// era, grant repeats wishes for processes that were admitted recently, and hurry looks for the running era at
// once.
const (
	again parley.Timer = 1 + iota
	room
	odd
	seek
	grant
	hurry
)

// answers bounds how often a process requests one batch of a process, and how often it is sent one.
const answers = 3

type process struct {
	c    Config
	self parley.ID
	when lockstep.Schedule
	slot lockstep.Protocol

	queue   [][]byte    // own requests that are not delivered
	sent    int         // number of them in slots of this era
	size    int         // bytes of the others, encoded in a batch
	flight  []batch     // own batches that may be in flight at some process
	said    []part      // own requests in slots that are not delivered
	under   int         // their bytes
	vain    int         // how often own requests had to be proposed again since the last new request or delivery
	waits   bool        // the timer to call again is set
	until   parley.Tick // when it expires
	asking  bool        // the timer to request batches again is set
	numbers []uint64    // by sender: of the last delivered request
	total   uint64      // number of delivered requests

	cur  *era // whose slots are delivered, unless out
	next *era // nil: no process has sent anything in it
	old  *era // the previous era, for processes that request its batches; nil: none
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

// Slots returns the slots of this process, for observers of their progress.
func (p *process) Slots() *mux.Pipeline { return p.cur.line }

// Start: a restarted process does not know which slots have begun.
func (p *process) Start(s *parley.Step) {
	if s.Restart {
		p.cur.line.Deactivate()
		p.leave(s)
	}
}

// Request: a payload joins the queue, and is proposed in the next slot, or when this process is back.
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

// deliver delivers slots, in order, as long as no batch is missing, and ends eras.
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

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	p.behind(s)
	switch {
	case m.Kind >= parley.Local: // an indication of a layer beneath
		return
	case m.Kind == lockstep.Frame:
		e := p.open(s, uint64(s.Epoch))
		if e == nil {
			if !p.keep(from, uint64(s.Epoch), m) {
				s.Refuse(from, "frame of an era that has ended")
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

// fetched handles requests for batches, and answers.
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
	s.Refuse(from, "batch of an era that has ended")
}

// progress follows every event: it delivers what it can, and opens slots for what waits.
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

// Timeout handles the timer of slots, or one of the others.
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
