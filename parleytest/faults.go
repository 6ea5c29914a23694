package parleytest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/sim"
)

// faults runs with links that lose, double, delay and part, with processes that
// crash, come back, pause and are suspected falsely, and demands what is promised of
// each run: whatever went wrong in it is known to Promises. Rounds promise nothing
// of such a world, and who has no Promises promises too much.
func faults(s suite) error {
	if s.p.Promises == nil || s.p.Timing == parley.Synchronous {
		return skip("rounds, or no Promises that know what went wrong")
	}
	for seed := range uint64(s.some(2)) {
		r := harmed(s, seed)
		got := sim.Run(r.Options) // it may go on, as long as somebody is missed
		if err := broken(s.p, got); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	return nil
}

// harmed draws a run with faults of every kind, of which each run has some. In its
// second half all is well but for processes that are down.
func harmed(s suite, seed uint64) run {
	out := s.draw(s.p, seed, int(seed)%(s.p.M+1))
	r := rand.New(rand.NewPCG(seed, 6))
	heal := parley.Tick(8000)
	if out.Until > 0 {
		heal = max(out.Until/2, 1)
	}
	out.Steps = min(out.Steps, 1<<15+uint64(s.p.N*s.p.N*s.p.N))
	h := harm{r, heal, s.p.N}
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
	returns(s, &out, h)
	if len(out.Links) > 0 || out.Loss > 0 || out.Twice > 0 {
		out.Heal = heal
	}
	return out
}

// returns adds processes that crash and come back, with or without their disks.
func returns(s suite, out *run, h harm) {
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

// harm draws what goes wrong before it heals.
type harm struct {
	*rand.Rand
	heal parley.Tick
	n    int
}

func (h harm) process() parley.ID { return parley.ID(h.IntN(h.n)) }
func (h harm) time() parley.Tick  { return 1 + parley.Tick(h.Int64N(int64(h.heal))) }

// link draws links that are cut, slow or bad for a time.
func (h harm) link() sim.Link {
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
