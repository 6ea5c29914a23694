package cluster

import (
	"testing"

	"parley"
	"parley/commit/problem"
)

// After a crash a name is that of the transaction that had it, in whatever order they come back:
// the one that this node said yes to, and not one that it refused because of the name.
func TestNamesAfterACrash(t *testing.T) {
	named := func(coordinator parley.ID, yes bool) *transaction {
		of := sheet{name: "t", digest: 1, members: []parley.ID{coordinator, 1}}
		return &transaction{path: txPath(coordinator, 5), sheet: of, yes: yes}
	}
	refused, holder := named(0, false), named(2, true)
	for _, order := range [][]*transaction{{refused, holder}, {holder, refused}} {
		m := newTransactions(rules(3, TwoPhase), 1)
		for _, x := range order {
			m.add(x)
		}
		if m.names["t"] != holder || !m.holds(holder) || m.holds(refused) {
			t.Errorf("%v has the name", m.names["t"].path)
		}
	}
	m := newTransactions(rules(3, TwoPhase), 1)
	m.past.add(&ended{refused.path, "t", 1, problem.Abort, ending{taken: takenPerhaps}})
	if m.add(refused); m.past.named("t") != nil || m.names["t"] != nil || m.taking(holder.sheet) != free {
		t.Error("what was refused has the name")
	}
	for _, c := range []struct {
		digest  uint64
		outcome problem.Outcome
		want    taking
	}{
		{1, problem.Undecided, takenPerhaps}, {1, problem.Commit, takenByCommit}, {1, problem.Abort, takenByAbort},
		{2, problem.Undecided, takenOther}, {2, problem.Commit, takenOther},
	} {
		m := newTransactions(rules(3, TwoPhase), 1)
		x := named(2, true)
		x.sheet.digest, x.outcome = c.digest, c.outcome
		if m.add(x); m.taking(refused.sheet) != c.want {
			t.Errorf("%+v: %d", c, m.taking(refused.sheet))
		}
	}
}

// What a node of an older version refuses because of its name may be the same.
func TestTakenOfAnOlderNode(t *testing.T) {
	for seq, want := range map[uint64]taking{0: takenPerhaps, uint64(takenOther): takenOther} {
		m := newTransactions(rules(2, TwoPhase), 0)
		of := sheet{name: "t", members: []parley.ID{0, 1}, parts: []part{{1, nil}}}
		s := &parley.Step{Self: 0, N: 2, Host: &counting{}}
		m.Request(s, parley.Msg{Kind: txCommit, Body: of.encode()})
		x := m.names["t"]
		s.Path = x.path
		m.Receive(s, 1, parley.Msg{Kind: txWhy, Value: 1, Seq: seq, Body: []byte("taken")})
		if x.why.taken != want {
			t.Errorf("%d says %d, not %d", seq, x.why.taken, want)
		}
	}
}
