package parleytest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"parley"
	"parley/faulty"
	runs "parley/run"
	"parley/sim"
	"parley/trace"
)

// run is one drawn run. Its options determine it.
type run struct {
	sim.Options
}

// String describes the run in failures.
func (r run) String() string {
	what := []string{fmt.Sprintf("seed %d", r.Seed)}
	if len(r.Faulty) > 0 {
		var how []string
		for _, id := range slices.Sorted(maps.Keys(r.Faulty)) {
			how = append(how, fmt.Sprintf("%d=%s", id, r.Faulty[id].Name))
		}
		what = append(what, "faulty "+strings.Join(how, ","))
	}
	plan := runs.Plan{
		Loss: r.Loss, Twice: r.Twice, Links: r.Links, Crashes: r.Crashes, Pauses: r.Pauses, Suspicions: r.Suspicions,
		Detect: r.Detect, Heal: r.Heal,
	}
	name := func(id parley.ID) string { return "process " + id.String() }
	return strings.Join(append(what, plan.Describe(name)...), ", ")
}

// simulate makes the run. A run that does not end shows nothing, and fails the check.
func (r run) simulate() *sim.Sim {
	got := sim.Run(r.Options)
	if got.Stats.OutOfSteps {
		panic(failure{fmt.Errorf("%s: the run does not end: after %d steps it is tick %d, and more is due. "+
			"Give Options.Sim.Until, or more Options.Sim.Steps", r, got.Stats.Steps, got.Now())})
	}
	return got
}

// traced makes the run with a log that keeps the hash and, with keep, the events.
func (r run) traced(keep bool) (*sim.Sim, *trace.Log) {
	r.Log = &trace.Log{Keep: keep}
	return r.simulate(), r.Log
}

// honest draws the run of a seed without faults.
func (s suite) honest(p parley.Protocol, seed uint64) run {
	opt := s.o.Sim
	opt.Protocol, opt.Seed = p, seed
	opt.Requests = s.inputs(p, rand.New(rand.NewPCG(seed, 1)))
	return run{opt}
}

// draw draws the run of a seed with the given number of faulty processes.
func (s suite) draw(p parley.Protocol, seed uint64, howMany int) run {
	out := s.honest(p, seed)
	r := rand.New(rand.NewPCG(seed, 2))
	if p.Faults == parley.CrashFaults && howMany > 0 {
		out.Crashes = crashes(out, r, howMany)
		return out
	}
	for _, i := range r.Perm(p.N)[:min(howMany, p.N)] {
		id := parley.ID(i)
		if out.Faulty == nil {
			out.Faulty = make(map[parley.ID]faulty.Behavior)
		}
		out.Faulty[id] = s.behavior(p, r)
	}
	return out
}

// crashes draws crashes, most of them in steps in which the process would send.
func crashes(honest run, r *rand.Rand, howMany int) []sim.Crash {
	_, log := honest.traced(true)
	n := honest.Protocol.N
	steps, sending := make([]int, n), make([][]int, n)
	for _, e := range log.Events {
		switch e.Op {
		case trace.Start, trace.Request, trace.Receive, trace.Timeout, trace.Suspect:
			steps[e.At]++
		case trace.Send:
			sending[e.At] = append(sending[e.At], steps[e.At])
		}
	}
	var out []sim.Crash
	for _, i := range r.Perm(n)[:min(howMany, n)] {
		c := sim.Crash{At: parley.ID(i), Step: 1 + r.IntN(steps[i]), Effects: r.IntN(n + 2)}
		if k := len(sending[i]); k > 0 && r.IntN(4) > 0 {
			c.Step = sending[i][r.IntN(k)]
		}
		out = append(out, c)
	}
	return out
}

// behavior draws how a process fails, within the fault model.
func (s suite) behavior(p parley.Protocol, r *rand.Rand) faulty.Behavior {
	all := []faulty.Behavior{faulty.Crash(r.IntN(4), r.IntN(p.N))}
	if p.Faults >= parley.SignedByzantineFaults {
		all = append(all, garbage)
	}
	for _, how := range faulty.Named() {
		if how.Model <= p.Faults {
			all = append(all, how)
		}
	}
	return all[r.IntN(len(all))]
}

// garbage sends what no program of the protocol would send: its messages with a field, a length or a byte
// changed, or twice.
var garbage = faulty.Behavior{Name: "garbage", Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var said []parley.Outgoing
	for _, sent := range t.Honest {
		changed := sent
		changed.Msg = mutated(s.Choose, s.N, sent.Msg)
		switch s.Choose(4) {
		case 0:
			said = append(said, sent)
		case 1:
			said = append(said, changed, sent)
		default:
			said = append(said, changed)
		}
	}
	return said
}}

// garbled returns whether a process sends garbage, for instance of past rounds, or does not receive
// everything, so that it may not learn in time that rounds on demand have begun.
func (r run) garbled() bool {
	// order: the result is whether there is one
	for _, how := range r.Faulty {
		if how.Name == garbage.Name || how.Hear != nil {
			return true
		}
	}
	return false
}

// judge returns the verdicts on the properties of a run. Without Promises all properties are promised.
func judge(p parley.Protocol, got *sim.Sim) []parley.Verdict {
	verdicts := parley.Judge(p, got.RunConditions(), &got.History)
	if p.Promises == nil {
		for i := range verdicts {
			verdicts[i].Promise.Holds = true
			verdicts[i].Promise.Because = "as all is where Promises says nothing"
		}
	}
	return verdicts
}

// broken returns the first broken promise, or nil. A property of mode Sometimes is no promise of one run.
func broken(p parley.Protocol, got *sim.Sim) error {
	for _, v := range judge(p, got) {
		if v.Property.Mode != parley.Sometimes && v.Violated() {
			return fmt.Errorf("%s is promised (%s), and does not hold: %w", v.Property.Name, v.Promise.Because, v.Broken)
		}
	}
	return nil
}

// promises runs with up to M faults and checks that the promises hold, that there are promises to check,
// and that the properties of mode Sometimes occur. In some run, liars must tell more lies than messages of
// liars are refused or lost: otherwise they are silent in effect and the runs show nothing.
func promises(s suite) error {
	if len(s.p.Properties) == 0 {
		return fmt.Errorf("%s has no properties to check", s.p.Name)
	}
	promised := 0
	seen := make(map[string]bool)
	heard := false
	for seed := range uint64(s.o.Seeds) {
		howMany := s.p.M
		if seed%2 == 1 {
			howMany = int(seed/2) % (s.p.M + 1)
		}
		told := uint64(0)
		r := s.draw(countLies(s.p, &told), seed, howMany)
		r.countLies(&told)
		got := r.simulate()
		if err := broken(s.p, got); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		if late := got.Stats.Refused["late frame"]; late > 0 && !r.garbled() && s.p.Timing == parley.Synchronous {
			return fmt.Errorf("%s: %d frames came too late: give rounds more time", r, late)
		}
		for _, v := range judge(s.p, got) {
			if v.Promise.Holds {
				promised++
			}
			seen[v.Property.Name] = seen[v.Property.Name] || v.Broken == nil
		}
		heard = heard || told > got.Stats.RefusedFaulty+got.Stats.Lost
	}
	if promised == 0 {
		return fmt.Errorf("%s promises nothing of %d processes with at most %d faulty", s.p.Name, s.p.N, s.p.M)
	}
	for _, property := range s.p.Properties {
		if property.Mode == parley.Sometimes && !seen[property.Name] {
			return fmt.Errorf("%s was not seen in %d runs: %s", property.Name, s.o.Seeds, property.Says)
		}
	}
	if s.byzantine() && s.p.M > 0 && !heard {
		return fmt.Errorf("no lie of a faulty process was accepted in %d runs", s.o.Seeds)
	}
	return nil
}

// countLies returns p with a count of what its Lies send to correct processes and an honest process would
// not have sent.
func countLies(p parley.Protocol, told *uint64) parley.Protocol {
	if p.Lies != nil {
		p.Lies = counted(p.Lies, told)
	}
	return p
}

// countLies counts the lies of behaviors if the protocol has no Lies.
func (r run) countLies(told *uint64) {
	// order: each entry is changed by itself
	for id, how := range r.Faulty {
		if r.Protocol.Lies == nil && how.Tell != nil {
			how.Tell = counted(how.Tell, told)
			r.Faulty[id] = how
		}
	}
}

// counted returns tell, with its messages that are not honest counted.
func counted(tell teller, lies *uint64) teller {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		honest := slices.Clone(t.Honest) // a liar may write into it
		said := tell(s, t)
		for _, one := range said {
			if !slices.ContainsFunc(honest, one.Equal) {
				*lies++
			}
		}
		return said
	}
}

// teller is a function that decides what a faulty process sends.
type teller = func(*parley.Step, *parley.Turn) []parley.Outgoing

// determinism runs seeds twice.
func determinism(s suite) error {
	for seed := range uint64(s.share(20)) {
		r := s.draw(s.p, seed, s.p.M)
		_, first := r.traced(false)
		_, again := r.traced(false)
		if first.Hash() != again.Hash() {
			return fmt.Errorf("%s: two runs differ", r)
		}
	}
	return nil
}
