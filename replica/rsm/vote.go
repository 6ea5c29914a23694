package rsm

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"parley"
)

// vote collects the hashes that replicas report of their state at one position. It is created when this
// replica reaches the position, with the setup of that position; later setups do not concern it. No report can
// arrive earlier: its sender has applied the command, and so, in total and in causal order, has every receiver
// of the report.
type vote struct {
	position uint64
	active   parley.Set // the replicas that vote
	m        int        // how many of them may be wrong
	own      uint64     // this process's hash; a spare does not report it
	said     []hashReports
	named    parley.Set   // processes that were reported as different
	answers  []parley.Msg // answers that wait for confirmation
}

// hashReports is a hash, and the processes that reported it.
type hashReports struct {
	hash uint64
	who  parley.Set
}

// votesKept is for how many positions votes are kept.
const votesKept = 256

// votes are the votes at the last compared positions, by position.
type votes []vote

// forget drops the votes at positions more than kept before position.
func (all *votes) forget(position uint64) {
	*all = slices.DeleteFunc(*all, func(v vote) bool { return v.position+votesKept < position })
}

// settled drops the votes from before a view, except those with waiting answers. A vote that went against the
// chosen replica could leave no process with a state.
func (all *votes) settled() {
	*all = slices.DeleteFunc(*all, func(v vote) bool { return len(v.answers) == 0 })
}

// compare broadcasts the hash of the state at the present position, once for each position.
func (all *votes) compare(s *parley.Step, r *replica) *vote {
	if v := all.on(r.position); v != nil {
		return v
	}
	*all = append(*all, vote{position: r.position, active: r.setup.Active, m: r.setup.M, own: r.hash()})
	v := &(*all)[len(*all)-1]
	if v.active.Has(s.Self) && !s.Restart { // after a restart the group beneath replays earlier broadcasts
		s.Broadcast(parley.Msg{Kind: check, Seq: r.position, Value: v.own})
	}
	return v
}

// on returns the vote at position, or nil if there is none.
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

// count adds a report. Only the first one of each process counts; count returns whether it was the first.
func (x *vote) count(from parley.ID, hash uint64) bool {
	if slices.ContainsFunc(x.said, func(y hashReports) bool { return y.who.Has(from) }) {
		return false
	}
	i := slices.IndexFunc(x.said, func(y hashReports) bool { return y.hash == hash })
	if i < 0 {
		x.said = append(x.said, hashReports{hash: hash})
		i = len(x.said) - 1
	}
	x.said[i].who.Add(from)
	return true
}

// wait adds an answer that waits, once for each request of a process.
func (x *vote) wait(answer parley.Msg) {
	same := func(m parley.Msg) bool { return m.Origin == answer.Origin && m.Value == answer.Value }
	if !slices.ContainsFunc(x.answers, same) {
		x.answers = append(x.answers, answer)
	}
}

// release returns the waiting answers if m+1 processes report this replica's hash: one of them is correct.
func (x *vote) release() (answers []parley.Msg) {
	for _, y := range x.said {
		if y.hash == x.own && y.who.Len() > x.m {
			answers, x.answers = x.answers, nil
		}
	}
	return answers
}

// judge compares the reports. The state of a majority of the active replicas is right. judge indicates each
// replica with another state, once, and returns whether this replica is one of them. If all active replicas
// have reported and there is no majority, it indicates the replicas that differ from this one.
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

// name indicates the processes whose state does not have the given hash. That may be a spare, which reports no
// hash.
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
	parley.Slice(v, "said", &x.said, func(_ int, y *hashReports) {
		parley.Num(v, "hash", &y.hash)
		v.Set("who", &y.who)
	})
	v.Set("named", &x.named)
	parley.Slice(v, "answers", &x.answers, func(_ int, m *parley.Msg) { v.Msg("answer", parley.Env{}, m) })
}

// Hasher is an Application that maintains a hash of its state. Without a Hasher, each comparison takes a snapshot, so
// you should compare states less often. Two states must have the same hash if and only if they have the same
// snapshot, except for hash collisions.
type Hasher interface {
	// Hash returns the hash of the present state.
	Hash() uint64
}

func hashOf(b []byte) uint64 {
	h := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(h[:]) | 1 // never 0
}
