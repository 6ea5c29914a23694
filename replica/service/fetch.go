package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
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
	bytes  int          // scratch: in there; counted anew when loaded
	held   []parley.Msg // requests
}

// told is the hash that a copy tells.
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

// offer is a state that a copy keeps for a joiner.
type offer struct {
	to     parley.ID
	number uint64
	state  []byte
	since  parley.Tick // it was asked for
}

// given is what a sponsor gives to the group.
func (p *process) given() []byte {
	state := parley.Save(&state{of: p}, 0, nil)
	switch {
	case p.c.Piece == 0:
		return state
	case len(state) > p.c.Piece:
		return []byte{marked}
	}
	return append([]byte{whole}, state...)
}

// ask broadcasts a mark, if what is broadcast is carried.
func (p *process) ask(s *parley.Step) {
	f := p.fetch
	if !p.in {
		return
	}
	p.marks++
	*f = fetch{number: p.life<<16 | p.marks&0xFFFF, since: s.Now, held: f.held}
	s.Broadcast(parley.Msg{Kind: mark, Seq: f.number})
	s.SetTimer(retry, p.c.Retry)
}

// hold keeps a request for when the state is there.
func (p *process) hold(s *parley.Step, m parley.Msg) {
	if len(p.fetch.held) >= Queue {
		s.Refuse(s.Self, "too many requests before the state has come")
		return
	}
	p.fetch.held = append(p.fetch.held, m)
}

// wait keeps what is delivered behind the mark. What came before it is in the state.
func (p *process) wait(s *parley.Step, from parley.ID, m parley.Msg) {
	f := p.fetch
	switch {
	case m.Kind == mark && from == s.Self && m.Seq == f.number && !f.here:
		if f.here, f.since = true, s.Now; f.hash != nil && len(f.state) == f.size {
			p.fetched(s)
		}
	case m.Kind == mark && from != s.Self:
		p.without(s, from, m)
	case !f.here || m.Kind == mark:
	case len(f.late) >= mostLate || f.bytes+len(m.Body) > p.c.Longest:
		p.ask(s) // for a state of later
	default:
		f.late = append(f.late, late{from, m})
		f.bytes += len(m.Body)
	}
}

// without: upon a mark, tell the joiner that there is no state to be had here.
func (p *process) without(s *parley.Step, to parley.ID, m parley.Msg) {
	if to != s.Self {
		s.Send(to, parley.Msg{Kind: sum, Seq: m.Seq})
	}
}

// keep: upon a mark, keep the state as of now for the joiner, and tell it the hash.
func (p *process) keep(s *parley.Step, to parley.ID, m parley.Msg) {
	if to == s.Self || p.c.Piece == 0 {
		return
	}
	p.drop(to)
	if len(p.offers) >= mostKept {
		return // it asks again
	}
	o := offer{to, m.Seq, parley.Save(&state{of: p}, 0, nil), s.Now}
	p.offers = append(p.offers, o)
	hash := sha256.Sum256(o.state)
	body := append(binary.AppendUvarint(nil, uint64(len(o.state))), hash[:]...)
	if p.comparing() { // it is told if this copy counts
		p.compares.sums = append(p.compares.sums, late{to, parley.Msg{Kind: sum, Seq: m.Seq, Body: body}})
	} else {
		s.Send(to, parley.Msg{Kind: sum, Seq: m.Seq, Body: body})
	}
	s.SetTimer(retry, p.c.Retry)
}

func (p *process) drop(to parley.ID) {
	p.offers = slices.DeleteFunc(p.offers, func(o offer) bool { return o.to == to })
}

// link is upon a message on a link.
func (p *process) link(s *parley.Step, from parley.ID, m parley.Msg) {
	f := p.fetch
	switch {
	case m.Kind == want || m.Kind == done:
		p.give(s, from, m)
	case f == nil || m.Seq != f.number || m.Kind != sum && m.Kind != part:
		s.Refuse(from, "piece that nobody asked for")
	case m.Kind == sum:
		p.sum(s, from, m.Body)
	default:
		p.take(s, from, m)
	}
}

// give sends some pieces.
func (p *process) give(s *parley.Step, to parley.ID, m parley.Msg) {
	i := slices.IndexFunc(p.offers, func(o offer) bool { return o.to == to && o.number == m.Seq })
	if i < 0 || m.Kind == want && m.Value >= uint64(len(p.offers[i].state)) {
		s.Refuse(to, "asks for a state that is not kept")
		return
	}
	if m.Kind == done {
		p.drop(to)
		return
	}
	o := &p.offers[i]
	o.since = s.Now
	for at, k := int(m.Value), 0; at < len(o.state) && k < burst; k++ {
		end := min(at+p.c.Piece, len(o.state))
		s.Send(to, parley.Msg{Kind: part, Seq: o.number, Value: uint64(at), Body: o.state[at:end:end]})
		at = end
	}
}

// sum: upon the hash of somebody's state, the first of each. What more than half of the
// others in the view tell is fetched.
func (p *process) sum(s *parley.Step, from parley.ID, body []byte) {
	f := p.fetch
	if f.none.Has(from) || slices.ContainsFunc(f.told, func(t told) bool { return t.who == from }) {
		s.Refuse(from, "a second hash of a state")
		return
	}
	if len(body) == 0 {
		f.none.Add(from)
	} else {
		size, hash, err := parley.ReadUvarint(body, 1<<40)
		if err != nil || len(hash) != sha256.Size {
			s.Refuse(from, "no hash of a state")
			return
		}
		f.told = append(f.told, told{from, int(size), hash})
	}
	p.agreed(s)
}

// agreed looks whether more than half of the other members tell one hash.
func (p *process) agreed(s *parley.Step) {
	f := p.fetch
	if f.hash != nil {
		return
	}
	others := p.members.Minus(f.none)
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
			p.choose(s, t)
			return
		}
	}
}

// seen: upon a view while the state is fetched: who is out of it is neither waited for nor asked.
func (p *process) seen(s *parley.Step) {
	switch f := p.fetch; {
	case f.number == 0:
		p.ask(s)
	case f.hash == nil:
		p.agreed(s)
	case !p.members.Has(f.from) && len(f.state) < f.size:
		p.other(s)
	}
}

// choose begins to fetch what enough have told.
func (p *process) choose(s *parley.Step, t told) {
	if t.size > p.c.Longest {
		p.fetch = nil
		p.stop(s, "the state of the others is longer than a copy takes")
		return
	}
	f := p.fetch
	f.size, f.hash, f.from, f.since = t.size, t.hash, t.who, s.Now
	p.more(s)
}

// more asks for what follows.
func (p *process) more(s *parley.Step) {
	f := p.fetch
	s.Send(f.from, parley.Msg{Kind: want, Seq: f.number, Value: uint64(len(f.state))})
}

// take: upon a piece, the next one.
func (p *process) take(s *parley.Step, from parley.ID, m parley.Msg) {
	f := p.fetch
	if at := uint64(len(f.state)); f.hash == nil || from != f.from || m.Value != at ||
		len(m.Body) != min(p.c.Piece, f.size-len(f.state)) {
		s.Refuse(from, "piece that does not follow")
		return
	}
	f.state, f.since = append(f.state, m.Body...), s.Now
	switch got := len(f.state); {
	case got == f.size && f.here:
		p.fetched(s)
	case got < f.size && got/p.c.Piece%burst == 0:
		p.more(s)
	}
}

// fetched: the state is here. What was delivered behind the mark is applied, and what was
// asked for meanwhile is broadcast.
func (p *process) fetched(s *parley.Step) {
	f := p.fetch
	hash := sha256.Sum256(f.state)
	if !bytes.Equal(hash[:], f.hash) {
		s.Refuse(f.from, "pieces of another state than it told of")
		p.other(s)
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
	for _, m := range f.held {
		p.Request(s, m)
	}
	p.next(s)
	if p.c.Durable {
		s.Compact()
	}
}

// other goes on with another one who told the same, from the beginning if what came was not
// what was told; without another one for a state of later.
func (p *process) other(s *parley.Step) {
	f := p.fetch
	if len(f.state) == f.size {
		f.state = nil
	}
	from := f.from
	f.told = slices.DeleteFunc(f.told, func(t told) bool { return t.who == from })
	for _, t := range f.told {
		if t.size == f.size && bytes.Equal(t.hash, f.hash) {
			f.from, f.since = t.who, s.Now
			p.more(s)
			return
		}
	}
	p.ask(s)
}

// Timeout: ask again, and keep nothing for ever.
func (p *process) Timeout(s *parley.Step, _ parley.Timer) {
	p.offers = slices.DeleteFunc(p.offers, func(o offer) bool { return s.Now-o.since > keptTicks*p.c.Retry })
	if f := p.fetch; f != nil && f.number > 0 {
		waited := s.Now - f.since
		switch {
		case waited >= patience*p.c.Retry && f.hash == nil:
			p.ask(s)
		case waited >= patience*p.c.Retry:
			p.other(s)
		case waited >= p.c.Retry && f.hash != nil && len(f.state) < f.size:
			p.more(s)
		}
	}
	if p.waits() {
		p.remind(s)
	}
	if p.fetch != nil || len(p.offers) > 0 || p.waits() {
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

func (o *offer) visit(v *parley.Vars) {
	v.ID("to", &o.to)
	parley.Num(v, "number", &o.number)
	v.Bytes("state", &o.state)
	v.Time("since", &o.since)
}

// sizeOf is the length of the state whose hash is told.
func sizeOf(body []byte) uint64 {
	size, _, _ := parley.ReadUvarint(body, 1<<40)
	return size
}
