package rsm

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

// votes are the votes on the last positions that were compared, by position.
type votes []vote

// forget ends the votes on positions of long ago as they are.
func (all *votes) forget(position uint64) {
	*all = slices.DeleteFunc(*all, func(v vote) bool { return v.position+kept < position })
}

// settled ends those on states before a view, but for those which answers wait for: if they went against
// a copy that counts, nobody might be left with a state.
func (all *votes) settled() {
	*all = slices.DeleteFunc(*all, func(v vote) bool { return len(v.answers) == 0 })
}

// compare tells the others what the state is at the present position. The state of
// one position is always the same, so that once is enough.
func (all *votes) compare(s *parley.Step, r *replica) *vote {
	if v := all.on(r.position); v != nil {
		return v
	}
	*all = append(*all, vote{position: r.position, active: r.setup.Active, m: r.setup.M, own: r.hash()})
	v := &(*all)[len(*all)-1]
	if v.active.Has(s.Self) && !s.Restart { // the group beneath delivers again what was said before
		s.Broadcast(parley.Msg{Kind: check, Seq: r.position, Value: v.own})
	}
	return v
}

// on returns the vote on a position, nil if there is none.
func (all votes) on(position uint64) *vote {
	i, found := slices.BinarySearchFunc(all, position, func(x vote, at uint64) int {
		return cmp.Compare(x.position, at)
	})
	if !found {
		return nil
	}
	return &all[i]
}

func (all *votes) visit(v *parley.Vars) {
	parley.Slice(v, "votes", (*[]vote)(all), func(_ int, x *vote) { x.state(v) })
	if !inOrder(*all, func(x vote) uint64 { return x.position }) {
		v.Fail()
	}
}

// count counts the word of somebody, the first of each.
func (x *vote) count(from parley.ID, hash uint64) bool {
	if slices.ContainsFunc(x.said, func(y said) bool { return y.who.Has(from) }) {
		return false
	}
	i := slices.IndexFunc(x.said, func(y said) bool { return y.hash == hash })
	if i < 0 {
		x.said = append(x.said, said{hash: hash})
		i = len(x.said) - 1
	}
	x.said[i].who.Add(from)
	return true
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
func (x *vote) release() (answers []parley.Msg) {
	for _, y := range x.said {
		if y.hash == x.own && y.who.Len() > x.m {
			answers, x.answers = x.answers, nil
		}
	}
	return answers
}

// judge: what the majority of the active copies has is right. A copy with another one is
// named, once each; it tells whether that is this copy. Without a majority others differ from me.
func (x *vote) judge(s *parley.Step) (wrong bool) {
	heard := 0
	for _, y := range x.said {
		if 2*y.who.Len() > x.active.Len() {
			x.name(s, Diverged, y.hash)
			return x.own != y.hash
		}
		heard += y.who.Len()
	}
	if heard == x.active.Len() {
		x.name(s, Differs, x.own)
	}
	return false
}

// name tells of those who have another state; a spare with another has not said so.
func (x *vote) name(s *parley.Step, kind parley.Kind, hash uint64) {
	tell := func(who parley.ID) {
		if x.named.Add(who) {
			s.Indicate(parley.Msg{Kind: kind, Origin: who, Seq: x.position})
		}
	}
	for _, y := range x.said {
		if y.hash == hash {
			continue
		}
		for who := range y.who.All() {
			tell(who)
		}
	}
	if x.own != hash {
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
