package rsm

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"parley"
)

// A state that is too long for one message is fetched. A joiner whose sponsor says so
// broadcasts a mark. Upon the mark, which has one place in the order, every copy takes its
// state, keeps it for the joiner and tells it the hash. The joiner fetches what more than
// half of the others tell, piece by piece, from any who told it, one after the other where
// one does not answer; it keeps what is delivered behind the mark and applies it then. What
// it is asked meanwhile it broadcasts when it has the state, so that no answer is missed.
//
// Over a durable group the state that came, with what was applied behind it, replaces the log
// in the step in which it is there: nothing that depends on it leaves the process before it is
// on the disk. Otherwise the last of the others could go with it, though a majority with
// whole disks remains.

// The messages of fetching. Seq: the number of the mark.
const (
	mark parley.Kind = pack + 1 + iota // broadcast
	sum                                // on links, as the rest. Body: the length of the state, and its hash; or none
	want                               // Value: from where on the state is to be sent
	part                               // Value: where it belongs. Body: a piece of the state
	done                               // the joiner needs no more
)

// What a sponsor gives to the group begins with one of these.
const (
	whole  byte = iota // the state follows
	marked             // the state is to be fetched
)

const (
	burst     = 4       // pieces that are sent for one want
	mostKept  = 2       // joiners that a copy keeps states for
	keptTicks = 20      // for how many times Retry it keeps one that is not asked for
	patience  = 3       // times Retry until a joiner gives up a mark
	mostLate  = 1 << 16 // deliveries behind the mark that are kept, at most
)

// retry is the timer.
const retry parley.Timer = 0

// fetch is what a joiner knows of the state that it is to have.
type fetch struct {
	number uint64      // of the mark, 0: not asked for yet
	here   bool        // the mark has been delivered
	since  parley.Tick // it was asked for, or something of it came
	told   []told
	none   parley.Set // who has no state to give
	size   int        // of the state, once enough have told it
	hash   []byte     // nil before
	from   parley.ID
	state  []byte       // as far as it has come
	late   []late       // what was delivered behind the mark
	bytes  int          // scratch: in there; counted again when loaded
	held   []parley.Msg // requests
}

// told is the hash that a copy has sent.
type told struct {
	who  parley.ID
	size int
	hash []byte
}

// late is a delivery that waits.
type late struct {
	from parley.ID
	msg  parley.Msg
}

// outcome is what is to become of a fetch.
type outcome uint8

const (
	goesOn  outcome = iota
	again           // a state of later is to be asked for
	arrived         // the state has come
	tooLong         // and more than a copy takes
)

// ask broadcasts a mark. Requests wait on.
func (f *fetch) ask(s *parley.Step, number uint64, retries parley.Tick) {
	*f = fetch{number: number, since: s.Now, held: f.held}
	s.Broadcast(parley.Msg{Kind: mark, Seq: f.number})
	s.SetTimer(retry, retries)
}

// hold keeps a request for when the state is there.
func (f *fetch) hold(s *parley.Step, m parley.Msg) {
	if len(f.held) >= Queue {
		s.Refuse(s.Self, "too many requests before the state has come")
		return
	}
	f.held = append(f.held, m)
}

// wait keeps what is delivered behind the mark. What came before it is in the state.
func (f *fetch) wait(s *parley.Step, from parley.ID, m parley.Msg, longest int) outcome {
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
		f.late = append(f.late, late{from, m})
		f.bytes += len(m.Body)
	}
	return goesOn
}

// sum: upon the hash of somebody's state, the first of each. What more than half of the
// others in the view tell is fetched.
func (f *fetch) sum(s *parley.Step, from parley.ID, body []byte, members parley.Set, longest int) outcome {
	if f.none.Has(from) || slices.ContainsFunc(f.told, func(t told) bool { return t.who == from }) {
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
		f.told = append(f.told, told{from, int(size), hash})
	}
	return f.agreed(s, members, longest)
}

// agreed looks whether more than half of the other members tell one hash.
func (f *fetch) agreed(s *parley.Step, members parley.Set, longest int) outcome {
	if f.hash != nil {
		return goesOn
	}
	others := members.Minus(f.none)
	others.Remove(s.Self)
	here := slices.DeleteFunc(slices.Clone(f.told), func(t told) bool { return !others.Has(t.who) })
	for _, t := range here {
		alike := 0
		for _, o := range here {
			if o.size == t.size && bytes.Equal(o.hash, t.hash) {
				alike++
			}
		}
		if 2*alike > others.Len() {
			if t.size > longest {
				return tooLong
			}
			f.size, f.hash, f.from, f.since = t.size, t.hash, t.who, s.Now
			f.more(s)
			return goesOn
		}
	}
	return goesOn
}

// seen: upon a view while the state is fetched: who is out of it is neither waited for nor asked.
func (f *fetch) seen(s *parley.Step, members parley.Set, longest int) outcome {
	switch {
	case f.number == 0:
		return again
	case f.hash == nil:
		return f.agreed(s, members, longest)
	case !members.Has(f.from) && len(f.state) < f.size:
		return f.other(s)
	}
	return goesOn
}

// more asks for what follows.
func (f *fetch) more(s *parley.Step) {
	s.Send(f.from, parley.Msg{Kind: want, Seq: f.number, Value: uint64(len(f.state))})
}

// take: upon a piece, the next one.
func (f *fetch) take(s *parley.Step, from parley.ID, m parley.Msg, piece int) outcome {
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

// other continues with another copy that told the same hash, from the beginning if what came
// has another hash. Without such a copy a later state is asked for.
func (f *fetch) other(s *parley.Step) outcome {
	if len(f.state) == f.size {
		f.state = nil
	}
	from := f.from
	f.told = slices.DeleteFunc(f.told, func(t told) bool { return t.who == from })
	for _, t := range f.told {
		if t.size == f.size && bytes.Equal(t.hash, f.hash) {
			f.from, f.since = t.who, s.Now
			f.more(s)
			return goesOn
		}
	}
	return again
}

// remind asks again for what does not come.
func (f *fetch) remind(s *parley.Step, retries parley.Tick) outcome {
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

// ask broadcasts a mark, if what is broadcast is carried.
func (p *process) ask(s *parley.Step) {
	if p.own.in {
		p.marks++
		p.fetch.ask(s, p.own.life<<16|p.marks&0xFFFF, p.c.Retry)
	}
}

// link is upon a message on a link.
func (p *process) link(s *parley.Step, from parley.ID, m parley.Msg) {
	f := p.fetch
	switch {
	case m.Kind == want || m.Kind == done:
		p.offers.give(s, from, m, p.c.Piece)
	case f == nil || m.Seq != f.number || m.Kind != sum && m.Kind != part:
		s.Refuse(from, "piece that nobody asked for")
	case m.Kind == sum:
		p.fetches(s, f.sum(s, from, m.Body, p.members, p.c.Longest))
	default:
		p.fetches(s, f.take(s, from, m, p.c.Piece))
	}
}

// fetches does what becomes of the fetch.
func (p *process) fetches(s *parley.Step, now outcome) {
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

// fetched: the state is here. What was delivered behind the mark is applied, and what was
// asked for meanwhile is broadcast.
func (p *process) fetched(s *parley.Step) {
	f := p.fetch
	hash := sha256.Sum256(f.state)
	if !bytes.Equal(hash[:], f.hash) {
		s.Refuse(f.from, "pieces of another state than it told of")
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

// resume broadcasts what was asked for while the state was not there.
func (p *process) resume(s *parley.Step, f *fetch) {
	for _, m := range f.held {
		p.Request(s, m)
	}
	p.next(s)
}

// Timeout: ask again, and keep nothing for ever.
func (p *process) Timeout(s *parley.Step, _ parley.Timer) {
	p.offers.expire(s.Now - keptTicks*p.c.Retry)
	if p.fetch != nil {
		p.fetches(s, p.fetch.remind(s, p.c.Retry))
	}
	waits := p.doubt.compares != nil && !p.stopped // for words of others
	if waits {
		p.doubt.remind(s, p.members)
	}
	if p.fetch != nil || len(p.offers) > 0 || waits {
		s.SetTimer(retry, p.c.Retry)
	}
}

func (f *fetch) State(v *parley.Vars) {
	parley.Num(v, "number", &f.number)
	v.Bool("here", &f.here)
	v.Time("since", &f.since)
	parley.Slice(v, "told", &f.told, func(_ int, t *told) {
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
	parley.Slice(v, "late", &f.late, func(_ int, x *late) {
		v.ID("from", &x.from)
		v.Msg("delivery", parley.Env{}, &x.msg)
		f.bytes += len(x.msg.Body)
	})
	parley.Slice(v, "held", &f.held, func(_ int, m *parley.Msg) { v.Msg("request", parley.Env{}, m) })
}

// sizeOf is the length of the state whose hash is told.
func sizeOf(body []byte) uint64 {
	size, _, _ := parley.ReadUvarint(body, 1<<40)
	return size
}
