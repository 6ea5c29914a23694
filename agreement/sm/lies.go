package sm

import (
	"bytes"
	"slices"

	"parley"
)

// maxSubset is the number of values that a faulty process considers at once: it may send any
// subset of them.
const maxSubset = 8

// lies: what a faulty process may send with the available signatures. A
// chain with a forged signature is not a lie, because no correct process accepts it.
//
// The source may sign any subset of the alphabet for each receiver. A lieutenant
// may withhold what it would honestly relay; alone it has no other lie. With
// others it may also show, in any round, a chain that the coalition signed
// itself, on a value that its source never sent, or one that another member received.
func lies(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	l := adversary{&c, instanceDigest(&c)}
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		if t.Self == c.Source {
			return l.source(s, t)
		}
		return l.lieutenant(s, t)
	}
}

type adversary struct {
	c        *Config
	instance digest
}

// source: with one other value there are four answers: the value, the other,
// both, and nothing.
func (l adversary) source(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for _, honest := range t.Honest {
		own, _ := decode(honest.Msg.Body, nil)
		values := append([][]byte{own.value}, l.c.Others(own.value)...)
		values = values[:min(len(values), maxSubset)]
		all := 1<<len(values) - 1
		picked := (s.Choose(all+1) + 1) & all // honest is only the first value, the last answer is none
		for i, v := range values {
			if picked>>i&1 == 1 {
				out = append(out, signedMessage(t.Round, l.sign(s, chain{value: v}, t.Self)))
			}
		}
	}
	return out
}

func (l adversary) lieutenant(s *parley.Step, t *parley.Turn) []parley.Outgoing {
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
	picked := s.Choose(all+2) & all // adding nothing is honest, and is also silence
	for i, ch := range more {
		if picked>>i&1 == 1 {
			out = append(out, signedMessage(t.Round, l.sign(s, ch, l.missing(t, ch)...)))
		}
	}
	return out
}

// more returns what a member can send besides its honest messages: chains with
// the signatures that exist so far, none for a value that the coalition
// signs for the first time.
func (l adversary) more(t *parley.Turn, said []chain) []chain {
	var out []chain
	add := func(ch chain) {
		same := func(other chain) bool { return bytes.Equal(ch.value, other.value) }
		if len(out) < maxSubset && !slices.ContainsFunc(said, same) && !slices.ContainsFunc(out, same) {
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

// missing returns which members must still sign a chain that a member
// shows in its turn, itself last: as many as the round requires.
func (l adversary) missing(t *parley.Turn, ch chain) []parley.ID {
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

func (l adversary) sign(s *parley.Step, ch chain, signers ...parley.ID) []byte {
	d := l.instance.withValue(ch.value)
	for _, have := range ch.links {
		d = d.withLink(have)
	}
	ch.links = slices.Clip(ch.links)
	for _, id := range signers {
		next := link{id, s.SignAs(id, d[:])}
		ch.links = append(ch.links, next)
		d = d.withLink(next)
	}
	return ch.encode()
}

func signedMessage(round int, body []byte) parley.Outgoing {
	return parley.Outgoing{Msg: parley.Msg{Kind: Signed, Seq: uint64(round), Body: body}}
}
