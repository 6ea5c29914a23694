package rsm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"parley"
)

// A replica above a Byzantine order applies the packs of commands that the order delivers. All correct replicas get
// the same deliveries, and whatever a liar has broadcast, they handle it in the same way. So they have the same state
// at each position. The order makes this replica deterministic, so replicas do not compare their states.
//
// A durable replica appends each delivery to its own log, and sometimes replaces the log by its state. After a
// restart it reads both. Then the order delivers again what it has kept, which this replica has seen already. If the
// next delivery of the order comes after a gap, this replica lacks deliveries. Then it fetches the state of the
// others as package rsm does (see fetch.go): it broadcasts a mark, and takes over the state that m+1 others report
// at the mark. At least one of them is correct.

// OrderedConfig configures replicas above a Byzantine order. It must be identical at all of them.
type OrderedConfig struct {
	// N is the number of processes, and M is how many of them may lie.
	N, M int
	New  func() Application
	// Durable says that a process restarts with its state.
	Durable bool
	// Sessions and Answers limit what replicas remember, as in [Config]. If there is too much, the process that has
	// opened most sessions loses one of them, so a liar takes only its own share.
	Sessions, Answers int
	// Piece is the largest number of bytes of a state in one message, and Longest the largest state that a process
	// fetches. 0 means 256 KiB and 256 MiB.
	Piece, Longest int
	// Retry is the silence, in ticks, after which a process that fetches a state asks again. 0 means 5000.
	Retry parley.Tick
	// Compact is after how many log records the state may replace the log. 0 means 4096. The log is also at least as
	// long as the state, so all that is written is at most about twice the deliveries.
	Compact int
}

// The messages between a replica and the order.
const (
	// From, in the name of the process itself, says that the next delivery is the first one after position Seq.
	From parley.Kind = missing + 1 + iota
	// Live, in the name of the process itself, says that the order accepts broadcasts of this process.
	Live
	// void is a delivery that has a position and nothing else.
	void
)

const (
	recordCost = 64      // bytes of a log record besides its content
	longestLog = 8 << 20 // bytes of a log that is replaced although it has few records
)

// ToOrder returns the payload of a broadcast of a replica, for the order.
func ToOrder(m parley.Msg) []byte {
	return append(binary.AppendUvarint([]byte{byte(m.Kind)}, m.Seq), m.Body...)
}

// OrderedPack is the largest number of commands in a pack for a Byzantine order.
const OrderedPack = 1024

// OrderedMost is by how many bytes a payload of the order may be longer than its pack.
const OrderedMost = 1 + binary.MaxVarintLen64

// FromOrder returns the delivery of a payload at a position of the order. It takes any payload. The result aliases it.
func FromOrder(position uint64, payload []byte) parley.Msg {
	r := parley.Reader{Rest: payload}
	kind := r.Take(1)
	m := parley.Msg{Kind: void, Value: position, Seq: r.Number(math.MaxUint64)}
	if !r.Bad && (parley.Kind(kind[0]) == pack || parley.Kind(kind[0]) == mark) {
		m.Kind, m.Body = parley.Kind(kind[0]), r.Rest
	}
	return m
}

// ordered is a replica above a Byzantine order.
type ordered struct {
	parley.Base
	replica
	oc     OrderedConfig
	at     uint64 // position of the last delivery
	live   bool   // the order accepts broadcasts
	missed bool   // deliveries were missed for good
	// stopped says that the application has panicked. After a restart the replica tries again.
	stopped bool
	serves  bool // as last indicated

	life   uint64
	marks  uint64      // broadcast in this incarnation
	fetch  *fetch      // not nil: this replica fetches a state
	since  parley.Tick // when it chose the process that sends it
	offers offers      // states for others
	marked []lastMark  // by process

	records, logged int // of the log: records, and bytes
	saved           int // bytes of the last state that replaced the log
}

// lastMark says when the last mark of a process was obeyed.
type lastMark struct {
	obeyed bool
	at     parley.Tick
}

// NewOrdered returns a replica above a Byzantine order, as the machine of one process. Its requests are Commands and
// Inspect, and its deliveries Replies and Inspect. It indicates Serving, Parted when it lacks deliveries, Alike when it
// has fetched the state of the others, and Stopped. It panics if the configuration is invalid.
func NewOrdered(c OrderedConfig) parley.Machine {
	c.Piece, c.Longest, c.Retry = cmp.Or(c.Piece, 256<<10), cmp.Or(c.Longest, 256<<20), cmp.Or(c.Retry, 5000)
	c.Sessions, c.Answers = cmp.Or(c.Sessions, 1<<16), cmp.Or(c.Answers, math.MaxInt)
	c.Compact = cmp.Or(c.Compact, 4096)
	if c.N < 1 || c.N > parley.MaxProcesses || c.M < 0 || c.N <= 3*c.M || c.New == nil || c.Piece < 0 || c.Longest < 0 ||
		c.Retry < 0 || c.Sessions < 0 || c.Answers < 0 || c.Compact < 0 {
		panic(fmt.Sprintf("rsm: an ordered replica of n = %d, m = %d: n > 3m is necessary, and no limit below 0", c.N, c.M))
	}
	return &ordered{
		oc: c, marked: make([]lastMark, c.N),
		replica: newReplica(Config{
			N: c.N, New: c.New, Sessions: c.Sessions, Answers: c.Answers, Recover: true, ordered: true,
			Setup: Setup{Active: parley.Everyone(c.N)},
		}),
	}
}

// Start reads the log of a durable replica.
func (p *ordered) Start(s *parley.Step) {
	p.life = s.Life
	for _, r := range s.Log {
		p.records++
		p.logged += len(r.Body) + recordCost
		rest := parley.Reader{Rest: r.Body}
		at, from := rest.Number(math.MaxUint64), rest.ID(p.oc.N)
		if rest.Bad {
			panic(fmt.Sprintf("rsm: process %d does not know its record", s.Self))
		}
		if p.at = at; !p.stopped && len(rest.Rest) > 0 {
			p.pack(s, from, rest.Rest)
		}
	}
}

// Request handles Commands and Inspect.
func (p *ordered) Request(s *parley.Step, m parley.Msg) {
	switch {
	case m.Kind == Inspect:
		told := parley.Msg{Kind: Inspect, Origin: s.Self, Seq: p.position}
		if m.Value == 0 {
			told.Value = p.hash()
		}
		s.Deliver(s.Self, told)
	case m.Kind != Commands || !p.serving():
		s.Refuse(s.Self, "no request of commands, or to a replica that serves none now")
	default:
		if list, ok := readCommands(m.Body); !ok || len(list) > OrderedPack {
			s.Refuse(s.Self, "request with a pack that is none, or too long")
			return
		}
		s.Broadcast(parley.Msg{Kind: pack, Seq: m.Seq, Body: m.Body})
	}
}

func (p *ordered) serving() bool { return p.live && !p.missed && !p.stopped }

// Receive handles a delivery of the order, or a message of another replica.
func (p *ordered) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local:
	case !s.Carried:
		p.link(s, from, m)
	case m.Kind == From:
		p.from(s, m.Seq)
	case m.Kind == Live:
		if p.live = true; p.missed && p.fetch == nil {
			p.ask(s)
		}
	case p.stopped || m.Value <= p.at && !p.missed:
	case p.missed:
		p.late(s, from, m)
	default:
		p.deliver(s, from, m)
	}
	p.indicate(s)
}

// indicate tells when this replica begins or ends to serve.
func (p *ordered) indicate(s *parley.Step) {
	if now := p.serving(); now != p.serves {
		p.serves = now
		told := parley.Msg{Kind: Serving, Origin: s.Self, Seq: p.position}
		if now {
			told.Value = 1
		}
		s.Indicate(told)
	}
}

// from handles that the next delivery is the first one after a position. After a gap, a state that this replica
// was fetching lacks deliveries, too.
func (p *ordered) from(s *parley.Step, position uint64) {
	p.live = false
	if position <= p.at {
		return
	}
	if !p.missed {
		s.Indicate(parley.Msg{Kind: Parted, Origin: s.Self, Seq: p.position})
	}
	p.missed, p.fetch = true, nil
}

// deliver handles the next delivery.
func (p *ordered) deliver(s *parley.Step, from parley.ID, m parley.Msg) {
	var body []byte
	switch m.Kind {
	case pack:
		if replies, ok := p.pack(s, from, m.Body); ok {
			body = m.Body
			if from == s.Self {
				s.Deliver(s.Self, parley.Msg{Kind: Replies, Origin: from, Seq: p.position, Value: m.Seq, Body: replies})
			}
		}
	case mark:
		p.at = m.Value // a state includes the position of its mark
		p.keep(s, from, m)
	default:
		s.Refuse(from, "what is no command")
	}
	if p.stopped {
		return // if it is not in the log, the replica tries again after a restart
	}
	p.at = m.Value
	p.record(s, from, body)
}

// pack applies the commands of a pack. It returns the replies if the pack is from this process, and false if there is
// no pack, or the application has panicked. Then the replica stops where it is.
func (p *ordered) pack(s *parley.Step, from parley.ID, body []byte) (replies []byte, ok bool) {
	list, ok := readCommands(body)
	if !ok || len(list) > OrderedPack {
		s.Refuse(from, "pack that is none, or too long")
		return nil, false
	}
	for _, x := range list {
		if x.client == 0 && x.number == 0 { // the session counts as one of the process that opens it
			x.command = append([]byte{byte(from)}, x.command...)
		}
		r := p.one(x)
		if from == s.Self {
			replies = appendReply(replies, r)
		}
		if p.broke != "" {
			p.stop(s, p.broke)
			return nil, false
		}
	}
	return replies, true
}

// record appends a delivery to the log, and replaces the log when it is long.
func (p *ordered) record(s *parley.Step, from parley.ID, body []byte) {
	if !p.oc.Durable {
		return
	}
	r := binary.AppendUvarint(binary.AppendUvarint(nil, p.at), uint64(from))
	s.Append(append(r, body...))
	p.records++
	p.logged += len(r) + len(body) + recordCost
	if (p.records >= p.oc.Compact || p.logged >= longestLog) && p.logged >= p.saved {
		p.compact(s, len(p.save()))
	}
}

// compact replaces the log by the state, which has so many bytes.
func (p *ordered) compact(s *parley.Step, size int) {
	if p.oc.Durable {
		p.records, p.logged, p.saved = 0, 0, size
		s.Compact()
	}
}

// given returns the state for other replicas.
func (p *ordered) given() []byte { return append(binary.AppendUvarint(nil, p.at), p.save()...) }

// keep handles a mark: it saves the state for the process that has missed deliveries, and sends it the hash. A liar
// could send marks without end, so it ignores a mark that follows the last one too soon.
func (p *ordered) keep(s *parley.Step, to parley.ID, m parley.Msg) {
	if last := p.marked[to]; to == s.Self || last.obeyed && s.Now < last.at+2*p.oc.Retry {
		return
	}
	if p.offers.drop(to); len(p.offers) > p.oc.M {
		return // at least one of m+1 is no liar; the others ask again
	}
	p.marked[to] = lastMark{true, s.Now}
	o := offer{to, m.Seq, p.given(), s.Now}
	p.offers = append(p.offers, o)
	s.Send(to, o.sum())
	s.SetTimer(retry, p.oc.Retry)
}

// ask broadcasts a mark.
func (p *ordered) ask(s *parley.Step) {
	p.marks++
	p.fetch = &fetch{}
	p.fetch.ask(s, p.life<<16|p.marks&0xFFFF, p.oc.Retry)
}

// late keeps what is delivered while this replica fetches a state.
func (p *ordered) late(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case p.fetch != nil:
		p.fetches(s, p.fetch.wait(s, from, m, p.oc.Longest))
	case m.Kind == mark && from != s.Self:
		lacks(s, from, m)
	}
}

// link handles a message of another replica.
func (p *ordered) link(s *parley.Step, from parley.ID, m parley.Msg) {
	f := p.fetch
	switch {
	case m.Kind == want || m.Kind == done:
		p.offers.give(s, from, m, p.oc.Piece)
	case f == nil || m.Seq != f.number || m.Kind != sum && m.Kind != part:
		s.Refuse(from, "piece that nobody asked for")
	case m.Kind == sum:
		chosen := f.hash != nil
		p.fetches(s, f.sum(s, from, m.Body, fetchRule{parley.Everyone(p.oc.N), p.oc.M + 1, p.oc.Longest}))
		if !chosen {
			p.since = s.Now
		}
	default:
		p.fetches(s, f.take(s, from, m, p.oc.Piece))
	}
}

// fetches acts on the outcome of a step of the fetch.
func (p *ordered) fetches(s *parley.Step, now fetchOutcome) {
	switch now {
	case again:
		p.ask(s)
	case arrived:
		p.fetched(s)
	case tooLong:
		p.stop(s, "the state of the others is longer than a replica takes")
	}
}

// stop stops this replica, until a restart.
func (p *ordered) stop(s *parley.Step, why string) {
	p.fetch, p.stopped = nil, true
	s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte(why)})
}

// other fetches the state from another process that has reported it. It keeps nothing of the one before, which may
// have sent pieces of another state.
func (p *ordered) other(s *parley.Step) {
	p.fetch.state, p.since = nil, s.Now
	p.fetches(s, p.fetch.other(s))
}

// fetched takes over the complete state, and applies what was delivered after the mark.
func (p *ordered) fetched(s *parley.Step) {
	f := p.fetch
	if hash := sha256.Sum256(f.state); !bytes.Equal(hash[:], f.hash) {
		s.Refuse(f.from, "pieces of another state than it reported")
		p.other(s)
		return
	}
	for _, t := range f.told {
		s.Send(t.who, parley.Msg{Kind: done, Seq: f.number})
	}
	r := parley.Reader{Rest: f.state}
	at := r.Number(math.MaxUint64)
	if r.Bad || !p.load(r.Rest) {
		p.stop(s, "the state of the others cannot be read")
		return
	}
	p.fetch, p.missed, p.at = nil, false, at
	s.Indicate(parley.Msg{Kind: Alike, Origin: s.Self, Seq: p.position})
	p.compact(s, len(f.state))
	for _, x := range f.late {
		if !p.stopped {
			p.deliver(s, x.from, x.msg)
		}
	}
}

// Timeout drops expired offers, and asks again for what is late. A process that sends a state slowly is replaced: it
// may be a liar.
func (p *ordered) Timeout(s *parley.Step, _ parley.Timer) {
	p.offers.expire(s.Now - keptTicks*p.oc.Retry)
	if f := p.fetch; f != nil {
		most := patience*p.oc.Retry + p.oc.Retry/8*parley.Tick(f.size/p.oc.Piece)
		if f.hash != nil && len(f.state) < f.size && (s.Now-p.since >= most || s.Now-f.since >= patience*p.oc.Retry) {
			p.other(s)
		} else {
			p.fetches(s, f.remind(s, p.oc.Retry))
		}
	}
	if p.fetch != nil || len(p.offers) > 0 {
		s.SetTimer(retry, p.oc.Retry)
	}
	p.indicate(s)
}

// State visits every variable.
func (p *ordered) State(v *parley.Vars) {
	v.DurableIf(p.oc.Durable, func() {
		(&state{of: &p.replica}).State(v)
		parley.Num(v, "at", &p.at)
	})
	v.Bool("live", &p.live)
	v.Bool("missed", &p.missed)
	v.Bool("stopped", &p.stopped)
	v.Bool("serves", &p.serves)
	parley.Num(v, "life", &p.life)
	parley.Num(v, "marks", &p.marks)
	fetching := p.fetch != nil
	if v.Bool("fetching", &fetching); fetching && p.fetch == nil {
		p.fetch = &fetch{}
	} else if !fetching {
		p.fetch = nil
	}
	if p.fetch != nil {
		v.Machine("fetch", p.fetch)
		v.Time("chosen since", &p.since)
	}
	parley.Slice(v, "offers", (*[]offer)(&p.offers), func(_ int, o *offer) { o.visit(v) })
	parley.PerProcess(v, "last mark of", p.marked, func(_ parley.ID, x *lastMark) {
		if v.Bool("obeyed", &x.obeyed); x.obeyed {
			v.Time("at", &x.at)
		}
	})
	parley.Num(v, "records", &p.records)
	parley.Num(v, "logged", &p.logged)
	parley.Num(v, "saved", &p.saved)
}
