package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/faulty"
	"parley/internal/scenario"
	"parley/run"
	"parley/sim"
)

// trial is one run of a cell, with everything drawn.
type trial struct {
	row  *row
	spec run.Spec
}

// steps is the number of steps after which a run counts as endless.
const steps = 2_000_000

// newTrial draws the trial for a seed.
func newTrial(r *row, col *column, seed uint64) trial {
	p := r.protocol
	d := rand.New(rand.NewPCG(seed, 0x96d1))
	s := run.Spec{
		Protocol: p, Seed: seed, Plan: r.plan, Faulty: make(map[parley.ID]faulty.Behavior),
		Values: make(map[parley.ID][]byte), Name: func(id parley.ID) string { return "P" + name(id) },
	}
	s.Plan.Steps = steps
	if col.liars != nil {
		for _, id := range d.Perm(p.N)[:col.liars(p, seed)] {
			s.Faulty[parley.ID(id)] = col.hows[d.IntN(len(col.hows))]
			s.Plan.Random.Spared.Add(parley.ID(id))
		}
	}
	if col.add != nil {
		col.add(draft{&s.Plan, r, seed})
	}
	if r.values != nil {
		values := r.values(d, p.Proposers.Len())
		for i, id := range slices.Collect(p.Proposers.All()) {
			s.Values[id] = []byte(values[i])
		}
	}
	s = s.Draw()
	if r.commands != nil {
		for i := range s.Plan.Requests {
			s.Plan.Requests[i].Msg.Body = []byte(r.commands(d))
		}
	}
	return trial{r, s}
}

// args returns the arguments of the command that repeats the run: of "parley" if it has the row's protocol with this
// name and these parameters, and otherwise of this command.
func args(s run.Spec) []string {
	args := []string{"run", s.Protocol.Name, "--seed=" + strconv.FormatUint(s.Seed, 10)}
	if len(s.Values) > 0 {
		var values []string
		for id := range s.Protocol.Proposers.All() {
			values = append(values, string(s.Values[id]))
		}
		args = append(args, "--values="+strings.Join(values, ","))
	}
	if len(s.Faulty) > 0 {
		var hows []string
		for _, id := range slices.SortedFunc(maps.Keys(s.Faulty), cmp.Compare[parley.ID]) {
			hows = append(hows, name(id)+"="+s.Faulty[id].Name)
		}
		args = append(args, "--faulty="+strings.Join(hows, ","))
	}
	for _, flag := range scenario.Flags(s.Plan, s.Protocol, name) {
		args = append(args, "--"+flag)
	}
	return args
}

// name returns the name of a process on the command line: P1 is 1.
func name(id parley.ID) string { return strconv.Itoa(int(id) + 1) }

// outcome is the result of a run.
type outcome struct {
	run.Trial
	delivered uint64
}

// run makes the run, reusing memory.
func (t *trial) run(memory *sim.Sim) outcome {
	out := outcome{Trial: t.spec.Try(memory)}
	if out.History == nil {
		return out
	}
	out.delivered = uint64(t.row.count(out.History))
	for _, c := range t.spec.Plan.Clocks {
		if c.Drift != 0 {
			out.Faults[wrongClocks]++
		}
	}
	return out
}

// breach is a promise that a run broke.
type breach struct {
	seed     uint64
	property string
	how      string
	because  string   // why it was promised
	again    []string // the arguments that repeat the run
	least    []string // the smallest run that breaks the same
}

// breaches returns the promises that a run broke.
func (out *outcome) breaches() (list []breach) {
	if out.Panicked != "" {
		list = append(list, breach{property: run.Sound, how: out.Panicked})
	}
	if out.GivenUp {
		list = append(list, breach{property: run.Rests, how: fmt.Sprintf("it was given up after %d steps", steps)})
	}
	for _, v := range out.Verdicts {
		if v.Property.Mode != parley.Sometimes && v.Violated() {
			list = append(list, breach{property: v.Property.Name, how: v.Broken.Error(), because: v.Promise.Because})
		}
	}
	return list
}

// minimize shrinks the run of a breach.
func (t *trial) minimize(b *breach) {
	if least, ok := run.Minimize(context.Background(), t.spec, b.property); ok {
		b.least = args(least)
	}
}
