package ordered

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/byzantine"
	"parley/commit/problem"
	"parley/commit/service"
	"parley/faulty"
	"parley/sim"
)

var (
	seeds = flag.Int("seeds", 120, "runs of TestSeeds")
	first = flag.Int("first", 0, "the first of them")
)

// spy notes what the order indicates to a process.
type spy struct {
	parley.Machine
	note func(kind parley.Kind)
}

func (x *spy) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	x.Machine.Receive(s, from, m)
	x.look(s)
}

func (x *spy) Timeout(s *parley.Step, t parley.Timer) {
	x.Machine.Timeout(s, t)
	x.look(s)
}

func (x *spy) look(s *parley.Step) {
	for _, e := range s.Effects {
		if e.Op == parley.OpIndicate {
			x.note(e.Msg.Kind)
		}
	}
}

// stormy draws a run: liars, processes that lose their disks, crashes in the middle of steps, slow links, then good
// links. At most m processes lie or lose their disks; any number restarts with its disk. The order forgets soon.
func stormy(seed uint64) (opt sim.Options, c Config, order byzantine.Config) {
	r := rand.New(rand.NewPCG(seed, 79))
	tick := func(below int) parley.Tick { return parley.Tick(r.IntN(below)) }
	c = Config{N: 4, M: 1, Delta: 10_000, Compact: 1 + r.IntN(12)}
	if r.IntN(4) == 0 {
		c.N, c.M = 7, 2
	}
	order = byzantine.Config{
		N: c.N, M: c.M, Durable: true, Least: 2000 + tick(6000), Most: 60_000, Tenure: 1 + r.IntN(5) + r.IntN(2)*1000,
		Checkpoint: 1 + r.IntN(6)*r.IntN(40),
	}
	opt = sim.Options{Seed: seed, Faulty: map[parley.ID]faulty.Behavior{}, Until: 2_000_000, Heal: 1 + tick(200_000)}
	how := []faulty.Behavior{faulty.Any, faulty.Any, faulty.Random, faulty.TwoFaced, faulty.Silent, faulty.Twin}
	bad := r.Perm(c.N)[:c.M]
	loser := parley.All
	if r.IntN(3) == 0 {
		loser, bad = parley.ID(bad[0]), bad[1:]
	}
	for _, id := range bad {
		opt.Faulty[parley.ID(id)] = how[r.IntN(len(how))]
	}
	asked := make(map[string]bool)
	for range 3 + r.IntN(12) {
		votes := make([]byte, c.N)
		for id := range votes {
			votes[id] = "yyyyyyyyn--"[r.IntN(11)]
		}
		votes[r.IntN(c.N)] = 'y'
		at, name := parley.ID(r.IntN(c.N)), "abcdefgh"[r.IntN(8)]
		// If a process requests two transactions of a name, the judge does not know which one is answered.
		if key := fmt.Sprint(at, name); !asked[key] {
			asked[key] = true
			opt.Requests = append(opt.Requests, sim.Request{
				At: at, When: tick(150_000), Msg: parley.Msg{Kind: parley.Propose, Body: fmt.Appendf(nil, "%c %s", name, votes)},
			})
		}
	}
	for range r.IntN(8) {
		from, to := parley.ID(r.IntN(c.N)), parley.ID(r.IntN(c.N))
		if from != to {
			opt.Links = append(opt.Links, sim.Link{
				From: parley.SetOf(from), To: parley.SetOf(to), Delay: sim.Delay{Least: 1, Most: 1 + tick(40_000)},
			})
		}
	}
	for range r.IntN(6) {
		at := parley.ID(r.IntN(c.N))
		if _, lies := opt.Faulty[at]; !lies {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: at, When: 1 + tick(150_000), Effects: r.IntN(8), Back: 1 + tick(30_000),
				LostDisk: at == loser && r.IntN(3) > 0,
			})
		}
	}
	return opt, c, order
}

// begun reports whether d is the outcome of a transaction that its process has begun after it was down.
func begun(h *parley.History, d parley.ExternalEvent) bool {
	_, name, _ := strings.Cut(string(d.Msg.Body), " ")
	return slices.ContainsFunc(h.Requests, func(q parley.ExternalEvent) bool {
		return q.At == d.At && strings.HasPrefix(string(q.Msg.Body), name+" ") && problem.CameBack(h, q.At, 0, q.Order)
	})
}

// Whatever liars say, however late messages are, wherever processes crash and restart, and whatever they miss: all
// correct processes find the same outcomes. If no process has lost its disk or has missed deliveries for good, every
// transaction ends, also those that a process begins after it was down.
func TestSeeds(t *testing.T) {
	n := make(map[string]int)
	for seed := uint64(*first); seed < uint64(*first+*seeds); seed++ {
		opt, c, of := stormy(seed)
		saw := make(map[string]bool)
		order := byzantine.New(of)
		inner := order.New
		order.New = func(self parley.ID) parley.Machine {
			_, lies := opt.Faulty[self]
			return &spy{inner(self), func(kind parley.Kind) {
				saw["missed"] = saw["missed"] || kind == byzantine.Skipped && !lies
				saw["admitted"] = saw["admitted"] || kind == byzantine.Admitted && !lies
			}}
		}
		opt.Protocol = towerConfig{Config: c.withDefaults()}.above(order)
		s := sim.Run(opt)
		s.History.Over = true
		lost := slices.ContainsFunc(opt.Crashes, func(x sim.Crash) bool { return x.LostDisk })
		saw["restarted"] = len(s.History.Restarts) > 0
		for _, v := range parley.Judge(opt.Protocol, s.RunConditions(), &s.History) {
			name := v.Property.Name
			promised := v.Promise.Holds || v.Property.Mode == parley.Always && name != problem.NonTriviality
			if v.Property.Mode == parley.Eventually && (lost || saw["missed"]) {
				continue
			}
			if promised && v.Broken != nil {
				t.Fatalf("seed %d: %s: %v\ncrashes %v, faulty %v, saw %v", seed, name, v.Broken, opt.Crashes, opt.Faulty, saw)
			}
			if promised && v.Vacuous == "" {
				saw[name] = true
			}
		}
		for _, d := range s.History.Deliveries {
			switch {
			case !s.Correct().Has(d.At):
			case d.Msg.Kind == service.Ended:
				saw["repeated"] = true
			case d.Msg.Kind == parley.Decide:
				saw["begun after a restart"] = saw["begun after a restart"] || begun(&s.History, d)
				outcome, _, _ := strings.Cut(string(d.Msg.Body), " ")
				saw[outcome] = true
			}
		}
		for what, yes := range saw { // order: it only counts
			if yes {
				n[what]++
			}
		}
	}
	t.Logf("%d runs: %v", *seeds, n)
	for what, percent := range map[string]int{
		"restarted": 50, "admitted": 5, "missed": 2, "repeated": 5, "begun after a restart": 20, "commit": 40, "abort": 50,
		problem.Termination: 40, service.Answers: 40,
	} {
		if n[what]*100 < percent**seeds {
			t.Errorf("%s: %d of %d runs, at least %d in 100 are expected", what, n[what], *seeds, percent)
		}
	}
}
