package service

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"parley"
)

// vote is what copies say of their state at one position. It is made when this copy
// is there, under the setup of that position, and later ones do not concern it. The
// word of another cannot come before: who says it has applied the command, and so has,
// in one order and in causal order, everybody who hears it.
type vote struct {
	position uint64
	active   parley.Set // who votes
	m        int        // how many of them may be wrong
	own      uint64     // this process's hash, which a spare keeps to itself
	said     []said
	named    parley.Set   // who was told to differ
	answers  []parley.Msg // that wait
}

// said is a hash and who has it.
type said struct {
	hash uint64
	who  parley.Set
}

// kept is how many positions back what was said of them is kept.
const kept = 256

// advance goes to the next position. Votes on those of long ago end as they are.
func (p *process) advance() {
	p.position++
	p.votes = slices.DeleteFunc(p.votes, func(v vote) bool { return v.position+kept < p.position })
}

// everySo compares the states where Config says so.
func (p *process) everySo(s *parley.Step) {
	if p.c.Every > 0 && p.position%p.c.Every == 0 {
		p.compare(s)
	}
}

// compare tells the others what the state is at the present position. The state of
// one position is always the same, so that once is enough.
func (p *process) compare(s *parley.Step) *vote {
	if v := p.vote(p.position); v != nil {
		return v
	}
	p.votes = append(p.votes, vote{position: p.position, active: p.setup.Active, m: p.setup.M, own: p.hash()})
	v := &p.votes[len(p.votes)-1]
	if v.active.Has(s.Self) && !s.Restart { // the group beneath delivers again what was said before
		s.Broadcast(parley.Msg{Kind: check, Seq: p.position, Value: v.own})
	}
	return v
}

// vote returns that on a position, nil if there is none.
func (p *process) vote(position uint64) *vote {
	i, found := slices.BinarySearchFunc(p.votes, position, func(x vote, at uint64) int {
		return cmp.Compare(x.position, at)
	})
	if !found {
		return nil
	}
	return &p.votes[i]
}

// check: upon word of somebody's state, count it.
func (p *process) check(s *parley.Step, from parley.ID, position, hash uint64) {
	v := p.vote(position)
	if v == nil || !v.active.Has(from) || hash == 0 {
		s.Refuse(from, "word of a state that nobody asked for")
		return
	}
	if slices.ContainsFunc(v.said, func(x said) bool { return x.who.Has(from) }) {
		s.Refuse(from, "a second word of one state")
		return
	}
	i := slices.IndexFunc(v.said, func(x said) bool { return x.hash == hash })
	if i < 0 {
		v.said = append(v.said, said{hash: hash})
		i = len(v.said) - 1
	}
	v.said[i].who.Add(from)
	p.release(s, v)
	p.judge(s, v)
}

// wait lets an answer wait; one that is asked for again by the same process does once.
func (x *vote) wait(answer parley.Msg) {
	same := func(m parley.Msg) bool { return m.Origin == answer.Origin && m.Value == answer.Value }
	if !slices.ContainsFunc(x.answers, same) {
		x.answers = append(x.answers, answer)
	}
}

// release: m+1 that have the state which this copy has are enough to answer: one of
// them is correct.
func (p *process) release(s *parley.Step, v *vote) {
	for _, x := range v.said {
		if x.hash == v.own && x.who.Len() > v.m {
			for _, answer := range v.answers {
				p.say(s, answer)
			}
			v.answers = nil
		}
	}
}

// judge: what the majority of the active copies has is right. Who has another one is
// named, once each; if that is me I stop. Without a majority others differ from me.
func (p *process) judge(s *parley.Step, v *vote) {
	heard := 0
	for _, x := range v.said {
		if 2*x.who.Len() > v.active.Len() {
			p.name(s, v, Diverged, x.hash)
			switch {
			case v.own == x.hash:
			case p.c.Liars > 0:
				p.part(s) // which is of a liar, perhaps
			default:
				p.stop(s, "its state is not that of the majority")
			}
			return
		}
		heard += x.who.Len()
	}
	if heard == v.active.Len() {
		p.name(s, v, Differs, v.own)
	}
}

// name tells of those who have another state; a spare with another has not said so.
func (p *process) name(s *parley.Step, v *vote, kind parley.Kind, hash uint64) {
	tell := func(who parley.ID) {
		if v.named.Add(who) {
			s.Indicate(parley.Msg{Kind: kind, Origin: who, Seq: v.position})
		}
	}
	for _, x := range v.said {
		if x.hash == hash {
			continue
		}
		for who := range x.who.All() {
			tell(who)
		}
	}
	if v.own != hash {
		tell(s.Self)
	}
}

func (x *vote) state(v *parley.Vars) {
	parley.Num(v, "position", &x.position)
	v.Set("active", &x.active)
	parley.Num(v, "m", &x.m)
	parley.Num(v, "own", &x.own)
	parley.Slice(v, "said", &x.said, func(_ int, y *said) {
		parley.Num(v, "hash", &y.hash)
		v.Set("who", &y.who)
	})
	v.Set("named", &x.named)
	parley.Slice(v, "answers", &x.answers, func(_ int, m *parley.Msg) { v.Msg("answer", parley.Env{}, m) })
}

// Hasher is an Application that keeps a hash of its state, so that copies can compare theirs
// often: without it they take a snapshot to do so. Two states have one hash if and only if they
// have one snapshot, as far as a hash can tell.
type Hasher interface {
	// Hash returns the hash of the present state.
	Hash() uint64
}

func hashOf(b []byte) uint64 {
	h := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(h[:]) | 1 // never 0
}
