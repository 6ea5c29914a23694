package sm

import (
	"bytes"
	"slices"

	"parley"
)

// most is the number of values that a liar weighs at once: it may say any subset
// of them.
const most = 8

// lies: what a faulty process may say with the signatures that there are. A
// chain with a false one is no lie, because nobody believes it.
//
// The source may sign any subset of the alphabet for each receiver. A lieutenant
// may withhold what it honestly would pass on; alone it has no other lie. With
// others it may also show, in any round, a chain that the coalition signed among
// itself on a value that its source never sent, or one that a fellow received.
func lies(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	l := liar{&c, instanceDigest(&c)}
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		if t.Self == c.Source {
			return l.source(s, t)
		}
		return l.lieutenant(s, t)
	}
}

type liar struct {
	c        *Config
	instance digest
}

// source: with one other value there are four answers: the value, the other,
// both, and nothing.
func (l liar) source(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for _, honest := range t.Honest {
		own, _ := decode(honest.Msg.Body, nil)
		values := append([][]byte{own.value}, l.c.Others(own.value)...)
		values = values[:min(len(values), most)]
		all := 1<<len(values) - 1
		picked := (s.Choose(all+1) + 1) & all // honest is the first value alone, the last is none
		for i, v := range values {
			if picked>>i&1 == 1 {
				out = append(out, say(t.Round, l.sign(s, chain{value: v}, t.Self)))
			}
		}
	}
	return out
}

func (l liar) lieutenant(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	var said []chain
	for _, honest := range t.Honest {
		ch, _ := decode(honest.Msg.Body, nil)
		said = append(said, ch)
		if s.Choose(2) == 0 {
			out = append(out, honest)
		}
	}
	if t.Members.Len() < 2 || t.Round < 1 || t.To == l.c.Source {
		return out
	}
	more := l.more(t, said)
	if len(more) == 0 {
		return out
	}
	all := 1<<len(more) - 1
	picked := s.Choose(all+2) & all // it is honest to add nothing, and silent too
	for i, ch := range more {
		if picked>>i&1 == 1 {
			out = append(out, say(t.Round, l.sign(s, ch, l.missing(t, ch)...)))
		}
	}
	return out
}

// more returns what a member can say beside what it honestly would: chains with
// as many signatures as are there already, none for a value that the coalition
// signs for the first time.
func (l liar) more(t *parley.Turn, said []chain) []chain {
	var out []chain
	add := func(ch chain) {
		same := func(other chain) bool { return bytes.Equal(ch.value, other.value) }
		if len(out) < most && !slices.ContainsFunc(said, same) && !slices.ContainsFunc(out, same) {
			out = append(out, ch)
		}
	}
	if t.Members.Has(l.c.Source) && t.Members.Len() > t.Round {
		for _, v := range l.c.Values() {
			add(chain{value: v})
		}
	}
	for got := range t.Seen {
		if got.Round != t.Round-1 || got.Msg.Kind != Signed {
			continue
		}
		ch, why := decode(got.Msg.Body, nil)
		if why == "" && len(ch.links) == t.Round && !ch.signed(t.Self) && !ch.signed(t.To) {
			add(ch)
		}
	}
	return out
}

// missing returns who of the coalition has yet to sign a chain that a member
// shows in its turn, itself last: as many as the round demands.
func (l liar) missing(t *parley.Turn, ch chain) []parley.ID {
	var ids []parley.ID
	if len(ch.links) == 0 {
		ids = append(ids, l.c.Source)
		for id := range t.Members.All() {
			if len(ids) < t.Round && id != l.c.Source && id != t.Self {
				ids = append(ids, id)
			}
		}
	}
	return append(ids, t.Self)
}

// sign returns the chain with the signatures of more processes.
func (l liar) sign(s *parley.Step, ch chain, signers ...parley.ID) []byte {
	d := l.instance.with(ch.value)
	for _, have := range ch.links {
		d = d.and(have)
	}
	ch.links = slices.Clip(ch.links)
	for _, id := range signers {
		next := link{id, s.SignAs(id, d[:])}
		ch.links = append(ch.links, next)
		d = d.and(next)
	}
	return ch.encode()
}

func say(round int, body []byte) parley.Outgoing {
	return parley.Outgoing{Msg: parley.Msg{Kind: Signed, Seq: uint64(round), Body: body}}
}
