package sm

import (
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
// since round 0; what it has not, is made up. Since it remembers that, a script is
// for runs from beginning to end, one after the other, and not for searches.
func Script(c Config, sends []Forged) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	l := liar{&c, instanceDigest(&c)}
	known := memory{last: -1, signed: make(map[act][]byte)}
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		known.hear(l.instance, t)
		var out []parley.Outgoing
		for _, f := range sends {
			if f.From == t.Self && f.To == t.To && f.Round == t.Round {
				out = append(out, say(t.Round, l.forge(s, t, f, known)))
			}
		}
		return out
	}
}

// act is that a process signed something.
type act struct {
	by   parley.ID
	what digest
}

// memory is the signatures of correct processes that a coalition has received.
type memory struct {
	last   int // the round in which it was brought up to date
	signed map[act][]byte
}

// hear adds what has come. In one round all turns see the same; only in round 0
// can a turn be that of another run, which knows nothing of the one before.
func (known *memory) hear(instance digest, t *parley.Turn) {
	if t.Round == known.last && t.Round > 0 {
		return
	}
	known.last = t.Round
	if t.Round == 0 {
		clear(known.signed)
	}
	for got := range t.Seen {
		ch, why := decode(got.Msg.Body, nil)
		if why != "" {
			continue
		}
		d := instance.with(ch.value)
		for _, l := range ch.links {
			known.signed[act{l.signer, d}] = l.sig
			d = d.and(l)
		}
	}
}

func (l liar) forge(s *parley.Step, t *parley.Turn, f Forged, known memory) []byte {
	ch := chain{value: f.Value}
	d := l.instance.with(f.Value)
	for i, id := range f.Chain {
		next := link{signer: id}
		switch {
		case t.Members.Has(id):
			next.sig = s.SignAs(id, d[:])
		default:
			if next.sig = known.signed[act{id, d}]; next.sig == nil {
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

// Staircase is the adversary that makes the algorithm work longest, a Lies for
// [faulty.Script]: the source and its fellows, at most m of them, show in each
// round a value that is new, with a chain of their own signatures that is as
// long as the round demands, to one correct process alone. So none of it is
// known before, and what is passed on always comes late.
func Staircase(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	l := liar{&c, instanceDigest(&c)}
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
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
		return []parley.Outgoing{say(r, l.sign(s, chain{value: []byte(value)}, signers...))}
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
