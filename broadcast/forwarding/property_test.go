package forwarding_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/fifo"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
	"parley/membership/detector"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// randomTree returns a random tree of n processes with a given root.
func randomTree(r *rand.Rand, n int, root parley.ID) [][]parley.ID {
	out := make([][]parley.ID, n)
	in := []parley.ID{root}
	for _, i := range r.Perm(n) {
		if id := parley.ID(i); id != root {
			up := in[max(0, len(in)-1-r.IntN(1+r.IntN(len(in))))] // deep rather than broad
			out[up] = append(out[up], id)
			in = append(in, id)
		}
	}
	return out
}

// drawn returns a run with broadcasts of several processes, and with crashes in the middle of steps while
// they are in flight.
func drawn(seed uint64, n int) (forwarding.Config, sim.Options) {
	r := rand.New(rand.NewPCG(seed, 1))
	c := forwarding.Config{N: n, Root: parley.ID(r.IntN(n)), Window: 1 + r.IntN(3), Notice: r.IntN(2) == 0}
	c.Tree = randomTree(r, n, c.Root)
	opt := sim.Options{Seed: seed, Steps: 1 << 20}
	for id := range parley.ID(n) {
		for k := range r.IntN(4) {
			opt.Requests = append(opt.Requests, sim.Request{At: id, When: 1 + parley.Tick(r.IntN(3000)),
				Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	return c, opt
}

// crashing adds crashes of up to n-1 processes, and informs the others eventually.
func crashing(opt *sim.Options, n, most int, told bool) {
	r := rand.New(rand.NewPCG(opt.Seed, 2))
	for _, i := range r.Perm(n)[:r.IntN(most+1)] {
		c := sim.Crash{At: parley.ID(i), When: 1 + parley.Tick(r.IntN(9000)), Effects: r.IntN(4)}
		opt.Crashes = append(opt.Crashes, c)
		for id := range parley.ID(n) {
			if told && id != c.At {
				opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: id, Of: c.At,
					When: c.When + sim.Patience + 901 + parley.Tick(r.IntN(500))})
			}
		}
	}
}

// check demands every property, and that each is promised.
func check(t *testing.T, seed uint64, p parley.Protocol, s *sim.Sim) {
	t.Helper()
	if s.Stats.OutOfSteps {
		t.Fatalf("seed %d: the run does not end", seed)
	}
	for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
		switch {
		case v.Property.Mode == parley.Sometimes:
		case !v.Promise.Holds:
			t.Fatalf("seed %d: %s is not promised: %s", seed, v.Property.Name, v.Promise.Because)
		case v.Broken != nil:
			t.Fatalf("seed %d: %s: %v", seed, v.Property.Name, v.Broken)
		}
	}
}

func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 5
	}
	return n
}

// With up to n-1 crashes in the middle of forwarding and of taking over everything holds, however the
// remaining processes learn of the crashes.
func TestManyCrashes(t *testing.T) {
	beneath := func(d detector.Config, layers ...func(forwarding.Config) parley.Protocol) func(*rand.Rand, forwarding.Config, *sim.Options) {
		return func(_ *rand.Rand, c forwarding.Config, opt *sim.Options) {
			d.N, d.Beats = c.N, 60
			tower := []parley.Protocol{detector.New(d), forwarding.New(c)}
			for _, layer := range layers {
				tower = append(tower, layer(c))
			}
			opt.Protocol = stack.New(tower...)
		}
	}
	for name, x := range map[string]struct {
		seeds uint64
		told  bool // the host reports crashes, some time after the last message of the crashed process
		alter func(r *rand.Rand, c forwarding.Config, opt *sim.Options)
		seen  func(s *sim.Sim) uint64 // what must occur in some run
	}{
		"told": {3200, true, nil, func(s *sim.Sim) uint64 { return s.Stats.Crashes / 7 }},
		// It detects crashes itself, or is often wrong, revokes suspicions, and is wrong again.
		"detector": {seeds: 400, alter: beneath(detector.Config{})},
		"unsure detector": {200, false, beneath(detector.Config{Timeout: 700, Again: 1}),
			func(s *sim.Sim) uint64 { return s.Stats.FalseSuspicions }},
		// All suspected processes still get all messages: false suspicions only waste messages.
		"false suspicions": {800, true, func(r *rand.Rand, c forwarding.Config, opt *sim.Options) {
			for range 1 + r.IntN(2*c.N) {
				opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: parley.ID(r.IntN(c.N)), Of: parley.ID(r.IntN(c.N)),
					When: parley.Tick(r.IntN(6000))})
			}
		}, func(s *sim.Sim) uint64 { return s.Stats.Refused["duplicate"] }},
		"doubled": {seeds: 300, told: true, alter: func(_ *rand.Rand, _ forwarding.Config, opt *sim.Options) { opt.Twice = 0.5 }},
		// The lecture's stack works on this broadcast as well as on diffusion.
		"tower": {seeds: 150, alter: beneath(detector.Config{},
			func(c forwarding.Config) parley.Protocol {
				return fifo.New(fifo.Config{N: c.N, Beneath: forwarding.New(c).Promises})
			},
			func(c forwarding.Config) parley.Protocol {
				return causal.New(causal.Config{N: c.N, Form: causal.Piggyback, Beneath: forwarding.New(c).Promises})
			})},
	} {
		t.Run(name, func(t *testing.T) {
			seen := uint64(0)
			for seed := range seeds(x.seeds) {
				n := 2 + int(seed%7)
				c, opt := drawn(seed, n)
				crashing(&opt, n, n-1, x.told)
				if opt.Protocol = forwarding.New(c); x.alter != nil {
					x.alter(rand.New(rand.NewPCG(seed, 3)), c, &opt)
				}
				s := sim.Run(opt)
				check(t, seed, opt.Protocol, s)
				if x.seen != nil {
					seen += x.seen(s)
				}
			}
			if x.seen != nil && seen == 0 {
				t.Error("it never came about")
			}
		})
	}
}

// Processes restart after a crash, at once or later, detected or not. What they missed stays lost to them;
// all promises hold for the others, and for the broadcasts of the new incarnations.
func TestRestarts(t *testing.T) {
	returned := uint64(0)
	for seed := range seeds(600) {
		n := 3 + int(seed%4)
		c, opt := drawn(seed, n)
		crashing(&opt, n, n-1, false)
		r := rand.New(rand.NewPCG(seed, 4))
		var back parley.Set
		for i := range opt.Crashes {
			if r.IntN(3) > 0 {
				crash := &opt.Crashes[i]
				crash.Back = 1 + parley.Tick(r.IntN(4000))
				back.Add(crash.At)
				// In the new incarnation: nothing crashes after 9000+1000.
				opt.Requests = append(opt.Requests, sim.Request{At: crash.At, When: 20000,
					Msg: problem.Request(fmt.Appendf(nil, "again %d", crash.At))})
			}
		}
		p := stack.New(detector.New(detector.Config{N: n, Beats: 60}), forwarding.New(c))
		opt.Protocol = p
		s := sim.Run(opt)
		returned += s.Stats.Restarts
		h := s.History
		everyone := 0
		for _, d := range h.Deliveries {
			if len(d.Msg.Body) > 5 && string(d.Msg.Body[:5]) == "again" {
				everyone++
			}
		}
		up := n - h.Faulty.Len()
		if want := back.Len() * up; everyone != want {
			t.Fatalf("seed %d: %d deliveries of what was broadcast after a restart, not %d", seed, everyone, want)
		}
		for id := range back.All() { // nothing is promised about them
			h.Faulty.Add(id)
		}
		for _, property := range p.Properties {
			if err := property.Check(&h); err != nil && property.Mode != parley.Sometimes {
				t.Fatalf("seed %d: %s: %v", seed, property.Name, err)
			}
		}
	}
	if returned == 0 {
		t.Error("nobody came back")
	}
}

// Beyond the model: over links that lose messages a broadcast is lost, and no promise is claimed; and if no
// process learns of a crash, the subtree of the crashed process is lost.
func TestBeyondTheModel(t *testing.T) {
	lost, blind := 0, 0
	for seed := range uint64(50) {
		c, opt := drawn(seed, 5)
		opt.Protocol, opt.Loss = forwarding.New(c), 0.2
		s := sim.Run(opt)
		lost += len(parleytest.Judge(t, opt.Protocol, s, seed))
		c, opt = drawn(seed, 5)
		crashing(&opt, 5, 4, false)
		opt.Protocol = forwarding.New(c)
		s = sim.Run(opt)
		for _, property := range problem.Of(problem.Validity, problem.Agreement) {
			if property.Check(&s.History) != nil {
				blind++
			}
		}
	}
	if lost == 0 || blind == 0 {
		t.Errorf("%d properties broken over lossy links, %d without suspicions", lost, blind)
	}
}

// Forwarding is not uniform: the root sends only to a leaf, which delivers, and both crash.
func TestNotUniform(t *testing.T) {
	c := forwarding.Config{N: 4, Tree: [][]parley.ID{0: {1, 2}, 2: {3}}}
	s := sim.Run(sim.Options{Protocol: forwarding.New(c), Delay: sim.Delay{Least: 1, Most: 1},
		Requests:   []sim.Request{{At: 0, When: 10, Msg: problem.Request([]byte("m"))}},
		Crashes:    []sim.Crash{{At: 0, When: 10, Effects: 1}, {At: 1, When: 50}},
		Suspicions: []sim.Suspicion{{At: 2, Of: 0, When: 2000}, {At: 3, Of: 0, When: 2000}, {At: 2, Of: 1, When: 2000}},
	})
	if err := problem.Of(problem.UniformAgreement)[0].Check(&s.History); err == nil {
		t.Errorf("deliveries: %v", s.History.Deliveries)
	}
	if err := problem.Of(problem.Agreement)[0].Check(&s.History); err != nil {
		t.Error(err)
	}
}
