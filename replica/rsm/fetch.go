package rsm

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"parley"
)

// A state that is too long for one message is fetched. A joiner whose sponsor says so broadcasts a mark, which
// has one position in the order. On the mark, every replica saves its state for the joiner and sends it the
// hash. The joiner fetches the state whose hash more than half of the other members report, piece by piece,
// from one of those that reported it; if that one does not answer, from the next. It keeps what is delivered
// after the mark, and applies it when the state is complete. It broadcasts requests that it gets in the
// meantime only then, so that it misses no answer.
//
// Over a durable group, the fetched state with the applied later deliveries replaces the log in the step that
// completes it: nothing that depends on the state leaves the process before it is on disk. Otherwise a crash
// of the last process that has the state could lose it, although a majority with intact disks remains.

// The messages of fetching. Seq: the number of the mark.
const (
	mark parley.Kind = pack + 1 + iota // broadcast
	sum                                // on links, like the others below. Body: length and hash of the state, or empty
	want                               // Value: offset from which to send the state
	part                               // Value: offset of the piece. Body: a piece of the state
	done                               // the joiner needs no more
)

// The first byte of what a sponsor gives to the group.
const (
	whole  byte = iota // the state follows
	marked             // the state must be fetched
)

const (
	burst     = 4       // pieces sent for one want
	mostKept  = 2       // joiners for which a replica keeps states
	keptTicks = 20      // multiples of Retry for which a replica keeps an unused state
	patience  = 3       // multiples of Retry after which a joiner gives up a mark
	mostLate  = 1 << 16 // most deliveries after the mark that are kept
)

// retry is the timer of the process.
const retry parley.Timer = 0

// fetch is what a joiner knows of the state that it fetches.
type fetch struct {
	number uint64      // of the mark; 0: not requested yet
	here   bool        // the mark has been delivered
	since  parley.Tick // when it was requested, or the last part arrived
	told   []stateReport
	none   parley.Set // processes that have no state to give
	size   int        // of the state, once enough processes report it
	hash   []byte     // nil until then
	from   parley.ID
	state  []byte         // the prefix received so far
	late   []lateDelivery // delivered after the mark
	bytes  int            // scratch: bytes in late; recomputed when loaded
	held   []parley.Msg   // requests
}

// stateReport is the report of a replica: the size and hash of its state.
type stateReport struct {
	who  parley.ID
	size int
	hash []byte
}

// lateDelivery is a delivery that waits for the state.
type lateDelivery struct {
	from parley.ID
	msg  parley.Msg
}

// fetchOutcome says how a fetch continues.
type fetchOutcome uint8

const (
	goesOn  fetchOutcome = iota
	again                // ask for a later state
	arrived              // the state is complete
	tooLong              // the state is complete, but longer than Longest
)

// ask broadcasts a mark. Held requests stay held.
func (f *fetch) ask(s *parley.Step, number uint64, retries parley.Tick) {
	*f = fetch{number: number, since: s.Now, held: f.held}
	s.Broadcast(parley.Msg{Kind: mark, Seq: f.number})
	s.SetTimer(retry, retries)
}

// hold keeps a request until the state is complete.
func (f *fetch) hold(s *parley.Step, m parley.Msg) {
	if len(f.held) >= Queue {
		s.Refuse(s.Self, "too many requests before the state has come")
		return
	}
	f.held = append(f.held, m)
}

// wait keeps what is delivered after the mark. Earlier deliveries are in the state.
func (f *fetch) wait(s *parley.Step, from parley.ID, m parley.Msg, longest int) fetchOutcome {
	switch {
	case m.Kind == mark && from == s.Self && m.Seq == f.number && !f.here:
		if f.here, f.since = true, s.Now; f.hash != nil && len(f.state) == f.size {
			return arrived
		}
	case m.Kind == mark && from != s.Self:
		lacks(s, from, m)
	case !f.here || m.Kind == mark:
	case len(f.late) >= mostLate || f.bytes+len(m.Body) > longest:
		return again
	default:
		f.late = append(f.late, lateDelivery{from, m})
		f.bytes += len(m.Body)
	}
	return goesOn
}

// fetchRule says which state a joiner fetches.
type fetchRule struct {
	members parley.Set // whose reports count
	quorum  int        // how many must report the same state; 0: more than half of those that have one
	longest int        // bytes
}

// enough reports whether so many reports of others suffice.
func (r fetchRule) enough(alike, others int) bool {
	if r.quorum > 0 {
		return alike >= r.quorum
	}
	return 2*alike > others
}

// sum handles a replica's report of its state; only the first one of each counts. The joiner fetches the state
// that enough of the other members report.
func (f *fetch) sum(s *parley.Step, from parley.ID, body []byte, rule fetchRule) fetchOutcome {
	if f.none.Has(from) || slices.ContainsFunc(f.told, func(t stateReport) bool { return t.who == from }) {
		s.Refuse(from, "a second hash of a state")
		return goesOn
	}
	if len(body) == 0 {
		f.none.Add(from)
	} else {
		size, hash, err := parley.ReadUvarint(body, 1<<40)
		if err != nil || len(hash) != sha256.Size {
			s.Refuse(from, "no hash of a state")
			return goesOn
		}
		f.told = append(f.told, stateReport{from, int(size), hash})
	}
	return f.agreed(s, rule)
}

// agreed looks for a hash that enough of the other members report.
func (f *fetch) agreed(s *parley.Step, rule fetchRule) fetchOutcome {
	if f.hash != nil {
		return goesOn
	}
	others := rule.members.Minus(f.none)
	others.Remove(s.Self)
	here := slices.DeleteFunc(slices.Clone(f.told), func(t stateReport) bool { return !others.Has(t.who) })
	for _, t := range here {
		alike := 0
		for _, o := range here {
			if o.size == t.size && bytes.Equal(o.hash, t.hash) {
				alike++
			}
		}
		if rule.enough(alike, others.Len()) {
			if t.size > rule.longest {
				return tooLong
			}
			f.size, f.hash, f.from, f.since = t.size, t.hash, t.who, s.Now
			f.more(s)
			return goesOn
		}
	}
	return goesOn
}

// seen handles a view during the fetch. The joiner neither waits for excluded processes nor asks them.
func (f *fetch) seen(s *parley.Step, rule fetchRule) fetchOutcome {
	switch {
	case f.number == 0:
		return again
	case f.hash == nil:
		return f.agreed(s, rule)
	case !rule.members.Has(f.from) && len(f.state) < f.size:
		return f.other(s)
	}
	return goesOn
}

// more asks for the next pieces.
func (f *fetch) more(s *parley.Step) {
	s.Send(f.from, parley.Msg{Kind: want, Seq: f.number, Value: uint64(len(f.state))})
}

// take handles a piece if it is the next one.
func (f *fetch) take(s *parley.Step, from parley.ID, m parley.Msg, piece int) fetchOutcome {
	if at := uint64(len(f.state)); f.hash == nil || from != f.from || m.Value != at ||
		len(m.Body) != min(piece, f.size-len(f.state)) {
		s.Refuse(from, "piece that does not follow")
		return goesOn
	}
	f.state, f.since = append(f.state, m.Body...), s.Now
	switch got := len(f.state); {
	case got == f.size && f.here:
		return arrived
	case got < f.size && got/piece%burst == 0:
		f.more(s)
	}
	return goesOn
}

// other continues with another replica that reported the same hash, from the beginning if the complete state
// had the wrong hash. Without such a replica, the joiner must ask for a later state.
func (f *fetch) other(s *parley.Step) fetchOutcome {
	if len(f.state) == f.size {
		f.state = nil
	}
	from := f.from
	f.told = slices.DeleteFunc(f.told, func(t stateReport) bool { return t.who == from })
	for _, t := range f.told {
		if t.size == f.size && bytes.Equal(t.hash, f.hash) {
			f.from, f.since = t.who, s.Now
			f.more(s)
			return goesOn
		}
	}
	return again
}

// remind asks again for what is late.
func (f *fetch) remind(s *parley.Step, retries parley.Tick) fetchOutcome {
	waited := s.Now - f.since
	switch {
	case f.number == 0:
	case waited >= patience*retries && f.hash == nil:
		return again
	case waited >= patience*retries:
		return f.other(s)
	case waited >= retries && f.hash != nil && len(f.state) < f.size:
		f.more(s)
	}
	return goesOn
}

// ask broadcasts a mark, if this process may broadcast.
func (p *process) ask(s *parley.Step) {
	if p.own.in {
		p.marks++
		p.fetch.ask(s, p.own.life<<16|p.marks&0xFFFF, p.c.Retry)
	}
}

// rule says which state this process fetches.
func (p *process) rule() fetchRule { return fetchRule{members: p.members, longest: p.c.Longest} }

// link handles a message on a link.
func (p *process) link(s *parley.Step, from parley.ID, m parley.Msg) {
	f := p.fetch
	switch {
	case m.Kind == want || m.Kind == done:
		p.offers.give(s, from, m, p.c.Piece)
	case f == nil || m.Seq != f.number || m.Kind != sum && m.Kind != part:
		s.Refuse(from, "piece that nobody asked for")
	case m.Kind == sum:
		p.fetches(s, f.sum(s, from, m.Body, p.rule()))
	default:
		p.fetches(s, f.take(s, from, m, p.c.Piece))
	}
}

// fetches acts on the outcome of a step of the fetch.
func (p *process) fetches(s *parley.Step, now fetchOutcome) {
	switch now {
	case again:
		p.ask(s)
	case arrived:
		p.fetched(s)
	case tooLong:
		p.fetch = nil
		p.stop(s, "the state of the others is longer than a copy takes")
	}
}

// fetched takes over the complete state, applies what was delivered after the mark, and broadcasts the held
// requests.
func (p *process) fetched(s *parley.Step) {
	f := p.fetch
	hash := sha256.Sum256(f.state)
	if !bytes.Equal(hash[:], f.hash) {
		s.Refuse(f.from, "pieces of another state than it reported")
		p.fetches(s, f.other(s))
		return
	}
	for _, t := range f.told {
		s.Send(t.who, parley.Msg{Kind: done, Seq: f.number})
	}
	p.fetch = nil
	if !p.replace(f.state) {
		p.stop(s, "the state of the others cannot be read")
		return
	}
	if p.c.Liars > 0 {
		s.Indicate(parley.Msg{Kind: Alike, Origin: s.Self, Seq: p.position})
	}
	for _, x := range f.late {
		p.delivered(s, x.from, x.msg)
	}
	p.resume(s, f)
	if p.c.Durable {
		s.Compact()
	}
}

// resume broadcasts the requests that were held during the fetch.
func (p *process) resume(s *parley.Step, f *fetch) {
	for _, m := range f.held {
		p.Request(s, m)
	}
	p.next(s)
}

// Timeout drops expired offers and asks again for what is late.
func (p *process) Timeout(s *parley.Step, _ parley.Timer) {
	p.offers.expire(s.Now - keptTicks*p.c.Retry)
	if p.fetch != nil {
		p.fetches(s, p.fetch.remind(s, p.c.Retry))
	}
	waits := p.trust.compares != nil && !p.stopped // for reports of others
	if waits {
		p.trust.remind(s, p.members)
	}
	if p.fetch != nil || len(p.offers) > 0 || waits {
		s.SetTimer(retry, p.c.Retry)
	}
}

func (f *fetch) State(v *parley.Vars) {
	parley.Num(v, "number", &f.number)
	v.Bool("here", &f.here)
	v.Time("since", &f.since)
	parley.Slice(v, "reported", &f.told, func(_ int, t *stateReport) {
		v.ID("who", &t.who)
		parley.Num(v, "size", &t.size)
		v.Bytes("hash", &t.hash)
	})
	v.Set("none", &f.none)
	parley.Num(v, "size", &f.size)
	v.Bytes("hash", &f.hash)
	v.ID("from", &f.from)
	v.Bytes("state", &f.state)
	f.bytes = 0
	parley.Slice(v, "late", &f.late, func(_ int, x *lateDelivery) {
		v.ID("from", &x.from)
		v.Msg("delivery", parley.Env{}, &x.msg)
		f.bytes += len(x.msg.Body)
	})
	parley.Slice(v, "held", &f.held, func(_ int, m *parley.Msg) { v.Msg("request", parley.Env{}, m) })
}

// sizeOf returns the length of the state in a report.
func sizeOf(body []byte) uint64 {
	size, _, _ := parley.ReadUvarint(body, 1<<40)
	return size
}
