package exercise

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"parley"
	"parley/agreement/problem"
	"parley/exercises"
	"parley/exercises/model/om"
	"parley/exercises/model/priorities"
	"parley/lockstep"
)

// lazy is a machine that does as little as its way says.
type lazy struct {
	c   problem.Instance
	way string
}

func (l *lazy) Request(*parley.Step, parley.Msg)                {}
func (l *lazy) Emit(*parley.Step, int)                          {}
func (l *lazy) Absorb(*parley.Step, int, parley.ID, parley.Msg) {}
func (l *lazy) State(*parley.Vars)                              {}

func (l *lazy) Close(s *parley.Step, round int) {
	switch {
	case l.way == "panics" && round == 1:
		panic("index out of range")
	case l.way == "decides" && round == l.c.Last():
		s.Deliver(l.c.Source, parley.Msg{Kind: parley.Decide, Origin: l.c.Source, Body: l.c.Default})
	}
}

// restless is a machine that never comes to rest.
type restless struct{ parley.Base }

func (restless) Start(s *parley.Step)                   { s.SetTimer(1, 10) }
func (restless) Timeout(s *parley.Step, _ parley.Timer) { s.SetTimer(1, 10) }
func (restless) State(*parley.Vars)                     {}

// stuck is a machine with a step that does not end before the test has noticed.
type stuck struct {
	restless
	noticed <-chan struct{}
}

func (m stuck) Start(*parley.Step) { <-m.noticed }

// A step that does not end is reported, with the command that shows it. Time is simulated.
func TestEndlessStep(t *testing.T) {
	e, err := find("check", "priorities")
	if err != nil {
		t.Fatal(err)
	}
	e.seeds = 1
	for _, c := range []struct {
		simulated int
		want      string
		again     string
	}{
		{1, "a step of the machine does not end: a run is not over after 60 s",
			"go run ./cmd/priorities run my-priorities --workload '{broadcasts: 10, within: 500}' --seed 1"},
		{0, "a step of the machine does not end: the search is not over after 360 s",
			"go run ./cmd/priorities explore my-priorities -n 3"},
	} {
		e.simulated = e.simulated[:c.simulated]
		synctest.Test(t, func(t *testing.T) {
			noticed, late := make(chan struct{}), grade{}
			p := exercises.Priorities(func(int, parley.ID) parley.Machine { return stuck{noticed: noticed} })
			_, _ = e.graded(t.Context(), p, func(g grade) { // the time of the search is over
				late = g
				close(noticed)
			})
			if late.Failed != c.want || late.Again != c.again || late.Points != 0 || late.Of != 20 {
				t.Errorf("%+v", late)
			}
		})
	}
}

func graded(t *testing.T, name string, p parley.Protocol) grade {
	t.Helper()
	e, err := find("check", name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := e.graded(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A machine that does nothing, or decides the default, has no points, although it breaks few promises. Neither has one
// that panics or does not come to rest.
func TestLazyMachinesHaveNoPoints(t *testing.T) {
	for _, c := range []struct {
		way      string
		outcomes string // of agreement, validity, termination and integrity
		failed   string
	}{
		{"nothing", "not tested, not tested, VIOLATED, not tested", ""},
		{"decides", "held, but without validity, VIOLATED, held, but without validity, held, but without validity", ""},
		{"panics", "", "the machine panics: index out of range"},
	} {
		g := graded(t, "om", exercises.OM(func(in problem.Instance, _ parley.ID) lockstep.Rounds { return &lazy{in, c.way} }))
		var outcomes []string
		for _, p := range g.Promises {
			outcomes = append(outcomes, p.Outcome)
		}
		if got := strings.Join(outcomes, ", "); g.Points != 0 || g.Failed != c.failed || c.outcomes != "" && got != c.outcomes {
			t.Errorf("%s: %d points, %q, %s", c.way, g.Points, g.Failed, got)
		}
	}
	g := graded(t, "priorities", exercises.Priorities(func(int, parley.ID) parley.Machine { return restless{} }))
	if g.Points != 0 || !strings.Contains(g.Failed, "something is still due") {
		t.Errorf("%+v", g)
	}
}

// The model solutions have all points. Each exercise has 20 points.
func TestSolutionsHaveAllPoints(t *testing.T) {
	for name, p := range map[string]parley.Protocol{"om": exercises.OM(om.New), "priorities": exercises.Priorities(priorities.New)} {
		g := graded(t, name, p)
		text := g.text(80)
		if g.Points != 20 || g.Of != 20 || !strings.Contains(text, "all promises hold, and all were tested") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, e := range all {
		if e.sum() != 20 {
			t.Errorf("%s has %d points", e.name, e.sum())
		}
	}
}

// What only the search finds counts too.
func TestSearchCounts(t *testing.T) {
	e, err := find("check", "om")
	if err != nil {
		t.Fatal(err)
	}
	e.simulated = e.simulated[:1] // no process lies
	direct := exercises.OM(func(c problem.Instance, self parley.ID) lockstep.Rounds {
		return &believer{Rounds: om.New(c, self), c: c}
	})
	g, err := e.graded(t.Context(), direct, nil)
	if err != nil || g.Promises[0].Outcome != broken || g.Promises[0].failing == nil || g.Points != 12 ||
		!strings.Contains(g.Promises[0].Again, "explore my-om -n 4 -m 1 --property 'agreement'") {
		t.Errorf("%v: %+v", err, g)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := e.graded(ended, direct, nil); !errors.Is(err, errInterrupted) {
		t.Error(err)
	}
}

// believer decides on what it receives in round 0.
type believer struct {
	lockstep.Rounds
	c     problem.Instance
	value []byte
}

func (b *believer) Request(s *parley.Step, m parley.Msg) {
	b.value = m.Body
	b.Rounds.Request(s, m)
}

func (b *believer) Absorb(s *parley.Step, round int, from parley.ID, m parley.Msg) {
	if round == 0 && len(m.Body) > 0 {
		b.value = m.Body
	}
	b.Rounds.Absorb(s, round, from, m)
}

func (b *believer) Close(s *parley.Step, round int) {
	if round != b.c.Last() {
		return
	}
	if b.value == nil {
		b.value = b.c.Default
	}
	s.Deliver(b.c.Source, parley.Msg{Kind: parley.Decide, Origin: b.c.Source, Body: b.value})
}

func (b *believer) State(v *parley.Vars) {
	b.Rounds.State(v)
	v.Bytes("decision", &b.value)
}
