package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/faulty"
	"parley/internal/scenario"
	"parley/sim"
)

// trial is one run of a cell: all that is to be drawn is drawn.
type trial struct {
	row    *row
	seed   uint64
	plan   scenario.Plan
	liars  map[parley.ID]faulty.Behaviour
	values []string // of the processes that propose, in order
}

// steps are the most that a run may make before it counts as one that never rests.
const steps = 2_000_000

// newTrial draws the trial of a seed.
func newTrial(r *row, col *column, seed uint64) trial {
	p := r.protocol
	d := rand.New(rand.NewPCG(seed, 0x96d1))
	t := trial{row: r, seed: seed, liars: make(map[parley.ID]faulty.Behaviour)}
	plan := r.plan
	plan.Steps = steps
	if col.liars != nil {
		for _, id := range d.Perm(p.N)[:col.liars(p, seed)] {
			t.liars[parley.ID(id)] = col.hows[d.IntN(len(col.hows))]
			plan.Random.Spared.Add(parley.ID(id))
		}
	}
	col.add(&plan, r, seed)
	if r.values != nil {
		t.values = r.values(d, p.Proposers.Len())
	}
	t.plan = plan.Draw(p, seed)
	if r.commands != nil {
		for i := range t.plan.Requests {
			t.plan.Requests[i].Msg.Body = []byte(r.commands(d))
		}
	}
	return t
}

// options are those of the run, as the command line makes them of args.
func (t *trial) options() sim.Options {
	opt := t.plan.Options(t.row.protocol, t.seed)
	opt.Faulty = t.liars
	var proposals []sim.Request
	i := 0
	for id := range t.row.protocol.Proposers.All() {
		proposals = append(proposals, sim.Request{
			At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(t.values[i])},
		})
		i++
	}
	opt.Requests = append(proposals, opt.Requests...)
	return opt
}

// args are those of the command that makes the run again: of "parley", if it knows
// the protocol of the row by that name and with these parameters, and else of this
// command.
func (t *trial) args() []string {
	args := []string{"run", t.row.protocol.Name, "--seed=" + strconv.FormatUint(t.seed, 10)}
	if len(t.values) > 0 {
		args = append(args, "--values="+strings.Join(t.values, ","))
	}
	if len(t.liars) > 0 {
		var hows []string
		for _, id := range slices.SortedFunc(maps.Keys(t.liars), cmp.Compare[parley.ID]) {
			hows = append(hows, name(id)+"="+t.liars[id].Name)
		}
		args = append(args, "--faulty="+strings.Join(hows, ","))
	}
	for _, flag := range t.plan.Flags(t.row.protocol, name) {
		args = append(args, "--"+flag)
	}
	return args
}

// name is how the command line calls a process: P1 is 1.
func name(id parley.ID) string { return strconv.Itoa(int(id) + 1) }

// outcome is what came of a run.
type outcome struct {
	faults    map[string]uint64
	delivered uint64
	received  uint64 // messages
	verdicts  []parley.Verdict
	restless  bool   // it was given up
	panicked  string // what a machine panicked with
}

// run makes the run in the memory of others.
func (t *trial) run(memory *sim.Sim) (out outcome) {
	defer func() {
		if v := recover(); v != nil {
			out.panicked = fmt.Sprint(v)
			*memory = sim.Sim{}
		}
	}()
	memory.Reset(t.options())
	memory.Run()
	h := &memory.History
	h.Naming = func(id parley.ID) string { return "P" + name(id) }
	out = outcome{
		faults: memory.Stats.Faults(), received: memory.Stats.Deliveries, delivered: uint64(t.row.count(h)),
		restless: memory.Stats.OutOfSteps,
		verdicts: parley.Judge(t.row.protocol, memory.Assumptions(), h),
	}
	for _, c := range t.plan.Clocks {
		if c.Drift != 0 {
			out.faults[wrongClocks]++
		}
	}
	return out
}

// breach is a promise that a run broke.
type breach struct {
	Seed     uint64   `json:"seed"`
	Property string   `json:"property"`
	How      string   `json:"how"`
	Because  string   `json:"because,omitempty"` // why it was promised
	Again    []string `json:"again"`             // the arguments that make the run again
	Least    []string `json:"least,omitempty"`   // and the least of it that breaks the same
}

// The names of what breaks beside properties.
const (
	rests = "comes to rest"
	sound = "does not panic"
)

// breaches returns what a run broke although it was promised.
func (out *outcome) breaches() (list []breach) {
	if out.panicked != "" {
		list = append(list, breach{Property: sound, How: out.panicked})
	}
	if out.restless {
		list = append(list, breach{Property: rests, How: fmt.Sprintf("it was given up after %d steps", steps)})
	}
	for _, v := range out.verdicts {
		if v.Property.Mode != parley.Sometimes && v.Violated() {
			list = append(list, breach{Property: v.Property.Name, How: v.Broken.Error(), Because: v.Promise.Because})
		}
	}
	return list
}

// minimize makes a breach as small as it gets: what remains of the plan breaks the
// same property, with the same seed or one of a few others.
func (t trial) minimize(b *breach, memory *sim.Sim) {
	const others = 8
	seed := t.seed
	fails := func(plan scenario.Plan) bool {
		try := t
		try.plan = plan
		for k := range uint64(others) {
			if try.seed = k; k == 0 {
				try.seed = seed
			}
			out := try.run(memory)
			for _, found := range out.breaches() {
				if found.Property == b.Property {
					seed = try.seed
					return true
				}
			}
		}
		return false
	}
	if !fails(t.plan) {
		return
	}
	t.plan = scenario.Minimize(t.plan, fails)
	t.seed = seed
	b.Least = t.args()
}
