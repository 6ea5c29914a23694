package service

import (
	"bytes"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/internal/committest"
)

// After a crash a name belongs to the transaction that this node voted yes on, not to one that it refused
// because of the name, in whatever order they are restored.
func TestNamesAfterACrash(t *testing.T) {
	named := func(coordinator parley.ID, yes bool) *transaction {
		of := Spec{Name: "t", Digest: 1, Members: []parley.ID{coordinator, 1}}
		return &transaction{path: PathOf(coordinator, 5), spec: of, yes: yes}
	}
	refused, holder := named(0, false), named(2, true)
	for _, order := range [][]*transaction{{refused, holder}, {holder, refused}} {
		m := newMachine(rules(3, false), 1)
		for _, x := range order {
			m.add(x)
		}
		if m.names["t"] != holder || !m.holds(holder) || m.holds(refused) {
			t.Errorf("%v has the name", m.names["t"].path)
		}
	}
	m := newMachine(rules(3, false), 1)
	m.history.Add(&Finished{refused.path, "t", 1, problem.Abort, AbortReason{Claim: TakenPerhaps}})
	if m.add(refused); m.history.Named("t") != nil || m.names["t"] != nil || m.claim(holder.spec) != Free {
		t.Error("what was refused has the name")
	}
	for _, c := range []struct {
		digest  uint64
		outcome problem.Outcome
		want    NameClaim
	}{
		{1, problem.Undecided, TakenPerhaps}, {1, problem.Commit, TakenByCommit}, {1, problem.Abort, TakenByAbort},
		{2, problem.Undecided, TakenOther}, {2, problem.Commit, TakenOther},
	} {
		m := newMachine(rules(3, false), 1)
		x := named(2, true)
		x.spec.Digest, x.outcome = c.digest, c.outcome
		if m.add(x); m.claim(refused.spec) != c.want {
			t.Errorf("%+v: %d", c, m.claim(refused.spec))
		}
	}
}

// A saved and loaded state keeps which of two transactions holds their name: the first one received, whatever
// the order of their coordinators, even if it is over.
func TestNamesInAState(t *testing.T) {
	first, second := PathOf(2, 5), PathOf(0, 5)
	m := newMachine(rules(3, false), 1)
	for _, path := range []parley.Path{first, second} {
		of := Spec{Name: "t", Digest: 1, Members: []parley.ID{CoordinatorOf(path), 1}}
		m.add(&transaction{path: path, spec: of, inner: m.c.machine(of, m.self)})
	}
	loaded := func() *Machine {
		again := newMachine(m.c, 1)
		saved := parley.Save(m, 0, nil)
		if !parley.Load(again, 0, saved) || !bytes.Equal(parley.Save(again, 0, nil), saved) {
			t.Error("the state does not come back")
		}
		return again
	}
	if again := loaded(); again.names["t"] != again.live[first] || again.holds(again.live[second]) {
		t.Error("the second transaction has the name")
	}
	m.history.Add(&Finished{Path: first, Name: "t", Digest: 1, Outcome: problem.Commit})
	if again := loaded(); again.names["t"] != again.live[first] {
		t.Error("the transaction that is over has lost its name before it is forgotten")
	}
}

// A saved and loaded history finds the same transactions by name.
func TestHistoryInAState(t *testing.T) {
	m := newMachine(rules(3, false), 1)
	m.c.Remember = 2
	m.history = NewHistory(2)
	for number, name := range []string{"a", "a", "b"} { // the first one is forgotten, so the name is free
		m.history.Add(&Finished{Path: PathOf(0, uint64(number)), Name: name, Outcome: problem.Abort})
	}
	again := newMachine(m.c, 1)
	if !parley.Load(again, 0, parley.Save(m, 0, nil)) {
		t.Fatal("the state does not come back")
	}
	for _, name := range []string{"a", "b"} {
		if had, has := m.history.Named(name), again.history.Named(name); (had == nil) != (has == nil) {
			t.Errorf("%s: found %v before and %v after", name, had, has)
		}
	}
}

// A transaction that an older node refuses because of its name may be the same one.
func TestTakenOfAnOlderNode(t *testing.T) {
	for seq, want := range map[uint64]NameClaim{0: TakenPerhaps, uint64(TakenOther): TakenOther} {
		m := newMachine(rules(2, false), 0)
		of := Spec{Name: "t", Members: []parley.ID{0, 1}, Parts: []Part{{1, nil}}}
		s := &parley.Step{Self: 0, N: 2, Host: new(committest.Host)}
		m.Request(s, parley.Msg{Kind: Commit, Body: of.Encode()})
		x := m.names["t"]
		s.Path = x.path
		m.Receive(s, 1, parley.Msg{Kind: msgWhy, Value: 1, Seq: seq, Body: []byte("taken")})
		if x.why.Claim != want {
			t.Errorf("%d says %d, not %d", seq, x.why.Claim, want)
		}
	}
}
