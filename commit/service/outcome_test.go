package service

import (
	"testing"

	"parley"
	"parley/commit/problem"
)

// memory is a memory with what it has asked for.
type memory struct {
	r *outcomeMachine
	s *parley.Step
	counting
}

func newMemory(log ...parley.Record) *memory {
	m := &memory{r: newOutcomeMachine(RecallConfig{N: 4, M: 1, Delta: 10, Votes: 100}.withDefaults(), 3)}
	m.s = &parley.Step{Self: 3, N: 4, Host: &m.counting, Restart: log != nil, Log: log}
	m.do(func() { m.r.Start(m.s) })
	m.s.Restart, m.s.Log = false, nil
	return m
}

// do runs a clause and returns what it delivers and appends, and how much it sends.
func (m *memory) do(clause func()) (delivered []parley.Msg, log []parley.Record, sent int) {
	m.s.Effects = m.s.Effects[:0]
	clause()
	for _, e := range m.s.Effects {
		switch e.Op {
		case parley.OpDeliver:
			delivered = append(delivered, e.Msg)
		case parley.OpAppend:
			log = append(log, parley.Record{Body: e.Msg.Body})
		case parley.OpSend:
			sent++
		}
	}
	return delivered, log, sent
}

// One that said yes before a crash asks the others, and believes two of three of whom one may
// lie: neither one alone, nor two that differ, nor one twice. It asks until it knows, and when it
// is carried out nothing is left.
func TestRecallBelievesMoreThanMayLie(t *testing.T) {
	of, _ := ReadSpec(begins(0, 0, "t", "y--y").Msg.Body, 4)
	yes := parley.Msg{Kind: RecallYes, Value: 9, Body: of.Only(3).Encode()}
	first := newMemory()
	told, log, _ := first.do(func() { first.r.Request(first.s, yes) })
	if len(told) != 1 || told[0].Kind != RecallYes || len(log) != 1 {
		t.Fatal(told, log)
	}
	m := newMemory(log...)
	if len(m.s.Effects) == 0 || m.s.Effects[0].Msg.Kind != Prepare || m.s.Effects[0].Msg.Value != 9 {
		t.Fatal("it does not prepare again")
	}
	says := func(from parley.ID, o problem.Outcome, want int) {
		t.Helper()
		body := of.Only(parley.All).Encode()
		told, _, _ := m.do(func() { m.r.Receive(m.s, from, parley.Msg{Kind: msgSays, Seq: uint64(o), Body: body}) })
		if len(told) != want || want > 0 && (told[0].Kind != Ended || problem.Outcome(told[0].Seq) != o) {
			t.Errorf("node %d says %v: %v", from, o, told)
		}
	}
	says(0, problem.Abort, 0)
	says(0, problem.Abort, 0)
	says(1, problem.Commit, 0)
	if _, _, sent := m.do(func() { m.s.Now += 40; m.r.Timeout(m.s, openTimer) }); sent != 1 {
		t.Error("it does not ask again")
	}
	says(2, problem.Commit, 1)
	says(0, problem.Commit, 0)
	if _, _, sent := m.do(func() { m.s.Now += 40; m.r.Timeout(m.s, openTimer) }); sent != 0 {
		t.Error("it asks for what it knows")
	}
	_, done, _ := m.do(func() { m.r.Request(m.s, parley.Msg{Kind: RecallDone, Value: 9}) })
	if again := newMemory(append(log, done...)...); len(done) != 1 || len(again.r.inDoubt) > 0 {
		t.Error("what is over comes back")
	}
	// What nobody asked for, or cannot be read, is refused.
	before := m.refused
	says(1, problem.Commit, 0)
	for _, q := range []parley.Msg{{Kind: msgSays, Seq: 7, Body: of.Only(parley.All).Encode()}, {Kind: msgAsk}, {Kind: 9}, yes} {
		m.do(func() { m.r.Receive(m.s, 1, q) })
	}
	if got := m.refused - before; got < 4 {
		t.Errorf("%d are refused", got)
	}
}
