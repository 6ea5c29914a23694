package tetra

import (
	"flag"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
)

var seeds = flag.Int("seeds", 300, "runs of TestSeeds")

// forger says anything to anybody: what it would say, changed or not, and forged messages of every kind.
var forger = faulty.Behavior{Name: "forger", Model: parley.OralByzantineFaults, Tell: forge}

func forge(s *parley.Step, t *parley.Turn) (out []parley.Outgoing) {
	value := func() []byte { return [][]byte{[]byte("a"), []byte("b"), nil}[s.Choose(3)] }
	view := uint64(1)
	for _, honest := range t.Honest {
		m := &honest.Msg
		view = max(view, m.Seq)
		switch s.Choose(4) {
		case 0, 1:
			out = append(out, honest)
		case 2:
			if m.Kind != Enter && m.Kind != Wish {
				m.Body = value()
			}
			out = append(out, honest)
		}
	}
	for range s.Choose(4) {
		m := parley.Msg{Body: value()}
		v := view + uint64(s.Choose(2))
		switch s.Choose(9) {
		case 0:
			m.Kind = Ready
		case 1:
			m.Kind = Echo
		case 2, 3:
			m.Kind, m.Seq, m.Value = Vote, v, uint64(1+s.Choose(phases))
		case 4:
			m.Kind, m.Seq = Proposal, uint64(s.Choose(int(v)+1))
		case 5, 6:
			var votes [phases][]vote
			for k := range votes {
				for r := uint64(1); r < v; r++ {
					if s.Choose(2) == 0 {
						votes[k] = record(votes[k], vote{r, value()})
					}
				}
			}
			m = parley.Msg{Kind: Enter, Seq: v, Body: appendReport(nil, value(), votes)}
		case 7:
			m.Kind, m.Origin = Witness, parley.ID(s.Choose(s.N))
		case 8:
			m.Kind = []parley.Kind{Vouch, Decided}[s.Choose(2)]
		}
		out = append(out, parley.Outgoing{Msg: m})
	}
	return out
}

// counts are the interesting events of many runs.
type counts struct {
	views    [4]int         // runs by the greatest view of a correct process: 0, 1, 2, more
	claims   int            // runs in which a correct process left view 0 after READY
	votes    int            // runs in which a correct process reported votes
	nothing  int            // runs that decide on nothing
	restarts map[string]int // restarts by the last durable record
}

// noting is a process that notes the last record when it restarts.
type noting struct {
	*process
	restarts map[string]int
}

func (p *noting) Start(s *parley.Step) {
	if s.Restart {
		last := "none"
		if len(s.Log) > 0 {
			b := s.Log[len(s.Log)-1].Body
			if last = kinds[b[0]]; parley.Kind(b[0]) == Vote {
				last = voteNames[b[1]-1]
			}
		}
		p.restarts[last]++
	}
	p.process.Start(s)
}

// stormy draws a run: faulty processes of all kinds, crashes in the middle of steps, slow links, pauses longer than
// time-outs, clocks of different speeds, then good links. Hard runs have time-outs of about one delay, and crashes in
// the first views.
func stormy(seed uint64, hard bool) (sim.Options, Config) {
	r := rand.New(rand.NewPCG(seed, 77))
	c := Config{N: 4, M: 1, Wait: parley.Tick(1000 + r.IntN(8000))}
	slow, early, crashes := 60_000, 60_000, r.IntN(4)
	if hard {
		c.Wait, slow, early, crashes = parley.Tick(300+r.IntN(2500)), 30_000, 9_000, 1+r.IntN(3)
	} else if r.IntN(4) == 0 {
		c.N, c.M = 7, 2
	}
	c.Source = parley.ID(r.IntN(c.N))
	opt := sim.Options{Seed: seed, Faulty: map[parley.ID]faulty.Behavior{}, Until: 60_000_000}
	how := []faulty.Behavior{forger, forger, forger, faulty.Any, faulty.Silent, faulty.Twin}
	liars := r.Perm(c.N)[:c.M-r.IntN(4)/3]
	for _, id := range liars {
		opt.Faulty[parley.ID(id)] = how[r.IntN(len(how))]
	}
	for k := range 1 + r.IntN(2) {
		opt.Requests = append(opt.Requests, sim.Request{
			At: c.Source, When: parley.Tick(r.IntN(3000) * (1 + r.IntN(6)/5*6)),
			Msg: parley.Msg{Kind: parley.Propose, Body: []byte{"ab"[k]}},
		})
	}
	opt.Heal = parley.Tick(r.IntN(3*slow)) + 1
	for range r.IntN(8) {
		from, to := parley.ID(r.IntN(c.N)), parley.ID(r.IntN(c.N))
		if from != to {
			opt.Links = append(opt.Links, sim.Link{From: parley.SetOf(from), To: parley.SetOf(to),
				Delay: sim.Delay{Least: 1, Most: parley.Tick(1 + r.IntN(slow))}})
		}
	}
	for range r.IntN(3) {
		opt.Pauses = append(opt.Pauses, sim.Pause{
			At: parley.ID(r.IntN(c.N)), From: parley.Tick(r.IntN(early)), For: parley.Tick(1 + r.IntN(60_000)),
		})
	}
	for id := range parley.ID(c.N) {
		opt.Clocks = append(opt.Clocks, sim.Clock{At: id, Drift: r.Int64N(400_000) - 200_000})
	}
	for range crashes {
		at := parley.ID(r.IntN(c.N))
		if _, lies := opt.Faulty[at]; !lies {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: at, When: parley.Tick(1 + r.IntN(early)), Effects: r.IntN(8), Back: parley.Tick(1 + r.IntN(5000)),
			})
		}
	}
	return opt, c
}

// note adds a run to the counts.
func (n *counts) note(s *sim.Sim) {
	top, claimed, voted := uint64(0), false, false
	for id := range s.Correct().All() {
		p, up := s.Machine(id).(*noting)
		if !up {
			continue
		}
		i := p.slot
		top = max(top, i.view)
		claimed = claimed || i.view > 0 && i.ready.said
		for _, x := range i.votes[0] {
			voted = voted || x.view < i.view
		}
	}
	n.views[min(top, 3)]++
	if claimed {
		n.claims++
	}
	if voted {
		n.votes++
	}
	for _, d := range s.History.Deliveries {
		if d.Msg.Kind == parley.Decide && len(d.Msg.Body) == 0 {
			n.nothing++
			break
		}
	}
}

var kinds = New(Config{N: 4, M: 1}).Kinds

// Whatever m processes say, however late messages are, and wherever processes crash and restart: no property breaks,
// and all correct processes decide after messages and clocks have become timely.
func TestSeeds(t *testing.T) {
	n := counts{restarts: make(map[string]int)}
	for seed := range uint64(*seeds) {
		opt, c := stormy(seed, seed%2 == 0)
		opt.Protocol = New(c)
		opt.Protocol.New = func(self parley.ID) parley.Machine { return &noting{newProcess(c, self), n.restarts} }
		s := sim.Run(opt)
		s.History.Over = true
		for _, p := range opt.Protocol.Properties {
			if err := p.Check(&s.History); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, p.Name, err)
			}
		}
		n.note(s)
	}
	t.Logf("%d runs by view: %v; after READY %d, with votes %d, nothing %d; restarts after %v", *seeds, n.views,
		n.claims, n.votes, n.nothing, n.restarts)
	atLeast := func(what string, got, percent int) {
		if got*1000 < percent**seeds {
			t.Errorf("%s: %d of %d runs, at least %d in 1000 are expected", what, got, *seeds, percent)
		}
	}
	for k, least := range []int{100, 100, 50, 50} {
		atLeast("greatest view", n.views[k], least)
	}
	atLeast("left view 0 after READY", n.claims, 100)
	atLeast("reported votes", n.votes, 40)
	atLeast("decided on nothing", n.nothing, 100)
	// No restart is after PROPOSE, because the source echoes its own proposal in the same step.
	for _, last := range []string{"none", "ECHO", "READY", "ENTER", "votes 1", "votes 2", "votes 3", "votes 4",
		"DECIDED"} {
		atLeast("restarts after "+last, n.restarts[last], 4)
	}
}
