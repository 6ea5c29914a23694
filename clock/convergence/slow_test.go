package convergence_test

import (
	"math/rand/v2"
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/sim"
)

// checked returns the correct processes whose clocks are checked now, and the largest difference of those.
func checked(s *sim.Sim) (who parley.Set, spread parley.Tick) {
	var low, high parley.Tick
	for id := range s.Correct().All() {
		hardware := s.Clock(id)
		if v, ok := convergence.Look(s.Machine(id)); ok && v.Checked(hardware) {
			t := v.At(hardware)
			if who == (parley.Set{}) {
				low, high = t, t
			}
			who.Add(id)
			low, high = min(low, t), max(high, t)
		}
	}
	return who, high - low
}

// slowStart returns a run in which the START of some processes reaches others too late, or only when it is
// repeated. That happens when links come up one after the other, and on a busy computer. Everything else is
// within the theorem.
func slowStart(p parley.Protocol, plan convergence.Plan, seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 5))
	opt := drawn(p, plan, seed)
	opt.Faulty = nil
	few := parley.Everyone(1 + r.IntN(plan.N-1))
	late := sim.Link{From: few, To: parley.Everyone(plan.N).Minus(few)}
	if r.IntN(2) == 0 {
		late.From, late.To = late.To, late.From
	}
	late.Until = plan.Least + 2*plan.Eps + parley.Tick(r.Int64N(int64(2*plan.Threshold)))
	if late.Delay = (sim.Delay{Least: late.Until, Most: late.Until}); r.IntN(2) == 0 {
		late.Loss = 1
	}
	opt.Links = append(opt.Links, late)
	return opt
}

// Processes that receive START too late begin further apart than allowed, and no process notices. Clocks that
// report checked still never differ more than the reported bound, and all report checked by the time in the
// plan.
func TestStartThatIsLate(t *testing.T) {
	t.Parallel()
	for _, c := range []convergence.Config{
		{N: 4, M: 1}, {N: 5, M: 1}, {N: 7, M: 2}, {N: 10, M: 3}, {N: 5, M: 1, Eps: 300},
	} {
		c.Begin, c.Readings = convergence.Either, 2
		p, plan := convergence.New(c), planned(t, c)
		began, most := 0, parley.Tick(0)
		for seed := range uint64(150) {
			opt := slowStart(p, plan, seed)
			opt.Until = parley.Tick(plan.Pulls+1) * plan.Period
			opt.Between = func(s *sim.Sim) {
				if _, spread := checked(s); spread > plan.Ever+4 {
					t.Fatalf("n = %d, seed %d, time %d: %d apart, and they say %d", c.N, seed, s.Now(), spread, plan.Ever)
				}
			}
			s := sim.Run(opt)
			_, ever := convergence.Measure(&s.History)
			if most = max(most, ever.Apart); ever.Apart > plan.Ever {
				began++
			}
			// A process that was too far off joins again, and may be checked later.
			who, _ := checked(s)
			if calm := c.N == counted(&s.History).Len() && len(corners(s, convergence.Leaves)) == 0; calm && who.Len() != c.N {
				t.Errorf("n = %d, seed %d: after %d resynchronizations only %v are checked", c.N, seed, plan.Pulls, who)
			}
		}
		t.Logf("n = %d: they say %d; in %d runs further apart, up to %d", c.N, plan.Ever, began, most)
		if began == 0 {
			t.Errorf("n = %d: no start was too slow", c.N)
		}
	}
}

// Clocks begin in three steps: those in the middle are near all others; the first and the last see n-m clocks
// near their own, but not each other. After the first pull they are still further apart than the bound.
func TestStartInSteps(t *testing.T) {
	t.Parallel()
	c := convergence.Config{N: 4, M: 1, Begin: convergence.Either, Readings: 2}
	p, plan := convergence.New(c), planned(t, c)
	still := false
	for part := range parley.Tick(40) {
		step := plan.Delta + part*plan.Error/20
		opt := sim.Options{Protocol: p, Until: 4 * plan.Period, Delay: sim.Delay{Least: plan.Least, Most: plan.Least}}
		for to, late := range []parley.Tick{0, step, step, 2 * step} {
			opt.Links = append(opt.Links, sim.Link{
				To: parley.SetOf(parley.ID(to)), Until: 3 * plan.Threshold,
				Delay: sim.Delay{Least: plan.Least + late, Most: plan.Least + late},
			})
		}
		opt.Between = func(s *sim.Sim) {
			if _, spread := checked(s); spread > plan.Ever+4 {
				t.Fatalf("steps of %d, time %d: %d apart, and they say %d", step, s.Now(), spread, plan.Ever)
			}
			shows := func(id parley.ID) parley.Tick {
				now, _ := convergence.Now(s.Machine(id), s.Clock(id))
				return now
			}
			again := shows(3) >= 2*plan.Period+plan.Window && shows(0) < 2*plan.Period+plan.Period/2
			still = still || again && len(corners(s, convergence.Leaves)) == 0 && shows(0)-shows(3) > plan.Ever
		}
		sim.Run(opt)
	}
	if !still {
		t.Errorf("never were they more than %d apart when all had begun the second adjustment", plan.Ever)
	}
}

// If the theorem's conditions hold, all clocks become checked by the time in the plan, whatever liars show.
func TestLiarsKeepNoProcessUnchecked(t *testing.T) {
	t.Parallel()
	for _, c := range []convergence.Config{{N: 4, M: 1}, {N: 5, M: 1}, {N: 7, M: 2}} {
		c.Begin, c.Readings = convergence.Either, 2
		p, plan := convergence.New(c), planned(t, c)
		for seed := range uint64(40) {
			opt := drawn(p, plan, seed)
			if seed%4 == 0 {
				opt.Faulty = liars(c.N, c.M, worst(plan))
			}
			opt.Until = parley.Tick(plan.Pulls)*plan.Period + plan.Window + plan.Period/2
			s := sim.Run(opt)
			if who, _ := checked(s); who != s.Correct() {
				t.Errorf("n = %d, seed %d: only %v are checked", c.N, seed, who)
			}
		}
	}
}

// Clocks that are near each other, by short readings, are checked at once, not only when any reading would
// show it.
func TestCheckedAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []convergence.Config{{N: 4, M: 1}, {N: 5, M: 1}, {N: 7, M: 2}} {
		c.Begin = convergence.Either
		p, plan := convergence.New(c), planned(t, c)
		late := sim.Link{To: parley.SetOf(0), Until: plan.Period / 4}
		late.Delay.Least = plan.Delta - plan.Eps
		late.Delay.Most = late.Delay.Least
		s := sim.Run(sim.Options{
			Protocol: p, Until: plan.Period + plan.Window + plan.Period/4, Links: []sim.Link{late},
			Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps/8},
		})
		if who, spread := checked(s); who.Len() != c.N || spread < plan.Delta/8 {
			t.Errorf("n = %d: only %v are checked, which are %d apart", c.N, who, spread)
		}
	}
}

// Clocks are checked at the first resynchronization if they are certainly within delta: each reading may be
// wrong by half of the excess of its round trip over the shortest one.
func TestReadingsTellHowWrongTheyMayBe(t *testing.T) {
	t.Parallel()
	c := four
	c.Begin = convergence.Either
	plan := planned(t, c)
	for _, trip := range []parley.Tick{2 * plan.Least, 2*plan.Least + 4, 2 * (plan.Least + plan.Eps)} {
		wrong := plan.Error - plan.Eps + trip/2 - plan.Least
		for over := range parley.Tick(2) {
			h := newHand(t, c, 0)
			h.start(0, false)
			for id := range parley.ID(2) {
				h.receive(1, id+1, parley.Msg{Kind: convergence.Start})
			}
			t1, effects := h.expire()
			for id := range parley.ID(3) {
				ahead := parley.Tick(id/2) * (plan.Delta - 2*wrong + over) // the last one's difference
				now, _ := h.show(t1)
				h.receive(t1+trip, id+1, tell(now, now+trip/2+ahead))
			}
			h.step.Now, h.step.Effects = t1, effects
			now, _ := h.expire()
			if v, _ := convergence.Look(h.machine); v.Checked(now) != (over == 0) || !v.In() {
				t.Errorf("round trips of %d, %d over: checked %v, in %v", trip, over, v.Checked(now), v.In())
			}
		}
	}
}

// The plan's numbers: how far apart clocks can be that were checked only against the threshold, and how often
// the mean must be taken until they are within delta, without liars.
func TestPulls(t *testing.T) {
	for _, c := range []struct{ n, m, pulls int }{
		{1, 0, 2}, {3, 0, 2}, {4, 1, 4}, {5, 1, 4}, {7, 2, 3}, {10, 3, 3}, {31, 1, 2},
	} {
		plan := planned(t, convergence.Config{N: c.n, M: c.m, Begin: convergence.Either})
		if plan.Pulls != c.pulls {
			t.Errorf("n = %d, m = %d: %d, not %d", c.n, c.m, plan.Pulls, c.pulls)
		}
	}
}
