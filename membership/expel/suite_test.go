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

// A process that is linked again receives what it missed; another incarnation counts as new.
func TestLinked(t *testing.T) {
	m := expel.New(expel.Config{N: 3, M: 0}).New(0)
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
	told := func(seq int) string {
		return fmt.Sprintf("%d>1 kind %d of 0 life 5 seq %d", parley.OpSend, expel.Told, seq)
	}
	shut := func(what uint64) string {
		return fmt.Sprintf("%d>0 kind %d of 1 life 5 seq %d", parley.OpIndicate, expel.Shut, what)
	}
	opened := fmt.Sprintf("%d>0 kind %d of 1 life 6 seq 0", parley.OpIndicate, expel.Opened)
	for i, c := range []struct {
		clause func()
		want   []string
	}{
		{linked(1, 5), nil},
		{func() { m.Request(s, parley.Msg{Kind: expel.Excluded, Origin: 1}) }, []string{shut(expel.Views), told(0)}},
		{func() { m.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte("2")}) }, []string{shut(expel.All), told(1), vote(5)}},
		{linked(2, 9), []string{vote(5)}},
		{linked(1, 5), []string{told(1)}},
		{linked(1, 6), []string{opened}},
		{linked(2, 9), nil},
		{linked(1, 6), nil},
	} {
		if got := did(c.clause); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("step %d: got %q, want %q", i, got, c.want)
		}
	}
}

// A process does not believe a message to another incarnation. It believes one to no particular incarnation
// only if the host does not report incarnations.
func TestToldOfAnEarlierLife(t *testing.T) {
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
