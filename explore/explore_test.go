package explore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/agreement/eig"
	"parley/agreement/om"
	agreement "parley/agreement/problem"
	"parley/broadcast/atomic"
	"parley/broadcast/bracha"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
	"parley/commit/threephase"
	"parley/commit/twophase"
	"parley/explore"
	"parley/faulty"
	"parley/lockstep"
	"parley/membership/group"
	"parley/parleytest"
	"parley/stack"
	"parley/trace"
)

func search(t *testing.T, o explore.Options) explore.Report {
	t.Helper()
	r, err := explore.Search(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func propose(at parley.ID, value string) explore.Request {
	return explore.Request{At: at, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}}
}

func cast(at parley.ID, payload string) explore.Request {
	return explore.Request{At: at, Msg: problem.Request([]byte(payload))}
}

func asking(requests ...explore.Request) []explore.Root { return []explore.Root{{Requests: requests}} }

// liars returns all ways in which m of n processes lie, for each value of the source.
func liars(n, m int, values ...string) []explore.Root {
	return parleytest.Liars(n, m, parleytest.Proposals(values...))
}

func oral(n, m int) eig.Config { return eig.Config{N: n, M: m, Default: []byte("0")} }

// small returns searches that end soon, by name.
func small() map[string]explore.Options {
	diff := diffusion.New(diffusion.Config{N: 3})
	order := fifo.New(fifo.Config{N: 3})
	yes := asking(propose(0, "1"), propose(1, "1"), propose(2, "1"))
	two := asking(cast(0, "a"), cast(1, "b"))
	return map[string]explore.Options{
		"om 4":         {Protocol: om.New(oral(4, 1), lockstep.Simulated), Roots: liars(4, 1, "0", "1")},
		"eig 3 beyond": {Protocol: eig.New(oral(3, 1), lockstep.Simulated), Roots: liars(3, 1, "0", "1"), Beyond: true, All: true},
		"diffusion":    {Protocol: diff, Roots: two, Model: explore.Model{Crashes: 1}},
		"diffusion, a loss": {Protocol: diff, Roots: asking(cast(0, "a")), Model: explore.Model{Losses: 1},
			Beyond: true, All: true},
		"diffusion, one doubled": {Protocol: diff, Roots: asking(cast(0, "a")), Model: explore.Model{Doubles: 1}},
		"fifo":                   {Protocol: stack.New(diff, order), Roots: asking(cast(0, "a"), cast(0, "b")), Model: explore.Model{Crashes: 1}},
		"causal": {Protocol: stack.New(diff, order, causal.New(causal.Config{N: 3})), Roots: two,
			Model: explore.Model{Crashes: 1}},
		"forwarding": {Protocol: forwarding.New(forwarding.Config{N: 3}), Roots: two,
			Model: explore.Model{FIFO: true, Crashes: 1, Detect: true}},
		"bracha": {Protocol: bracha.New(bracha.Config{N: 3, M: 0}), Roots: asking(cast(0, "a"))},
		"atomic": {Protocol: atomic.New(atomic.Config{N: 3, Detector: true}), Roots: two,
			Model: explore.Model{FIFO: true, Crashes: 1, Detect: true}},
		"ballot": {Protocol: ballot.New(ballot.Config{N: 2}), Roots: asking(propose(0, "0"), propose(1, "1")),
			Model: explore.Model{Crashes: 1, Restarts: 1, Timeouts: 1}},
		"two phases":   {Protocol: twophase.New(twophase.Config{N: 3}), Roots: yes, Model: explore.Model{Crashes: 1, Restarts: 1, InTime: true}},
		"three phases": {Protocol: threephase.New(threephase.Config{N: 3}), Roots: yes, Model: explore.Model{Crashes: 1, InTime: true}},
		"views": {Protocol: group.New(group.Config{N: 3}), Roots: asking(),
			Model: explore.Model{FIFO: true, FalseSuspicions: 1, Timeouts: 1}},
	}
}

// counts are the numbers of states and terminal states of the small searches.
var counts = map[string][2]uint64{
	"om 4": {11592, 32}, "eig 3 beyond": {509, 21},
	"diffusion": {12364, 61}, "diffusion, a loss": {79, 2}, "diffusion, one doubled": {106, 2},
	"fifo": {3096, 14}, "causal": {9540, 45}, "forwarding": {3420, 61}, "bracha": {8315, 1}, "atomic": {7948, 188},
	"ballot": {19856, 364}, "two phases": {80958, 132}, "three phases": {4783, 144}, "views": {8914, 0},
}

// TestReduction makes the small searches with and without omitting redundant transitions: both visit all
// states and find the same.
func TestReduction(t *testing.T) {
	for name, o := range small() {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			o.Workers = 2
			reduced := search(t, o)
			o.Unreduced = true
			whole := search(t, o)
			if [2]uint64{whole.States, whole.Ends} != counts[name] {
				t.Errorf("%d states, %d ends; %d are expected", whole.States, whole.Ends, counts[name])
			}
			if reduced.States != whole.States || reduced.Ends != whole.Ends || reduced.Outcome != whole.Outcome ||
				len(reduced.Findings) != len(whole.Findings) {
				t.Errorf("reduced %d states, %d ends, %s, %d findings; without reduction %d, %d, %s and %d", reduced.States,
					reduced.Ends, reduced.Outcome, len(reduced.Findings), whole.States, whole.Ends, whole.Outcome, len(whole.Findings))
			}
			if reduced.Moves > whole.Moves {
				t.Errorf("reduced it makes %d moves, and without reduction %d", reduced.Moves, whole.Moves)
			}
		})
	}
}

// TestOrders makes small searches depth first: they visit the same states.
func TestOrders(t *testing.T) {
	for name, o := range small() {
		o.Order, o.Workers = explore.DepthFirst, 2
		if r := search(t, o); [2]uint64{r.States, r.Ends} != counts[name] {
			t.Errorf("%s, depth first: %d states, %d ends; %d are expected", name, r.States, r.Ends, counts[name])
		}
	}
}

// TestAlike visits one of the states that differ only by a renaming of processes: the verdict is the same,
// and there are at least as many states as classes.
func TestAlike(t *testing.T) {
	same := asking(cast(0, "a"))
	for name, c := range map[string]struct {
		o     explore.Options
		alike parley.Set
		least uint64 // the maximum size of a class
	}{
		"diffusion": {explore.Options{Protocol: diffusion.New(diffusion.Config{N: 4}), Roots: same}, parley.SetOf(1, 2, 3), 6},
		"bracha":    {explore.Options{Protocol: bracha.New(bracha.Config{N: 3}), Roots: same}, parley.SetOf(1, 2), 2},
		"eig, a lying source": {explore.Options{
			Protocol: eig.New(oral(4, 1), lockstep.Simulated), Roots: liars(4, 1, "0")[:1],
		}, parley.SetOf(1, 2, 3), 6},
		"eig beyond the bound": {explore.Options{
			Protocol: eig.New(oral(3, 1), lockstep.Simulated), Roots: liars(3, 1, "1"), Beyond: true,
		}, parley.SetOf(1, 2), 2},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			whole := search(t, c.o)
			c.o.Alike = c.alike
			merged := search(t, c.o)
			if merged.Outcome != whole.Outcome {
				t.Fatalf("%s, and without names that change %s", merged.Outcome, whole.Outcome)
			}
			if whole.Outcome == explore.Found {
				return
			}
			if merged.States >= whole.States || merged.States*c.least < whole.States {
				t.Errorf("%d states, and without names that change %d: classes have up to %d", merged.States, whole.States, c.least)
			}
		})
	}
}

// TestDepth stops at a depth, which proves nothing, and at a number of states.
func TestDepth(t *testing.T) {
	o := small()["diffusion"]
	o.Depth = 5
	if r := search(t, o); r.Outcome != explore.BudgetHit || r.Depth != 5 || r.Limit != "depth" {
		t.Errorf("stopped at depth %d: %s, %s", r.Depth, r.Outcome, r.Limit)
	}
	o.Depth, o.States, o.Workers = 0, 1000, 1
	if r := search(t, o); r.Outcome != explore.BudgetHit || r.States < 1000 || r.States > 1100 {
		t.Errorf("stopped after %d states: %s", r.States, r.Outcome)
	}
	views := small()["views"]
	views.Model.Timeouts, views.Memory = 4, 1<<20
	if r := search(t, views); r.Outcome != explore.BudgetHit || r.Limit != "memory" {
		t.Errorf("with a MiB of memory: %s, %s", r.Outcome, r.Limit)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := explore.Search(ctx, small()["diffusion"]); err != nil || r.Outcome != explore.Interrupted {
		t.Errorf("%s, %v", r.Outcome, err)
	}
}

// TestCrashInRound: a source that crashes while it sends breaks agreement, unless there is a second round.
func TestCrashInRound(t *testing.T) {
	for m, want := range []explore.Outcome{explore.Found, explore.Exhausted} {
		r := search(t, explore.Options{
			Protocol: eig.New(oral(3, m), lockstep.Simulated), Roots: asking(propose(0, "1")),
			Model: explore.Model{Crashes: 1}, Only: []string{agreement.Agreement}, Beyond: true,
		})
		if r.Outcome != want {
			t.Errorf("m = %d: %s", m, r.Outcome)
		}
	}
}

// falling panics when it receives the same message twice, or at the start.
type falling struct {
	parley.Base
	told  uint64
	start bool
}

func (f *falling) Start(*parley.Step) {
	if f.start {
		panic("no start")
	}
}

func (f *falling) Receive(_ *parley.Step, _ parley.ID, m parley.Msg) {
	if f.told == m.Value {
		panic("told twice")
	}
	f.told = m.Value
}

func (f *falling) Request(s *parley.Step, m parley.Msg) {
	s.Send(2, parley.Msg{Kind: 1, Value: uint64(len(m.Body))})
}

func (f *falling) State(v *parley.Vars) {
	parley.Num(v, "told", &f.told)
	v.Bool("start", &f.start)
}

// TestPanic finds, in any order, the shortest run after which a machine panics. A later panic of another
// machine does not change the other findings.
func TestPanic(t *testing.T) {
	p := parley.Protocol{
		Name: "falling", N: 3, Kinds: []string{"", "M"}, New: func(parley.ID) parley.Machine { return new(falling) },
		Promises: func(parley.RunConditions) []parley.Promise { return nil },
	}
	o := explore.Options{
		Protocol: p, Roots: asking(cast(0, "a"), cast(1, "b")), Workers: 2, Walks: 100,
		Naming: func(id parley.ID) string { return fmt.Sprintf("P%d", id+1) },
	}
	const why = "P3 panics on a delivery: told twice"
	for o.Order = range explore.RandomOrder + 1 {
		r := search(t, o)
		if r.Outcome != explore.Found || r.Findings[0].Property != explore.NoPanic || r.Findings[0].Why != why {
			t.Fatalf("order %d: %s, %+v", o.Order, r.Outcome, r.Findings)
		}
		// All start, two get a request, and both messages arrive.
		if f := r.Findings[0]; len(f.Run.Steps) != 7 || f.Over || !f.Promised || f.RunConditions.N != 3 {
			t.Errorf("order %d: %+v", o.Order, f)
		}
	}
	o.Order, o.All = explore.BreadthFirst, true
	o.Roots = asking(cast(0, "a"), cast(1, "b"), cast(1, "cc"))
	for _, f := range search(t, o).Findings {
		if f.Why != why {
			t.Errorf("%+v", f)
		}
	}
	p.New = func(id parley.ID) parley.Machine { return &falling{start: id == 1} }
	o.Protocol = p
	for o.Order = range explore.RandomOrder + 1 {
		r := search(t, o)
		if len(r.Findings) == 0 || r.Findings[0].Why != "P2 panics on a start: no start" ||
			len(r.Findings[0].Run.Steps) != 2 {
			t.Errorf("order %d: %+v", o.Order, r)
		}
	}
}

// TestFinding checks a run that breaks a property: it is the shortest one, the machines can replay it, and
// its trace shows what the properties see.
func TestFinding(t *testing.T) {
	o, shortest := small()["eig 3 beyond"], 0
	for _, order := range []explore.Order{explore.BreadthFirst, explore.DepthFirst, explore.RandomOrder} {
		o.Order, o.Walks, o.All = order, 2000, false
		r := search(t, o)
		if r.Outcome != explore.Found {
			t.Fatalf("order %d: %s", order, r.Outcome)
		}
		f := &r.Findings[0]
		if order != explore.BreadthFirst && len(f.Run.Steps) != shortest {
			t.Errorf("order %d finds %d steps, and the shortest run has %d", order, len(f.Run.Steps), shortest)
		}
		shortest = len(f.Run.Steps)
		h := parley.History{N: 3, Over: true}
		for id := range o.Roots[f.Run.Root].Faulty {
			h.Faulty.Add(id)
		}
		log := f.Run.Log(true)
		for _, e := range log.Events {
			at := parley.ExternalEvent{At: e.At, From: e.Peer, Msg: e.Msg}
			switch e.Op {
			case trace.Request:
				h.Requests = append(h.Requests, at)
			case trace.Deliver:
				h.Deliveries = append(h.Deliveries, at)
			}
			if e.Op == trace.Receive && (e.Cause == 0 || log.Events[e.Cause-1].Op != trace.Send) {
				t.Errorf("event %d arrives and was never sent", e.ID)
			}
		}
		broken := false
		for _, p := range o.Protocol.Properties {
			broken = broken || p.Name == f.Property && p.Check(&h) != nil
		}
		if !broken {
			t.Errorf("the trace of the run does not break %s", f.Property)
		}
	}
}

// TestRefused checks the errors of searches that cannot be made.
func TestRefused(t *testing.T) {
	p := diffusion.New(diffusion.Config{N: 3})
	big := diffusion.New(diffusion.Config{N: 17})
	for want, o := range map[string]explore.Options{
		"17 processes: 1 to 16 can be explored": {Protocol: big, Roots: asking()},
		"nothing to begin with":                 {Protocol: p},
		"diffusion has no rounds to step by":    {Protocol: p, Roots: asking(), Step: explore.Rounds},
		"process 3 is asked, and there are 3":   {Protocol: p, Roots: asking(cast(3, "a"))},
		"300 of one kind of fault":              {Protocol: p, Roots: asking(), Model: explore.Model{Losses: 300}},
		"processes 0 and 1 are not alike":       {Protocol: p, Roots: asking(cast(0, "a")), Alike: parley.Everyone(3)},
		"a process is faulty that is none of": {Protocol: p, Roots: []explore.Root{{
			Faulty: map[parley.ID]faulty.Behavior{3: faulty.Any}}}},
		"a process is alike that is none of": {Protocol: p, Roots: asking(), Alike: parley.SetOf(2, 3)},
		"processes that restart are not": {Protocol: p, Roots: asking(), Alike: parley.SetOf(1, 2),
			Model: explore.Model{Crashes: 1, Restarts: 1}},
		"of which only some may crash": {Protocol: p, Roots: asking(), Alike: parley.SetOf(1, 2),
			Model: explore.Model{Crashes: 1, CrashOnly: parley.SetOf(0, 1)}},
		"needs to know how many runs": {Protocol: p, Roots: asking(), Order: explore.RandomOrder},
	} {
		if _, err := explore.Search(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q is expected", err, want)
		}
	}
}

// The answers of liars in one step are counted while the step is computed, before its states exist.
func TestOutcomesAreCounted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := bracha.New(bracha.Config{N: 4, M: 1})
	lies, asked := p.Lies, 0
	p.Lies = func(s *parley.Step, turn *parley.Turn) []parley.Outgoing {
		if asked++; asked == 600 {
			cancel()
		}
		return lies(s, turn)
	}
	r, err := explore.Search(ctx, explore.Options{Protocol: p, Workers: 1, Roots: []explore.Root{{
		Faulty: map[parley.ID]faulty.Behavior{1: faulty.Any}, Requests: []explore.Request{cast(0, "a")},
	}}})
	if err != nil || r.Outcome != explore.Interrupted || r.States > 10 || r.Outcomes < 100 {
		t.Errorf("got %v, %d states and %d outcomes (%v), want few states and what was computed", r.Outcome, r.States, r.Outcomes, err)
	}
}
