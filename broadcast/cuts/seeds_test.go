package cuts

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/sim"
)

var (
	seeds = flag.Int("seeds", 200, "runs of TestSeeds")
	first = flag.Int("first", 0, "the first of them")
)

// stormy draws a run: faulty processes, crashes in the middle of steps, slow links, then good links.
func stormy(seed uint64, durable bool) (sim.Options, Config) {
	r := rand.New(rand.NewPCG(seed, 78))
	c := Config{N: 4, M: 1, Durable: durable, Tenure: 1 + r.IntN(5) + r.IntN(2)*1000, Least: parley.Tick(1500 + r.IntN(6000)), Most: 60_000,
		Checkpoint: 1 + r.IntN(6)*r.IntN(40)}
	if r.IntN(4) == 0 {
		c.N, c.M = 7, 2
	}
	opt := sim.Options{Seed: seed, Faulty: map[parley.ID]faulty.Behavior{}, Until: 8_000_000}
	how := []faulty.Behavior{faulty.Any, faulty.Any, faulty.Random, faulty.TwoFaced, faulty.Silent, faulty.Twin}
	for _, id := range r.Perm(c.N)[:c.M] {
		opt.Faulty[parley.ID(id)] = how[r.IntN(len(how))]
	}
	for k := range 4 + r.IntN(12) {
		opt.Requests = append(opt.Requests, sim.Request{
			At: parley.ID(r.IntN(c.N)), When: parley.Tick(r.IntN(100_000)), Msg: problem.Request(fmt.Appendf(nil, "r%d", k)),
		})
	}
	opt.Heal = parley.Tick(r.IntN(150_000)) + 1
	for range r.IntN(8) {
		from, to := parley.ID(r.IntN(c.N)), parley.ID(r.IntN(c.N))
		if from != to {
			opt.Links = append(opt.Links, sim.Link{From: parley.SetOf(from), To: parley.SetOf(to),
				Delay: sim.Delay{Least: 1, Most: parley.Tick(1 + r.IntN(40_000))}})
		}
	}
	// At most m processes are faulty or lose their state, but any number restarts with it.
	loser := parley.ID(r.IntN(c.N))
	if r.IntN(3) == 0 {
		delete(opt.Faulty, loser)
		if len(opt.Faulty) == c.M {
			for id := range opt.Faulty {
				delete(opt.Faulty, id) // order: any of them
				break
			}
		}
	} else {
		loser = parley.All
	}
	for range r.IntN(4) {
		at := parley.ID(r.IntN(c.N))
		if _, lies := opt.Faulty[at]; !lies && (durable || at == loser) {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: at, When: parley.Tick(1 + r.IntN(100_000)), Effects: r.IntN(8), Back: parley.Tick(1 + r.IntN(20_000)),
				LostDisk: at == loser,
			})
		}
	}
	return opt, c
}

func TestSeeds(t *testing.T) {
	skipped := 0
	for seed := uint64(*first); seed < uint64(*first+*seeds); seed++ {
		opt, c := stormy(seed, seed%2 == 0)
		opt.Protocol = New(c)
		s := sim.Run(opt)
		s.History.Over = true
		missed := false
		for _, d := range s.History.Indications {
			missed = missed || d.Msg.Kind == Skipped && d.Msg.Seq > 0
		}
		if missed {
			skipped++
		}
		for _, p := range opt.Protocol.Properties {
			if p.Name == problem.Validity && (missed || s.RunConditions().Processes.Restarted) || missed && p.Name == problem.Agreement {
				continue // a request may be lost before it is in a batch
			}
			if err := p.Check(&s.History); err != nil {
				t.Errorf("seed %d: %s: %v; crashes %v, faulty %v", seed, p.Name, err, opt.Crashes, opt.Faulty)
				for id := range s.Correct().All() {
					p := s.Machine(id).(*process)
					line := fmt.Sprintf("%d: member %v slot %d owner %d view %d queue %d looks %v wants %d strict %v at %v asked %d lost %d;", id, p.member,
						p.cur.number, p.cur.owner, p.cur.in.View(), len(p.queue), p.looks, len(p.wants), p.strict, p.at, p.asked, p.lost)
					for i := range p.lanes {
						line += fmt.Sprintf(" %d.%d/%d+%d", p.lanes[i].life, p.lanes[i].done.number, p.lanes[i].tip().number, len(p.lanes[i].loose))
					}
					t.Log(line)
				}
				return
			}
		}
	}
	t.Log(skipped)
}
