package sm

import (
	"slices"
	"strconv"

	"parley"
)

// Forged is one message of a scripted adversary, valid or not: a value
// with the chain of its claimed signers.
type Forged struct {
	Round    int
	From, To parley.ID
	Value    []byte
	Chain    []parley.ID // usually with the source first
	BadSig   int         // the index in the chain of a corrupted signature; -1: none
}

// Script is a Lies for [faulty.Script]: each faulty process sends exactly what is listed for it. Signatures of
// members of the coalition are real. For a correct process, the script uses a signature that the coalition has
// received since round 0. If the coalition has received none, the script invents a signature. Because a script
// remembers signatures, it works for complete runs, one after another, and not for explorations.
func Script(c Config, sends []Forged) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	l := adversary{&c, instanceDigest(&c)}
	known := memory{last: -1, signed: make(map[signing][]byte)}
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		known.hear(l.instance, t)
		var out []parley.Outgoing
		for _, f := range sends {
			if f.From == t.Self && f.To == t.To && f.Round == t.Round {
				out = append(out, signedMessage(t.Round, l.forge(s, t, f, known)))
			}
		}
		return out
	}
}

// signing is the fact that a process signed something.
type signing struct {
	by   parley.ID
	what digest
}

// memory holds the signatures of correct processes that a coalition has received.
type memory struct {
	last   int // the round of the last update
	signed map[signing][]byte
}

// hear adds what has arrived. All turns of one round see the same; only in round 0
// can a turn belong to another run, which knows nothing of the run before.
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
		d := instance.withValue(ch.value)
		for _, l := range ch.links {
			known.signed[signing{l.signer, d}] = l.sig
			d = d.withLink(l)
		}
	}
}

func (l adversary) forge(s *parley.Step, t *parley.Turn, f Forged, known memory) []byte {
	ch := chain{value: f.Value}
	d := l.instance.withValue(f.Value)
	for i, id := range f.Chain {
		next := link{signer: id}
		switch {
		case t.Members.Has(id):
			next.sig = s.SignAs(id, d[:])
		default:
			if next.sig = known.signed[signing{id, d}]; next.sig == nil {
				next.sig = s.Sign(d[:]) // its own signature, in the name of another
			}
		}
		if i == f.BadSig {
			next.sig = slices.Clone(next.sig)
			next.sig[0] ^= 1
		}
		ch.links = append(ch.links, next)
		d = d.withLink(next)
	}
	return ch.encode()
}

// Staircase is the adversary that makes the algorithm work longest, as a Lies for [faulty.Script]. The coalition is
// the source and other members, at most m processes in all. In each round it shows a new value to only one correct
// process. The value has a chain of the members' signatures that is as long as the round requires. So in every round
// a value is new, and correct processes relay it as late as possible.
func Staircase(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	l := adversary{&c, instanceDigest(&c)}
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
		return []parley.Outgoing{signedMessage(r, l.sign(s, chain{value: []byte(value)}, signers...))}
	}
}

// step returns the process that sends in round r of the staircase: the source, then the other members.
func step(members parley.Set, source parley.ID, r int) parley.ID {
	if r == 0 {
		return source
	}
	members.Remove(source)
	return nth(members, r-1)
}

func nth(set parley.Set, k int) parley.ID {
	for id := range set.All() {
		if k == 0 {
			return id
		}
		k--
	}
	return parley.All
}
