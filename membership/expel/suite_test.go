package expel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/membership/expel"
	"parley/parleytest"
	"parley/run"
	"parley/sim"
)

// inputs asks about half of the processes to expel one, and sometimes one process to expel another.
func inputs(n int) func(r *rand.Rand) []sim.Request {
	return func(r *rand.Rand) (out []sim.Request) {
		whom := 1 + r.IntN(n)
		for id := range parley.ID(n) {
			number := 0
			switch r.IntN(8) {
			case 0, 1, 2, 3, 4:
				number = whom
			case 5:
				number = 1 + r.IntN(n)
			}
			out = append(out, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: fmt.Append(nil, number)}})
		}
		return out
	}
}

func TestSuite(t *testing.T) {
	for _, c := range []expel.Config{{N: 3, M: 1}, {N: 4, M: 1}, {N: 7, M: 2}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, expel.New(c), parleytest.Options{Seeds: 300, Inputs: inputs(c.N),
				Beyond: []parleytest.Beyond{{Protocol: expel.New(c), Faulty: c.M + 1, Breaks: expel.Accuracy}}})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, expel.New(expel.Config{N: 4, M: 1}), parleytest.Options{Inputs: inputs(4)})
}

// A process that is linked again receives what it missed; another incarnation counts as new. An exclusion by a view
// applies to the incarnation that a vote names: without a vote it is one of an earlier incarnation.
func TestLinked(t *testing.T) {
	m := expel.New(expel.Config{N: 3, M: 1}).New(0)
	s := &parley.Step{N: 3, Host: new(refusals)}
	did := func(clause func()) (out []string) {
		s.Effects = s.Effects[:0]
		clause()
		for _, e := range s.Effects {
			out = append(out, fmt.Sprintf("%d>%s kind %d of %s life %d seq %d", e.Op, e.To, e.Msg.Kind, e.Msg.Origin, e.Msg.Value, e.Msg.Seq))
		}
		return out
	}
	linked := func(id parley.ID, life uint64) func() {
		return func() { m.Request(s, parley.Msg{Kind: expel.Linked, Origin: id, Value: life}) }
	}
	vote := func(life int) string {
		return fmt.Sprintf("%d>2 kind %d of 1 life %d seq 0", parley.OpSend, expel.Vote, life)
	}
	told := func(life, seq int) string {
		return fmt.Sprintf("%d>1 kind %d of 0 life %d seq %d", parley.OpSend, expel.Told, life, seq)
	}
	shut := func(life int, what uint64) string {
		return fmt.Sprintf("%d>0 kind %d of 1 life %d seq %d", parley.OpIndicate, expel.Shut, life, what)
	}
	excluded := func() { m.Request(s, parley.Msg{Kind: expel.Excluded, Origin: 1}) }
	voted := func(life uint64) func() {
		return func() { m.Receive(s, 2, parley.Msg{Kind: expel.Vote, Origin: 1, Value: life}) }
	}
	opened := func(life int) string {
		return fmt.Sprintf("%d>0 kind %d of 1 life %d seq 0", parley.OpIndicate, expel.Opened, life)
	}
	for i, c := range []struct {
		clause func()
		want   []string
	}{
		{linked(1, 5), nil},
		{excluded, nil},
		{voted(5), []string{shut(5, expel.Views), told(5, 0)}},
		{func() { m.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte("2")}) }, []string{shut(5, expel.All), told(5, 1), vote(5)}},
		{linked(2, 9), []string{vote(5)}},
		{linked(1, 5), []string{told(5, 1)}},
		{linked(1, 6), []string{opened(6)}},
		{linked(2, 9), nil},
		{linked(1, 6), nil},
		{excluded, nil},
		{voted(5), nil},
		{voted(6), []string{shut(6, expel.Views), told(6, 0)}},
		{linked(1, 7), []string{opened(7)}},
		{voted(7), nil},
		{excluded, []string{shut(7, expel.Views), told(7, 0)}},
	} {
		if got := did(c.clause); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("step %d: got %q, want %q", i, got, c.want)
		}
	}
}

// A process does not believe a message to another incarnation. It believes one to no particular incarnation
// only if the host does not report incarnations.
func TestReportOfAnEarlierIncarnation(t *testing.T) {
	for _, c := range []struct {
		value           uint64
		knows, believes bool
	}{{0, false, true}, {0, true, false}, {6, false, false}, {7, false, true}, {7, true, true}, {8, true, false}} {
		m := expel.New(expel.Config{N: 2, M: 0}).New(0)
		s := &parley.Step{N: 2, Life: 7, Restart: true, Host: new(refusals)}
		m.Start(s)
		if c.knows {
			m.Request(s, parley.Msg{Kind: expel.Linked, Origin: 1, Value: 3})
		}
		m.Receive(s, 1, parley.Msg{Kind: expel.Told, Value: c.value, Seq: 1})
		if got := len(s.Effects) > 0; got != c.believes {
			t.Errorf("life 7 is told of life %d, knows %t: got %t, want %t", c.value, c.knows, got, c.believes)
		}
	}
}

// A process excluded by a view needs no asked process, and violates nothing.
func TestExcludedByViews(t *testing.T) {
	for seed := range uint64(20) {
		s := run.Spec{Protocol: expel.New(expel.Config{N: 4, M: 1}), Seed: seed, Plan: run.Plan{Requests: []sim.Request{
			{At: 0, When: 5, Msg: parley.Msg{Kind: expel.Excluded, Origin: 2}},
			{At: 1, When: 9, Msg: parley.Msg{Kind: expel.Excluded, Origin: 2}},
		}}}
		for id := range parley.ID(4) {
			s.Plan.Requests = append(s.Plan.Requests,
				sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("0")}})
		}
		r, err := s.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		if got := r.History.Indications[len(r.History.Indications)-1].Msg; got.Kind != expel.Expelled || got.Seq != expel.Views {
			t.Errorf("seed %d: the last indication is %+v, want that process 2 is out of views", seed, got)
		}
		for _, v := range r.Judge() {
			if v.Violated() {
				t.Errorf("seed %d: %s: %v", seed, v.Property.Name, v.Broken)
			}
		}
	}
}

type refusals struct{ parley.Host }

func (refusals) Refused(_, _ parley.ID, _ string) {}
