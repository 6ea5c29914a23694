// Package cuts: see below.
package cuts

import (
	"slices"

	"parley"
	"parley/agreement/tetra"
)

// The messages. Those of package tetra come first: Seq is the slot, Value the view and the phase, see slot.run. Body is a cut
// in PROPOSE, a report in ENTER, and otherwise the digest of a cut.
const (
	// Batch carries a batch, in Body.
	Batch parley.Kind = tetra.Decided + 1 + iota
	// Fetch requests batches of lane Origin: the batch of number Seq with the digest in Body, and those before it down to
	// number Value. Seq 0 requests the cut with the digest in Body, for slot Value.
	Fetch
	// Cut carries a cut of slot Seq, in Body.
	Cut
	// Tips says which batches its sender holds, in Body: a cut. It is sent if a batch waits for long.
	Tips
	// Ask requests the decisions of slots from Seq on, and the receiver's own batches that are not ordered.
	Ask
	// Answer carries the decisions of slots from Seq on: each cut with its length.
	Answer
	// Snapshot answers Ask for slots that the sender has forgotten: the checkpoint after slot Seq, in Body.
	Snapshot
	// Knock asks to be admitted in life Value. Its sender restarted without its state.
	Knock
)

// The indications.
const (
	// Out indicates that this process takes no part until it indicates Admitted.
	Out parley.Kind = parley.Indication + 0x38 + iota
	// Admitted indicates that this process takes part again.
	Admitted
	// Skipped indicates that the next delivery is the one after position Seq. The process missed the deliveries before it,
	// and the others do not keep them.
	Skipped
)

// The timers.
const (
	viewTimer parley.Timer = 1 + iota
	lookTimer              // looks for what waits for long, see look
)

// The types of log records.
const (
	batchRecord  = 1 + iota
	cutRecord    // a cut with its slot
	slotRecord   // a record of an agreement with its slot
	ledgerRecord // a checkpoint that was adopted, with its slot
	memberRecord // this process takes part: it is no longer joining
)

const (
	doublings    = 20      // views after which views no longer get longer
	burst        = 1 << 20 // bytes of batches that answer one Fetch
	mostAnswers  = 64      // decisions in one Answer
	mostSlot     = 1 << 40 // no slot has a greater number
	earlyPerPeer = 64      // messages of the next slot that are kept from each process
	overhead     = 5       // bytes of a request in a batch in addition to its own
	headBytes    = 64      // bytes of a batch before the first request
)

type process struct {
	c      Config
	self   parley.ID
	member bool   // takes part; a process that restarts without its state must first be admitted
	life   uint64 // in which it asks to be admitted

	queue  [][]byte // own requests that are in no batch
	queued int      // their bytes
	lanes  []lane
	total  uint64 // requests delivered

	tenure   tenure
	welcomes []votes      // by process
	checks   []checkpoint // the last two
	fresh    int          // bytes delivered since the last one
	dropped  uint64       // slots that are forgotten
	due      bool         // the log can be shortened
	past     []known      // the decided cuts of the slots after these
	last     *slot        // the slot before the current one, for processes that have not decided it; nil: none
	cur      *slot
	early    []message // messages of the next slot

	at        []uint64     // by process: the greatest slot in which it has spoken
	lost      uint64       // the greatest slot of which a message was not kept
	asked     uint64       // slots up to this one were asked for
	more      bool         // somebody knows decisions of later slots
	answers   []answer     // by process: its last Answer
	snapshots []parley.Msg // by process: its last Snapshot
	greeted   []uint64     // by process: the last life that this process welcomed
	greets    []welcome    // welcomes for the next own batch
	wants     []want
	usual     parley.Tick // the smoothed duration of a slot
	watch
}

// message is a message that waits for its slot.
type message struct {
	from parley.ID
	m    parley.Msg
}

// answer is the decisions of consecutive slots.
type answer struct {
	first uint64
	cuts  [][]byte
}

// want is a batch, or a cut if its number is 0, that was requested from others.
type want struct {
	lane parley.ID
	tip  tip
	size int // bytes of answers since the request
}

func newProcess(c Config, self parley.ID) *process {
	p := &process{c: c, self: self, lanes: make([]lane, c.N), at: make([]uint64, c.N), answers: make([]answer, c.N),
		snapshots: make([]parley.Msg, c.N), greeted: make([]uint64, c.N), welcomes: make([]votes, c.N),
		tenure: tenure{fails: make([]uint8, c.N)}, watch: newWatch(c.N)}
	p.cur = p.newSlot(1, 0)
	return p
}

// Start: a process that restarts repeats in the current slot what it said, and asks the others to do the same. Without its
// state it might contradict what it said before, so it asks to be admitted.
func (p *process) Start(s *parley.Step) {
	if !s.Restart {
		p.join(s)
		return
	}
	for _, r := range s.Log {
		p.replay(s, r.Body)
		for p.deliver(s) {
		}
	}
	if p.asked = p.cur.number + mostAnswers; !p.member {
		p.life = s.Life
		s.Indicate(parley.Msg{Kind: Out})
		s.Indicate(parley.Msg{Kind: Skipped, Seq: p.total})
		p.knock(s)
		return
	}
	for _, b := range p.lanes[p.self].pending() {
		s.SendAll(parley.Msg{Kind: Batch, Body: b.body})
	}
	if p.last != nil {
		p.last.run(s, func(in *tetra.Instance) { in.Restart(s) })
	}
	p.cur.run(s, func(in *tetra.Instance) { in.Restart(s) })
	s.SendAll(parley.Msg{Kind: Ask, Seq: p.cur.number})
	p.progress(s)
}

// join makes this process a member.
func (p *process) join(s *parley.Step) {
	p.member = true
	if p.c.Durable {
		s.Append([]byte{memberRecord})
	}
}

// knock asks to be admitted, and for what the others have decided. It repeats this until it is admitted.
func (p *process) knock(s *parley.Step) {
	s.SendAll(parley.Msg{Kind: Knock, Value: p.life})
	s.SendAll(parley.Msg{Kind: Ask, Seq: p.cur.number})
	p.asked = p.cur.number + mostAnswers - 1
	p.looking = true
	s.SetTimer(lookTimer, p.wait())
}

// replay reads a record. Records come in the order in which they were appended.
func (p *process) replay(s *parley.Step, body []byte) {
	r := parley.Reader{Rest: body}
	kind := r.Take(1)
	if r.Bad {
		return
	}
	switch kind[0] {
	case memberRecord:
		p.member = true
		return
	case batchRecord:
		if source, b, ok := readBatch(r.Rest, p.c.N); ok {
			p.lanes[source].add(b)
		}
		return
	}
	number := r.Number(mostSlot)
	if kind[0] == ledgerRecord {
		p.adopt(s, number, r.Rest)
		return
	}
	k := p.cur
	if p.last != nil && p.last.number == number {
		k = p.last
	}
	switch {
	case r.Bad || k.number != number:
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

// batch sends a batch of own requests, if all its batches are ordered or in the cut of the owner, or enough requests wait for
// another one.
func (p *process) batch(s *parley.Step) bool {
	own := &p.lanes[p.self]
	end := own.tip()
	if !p.member || len(p.queue)+len(p.greets) == 0 || end != own.done && p.cur.mine < end.number && p.queued < p.c.Batch ||
		own.size >= p.c.Flight {
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
	if p.c.Durable {
		s.Append(append([]byte{batchRecord}, b.body...))
	}
	if p.strict[source] >= p.cur.number {
		p.tellTips(s)
	}
}

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
		p.answerAsk(s, from, m)
	case m.Kind == Answer:
		p.takeAnswer(s, from, m)
	case m.Kind == Snapshot:
		p.takeSnapshot(s, from, m)
	case m.Kind == Knock:
		p.takeKnock(s, from, m)
	}
	p.progress(s)
}

// take holds a batch that comes from its source, or that was requested.
func (p *process) take(s *parley.Step, from parley.ID, m parley.Msg) {
	source, b, ok := readBatch(m.Body, p.c.N)
	if !ok || len(m.Body) > p.c.Batch+headBytes || m.Seq != 0 || m.Value != 0 || m.Origin != 0 {
		s.Refuse(from, "batch that cannot be read")
		return
	}
	l := &p.lanes[source]
	at := slices.IndexFunc(p.wants, func(w want) bool { return w.lane == source && w.tip == b.tip })
	switch {
	case b.number <= l.done.number || l.at(b.tip) != nil:
		return // it is here
	case at >= 0:
		p.wants[at].size += len(b.body)
		before := tip{b.number - 1, b.before}
		p.hold(s, source, b)
		p.follow(s, from, at, before)
	case b.life != l.life || from != source || l.numbered(b.number) || l.size+len(b.body) > 2*p.c.Flight:
		s.Refuse(from, "batch of another process, of another life, a second one of its number, or too many")
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
	if m.Seq == 0 {
		s.Refuse(from, "no such slot")
		return
	}
	if m.Kind != tetra.Wish || m.Value&1 == 0 { // a request to repeat may come before the slot begins at its sender
		p.at[from] = max(p.at[from], m.Seq)
	}
	now := p.cur.number
	switch {
	case m.Seq == now:
		p.cur.receive(s, from, m)
	case m.Seq == now+1:
		if !p.keepEarly(from, m) {
			p.lost = max(p.lost, m.Seq)
		}
	case m.Seq > now:
		p.lost = max(p.lost, m.Seq)
	case p.last != nil && m.Seq == p.last.number && !p.last.closed:
		p.last.receive(s, from, m)
		p.close()
	case m.Kind == tetra.Decided:
	case m.Seq <= p.dropped:
		p.answerAsk(s, from, m)
	default:
		s.Send(from, parley.Msg{Kind: tetra.Decided, Seq: m.Seq, Body: p.past[m.Seq-1-p.dropped].value()})
	}
}

// keepEarly keeps a message for its slot, if there is room for it.
func (p *process) keepEarly(from parley.ID, m parley.Msg) bool {
	count := 0
	for _, x := range p.early {
		if x.from == from {
			if count++; x.m.Equal(m) {
				return true
			}
		}
	}
	if count >= earlyPerPeer {
		return false
	}
	p.early = append(p.early, message{from, m})
	return true
}

// close ends the part of this process in the last slot, when a quorum has decided the slot: m+1 correct processes know the
// decision, and tell it to every process that asks.
func (p *process) close() {
	if p.last == nil || p.last.closed {
		return
	}
	beyond := 0
	for q := range p.at {
		if p.at[q] > p.last.number || parley.ID(q) == p.self || p.last.in.Knows(parley.ID(q)) {
			beyond++
		}
	}
	p.last.closed = 2*beyond > p.c.N+p.c.M
}

// progress does everything that is possible now.
func (p *process) progress(s *parley.Step) {
	before := p.total
	for {
		for p.batch(s) {
		}
		if p.lost >= p.cur.number && !p.cur.asked {
			p.cur.asked = true
			p.cur.run(s, func(in *tetra.Instance) { in.Ask(s) })
		}
		p.feed(s)
		p.propose(s)
		p.cur.hold(s)
		p.cur.run(s, func(in *tetra.Instance) { in.Try(s) })
		p.requestCuts(s)
		if !p.deliver(s) {
			break
		}
		p.close()
	}
	p.catchUp(s)
	p.beginTimers(s)
	p.compact(s, before)
}

// feed handles the messages that came before their slot was the current one. A decision in an Answer is a DECIDED of its
// sender.
func (p *process) feed(s *parley.Step) {
	early := p.early
	p.early = nil
	for _, x := range early {
		switch {
		case x.m.Seq == p.cur.number:
			p.cur.receive(s, x.from, x.m)
		case x.m.Seq > p.cur.number:
			p.early = append(p.early, x)
		}
	}
	for q := range p.answers {
		a := &p.answers[q]
		if i := p.cur.number - a.first; a.first <= p.cur.number && i < uint64(len(a.cuts)) && p.cur.told.Add(parley.ID(q)) {
			m := parley.Msg{Kind: tetra.Decided, Seq: p.cur.number}
			if len(a.cuts[i]) > 0 {
				m.Body = p.cur.hear(parley.ID(q), a.cuts[i])
			}
			p.cur.receive(s, parley.ID(q), m)
		}
	}
}

// requestCuts requests the cuts that others speak for and that this process has not heard.
func (p *process) requestCuts(s *parley.Step) {
	for _, v := range p.cur.in.Wanted() {
		if p.cur.find(p.cur.heard, v) == nil {
			w := want{}
			copy(w.tip.digest[:], v)
			p.fetch(s, p.self, w)
		}
	}
}

// propose: the owner proposes its tips, if some lane has a batch after done.
func (p *process) propose(s *parley.Step) {
	if !p.member || p.cur.owner != p.self || p.cur.in.Spoke() || !p.unordered() {
		return
	}
	c := make(cut, p.c.N)
	for i := range p.lanes {
		c[i] = p.offered(parley.ID(i))
	}
	body := c.encode()
	k := newKnown(body)
	p.cur.mine = c[p.self].number
	p.cur.keep(s, k)
	p.cur.run(s, func(in *tetra.Instance) { in.Propose(s, k.digest[:]) })
}

// unordered reports whether this process holds a batch that is not ordered.
func (p *process) unordered() bool {
	return slices.ContainsFunc(p.lanes, func(l lane) bool { return l.tip() != l.done })
}

// deliver delivers the current slot if it is decided and nothing is missing. The next slot is then the current one. Each lane
// whose tip in the cut leads to done is delivered up to the tip, in the order of the sources. The other lanes are left out: an
// old tip, or a fork. All processes find the same, because they have the same done, and have fetched everything.
func (p *process) deliver(s *parley.Step) bool {
	value, decided := p.cur.in.Decision()
	if !decided || len(value) > 0 && !p.cur.Holds(value) {
		return false
	}
	body := p.cur.find(p.cur.cuts, value)
	c, _ := readCut(body, p.c.N)
	if !p.complete(s, p.self, c, true) {
		return false
	}
	for i, t := range c {
		l := &p.lanes[i]
		if _, leads := l.follow(t); leads && t != l.done {
			l.advance(t, func(b *batch) { p.deliverBatch(s, parley.ID(i), b) })
		}
	}
	p.judge(s, len(body) == 0)
	p.past = append(p.past, newKnown(body))
	p.tenure.decided(len(body) == 0, p.c.Tenure, p.c.M)
	joining := !p.member
	p.admit(s)
	p.last, p.cur = p.cur, p.newSlot(p.cur.number+1, p.tenure.owner)
	p.last.closed = joining // it takes part from the next slot on
	p.wants = nil
	p.check()
	return true
}

func (p *process) deliverBatch(s *parley.Step, source parley.ID, b *batch) {
	p.fresh += len(b.body)
	_, _, r := batchHead(b.body, p.c.N)
	b.visit(r, p.c.N, func(request []byte) {
		p.total++
		l := &p.lanes[source]
		l.requests++
		s.Deliver(source, parley.Msg{Kind: parley.Carried, Origin: source, Seq: l.requests, Value: p.total, Body: request})
	}, func(w welcome) { p.tally(source, w) })
}

// Timeout handles the timers.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	switch t {
	case viewTimer:
		p.expire(s)
	case lookTimer:
		p.look(s)
	}
	p.progress(s)
}

// State visits every variable.
func (p *process) State(v *parley.Vars) {
	v.DurableIf(p.c.Durable, func() { v.Bool("member", &p.member) })
	parley.Num(v, "life", &p.life)
	v.Bool("due", &p.due)
	parley.Slice(v, "queue", &p.queue, func(_ int, b *[]byte) { v.Bytes("request", b) })
	parley.Num(v, "queued", &p.queued)
	v.DurableIf(p.c.Durable, func() {
		parley.PerProcess(v, "lane", p.lanes, func(_ parley.ID, l *lane) { l.state(v, p.c.N) })
		parley.Num(v, "delivered", &p.total)
		p.tenure.state(v)
		p.stateChecks(v)
		parley.Slice(v, "past", &p.past, func(_ int, c *known) { c.state(v) })
	})
	p.stateSlot(v, "last slot", &p.last)
	p.stateSlot(v, "slot", &p.cur)
	parley.Slice(v, "early", &p.early, func(_ int, x *message) {
		v.ID("from", &x.from)
		v.Msg("message", parley.Env{From: x.from, To: p.self}, &x.m)
	})
	parley.PerProcess(v, "spoke in slot", p.at, func(_ parley.ID, x *uint64) { parley.Num(v, "slot", x) })
	parley.Num(v, "lost", &p.lost)
	parley.Num(v, "asked", &p.asked)
	parley.PerProcess(v, "answer of", p.answers, func(_ parley.ID, a *answer) {
		parley.Num(v, "first", &a.first)
		parley.Slice(v, "cuts", &a.cuts, func(_ int, b *[]byte) { v.Bytes("cut", b) })
	})
	parley.PerProcess(v, "snapshot of", p.snapshots, func(id parley.ID, m *parley.Msg) {
		parley.Num(v, "slot", &m.Seq)
		v.Bytes("checkpoint", &m.Body)
		parley.Num(v, "last welcome", &p.greeted[id])
	})
	parley.Slice(v, "greets", &p.greets, func(_ int, w *welcome) {
		v.ID("process", &w.who)
		parley.Num(v, "life", &w.life)
	})
	parley.Slice(v, "wants", &p.wants, func(_ int, w *want) {
		v.ID("lane", &w.lane)
		w.tip.state(v, "tip")
		parley.Num(v, "size", &w.size)
	})
	v.Bool("more", &p.more)
	parley.Num(v, "usual", &p.usual)
	p.watch.state(v)
}

// stateSlot visits a slot. Only its durable part survives a crash.
func (p *process) stateSlot(v *parley.Vars, name string, k **slot) {
	if v.Skips() && !p.c.Durable {
		return
	}
	has, number, owner := *k != nil, uint64(0), parley.ID(0)
	if has {
		number, owner = (*k).number, (*k).owner
	}
	v.DurableIf(p.c.Durable, func() {
		if v.Bool(name, &has); has {
			parley.Num(v, "number", &number)
			v.ID("owner", &owner)
		}
	})
	switch {
	case !has:
		*k = nil
		return
	case v.Loading():
		*k = p.newSlot(number, owner)
	}
	(*k).state(v)
}
