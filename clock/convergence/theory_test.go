package convergence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/faulty"
	"parley/sim"
)

// drawn returns a run within the theorem, drawn from a seed: clocks and delays, and m liars.
func drawn(p parley.Protocol, plan convergence.Plan, seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 1))
	opt := sim.Options{
		Protocol: p, Seed: seed, Until: p.Span,
		Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
	}
	behaviors := append(faulty.Named(), faulty.Crash(0, 1), faulty.CrashAt(3*plan.Period/2))
	for i := range plan.N {
		clock := sim.Clock{At: parley.ID(i), Drift: r.Int64N(2*plan.Rho+1) - plan.Rho}
		if half := plan.Initial / 2; half > 0 {
			clock.Offset = parley.Tick(r.Int64N(int64(2*half)+1)) - half
		}
		if r.IntN(2) == 0 { // at the limits
			clock.Drift = plan.Rho - 2*plan.Rho*int64(r.IntN(2))
		}
		opt.Clocks = append(opt.Clocks, clock)
	}
	for _, i := range r.Perm(plan.N)[:plan.M] {
		if opt.Faulty == nil {
			opt.Faulty = make(map[parley.ID]faulty.Behavior)
		}
		opt.Faulty[parley.ID(i)] = behaviors[r.IntN(len(behaviors))]
	}
	return opt
}

// judged checks that the properties of a run are promised and hold.
func judged(t *testing.T, what string, s *sim.Sim, p parley.Protocol) {
	t.Helper()
	for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
		if !v.Promise.Holds {
			t.Fatalf("%s: %s is not promised: %s", what, v.Property.Name, v.Promise.Because)
		}
		if v.Broken != nil {
			t.Fatalf("%s: %s: %v", what, v.Property.Name, v.Broken)
		}
	}
}

// n > 3m: whatever m liars show, and whatever clocks and links do within their bounds, the clocks stay within
// delta. In some runs they come near delta, so it is not too large.
func TestTheorem(t *testing.T) {
	for _, c := range []convergence.Config{
		{N: 4, M: 1, Resyncs: 12}, {N: 5, M: 1, Resyncs: 8}, {N: 7, M: 2, Resyncs: 8}, {N: 10, M: 3, Resyncs: 6},
		{N: 4, M: 1, Resyncs: 8, Form: convergence.Values}, {N: 4}, {N: 2, Resyncs: 4}, {N: 1, Resyncs: 2},
		{N: 4, M: 1, Resyncs: 8, Least: 2000, Eps: 100, Rho: 300},
	} {
		p, plan := convergence.New(c), planned(t, c)
		var most parley.Tick
		for seed := range uint64(60) {
			s := sim.Run(drawn(p, plan, seed))
			judged(t, fmt.Sprintf("n = %d, m = %d, seed %d", c.N, c.M, seed), s, p)
			reads, _ := convergence.Measure(&s.History)
			most = max(most, reads.Apart)
		}
		t.Logf("n = %2d, m = %d: delta %6d, at most %6d apart", c.N, c.M, plan.Delta, most)
		if c.M > 0 && most < plan.Delta/3 {
			t.Errorf("n = %d, m = %d: never more than %d apart, and delta is %d", c.N, c.M, most, plan.Delta)
		}
	}
}

// The theorem is tight for the machine too: the worst run comes within one percent of delta, and stays below.
func TestWorstRunReachesDelta(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []convergence.Config{
		{N: 4, M: 1, Resyncs: 50}, {N: 7, M: 2, Resyncs: 50}, {N: 10, M: 3, Resyncs: 60},
		{N: 4, M: 1, Resyncs: 50, Eps: ms / 2, Least: 1000, Period: 10_000 * ms, Slew: 5000},
		{N: 7, M: 2, Resyncs: 50, Eps: ms / 2, Least: 1000, Period: 10_000 * ms, Slew: 8000},
		{N: 10, M: 3, Resyncs: 60, Eps: ms / 2, Least: 1000, Period: 10_000 * ms, Slew: 8000},
	} {
		p, plan := convergence.New(c), planned(t, c)
		s := sim.Run(worstRun(p, plan))
		reads, ever := convergence.Measure(&s.History)
		t.Logf("n = %2d, m = %d: delta %8d, measured %8d; ever %8d, measured %8d",
			c.N, c.M, plan.Delta, reads.Apart, plan.Ever, ever.Apart)
		if err := broken(p, &s.History); err != nil {
			t.Errorf("n = %d, m = %d: %v", c.N, c.M, err)
		}
		if reads.Apart > plan.Delta || reads.Apart < plan.Delta-plan.Delta/100 {
			t.Errorf("n = %d, m = %d: %d apart, and delta is %d", c.N, c.M, reads.Apart, plan.Delta)
		}
	}
}

// Beyond the bound the clocks diverge: with n = 3m in every run of the worst liar.
func TestBreaksAtThreeM(t *testing.T) {
	for _, c := range []convergence.Config{{N: 3, M: 1, Resyncs: 30}, {N: 6, M: 2, Resyncs: 60}} {
		p, plan := convergence.New(c), planned(t, c)
		s := sim.Run(worstRun(p, plan))
		for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
			if v.Property.Name != convergence.ClockBound {
				continue
			}
			if v.Broken == nil || v.Promise.Holds {
				t.Errorf("n = %d, m = %d: broken %v, promised %v", c.N, c.M, v.Broken, v.Promise)
			}
		}
	}
	if convergence.New(convergence.Config{N: 3, M: 1}).Bound(3, 1) == nil {
		t.Error("n = 3 and m = 1 are allowed")
	}
}

// They also diverge with one liar more than m.
func TestBreaksWithMoreLiars(t *testing.T) {
	c := convergence.Config{N: 7, M: 2, Resyncs: 60}
	p, plan := convergence.New(c), planned(t, c)
	opt := worstRun(p, plan)
	opt.Faulty = liars(7, 3, worst(plan))
	s := sim.Run(opt)
	verdict := parley.Judge(p, s.RunConditions(), &s.History)[0]
	if verdict.Broken == nil || verdict.Promise.Holds {
		t.Errorf("broken %v, promised %v", verdict.Broken, verdict.Promise)
	}
}

// The two forms give the same clocks, tick by tick: the readings are differences in either case, and "equals
// the other form when read at one instant".
func TestFormsAreOne(t *testing.T) {
	for seed := range uint64(20) {
		var runs [2][]parley.ExternalEvent
		for form := range runs {
			c := convergence.Config{N: 7, M: 2, Resyncs: 5, Form: convergence.Form(form)}
			p := convergence.New(c)
			runs[form] = sim.Run(drawn(p, planned(t, c), seed)).History.Deliveries
		}
		same := slices.EqualFunc(runs[0], runs[1], func(a, b parley.ExternalEvent) bool {
			return a.At == b.At && a.When == b.When && a.Msg.Kind == b.Msg.Kind && a.Msg.Value == b.Msg.Value
		})
		if !same || len(runs[0]) == 0 {
			t.Fatalf("seed %d: the forms differ", seed)
		}
	}
}

// A start brings together clocks that show anything, to within two delays, whichever process begins when, and
// whatever m liars send.
func TestColdStart(t *testing.T) {
	for _, c := range []convergence.Config{
		{N: 4, M: 1, Resyncs: 4, Begin: convergence.Cold}, {N: 7, M: 2, Resyncs: 4, Begin: convergence.Cold},
	} {
		p, plan := convergence.New(c), planned(t, c)
		for seed := range uint64(60) {
			opt := drawn(p, plan, seed)
			r := rand.New(rand.NewPCG(seed, 2))
			for i := range opt.Clocks {
				opt.Clocks[i].Offset = parley.Tick(r.Int64N(1 << 50))
			}
			opt.Requests = nil
			for i := range c.N {
				if r.IntN(3) > 0 || i <= 2*c.M {
					opt.Requests = append(opt.Requests, sim.Request{
						At: parley.ID(i), When: parley.Tick(r.IntN(5000)), Msg: parley.Msg{Kind: parley.Propose},
					})
				}
			}
			s := sim.Run(opt)
			judged(t, fmt.Sprintf("n = %d, m = %d, seed %d", c.N, c.M, seed), s, p)
			begun := times(corners(s, convergence.Enters))
			if len(begun) != c.N-len(opt.Faulty) || slices.Max(begun)-slices.Min(begun) > 2*(plan.Least+plan.Eps) {
				t.Fatalf("n = %d, seed %d: they begin at %v", c.N, seed, begun)
			}
		}
	}
}

// The two delays are reached: process 0 receives START from 1 and a liar at once, and begins. A delay later
// process 2 has it from the two correct ones and begins. Another delay later process 1 has it from 2, which it
// needs, because the liar sends START to no other process.
func TestColdStartReachesTwoDelays(t *testing.T) {
	const least, most = 1, 900
	c := convergence.Config{N: 4, M: 1, Resyncs: 2, Begin: convergence.Cold}
	p, plan := convergence.New(c), planned(t, c)
	hasty := faulty.Behavior{
		Name: "hasty", Model: parley.OralByzantineFaults,
		Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			start := func(one parley.Outgoing) bool { return one.Msg.Kind == convergence.Start }
			if t.To != 0 {
				return slices.DeleteFunc(t.Honest, start)
			}
			return t.Honest
		},
	}
	s := sim.Run(sim.Options{
		Protocol: p, Faulty: map[parley.ID]faulty.Behavior{3: hasty},
		Delay: sim.Delay{Least: most, Most: most},
		// Messages to and from the liar take no time, and so do those from process 1 to process 0.
		Links: []sim.Link{
			{From: parley.SetOf(1, 3), To: parley.SetOf(0), Delay: sim.Delay{Least: least, Most: least}},
			{To: parley.SetOf(3), Delay: sim.Delay{Least: least, Most: least}},
		},
		Requests: []sim.Request{
			{At: 3, Msg: parley.Msg{Kind: parley.Propose}},
			{At: 1, Msg: parley.Msg{Kind: parley.Propose}},
		},
	})
	begun := times(corners(s, convergence.Enters))
	if want := []parley.Tick{1, 901, 1801}; !slices.Equal(begun, want) {
		t.Errorf("they begin at %v, not %v", begun, want)
	}
	if err := broken(p, &s.History); err != nil || plan.Delta < 1800 {
		t.Error(err, plan.Delta)
	}
}

// START from m processes alone starts none.
func TestLiarsDoNotStart(t *testing.T) {
	c := convergence.Config{N: 7, M: 2, Begin: convergence.Cold}
	p := convergence.New(c)
	s := sim.Run(sim.Options{
		Protocol: p, Faulty: liars(7, 2, faulty.Honest), Until: 100_000,
		Requests: []sim.Request{
			{At: 5, Msg: parley.Msg{Kind: parley.Propose}}, {At: 6, Msg: parley.Msg{Kind: parley.Propose}},
		},
	})
	if s.Stats.Sends != 2*6 || len(s.History.Deliveries) > 0 {
		t.Errorf("%d messages, %v", s.Stats.Sends, s.History.Deliveries)
	}
}

// A process that restarts, at any time of a period, joins: it counts as faulty until its clock counts, and is
// as good as the others from then on, with m-1 liars present.
func TestJoin(t *testing.T) {
	c := convergence.Config{N: 7, M: 2, Resyncs: 8}
	p, plan := convergence.New(c), planned(t, c)
	entered, quiet := 0, 0
	for seed := range uint64(80) {
		opt := drawn(p, plan, seed)
		for id := range opt.Faulty {
			if len(opt.Faulty) > 1 {
				delete(opt.Faulty, id)
			}
		}
		r := rand.New(rand.NewPCG(seed, 3))
		joiner := parley.ID(0)
		for opt.Faulty[joiner].Name != "" {
			joiner++
		}
		down := plan.Period/2 + parley.Tick(r.Int64N(int64(2*plan.Period)))
		opt.Crashes = []sim.Crash{{At: joiner, When: down, Back: 1 + parley.Tick(r.Int64N(int64(plan.Period)))}}
		s := sim.Run(opt)
		if err := broken(p, &s.History); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		back := s.History.Restarts[0].When
		for _, d := range s.History.Deliveries {
			if d.At == joiner && d.When >= back && d.Msg.Kind == convergence.Enters {
				entered++
				if d.When < back+plan.Period {
					quiet++ // it came at a time when it could join at once
				}
				if d.When > back+5*plan.Period/2 {
					t.Fatalf("seed %d: back at %d it is in at %d", seed, back, d.When)
				}
			}
		}
	}
	if entered != 80 || quiet == 0 || quiet == 80 {
		t.Errorf("of 80 joiners %d are in, %d within a period", entered, quiet)
	}
}

// A joiner joins in the worst run.
func TestJoinInTheWorstRun(t *testing.T) {
	c := convergence.Config{N: 7, M: 2, Resyncs: 60}
	p, plan := convergence.New(c), planned(t, c)
	for joiner := range parley.ID(4) {
		for k := range parley.Tick(5) {
			opt := worstRun(p, plan)
			opt.Faulty = liars(7, 1, worst(plan))
			opt.Crashes = []sim.Crash{{At: joiner, When: 20*plan.Period + k*plan.Period/5, Back: 1}}
			s := sim.Run(opt)
			if err := broken(p, &s.History); err != nil {
				t.Fatalf("process %d at %d/5: %v", joiner, k, err)
			}
		}
	}
}

// A process whose clock is wrong from the beginning reports that at the first resynchronization, joins, and
// counts with a clock that is right. The others do not follow its clock.
func TestWrongClock(t *testing.T) {
	c := convergence.Config{N: 4, M: 1, Resyncs: 8}
	p, plan := convergence.New(c), planned(t, c)
	for _, off := range []parley.Tick{3 * plan.Threshold, -3 * plan.Threshold, 40 * plan.Period} {
		s := sim.Run(sim.Options{Protocol: p, Clocks: []sim.Clock{{At: 2, Offset: off}}})
		var kinds []parley.Kind
		for _, d := range s.History.Deliveries {
			if d.At == 2 && (d.Msg.Kind == convergence.Leaves || d.Msg.Kind == convergence.Enters) {
				kinds = append(kinds, d.Msg.Kind)
			} else if d.At != 2 && d.Msg.Kind == convergence.Leaves {
				t.Errorf("process %d leaves: %s", d.At, d.Msg.Body)
			}
		}
		if off > plan.Period {
			if len(kinds) != 1 { // its clock is beyond the last resynchronization
				t.Errorf("%d off: %x", off, kinds)
			}
			continue
		}
		if !slices.Equal(kinds, []parley.Kind{convergence.Enters, convergence.Leaves, convergence.Enters}) {
			t.Fatalf("%d off: %x", off, kinds)
		}
		// From its second entry on it is judged like the others.
		left := slices.IndexFunc(s.History.Deliveries, func(d parley.ExternalEvent) bool {
			return d.Msg.Kind == convergence.Leaves
		})
		until := s.History.Deliveries[left].Order
		s.History.Deliveries = slices.DeleteFunc(s.History.Deliveries, func(d parley.ExternalEvent) bool {
			return d.At == 2 && d.Order <= until
		})
		if err := broken(p, &s.History); err != nil {
			t.Errorf("%d off: %v", off, err)
		}
	}
}

// A process that cannot be read counts as faulty. One that is disconnected from more than m others leaves, and
// joins when the links heal.
func TestCutOff(t *testing.T) {
	c := convergence.Config{N: 7, M: 2, Resyncs: 8}
	p, plan := convergence.New(c), planned(t, c)
	for lost := 1; lost <= 4; lost++ {
		var from parley.Set
		for q := 1; q <= lost; q++ {
			from.Add(parley.ID(q))
		}
		s := sim.Run(sim.Options{Protocol: p, Links: []sim.Link{
			{From: from, To: parley.SetOf(0), Since: plan.Period / 2, Until: 3 * plan.Period / 2, Loss: 1},
		}})
		left, in := len(corners(s, convergence.Leaves)), len(corners(s, convergence.Enters))-c.N+1
		if want := lost > 2; (left == 1) != want || (in == 2) != want {
			t.Errorf("cut off from %d, it leaves %d times and is in %d times", lost, left, in)
		}
		if a := s.RunConditions(); p.Promises(a)[0].Holds {
			t.Errorf("%+v: promised", a)
		}
	}
}

// A reading whose round trip takes too long is discarded: otherwise links that are slow in one direction would
// set the clocks wrong by more than eps.
func TestSlowReadings(t *testing.T) {
	c := convergence.Config{N: 4, M: 1, Resyncs: 6}
	p := convergence.New(c)
	s := sim.Run(sim.Options{
		Protocol: p, Delay: sim.Delay{Least: 1, Most: 1},
		Links: []sim.Link{{From: parley.SetOf(0), To: parley.SetOf(1), Delay: sim.Delay{Least: 6000, Most: 6000}}},
	})
	if err := broken(p, &s.History); err != nil {
		t.Error(err)
	}
	if reads, _ := convergence.Measure(&s.History); reads.Apart > 1 {
		t.Errorf("%d apart, where none drifts", reads.Apart)
	}
	if s.Stats.Refused["reading took too long"] != 2*6 {
		t.Errorf("%v", s.Stats.Refused)
	}
	if a := s.RunConditions(); !a.Network.Late || p.Promises(a)[0].Holds {
		t.Error("late messages, and it is promised")
	}
}
