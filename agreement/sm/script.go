package sm

import (
	"bytes"
	"slices"
	"strconv"

	"parley"
)

// Forged is one message of a scripted adversary, whatever it is worth: a value
// with the chain of those who are to have signed it.
type Forged struct {
	Round    int
	From, To parley.ID
	Value    []byte
	Chain    []parley.ID // the source first, as a rule
	BadSig   int         // the place in the chain of a signature that is spoilt; -1: none
}

// Script is a Lies for [faulty.Script]: each faulty process says what is listed
// under its name and nothing else. Members of the coalition sign for real. The
// signature of a correct process is taken from what the coalition has received
// in this round and the one before; what it has not, is made up.
func Script(c Config, sends []Forged) func(s *parley.Step, t *parley.Turn) []parley.Sent {
	l := liar{&c, instanceDigest(&c)}
	return func(s *parley.Step, t *parley.Turn) []parley.Sent {
		var out []parley.Sent
		for _, f := range sends {
			if f.From == t.Self && f.To == t.To && f.Round == t.Round {
				out = append(out, say(t.Round, l.forge(s, t, f)))
			}
		}
		return out
	}
}

func (l liar) forge(s *parley.Step, t *parley.Turn, f Forged) []byte {
	ch := chain{value: f.Value}
	d := l.instance.with(f.Value)
	for i, id := range f.Chain {
		next := link{signer: id}
		switch {
		case t.Members.Has(id):
			next.sig = s.SignAs(id, d[:])
		default:
			if next.sig = received(t, f.Value, f.Chain[:i+1]); next.sig == nil {
				next.sig = s.Sign(d[:]) // one's own, in the name of another
			}
		}
		if i == f.BadSig {
			next.sig = slices.Clone(next.sig)
			next.sig[0] ^= 1
		}
		ch.links = append(ch.links, next)
		d = d.and(next)
	}
	return ch.encode()
}

// received returns the last signature of a chain that the coalition has received,
// perhaps as part of a longer one.
func received(t *parley.Turn, value []byte, signers []parley.ID) []byte {
	for got := range t.Seen {
		ch, why := decode(got.Msg.Body, nil)
		if why != "" || len(ch.links) < len(signers) || !bytes.Equal(ch.value, value) {
			continue
		}
		if slices.Equal(ch.signers()[:len(signers)], signers) {
			return ch.links[len(signers)-1].sig
		}
	}
	return nil
}

// Staircase is the adversary that makes the algorithm work longest, a Lies for
// [faulty.Script]: the source and its fellows, at most m of them, show in each
// round a value that is new, with a chain of their own signatures that is as
// long as the round demands, to one correct process alone. So none of it is
// known before, and what is passed on always comes late.
func Staircase(c Config) func(s *parley.Step, t *parley.Turn) []parley.Sent {
	l := liar{&c, instanceDigest(&c)}
	return func(s *parley.Step, t *parley.Turn) []parley.Sent {
		r := t.Round
		if !t.Members.Has(c.Source) || r >= t.Members.Len() || t.Self != step(t.Members, c.Source, r) {
			return nil
		}
		correct := parley.Everyone(c.N).Minus(t.Members)
		if t.To != nth(correct, r%correct.Len()) {
			return nil
		}
		signers := make([]parley.ID, r+1)
		for k := range signers {
			signers[k] = step(t.Members, c.Source, k)
		}
		value := strconv.Itoa(r)
		return []parley.Sent{say(r, l.sign(s, chain{value: []byte(value)}, signers...))}
	}
}

// step is who speaks in round r of the staircase: the source, then its fellows.
func step(members parley.Set, source parley.ID, r int) parley.ID {
	if r == 0 {
		return source
	}
	members.Remove(source)
	return nth(members, r-1)
}

// nth returns process number k of a set.
func nth(set parley.Set, k int) parley.ID {
	for id := range set.All() {
		if k == 0 {
			return id
		}
		k--
	}
	return parley.All
}
