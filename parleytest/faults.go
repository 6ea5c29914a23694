package parleytest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/sim"
)

// faults runs with links that lose, duplicate, delay and partition, and with processes that crash, restart,
// pause and are falsely suspected, and checks the promises of each run: Promises sees every fault. It skips
// rounds, which promise nothing under such faults, and protocols without Promises, which promise too much.
func faults(s suite) error {
	if s.p.Promises == nil || s.p.Timing == parley.Synchronous {
		return skip("rounds, or no Promises that know what went wrong")
	}
	for seed := range uint64(s.share(2)) {
		r := faultyRun(s, seed)
		got := sim.Run(r.Options) // it need not end while a process is down
		if err := broken(s.p, got); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	return nil
}

// faultyRun draws a run with faults of every kind; each run has some of them. In its second half there are
// no new faults, but crashed processes stay down.
func faultyRun(s suite, seed uint64) run {
	out := s.draw(s.p, seed, int(seed)%(s.p.M+1))
	r := rand.New(rand.NewPCG(seed, 6))
	heal := parley.Tick(8000)
	if out.Until > 0 {
		heal = max(out.Until/2, 1)
	}
	out.Steps = min(out.Steps, 1<<15+uint64(s.p.N*s.p.N*s.p.N))
	h := faultDrawer{r, heal, s.p.N}
	one := func() bool { return r.IntN(3) == 0 }
	if one() {
		out.Loss, out.Twice = max(out.Loss, r.Float64()/4), max(out.Twice, r.Float64()/4)
	}
	for range r.IntN(3) {
		out.Links = append(out.Links, h.link())
	}
	if one() {
		p := sim.Pause{At: h.process(), From: h.time()}
		p.For = 1 + parley.Tick(r.Int64N(int64(heal-p.From)+1))
		out.Pauses = append(out.Pauses, p)
	}
	if one() && s.p.N > 1 {
		q := sim.Suspicion{At: h.process(), When: h.time()}
		q.Of = (q.At + 1 + parley.ID(r.IntN(s.p.N-1))) % parley.ID(s.p.N)
		out.Suspicions = append(out.Suspicions, q)
	}
	addRestarts(s, &out, h)
	if len(out.Links) > 0 || out.Loss > 0 || out.Twice > 0 {
		out.Heal = heal
	}
	return out
}

// addRestarts adds processes that crash and restart, with or without their disks.
func addRestarts(s suite, out *run, h faultDrawer) {
	if s.o.NeverBack {
		return
	}
	for range h.IntN(3) {
		c := sim.Crash{
			At: h.process(), When: h.time(), Effects: h.IntN(h.n + 2), Back: 1 + h.time()/4, LostDisk: h.IntN(3) == 0,
		}
		_, lies := out.Faulty[c.At]
		if !lies && !slices.ContainsFunc(out.Crashes, func(other sim.Crash) bool { return other.At == c.At }) {
			out.Crashes = append(out.Crashes, c)
		}
	}
}

// faultDrawer draws faults before the time at which the run heals.
type faultDrawer struct {
	*rand.Rand
	heal parley.Tick
	n    int
}

func (h faultDrawer) process() parley.ID { return parley.ID(h.IntN(h.n)) }
func (h faultDrawer) time() parley.Tick  { return 1 + parley.Tick(h.Int64N(int64(h.heal))) }

// link draws links that are cut, slow or lossy for a time.
func (h faultDrawer) link() sim.Link {
	var side parley.Set
	for _, id := range h.Perm(h.n)[:1+h.IntN(h.n)] {
		side.Add(parley.ID(id))
	}
	l := sim.Link{From: side, To: parley.Everyone(h.n).Minus(side), Since: h.time()}
	l.Until = l.Since + h.time()/2 + 1
	switch h.IntN(4) {
	case 0:
		l.Loss = 1
	case 1:
		l.From, l.To, l.Loss = l.To, l.From, 1
	case 2:
		l.Delay = sim.Delay{Least: 500, Most: 5000}
	case 3:
		l.Loss, l.Twice = h.Float64()/2, h.Float64()/2
	}
	return l
}
