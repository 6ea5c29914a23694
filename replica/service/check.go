package service

import (
	"cmp"
	"slices"

	"parley"
)

// vote is what copies say of their state at one position.
type vote struct {
	position uint64
	own      uint64       // this process's hash there; 0: not there yet
	said     []said       // what others said, and this process
	named    parley.Set   // who was told to differ
	answers  []parley.Msg // that wait for the check
}

// said is a hash and who has it.
type said struct {
	hash uint64
	who  parley.Set
}

// kept is how many positions back what was said of them is kept.
const kept = 256

// vote returns that on a position.
func (p *process) vote(position uint64) *vote {
	i, found := slices.BinarySearchFunc(p.votes, position, func(x vote, at uint64) int {
		return cmp.Compare(x.position, at)
	})
	if !found {
		p.votes = slices.Insert(p.votes, i, vote{position: position})
	}
	return &p.votes[i]
}

// ask tells the others what the state is at the present position.
func (p *process) ask(s *parley.Step) {
	v := p.vote(p.position)
	if v.own != 0 {
		return // a command that was asked again has the position that it had
	}
	v.own = p.hash()
	s.Broadcast(parley.Msg{Kind: check, Seq: p.position, Value: v.own})
	old := 0
	for old < len(p.votes) && p.votes[old].position+kept < p.position {
		old++
	}
	p.votes = p.votes[old:]
}

// check: upon word of somebody's state, count it. m+1 that have the same state are
// enough to answer: one of them is correct. What the majority of the active copies
// has is right: who has another one is named, and if that is me I stop.
func (p *process) check(s *parley.Step, from parley.ID, position, hash uint64) {
	if !p.setup.Active.Has(from) || position+kept < p.position || position > p.position+kept || hash == 0 {
		s.Refuse(from, "word of a state that nobody asked for")
		return
	}
	v := p.vote(position)
	i := slices.IndexFunc(v.said, func(x said) bool { return x.hash == hash })
	if i < 0 {
		v.said = append(v.said, said{hash: hash})
		i = len(v.said) - 1
	}
	for k := range v.said {
		if k != i && v.said[k].who.Has(from) {
			s.Refuse(from, "a second word of one state")
			return
		}
	}
	v.said[i].who.Add(from)
	if hash == v.own && v.said[i].who.Len() > p.setup.M {
		for _, answer := range v.answers {
			s.Deliver(answer.Origin, answer)
		}
		v.answers = nil
	}
	p.judge(s, v)
}

// judge names who differs, once each.
func (p *process) judge(s *parley.Step, v *vote) {
	heard := 0
	for _, x := range v.said {
		heard += x.who.Len()
	}
	active := p.setup.Active.Len()
	for _, right := range v.said {
		if 2*right.who.Len() <= active {
			continue
		}
		for _, x := range v.said {
			if x.hash == right.hash {
				continue
			}
			for who := range x.who.All() {
				if v.named.Add(who) {
					s.Indicate(parley.Msg{Kind: Diverged, Origin: who, Seq: v.position})
					p.stopped = p.stopped || who == s.Self
				}
			}
		}
		return
	}
	if heard < active || v.own == 0 {
		return
	}
	for _, x := range v.said {
		if x.hash == v.own {
			continue
		}
		for who := range x.who.All() {
			if v.named.Add(who) {
				s.Indicate(parley.Msg{Kind: Differs, Origin: who, Seq: v.position})
			}
		}
	}
}

func (x *vote) state(v *parley.Vars) {
	parley.Num(v, "position", &x.position)
	parley.Num(v, "own", &x.own)
	parley.Slice(v, "said", &x.said, func(_ int, y *said) {
		parley.Num(v, "hash", &y.hash)
		v.Set("who", &y.who)
	})
	v.Set("named", &x.named)
	parley.Slice(v, "answers", &x.answers, func(_ int, m *parley.Msg) { v.Msg("answer", parley.Env{}, m) })
}
