// Package byzantine implements total order broadcast among processes that may lie, and its safety never rests on time.
//
// The problem: reliable broadcast in which any two correct processes deliver messages in the same order. At most m of
// the n processes are faulty, and faulty processes may do anything.
//
// The model: asynchronous messages, links that keep the order of messages and say which process sent them, and
// processes that restart with their state. Messages are oral (unsigned). The bound: n > 3m. Every message of a correct
// process is delivered if messages and clocks are timely from some moment on.
//
// Each process has a lane: a chain of batches of its requests, which it sends to all. The processes decide on one cut
// after another, by one agreement of package tetra for each. The agreements are called slots. A cut names for each
// lane the digest of a batch. It orders all batches of each lane up to the named one: lane by lane, in the order of
// the sources. So the lane of a silent process costs nothing, and a cut takes everything that came in the meantime.
//
// One process owns the current slot, and proposes the last batches that it holds. It remains the owner until a slot is
// decided on nothing, see tenure. The agreement is on the digest of the cut. A process echoes a cut only if it has
// every new batch of the cut from its source, in a chain after the last delivered one. When m+1 processes speak for a
// cut, one of them is correct, so a process that lacks batches then requests them from others. A digest proves that a
// batch is the right one.
//
// Slot k+1 begins at a process when it has delivered slot k. It then takes part in slot k only until a quorum has
// decided slot k. What is delivered follows from the decided cuts alone, so all correct processes deliver the same.
//
// A faulty source may send a batch to the owner and not to others, who then do not echo. To prevent that, a process
// whose batches wait says to all which batches it holds (Tips). A process believes this if m+1 processes say so. If a
// slot fails, the owners for some time propose only those batches of such a lane that 2m+1 processes hold (strict). A
// faulty owner may leave out a lane. So a process does not echo a cut that leaves out a batch that has waited long, if
// 2m+1 processes hold the batch.
//
// Each process keeps the batches and cuts since the checkpoint before the last one. A process that is further behind
// takes over a checkpoint that m+1 processes tell alike. It does not deliver what it missed, and indicates this
// (Skipped).
//
// A process that restarts without its state might contradict what it said before. So it is silent, and asks all
// members to admit it. Each member puts a welcome into its own lane. When the welcomes of m+1 members are delivered,
// the process takes part from the next slot on. At least one of them is correct and gave its welcome after the old
// life of the process had ended, so the old life never spoke in this slot. A welcome is for one numbered admission, so
// it does not count after a later one.
//
// The order does not promise fairness among sources, nor a latency while owners lie. If more than m processes are
// down, nothing is delivered until they are back, and nothing is lost if their disks are intact. If Config.Durable is
// false, a process keeps its state in memory, and at most m processes may restart at the same time.
//
// Source: lanes and cuts are from Giridharan and others, Autobahn: Seamless high speed BFT (SOSP 2024), without its
// signatures.
//
// # Decisions
//
// A process does not echo a cut with a fork of a lane. Motive: a fork is not delivered, so nobody keeps it for a
// process that is behind and must fetch all batches of a decided cut. Cost: none, because a correct owner proposes only
// chains.
//
// A process whose time-out ends in view 0, in which nobody spoke, asks for the next view only if m+1 processes claim to
// hold what waits. Motive: a faulty source could otherwise send a batch to one process only, and depose the owners of
// an idle system. Cost: claims take half of view 0, so if messages take longer, a dead owner costs another time-out.
//
// A process requests a batch from others only if m+1 processes speak for its cut, or say that they hold the batch.
// Motive: a faulty owner could otherwise make up a batch in the name of a correct process, and answer the requests for
// it. Cost: if a source reaches only the owner, the slot fails, and its lane is strict for some time.
//
// A process that is asked for decisions also sends its checkpoints. The process that asks takes over a checkpoint only
// if it remains in its slot for the length of view 0. Motive: one process may have forgotten a decision that another
// process still has, so neither the decision nor a checkpoint has m+1 witnesses otherwise. Cost: while messages are
// slow, a process may skip deliveries that others keep.
//
// Checkpoints need no messages. Motive: when a process delivers a slot, a quorum has taken part in this slot, so m+1
// correct processes have delivered the slot before. Cost: a process that is far behind must wait until m+1 others tell
// the same checkpoint.
package byzantine

import (
	"slices"

	"parley"
	"parley/agreement/tetra"
)

type process struct {
	fetcher
	life uint64 // the name of the life in which it asks to be admitted

	queue   [][]byte  // own requests that are in no batch
	queued  int       // their bytes
	greets  []welcome // welcomes for the next own batch
	looking bool      // the timer to look runs
}

func newProcess(c Config, self parley.ID) *process {
	p := &process{fetcher: fetcher{watch: watch{self: self, ledger: newLedger(c), peers: make(peers, c.N)}}}
	p.cur = newSlot(p, 1, 0)
	return p
}

// Member reports whether this process takes part. A process that restarts without its state must first be admitted.
func (p *process) Member() bool { return p.member }

// Start: a process that restarts delivers again what it has kept. It repeats in the current slot what it said, and asks
// the others to do the same. Without its state it might contradict what it said before, so it asks to be admitted.
func (p *process) Start(s *parley.Step) {
	if !s.Restart {
		p.join(s)
		return
	}
	p.repeat(s)
	for _, r := range s.Log {
		p.logged += len(r.Body)
		p.replay(s, r.Body)
		for p.deliver(s) {
		}
	}
	p.renew()
	if !p.member {
		p.life = s.Life
		s.Indicate(parley.Msg{Kind: Out})
		p.knock(s)
		return
	}
	s.Indicate(parley.Msg{Kind: Admitted})
	for _, b := range p.lanes[p.self].pending() {
		s.SendAll(parley.Msg{Kind: Batch, Body: b.body})
	}
	if p.last != nil && !p.last.closed { // it is closed for a process that was admitted in it
		p.last.run(s, func(in *tetra.Instance) { in.Restart(s) })
	}
	p.cur.run(s, func(in *tetra.Instance) { in.Restart(s) })
	p.ask(s)
	p.progress(s)
}

// replay reads a record. Records come in the order in which they were appended.
func (p *process) replay(s *parley.Step, body []byte) {
	r := parley.Reader{Rest: body}
	kind, number := r.Take(1), r.Number(mostSlot)
	if r.Bad {
		return
	}
	k := p.cur
	if p.last != nil && p.last.number == number {
		k = p.last
	}
	switch {
	case kind[0] == memberRecord:
		p.member = true
	case kind[0] == batchRecord:
		if source, b, ok := readBatch(r.Rest, p.c.N); ok {
			p.lanes[source].add(b)
		}
	case kind[0] == ledgerRecord:
		p.skip(s, number, r.Rest)
	case k.number != number:
	case kind[0] == cutRecord:
		k.cuts = append(k.cuts, newKnown(r.Rest))
	default:
		k.in.Replay(r.Rest)
	}
}

// Request: a request waits until it is in a batch.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	size := len(m.Body) + overhead
	if !p.member || m.Kind != parley.Carried || size > p.c.Batch || p.queued+size > p.c.Queue {
		s.Refuse(s.Self, "no request to broadcast, too large, or too many")
		return
	}
	p.queue = append(p.queue, m.Body)
	p.queued += size
	p.progress(s)
}

// batch sends a batch of own requests, if all its batches are ordered or in the cut of the owner, or enough requests
// wait for another one.
func (p *process) batch(s *parley.Step) bool {
	own := &p.lanes[p.self]
	end := own.tip()
	under := end != own.done && p.cur.mine < end.number
	if !p.member || len(p.queue)+len(p.greets) == 0 || under && p.queued < p.c.Batch || own.size >= p.c.Flight {
		return false
	}
	count, size := 0, 0
	for count < len(p.queue) && size+len(p.queue[count])+overhead <= p.c.Batch {
		size += len(p.queue[count]) + overhead
		count++
	}
	b := newBatch(p.self, own.life, end, p.queue[:count], p.greets)
	p.greets = nil
	clear(p.queue[:count])
	p.queue, p.queued = p.queue[count:], p.queued-size
	p.hold(s, p.self, b)
	s.SendAll(parley.Msg{Kind: Batch, Body: b.body})
	return true
}

// hold holds a batch, durably.
func (p *process) hold(s *parley.Step, source parley.ID, b batch) {
	p.lanes[source].add(b)
	p.append(s, batchRecord, 0, b.body)
	if to := p.cur.owner; p.peers[to].claims(source, p.lanes[source].tip()) {
		p.answerTips(s, to) // the owner may wait for it
	}
}

// Receive handles a message.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local:
		return
	case m.Kind == 0 || m.Kind > Knock || m.Seq > mostSlot || int(m.Origin) >= p.c.N:
		s.Refuse(from, "malformed message")
		return
	case m.Kind <= tetra.Decided:
		p.speak(s, from, m)
	case m.Kind == Batch:
		p.take(s, from, m)
	case m.Kind == Fetch:
		p.answerFetch(s, from, m)
	case m.Kind == Cut:
		p.takeCut(s, from, m)
	case m.Kind == Tips:
		p.takeTips(s, from, m)
	case m.Kind == Ask:
		p.answerAsk(s, from, m.Seq)
	case m.Kind == Answer:
		p.takeAnswer(s, from, m)
	case m.Kind == Snapshot:
		p.takeSnapshot(s, from, m)
	case m.Kind == Knock:
		p.takeKnock(from, m)
	}
	p.progress(s)
}

// take holds a batch that comes from its source, or that was requested.
func (p *process) take(s *parley.Step, from parley.ID, m parley.Msg) {
	source, b, ok := readBatch(m.Body, p.c.N)
	if !ok || len(m.Body) > p.c.longest() || m.Seq != 0 || m.Value != 0 || m.Origin != 0 {
		s.Refuse(from, "batch that cannot be read")
		return
	}
	l := &p.lanes[source]
	switch {
	case b.number <= l.done.number || l.at(b.tip) != nil: // it is here
	case b.life != l.life:
		s.Refuse(from, "batch of another life")
	case p.wanted(source, b.tip) >= 0:
		p.hold(s, source, b)
		p.follow(s, from, source, b)
	case from != source || l.numbered(b.number) || l.size+b.cost() > p.c.most():
		s.Refuse(from, "batch of another process, a second one of its number, or too many")
	default:
		p.hold(s, source, b)
	}
}

// speak handles a message of a slot.
func (p *process) speak(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind == tetra.Proposal && len(m.Body) > 0 {
		if _, ok := readCut(m.Body, p.c.N); !ok {
			s.Refuse(from, "cut that cannot be read")
			return
		}
	}
	if m.Seq == 0 || len(m.Body) > mostBody*(p.c.N+1) {
		s.Refuse(from, "no such slot, or too long")
		return
	}
	if m.Kind != tetra.Wish || m.Value&1 == 0 { // a request to repeat may come earlier
		p.peers[from].at = max(p.peers[from].at, m.Seq)
	}
	now := p.cur.number
	switch {
	case m.Seq == now:
		p.cur.receive(s, from, m)
	case m.Seq > now:
		p.keepEarly(from, m)
	case p.last != nil && m.Seq == p.last.number && !p.last.closed:
		p.last.receive(s, from, m)
		p.last.close()
	case m.Kind == tetra.Decided:
	case m.Seq <= p.dropped:
		p.tell(s, from, m.Seq)
	default:
		s.Send(from, parley.Msg{Kind: tetra.Decided, Seq: m.Seq, Body: p.past[m.Seq-1-p.dropped].value()})
	}
}

// progress does everything that is possible now.
func (p *process) progress(s *parley.Step) {
	for {
		for p.batch(s) {
		}
		p.feed(s)
		p.propose(s)
		p.cur.hold(s)
		p.cur.run(s, func(in *tetra.Instance) { in.Try(s) })
		p.cur.request(s, false)
		if !p.deliver(s) {
			break
		}
		p.last.close()
	}
	if (p.more || p.isBehind()) && p.asked < p.cur.number {
		p.ask(s)
	}
	p.beginTimers(s)
	// The log gets shorter only in a step that delivers and indicates nothing: if the process crashes in a step that
	// does, it does so again when it reads its log.
	if p.due && !slices.ContainsFunc(s.Effects, func(e parley.Effect) bool {
		return e.Op == parley.OpDeliver || e.Op == parley.OpIndicate
	}) {
		p.due, p.logged = false, 0
		s.Compact()
	}
}

// propose: the owner proposes the last batches that it holds, if some of them are not ordered. Before it proposes a
// batch of a strict lane, it asks the others whether they hold it.
func (p *process) propose(s *parley.Step) {
	k := p.cur
	if !p.member || k.owner != p.self || k.in.Spoke() || !p.unordered() {
		return
	}
	c, orders, asks := make(cut, p.c.N), false, false
	for i := range c {
		x := &p.lanes[i]
		c[i] = p.offered(parley.ID(i), k.number)
		orders = orders || c[i] != x.done
		asks = asks || c[i] != x.tip() && !p.peers[p.self].claims(parley.ID(i), x.tip())
	}
	if asks {
		p.sayTips(s)
	}
	if !orders {
		return
	}
	x := newKnown(c.encode())
	k.mine, k.heard[p.self] = c[p.self].number, x
	k.keep(s, x)
	k.run(s, func(in *tetra.Instance) { in.Propose(s, x.digest[:]) })
}

// deliver delivers the current slot if it is decided and nothing is missing. The next slot is then the current one.
func (p *process) deliver(s *parley.Step) bool {
	k := p.cur
	value, decided := k.in.Decision()
	if !decided || len(value) > 0 && !k.Holds(value) {
		return false
	}
	x := find(k.cuts, value)
	c, _ := readCut(x.body, p.c.N)
	if !k.complete(s, p.self, c) {
		return false
	}
	p.judge(k, c == nil, s.Now)
	p.apply(s, c, x)
	if k.decisions() > p.c.M { // it missed messages of this slot, and perhaps of the next one
		p.peers.miss(k.number + 1)
	}
	p.last, p.cur = k, newSlot(p, k.number+1, p.tenure.owner)
	p.last.closed = !p.member // it takes part from the next slot on
	p.renew()
	p.admitted(s)
	p.wants = nil
	if p.check(k.number) {
		p.shorten(2 * p.held())
	}
	return true
}

// Timeout handles the timers.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	switch t {
	case viewTimer:
		p.cur.expire(s)
	case lookTimer:
		p.looking = false
		p.lookAround(s)
	}
	p.progress(s)
}

// lookAround repeats what got no answer. If a batch has waited since the last look, it tells all others which batches
// this process holds.
func (p *process) lookAround(s *parley.Step) {
	if !p.member {
		p.knock(s)
	}
	for _, w := range p.wants {
		p.request(s, p.self, w)
	}
	p.cur.request(s, true)
	if _, decided := p.cur.in.Decision(); decided || p.told || p.isBehind() {
		p.askAgain() // the answers may be lost, or the others have forgotten what is missing
	}
	p.told = false
	p.cur.looks++
	if m, ok := p.peers.common(p.cur.number, p.c.M); ok && p.cur.looks > skipAfter {
		p.adopt(s, m)
	}
	if p.look() && p.member {
		p.sayTips(s)
	}
}

// beginTimers starts the timer of the current slot, if the slot is under way: this process holds a batch that is not
// ordered, or it or m+1 processes have spoken in the slot.
func (p *process) beginTimers(s *parley.Step) {
	k := p.cur
	waits := p.unordered()
	_, skips := p.peers.common(p.cur.number, p.c.M)
	if (waits || len(p.wants) > 0 || p.isBehind() || p.told || skips) && !p.looking {
		p.looking = true
		s.SetTimer(lookTimer, p.wait()/4)
	}
	if _, decided := k.in.Decision(); k.timing || decided || !p.member {
		return
	}
	if waits || k.spoken() {
		k.began = s.Now
		k.Entered(s, k.in.View())
	}
}

// State visits every variable.
func (p *process) State(v *parley.Vars) {
	v.DurableIf(p.c.Durable, func() {
		v.Bool("member", &p.member)
		p.ledger.state(v)
	})
	parley.Num(v, "life", &p.life)
	parley.Slice(v, "queue", &p.queue, func(_ int, b *[]byte) { v.Bytes("request", b) })
	parley.Num(v, "queued", &p.queued)
	parley.Slice(v, "greets", &p.greets, func(_ int, w *welcome) {
		v.ID("process", &w.who)
		w.state(v)
	})
	p.stateSlot(v, "last slot", &p.last)
	p.stateSlot(v, "slot", &p.cur)
	p.peers.state(v)
	parley.Slice(v, "wants", &p.wants, func(_ int, w *want) {
		v.ID("lane", &w.lane)
		w.tip.state(v, "tip")
		parley.Num(v, "size", &w.size)
	})
	parley.Slice(v, "early", &p.early, func(_ int, x *message) {
		v.ID("from", &x.from)
		v.Msg("message", parley.Env{From: x.from, To: p.self}, &x.m)
	})
	parley.Num(v, "asked", &p.asked)
	v.Bool("more", &p.more)
	v.Bool("told", &p.told)
	parley.Num(v, "usual", &p.usual)
	v.Bool("looking", &p.looking)
	parley.Num(v, "logged", &p.logged)
	v.Bool("log can be shortened", &p.due)
}
