// Package byzantine implements total order broadcast among processes that may lie: all correct processes deliver the
// same messages in the same order, whatever m faulty processes do.
//
// The problem: reliable broadcast in which any two correct processes deliver messages in the same order. At most m of
// the n processes are faulty, and n > 3m. Faulty processes may do anything.
//
// The model: rounds on demand, that is, rounds that begin when a process requests them (lockstep.Schedule.OnDemand).
// Messages are oral (unsigned).
//
// The order consists of slots, which are numbered from 1. A slot takes m+1 rounds. In a slot every process may send
// one batch of requests. All processes agree on the digests of these batches: on a vector with one digest for each
// process. To do this, a slot runs n agreements in parallel, one for each process. The algorithm is exponential
// information gathering (package eig). A process with requests opens the next slot. Each other process then adds its
// own requests to this slot. A window limits the total size of a process's batches in flight (see the second decision
// below). Many slots may be in flight at the same time. Their batches are delivered in the order of the slots. Within
// a slot, batches are ordered by process. Within a batch, requests are ordered by arrival.
//
// The requests of one sender are numbered, and all processes deliver them in the order of their numbers. If a request
// in an agreed batch does not have the next number of its sender, no correct process delivers it. The sender then
// proposes the request again.
//
// Suppose that the processes agreed on a digest, but no correct process had the bytes of the batch. Then all processes
// would wait for the batch forever. To prevent this, a process relays the digest of a batch only if it holds the
// batch. In round 0 each process sends its batch, not only the digest. Each other process computes the digest of the
// received bytes, and relays the digest as the value of the batch's sender. If the processes decide on a digest, a
// majority of them relayed it. A majority is more than m processes, so a correct process holds the bytes. A process
// without the bytes requests them from all others, outside the rounds. It waits for the bytes, and never skips the
// batch.
//
// Why it works: The agreements of a slot guarantee interactive consistency, so its vector is the same at all correct
// processes. A digest identifies one batch. So the agreed values alone determine all deliveries. The batch of a
// correct process is in every vector, because the messages of correct processes are in time. If a slot begins at one
// correct process, it begins at all correct processes, and deadlines end its rounds. A process that lacks a batch
// receives it at most two message delays after it has requested it.
//
// A late process counts as faulty. But it continues to run, so it should deliver what all others deliver. For this
// reason, even the sender of a batch decides by the values that the others relay (see [eig.Observed]). Otherwise a
// late sender could deliver a batch that the others do not deliver. If m > 0, every process also sends a mark in every
// slot. A mark is a digest of all values that the process agreed on up to an earlier slot. A process can be out: then
// it delivers nothing until it has rejoined. It goes out in three cases. First, it receives messages from fewer than
// n-m-1 others in a round. Second, its messages reach fewer than n-m-1 others. Third, it learns that n-m others have
// another mark.
//
// A process that has restarted, or that missed the end of a round, cannot join the slots in flight. The times at which
// slots may begin depend on earlier slots, which this process has not seen. So the order is divided into eras, and the
// slots of each era are numbered from 1. A process that is out asks all others to admit it. Each of the others then
// puts a wish, which is a vote for this process, into its batches. The era ends after the slot in which wishes of m+1
// processes for the same process have been delivered. At least one of the m+1 processes is correct. All correct
// processes end the era after the same slot. Agreements on later slots of the era are dropped, and the senders propose
// their batches again.
//
// A process reports that it is ready for the next era in two cases: the current era has ended at this process, or m+1
// others have reported that they are ready. The process begins the next era when 2m+1 processes are ready. At least
// m+1 of these are correct. The first correct process that was ready had no m+1 reports of others to follow, so the
// previous era has ended at this process. So when a process begins an era, at least one correct process knows where
// the previous era ended. All correct processes begin an era within two message delays. To allow for that, rounds are
// one message delay longer in all eras except the first. Each process sends the joining processes a report on the
// previous era: how many requests of each sender had been delivered at its end. A joining process accepts a report
// that it has received from m+1 processes. It takes part in the new era, and delivers, from the first slot on.
//
// If more than m processes are out at the same time, the remaining processes may be too few to agree, or to admit a
// process. For this case, the order can be reset. Each process that is out reports this to the others. When n-m
// processes have reported that they are out, at least m+1 of the reports are true. Then the processes that are out
// report that they are ready for a new era. The number of this era is greater than the number of every era that has
// begun. The other processes follow when m+1 processes are ready. The new era begins when 2m+1 processes are ready. A
// member also goes out if m+1 others ask repeatedly and are not admitted.
//
// After a reset no process knows where the old order ended. So in the first slot of the new era each process sends a
// claim: what it has delivered. If the agreed vector contains the claims of n-m processes, these claims determine the
// position at which the order continues (see reform.go). Otherwise the reset fails, for example because a process was
// too late. The processes then try again. Config.Tries limits the attempts.
//
// Guaranteed with n > 3m, at most m processes faulty at a time, and delays within the schedule: total order,
// agreement, validity, and integrity of correct senders. A process that is out counts as faulty until it indicates
// Restored. It does not deliver the messages that the others delivered while it was out. The field Value of a delivery
// is its position in the order. So a gap between positions shows how many messages the process missed.
//
// If more than m processes were out, the guarantees are weaker. Suppose that all faults were silence or lateness, and
// that n-m correct processes are up and in time again. Then these processes rejoin after tens of rounds. From then on
// all guarantees above hold again. For the time before, only this is guaranteed:
//
//   - Each position has only one payload, with two exceptions. A position may be used again if at most m processes
//
// knew of its first use, or if all processes that knew of its first use have crashed.   - A request to a correct
// process that did not crash is delivered. If at most m of the processes     that take part in a reset had delivered
// the request before the reset, these processes may deliver it twice, at two     positions.   - A process does not
// deliver the messages that it missed.   - The claim of a liar may count. Then positions may jump ahead. Suppose that
// only a liar and one correct process     claim to have delivered a request. Then the request is not delivered again,
// so the other processes miss it.
//
// Three things are not guaranteed. Uniformity has no meaning for liars. Requests of a sender that lies may be
// delivered in another order than it sent them. A request may be lost if it was sent to a liar, or to a process that
// then crashed. In two cases nothing is promised, not even safety: delays are longer than the schedule allows, or more
// than m processes are faulty and one of them lies. Then two correct processes may deliver different messages, and may
// detect this late or never.
//
// Source: the order made of slots with interactive consistency is from Lamport, Time, Clocks and the state machine
// approach, The implementation of reliable distributed multiprocess systems (1978). Agreement is by exponential
// information gathering (package eig).
//
// # Decisions
//
// A process that rejoins begins with a new era. Motive: the membership changes at the same position of the order at
// all correct processes, and faulty processes alone cannot cause a change. Cost: while a process is silent, rounds
// last 1.5 times as long in later eras, because processes begin a slot within two message delays instead of one. A
// process that rejoins does not deliver what it missed.
//
// Each process limits the rate of its requests: a window limits the total size of its batches in flight. The window
// grows while the process is in time. It halves when the process is late, or when its messages arrive late at the
// others. The process also spreads its batches over the duration of a slot. Motive: while a process is silent, rounds
// end by deadlines. If a process submitted more requests than the computers can handle, all processes would be late,
// and the order would be reset. The window does not depend on the duration of slots, because faulty processes can
// influence this duration. Cost: a single sender reaches its full rate only after about a dozen slots. As long as all
// slots end before their deadlines, a process cannot notice that rounds are too short for the load.
//
// A faulty process can make another process store only a bounded number of bytes. The total size of the batches that a
// process may send during the longest possible slot is fixed. Every other process stores at most twice this size from
// each process. Motive: a process must store messages for slots that may still begin, and must not refuse a message of
// a correct process. Cost: the length of a round limits the rate of one sender.
//
// A Byzantine order can be reset. Motive: if more than m processes are out, too few are left to admit a process. Cost:
// after a reset the guarantees are weaker, as described above.
//
// BLAKE2b digests identify batches. Motive: hashing is a large part of the cost of a Byzantine order. On a processor
// without instructions for SHA-256, BLAKE2b takes far less time than SHA-256. Cost: the module needs a library for
// BLAKE2b. On a processor with such instructions, SHA-256 would be faster.
package byzantine

import (
	"parley"
	"parley/lockstep"
	"parley/mux"
)

// The messages on the link in addition to frames. They belong to no round. Frames, Fetch and Bytes have the number of
// the era in their Epoch. The others have no Epoch.
const (
	// Fetch requests a batch. Value: the slot. Origin: the process of the batch. Body: its digest.
	Fetch parley.Kind = lockstep.Frame + 1 + iota
	// Bytes is the answer. Value: the slot. Origin: the process of the batch. Body: the batch.
	Bytes
	// Where reports that the sender is out, and asks which era is running. The answer is Ready. Value: the era for
	// which the sender is ready.
	Where
	// Join asks the others to end an era, so that the sender can take part from the next era on. Value: the era. Seq:
	// the sender's incarnation, that is, the number of this request.
	Join
	// Ready reports that the sender is ready for an era. There are three possible reasons: the sender knows the end
	// of the previous era; n-m processes are out, so the order must be reset; or the sender has learned that a
	// correct process knows one of these facts. Value: the era. Seq: 1 if the sender is out, otherwise 0.
	Ready
	// State tells a joining process what was delivered before an era. Value: the era. Seq: the receiver's
	// incarnation. Body: see encodeState.
	State
)

// The indications.
const (
	// Out reports that the process delivers nothing until it indicates Restored.
	Out parley.Kind = parley.Indication + 0x34 + iota
	// Restored reports that the process takes part again. It delivers everything after position Value. Seq: how many
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
