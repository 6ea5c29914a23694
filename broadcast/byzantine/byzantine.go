// Package byzantine is total order broadcast among processes that may lie: all correct processes deliver the
// same messages in the same order, whatever m faulty processes do.
//
// The problem: reliable broadcast in which any two correct processes deliver any two messages in the same
// order. There are n > 3m processes, and m of them may fail in any way.
//
// The model: rounds on demand (lockstep.Schedule.OnDemand), oral messages. The order consists of consecutive
// slots; a slot is m+1 rounds. In a slot every process has at most one batch of requests, and all agree on
// the vector of the digests of the batches: one agreement by exponential information gathering for each
// process, side by side. A process with requests opens the next slot. Each other process then adds its own
// requests, as many as its congestion window allows: see pace. Many slots are in flight at a time. They are
// delivered in order. Within a slot, batches are ordered by process, and within a batch, requests are ordered
// by arrival. The requests of one sender are numbered, and delivered in the order of their numbers. A request
// with another number than the next one is left out. A process whose own request is left out proposes it
// again.
//
// A process relays the digest of a batch only if it holds the batch. Otherwise processes could agree on a
// digest although no correct process has the bytes. Then some processes would wait forever, or skip the
// batch. So in round 0 each process sends the batch itself. A lieutenant computes the digest of the received
// bytes, and relays it as the source's value. If the decision is a digest, a majority of the lieutenants
// claimed to have the batch. These are more than m, so a correct process holds the bytes. A process without
// the bytes requests them from all others and waits. It never skips the batch. The request needs no rounds.
//
// Why it works: a slot's vector is the same everywhere by interactive consistency, and a digest identifies
// one batch. So the deliveries are a function of the agreed values. The batch of a correct process is in
// every vector, because its frames are in time. If a slot begins at one correct process, it begins at all,
// and its rounds end by the clock. A process that lacks a batch gets it two message delays after its request.
//
// A late process counts as faulty, whatever it delivers. But it continues, so it should deliver what all
// others deliver. A late source decides as its lieutenants do, see [eig.Observed]. A process is out if it
// receives from fewer than n-m-1 others in a round, or if its frames reach fewer than that. A process that is
// out delivers nothing until it has rejoined. If m > 0, all processes send in every slot a mark, a digest of
// what they agreed on some slots before. A process is also out if it learns that n-m others have another
// mark.
//
// A process that restarts, or missed the end of a round, cannot join the running slots: the times at which
// they may begin depend on earlier slots, which it has not seen. So the order has eras (epochs), each with
// slots from 1. A process that is out asks all others to admit it. Each of them then puts a wish for this
// process into its batches. The era ends after the slot that delivers the wishes of m+1 processes for one
// process; at least one of the m+1 is correct. That slot is the same at all processes. Agreements on later
// slots of the era are dropped, and the senders propose their batches again. When an era ends at a process,
// or when m+1 others have reported that they are ready for the next era, the process reports that it is
// ready. It begins the next era when 2m+1 processes are ready. So no process begins the era before a correct
// process knows the end of the last one, and all begin it within two message delays. For this, rounds are one
// delay longer in all eras but the first. Each process sends the end of the last era to the processes that
// join: how many requests were delivered, by sender. An end that m+1 processes report identically is true. A
// process that joins takes part in the era from its first slot, and delivers from that slot on.
//
// If more than m processes are out at a time, this may fail, because too few processes remain to agree, or to
// admit a process. So the order can be reset. A process that is out reports that. When n-m processes report
// it, at least m+1 of them truthfully, they report that they are ready for a new era. Its number is greater
// than that of the last era for which 2m+1 processes were ready. The other processes follow when m+1
// processes have reported that, and the era begins when 2m+1 are ready. If m+1 others ask repeatedly to be
// admitted, without success, a member becomes out as well. No process knows the end of the old order. So in
// the first slot each process states what it has delivered. If the processes agree on the claims of n-m
// processes, these claims determine where the order continues. See reform.go. A reset fails if a ready
// process is too late. It is then tried again, without limit if Config.Tries is large enough.
//
// Guaranteed with n > 3m, at most m faulty at a time, and delays within the schedule: total order, agreement,
// validity, and integrity of correct senders. A process that is out counts as faulty until it indicates
// Restored. It does not deliver what was delivered meanwhile. The field Value of a delivery is its position
// in the order, and shows how much was missed.
//
// Now suppose that more than m processes were out, that all faults were silence or lateness, and that n-m
// correct processes are up and in time again. These have rejoined after tens of rounds, and all of the above
// holds from then on. For the time before, the following holds. A position is used for only one payload,
// except if at most m processes knew of its first use, or all that knew of it have crashed. A request to a
// correct process that did not crash is delivered. At most m of the resetting processes had delivered the
// request before; these may deliver it twice, at two positions. The others do not deliver what they missed.
// The claim of a liar may count. Then positions may jump ahead, or a request that only the liar and one
// correct process claim to have delivered is not delivered again.
//
// Not guaranteed: uniformity, which has no meaning for liars; the order of one sender's requests if it lies;
// fairness to requests to a liar; requests to a process before its crash. With delays beyond the schedule, or
// with more than m faulty processes of which one lies, nothing is promised, not even safety. If two correct
// processes then deliver different messages, this is detected later or never.
//
// Source: the order by slots of interactive consistency as in Lamport, Time, Clocks and
// the state machine approach, The implementation of reliable distributed multiprocess
// systems (1978); agreement by the article's algorithm.
//
// # Decisions
//
// A Byzantine order has eras. A restarted process cannot join the running slots: the times at which they may
// begin depend on earlier slots. So the process asks to be admitted. The wishes of m+1 processes, delivered
// in the order itself, end the era. All begin the next era from slot 1 as soon as 2m+1 are ready for it.
// Motive: the change is at the same place of the order everywhere, liars alone cannot cause it, and the
// process that joins knows as much of the new slots as all others. Cost: in later eras, rounds last 1.5 times
// as long while a process is silent, because processes begin a slot within two delays instead of one. A
// process that rejoins delivers nothing of what it missed.
//
// A Byzantine order limits its own rate. A process has at most a window of bytes in running slots. The window
// grows while the process is in time, and halves when the process is late or its frames arrive late at the
// others. The process spreads its batches over the time that a slot takes. Motive: while a process is silent,
// rounds end by the clock. If a process submitted more requests than the computers can handle, all processes
// would be late, and the order would be reset. The window does not depend on the duration of slots, because
// liars can influence it. Cost: a single sender reaches its full rate only after the time of a dozen slots.
// As long as all slots end early, nothing shows that rounds are too short for the load.
//
// The bytes that a liar makes others store are bounded. In the longest time that a slot may last, by its own
// clock, a process sends batches with a bounded number of bytes. Every other process stores at most twice as
// many bytes from it. Motive: a process must store frames of slots that may still begin, and must not refuse
// a frame of a correct process. Cost: the length of a round limits the rate of one sender.
//
// A Byzantine order can be reset. When n-m processes report that they are out, they agree in the first slot
// of a new era on what each has delivered, and continue after that. Motive: if more than m processes are out,
// too few are left to admit a process. Cost: positions may jump, and at most m processes may deliver a
// payload twice. A payload that only a liar and one correct process had delivered counts as delivered.
//
// BLAKE2b digests identify batches. Motive: hashing is a large part of the cost of a Byzantine order. On a
// processor without an instruction for SHA-256, BLAKE2b takes far less time. Cost: the package needs a
// library outside the standard library, which no other protocol does; and on a processor with that
// instruction SHA-256 would be faster.
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
