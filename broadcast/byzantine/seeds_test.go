package byzantine

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/sim"
)

var (
	seeds = flag.Int("seeds", 250, "runs of TestSeeds")
	first = flag.Int("first", 0, "the first of them")
)

// stormy draws a run: faulty processes, processes that lose their state, crashes in the middle of steps, slow links,
// pauses longer than time-outs, clocks of different speeds, then good links. At most m processes are faulty or lose
// their state. If the order is durable, any number of processes restarts with its state, also those that have lost it
// before.
func stormy(seed uint64, durable bool) (sim.Options, Config) {
	r := rand.New(rand.NewPCG(seed, 78))
	tick := func(below int) parley.Tick { return parley.Tick(r.IntN(below)) }
	c := Config{
		N: 4, M: 1, Durable: durable, Tenure: 1 + r.IntN(5) + r.IntN(2)*1000, Least: 1000 + tick(6000), Most: 60_000,
		Checkpoint: 1 + r.IntN(6)*r.IntN(40),
	}
	if r.IntN(4) == 0 {
		c.N, c.M = 7, 2
	}
	if r.IntN(3) == 0 { // few requests fill a batch, and few batches a lane
		c.Batch, c.Queue = 8+r.IntN(20), 1000
		c.Flight = c.Batch + r.IntN(3*perBatch)
	}
	opt := sim.Options{Seed: seed, Faulty: map[parley.ID]faulty.Behavior{}, Until: 8_000_000, Heal: 1 + tick(150_000)}
	how := []faulty.Behavior{faulty.Any, faulty.Any, faulty.Random, faulty.TwoFaced, faulty.Silent, faulty.Twin}
	bad := r.Perm(c.N)[:c.M]
	loser := parley.All
	if r.IntN(3) == 0 {
		loser, bad = parley.ID(bad[0]), bad[1:]
	}
	for _, id := range bad {
		opt.Faulty[parley.ID(id)] = how[r.IntN(len(how))]
	}
	for k := range 4 + r.IntN(12) {
		opt.Requests = append(opt.Requests, sim.Request{
			At: parley.ID(r.IntN(c.N)), When: tick(100_000), Msg: problem.Request(fmt.Appendf(nil, "r%d", k)),
		})
	}
	for range r.IntN(8) {
		from, to := parley.ID(r.IntN(c.N)), parley.ID(r.IntN(c.N))
		if from != to {
			opt.Links = append(opt.Links, sim.Link{
				From: parley.SetOf(from), To: parley.SetOf(to), Delay: sim.Delay{Least: 1, Most: 1 + tick(40_000)},
			})
		}
	}
	for range r.IntN(4) {
		opt.Pauses = append(opt.Pauses, sim.Pause{At: parley.ID(r.IntN(c.N)), From: tick(100_000), For: 1 + tick(100_000)})
	}
	for id := range parley.ID(c.N) {
		opt.Clocks = append(opt.Clocks, sim.Clock{At: id, Drift: r.Int64N(400_000) - 200_000})
	}
	for range r.IntN(4) {
		at := parley.ID(r.IntN(c.N))
		if _, lies := opt.Faulty[at]; !lies && (durable || at == loser) {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: at, When: 1 + tick(100_000), Effects: r.IntN(8), Back: 1 + tick(20_000),
				LostDisk: at == loser && r.IntN(3) > 0,
			})
		}
	}
	return opt, c
}

// noting is a process that notes the type of the last record when it restarts.
type noting struct {
	*process
	n map[string]int
}

func (p *noting) Start(s *parley.Step) {
	if s.Restart && len(s.Log) > 0 {
		r := parley.Reader{Rest: s.Log[len(s.Log)-1].Body}
		last := [...]string{"", "batch", "cut", "", "checkpoint", "membership"}[r.Take(1)[0]]
		if last == "" { // the record of an agreement
			r.Number(mostSlot)
			last = kinds[r.Take(1)[0]]
		}
		p.n["restarted after "+last]++
	}
	p.process.Start(s)
}

var kinds = New(Config{N: 4, M: 1}).Kinds

// note counts what happened in a run.
func note(n map[string]int, opt sim.Options, c Config, s *sim.Sim) {
	saw := make(map[string]int)
	for _, d := range s.History.Indications {
		switch {
		case d.Msg.Kind == Admitted && d.Msg.Value > 0:
			saw["admitted"] = 1
		case d.Msg.Kind == Skipped && d.Msg.Seq > 0:
			saw["skipped"] = 1
		}
	}
	for _, x := range opt.Crashes {
		if c.Durable && !x.LostDisk {
			saw["restarted"] = 1
		}
	}
	for id := range s.Correct().All() {
		x, up := s.Machine(id).(*noting)
		if !up {
			continue
		}
		p := x.process
		for _, x := range p.peers {
			if x.strict > 0 {
				saw["strict"] = 1
			}
		}
		if len(p.tenure.bench) > 0 {
			saw["benched"] = 1
		}
		if p.dropped > 0 {
			saw["forgotten"] = 1
		}
		for _, k := range []*slot{p.last, p.cur} {
			if k != nil && k.in.View() > 1 {
				saw["view 2"] = 1
			}
		}
	}
	for what := range saw { // order: it only counts
		n[what]++
	}
}

// ignored returns a request at a correct process that never crashed, if no correct process has delivered it, or "".
func ignored(s *sim.Sim, opt sim.Options) string {
	for _, r := range opt.Requests {
		crashed := slices.ContainsFunc(opt.Crashes, func(c sim.Crash) bool { return c.At == r.At })
		if s.Correct().Has(r.At) && !crashed && !slices.ContainsFunc(s.History.Deliveries, func(d parley.ExternalEvent) bool {
			return s.Correct().Has(d.At) && string(d.Msg.Body) == string(r.Msg.Body)
		}) {
			return string(r.Msg.Body)
		}
	}
	return ""
}

// Whatever m processes say, however late messages are, and wherever processes crash and restart: all correct processes
// deliver the same in the same order, and deliver everything after messages and clocks have become timely.
func TestSeeds(t *testing.T) {
	n := make(map[string]int)
	for seed := uint64(*first); seed < uint64(*first+*seeds); seed++ {
		opt, c := stormy(seed, seed%2 == 0)
		opt.Protocol = New(c)
		c = c.withDefaults()
		opt.Protocol.New = func(self parley.ID) parley.Machine { return &noting{newProcess(c, self), n} }
		s := sim.Run(opt)
		s.History.Over = true
		before := maps.Clone(n)
		note(n, opt, c, s)
		if lost := ignored(s, opt); lost != "" {
			t.Fatalf("seed %d: nobody delivers %s\ncrashes %v, faulty %v", seed, lost, opt.Crashes, opt.Faulty)
		}
		missed := n["skipped"] > before["skipped"]
		for _, p := range opt.Protocol.Properties {
			switch {
			case p.Name == problem.Delivery: // all requests may be at faulty processes
			case p.Name == problem.Validity && (missed || len(opt.Crashes) > 0): // a request was in no batch
			case p.Name == problem.Agreement && missed:
			default:
				if err := p.Check(&s.History); err != nil {
					t.Fatalf("seed %d: %s: %v\ncrashes %v, faulty %v", seed, p.Name, err, opt.Crashes, opt.Faulty)
				}
			}
		}
	}
	t.Logf("%d runs: %v", *seeds, n)
	// Restarts after the record of a checkpoint that was adopted are forced: see TestAdmittedByCheckpoint.
	for what, least := range map[string]int{
		"admitted": 20, "skipped": 10, "restarted": 150, "strict": 100, "benched": 200, "forgotten": 150, "view 2": 5,
		"restarted after batch": 20, "restarted after cut": 4, "restarted after ECHO": 8, "restarted after READY": 4,
		"restarted after ENTER": 15, "restarted after VOTE": 10, "restarted after DECIDED": 50,
		"restarted after membership": 20,
	} {
		if n[what]*1000 < least**seeds {
			t.Errorf("%s: %d of %d runs, at least %d in 1000 are expected", what, n[what], *seeds, least)
		}
	}
}
