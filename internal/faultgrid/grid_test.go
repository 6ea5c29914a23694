package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/cli"
	"parley/internal/draw/prose"
	"parley/run"
	"parley/sim"
)

// With a few seeds for every cell, no promise is broken.
func TestNoPromiseIsBroken(t *testing.T) {
	const seeds = 8
	g := fill(rows(), columns(), 0, seeds, func() {})
	if len(g.rows) < 14 || len(g.cols) < 10 {
		t.Errorf("%d rows and %d columns", len(g.rows), len(g.cols))
	}
	for r := range g.rows {
		for i, c := range g.cells[r] {
			for _, b := range c.breaches {
				t.Errorf("%s, %s, seed %d: %s: %s\n%s", g.rows[r].protocol.Name, g.cols[i].name, b.seed, b.property,
					b.how, command(b.least))
			}
			if c.runs != g.rows[r].seeds(seeds) {
				t.Errorf("%s, %s: %d runs", g.rows[r].protocol.Name, g.cols[i].name, c.runs)
			}
		}
	}
}

// Some protocols under every kind of fault, with enough seeds for every demand.
func TestEveryCellIsAsItMustBe(t *testing.T) {
	for _, name := range []string{"om", "diffusion", "bracha", "twophase"} {
		var out bytes.Buffer
		if ok, err := (choice{seeds: 120, rows: name}).run(&out, io.Discard); !ok || err != nil {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}

// Demands name existing cells and properties, and every protocol has one.
func TestDemandsAreOfTheGrid(t *testing.T) {
	all, cols := rows(), columns()
	seen := make(map[demand]bool)
	for _, d := range demands {
		r := slices.IndexFunc(all, func(r row) bool { return r.protocol.Name == d.row })
		if r < 0 || !slices.ContainsFunc(cols, func(c column) bool { return c.name == d.column }) {
			t.Errorf("%+v: there is no such cell", d)
			continue
		}
		property := func(p parley.Property) bool { return p.Name == d.property && p.Mode != parley.Sometimes }
		if !slices.ContainsFunc(all[r].protocol.Properties, property) {
			t.Errorf("%+v: there is no such property", d)
		}
		because := d.because
		if d.because = ""; seen[d] || because == "" {
			t.Errorf("%+v comes twice, or has no reason", d)
		}
		seen[d] = true
	}
	names := make(map[string]bool)
	for _, r := range all {
		name := r.protocol.Name
		if names[name] || !slices.ContainsFunc(demands, func(d demand) bool { return d.row == name }) {
			t.Errorf("%s comes twice, or nothing is demanded of it", name)
		}
		names[name] = true
	}
}

// line is the outcome of a property in the JSON output of the command line.
type line struct {
	Property, Outcome, Because, Broken string
}

// rerun runs the command line with the arguments of a trial.
func rerun(t *testing.T, protocols []parley.Protocol, args []string) (verdicts []line, status int) {
	t.Helper()
	var out, wrong bytes.Buffer
	status = cli.Run(protocols, append(slices.Clone(args), "--json"), &out, &wrong)
	var run struct{ Verdicts []line }
	if err := json.Unmarshal(out.Bytes(), &run); err != nil {
		t.Fatalf("%s\n%v: %s", command(args), err, &wrong)
	}
	return run.Verdicts, status
}

// The printed arguments repeat the run, in every kind of cell.
func TestTheCommandRunsItAgain(t *testing.T) {
	all := rows()
	memory := new(sim.Sim)
	for r := range all {
		for i, col := range columns() {
			if (r+i)%3 > 0 {
				continue
			}
			trial := newTrial(&all[r], &col, uint64(7*r+i))
			out := trial.run(memory)
			verdicts, _ := rerun(t, protocols(all), args(trial.spec))
			if len(verdicts) != len(out.Verdicts) {
				t.Fatalf("%s, %s: %d verdicts, then %d", all[r].protocol.Name, col.name, len(out.Verdicts), len(verdicts))
			}
			for k, v := range out.Verdicts {
				broken, because := "", v.Promise.Because
				if v.Outcome() == parley.NotApplicable {
					because = v.Vacuous
				}
				if v.Broken != nil && v.Property.Mode != parley.Sometimes {
					broken = v.Broken.Error()
				}
				if again := verdicts[k]; again.Property != v.Property.Name || again.Because != because ||
					again.Outcome != v.Outcome() ||
					again.Broken != broken && v.Property.Mode != parley.Sometimes {
					t.Errorf("%s, %s: %s: %s, broken: %s; then %+v\n%s", all[r].protocol.Name, col.name, v.Property.Name,
						because, broken, again, command(args(trial.spec)))
				}
			}
		}
	}
}

// theColumn returns the column with a name.
func theColumn(name string) *column {
	all := columns()
	return &all[slices.IndexFunc(all, func(c column) bool { return c.name == name })]
}

// A protocol that promises agreement over lossy links is detected, its run is shrunk, and the command line finds the
// same.
func TestAPromiseTooMuchIsFound(t *testing.T) {
	p := called("boaster", diffusion.New(diffusion.Config{N: 4}))
	p.Promises = func(parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: problem.Agreement, Holds: true, Because: "it says so"}}
	}
	r := row{protocol: p, plan: carries()}
	c := try(&r, theColumn("one-way"), 0, 60, new(sim.Sim))
	if word, ok := c.verdict(); word != "VIOLATED" || ok || len(c.breaches) != kept {
		t.Fatalf("%s, %d breaches", word, len(c.breaches))
	}
	b := c.breaches[0]
	again, least := command(b.again), command(b.least)
	if b.property != problem.Agreement || b.because != "it says so" || strings.Count(again, "broadcast:") != 8 ||
		strings.Count(least, "broadcast:") != 1 || strings.Count(least, "loss:") != 1 {
		t.Errorf("%+v: one broadcast and one cut are the least", b)
	}
	for _, args := range [][]string{b.again, b.least} {
		verdicts, status := rerun(t, []parley.Protocol{p}, args)
		broken := slices.ContainsFunc(verdicts, func(v line) bool {
			return v.Property == b.property && v.Outcome == parley.Violated
		})
		if status != 1 || !broken {
			t.Errorf("%s: status %d, %+v", command(args), status, verdicts)
		}
	}
}

// A machine of type panics panics on its first message, and one of type mute sends nothing.
type (
	panics struct{ parley.Base }
	mute   struct{ parley.Base }
)

func (panics) Request(s *parley.Step, m parley.Msg)        { s.SendAll(parley.Msg{Kind: 1, Body: m.Body}) }
func (panics) Receive(*parley.Step, parley.ID, parley.Msg) { panic("what was that?") }
func (panics) State(*parley.Vars)                          {}
func (mute) Request(s *parley.Step, m parley.Msg)          { s.SendAll(parley.Msg{Kind: 1, Body: m.Body}) }
func (mute) State(*parley.Vars)                            {}
func madeIn(m func(parley.ID) parley.Machine) parley.Protocol {
	return parley.Protocol{
		Name: "made", N: 3, M: 1, Serves: true, Kinds: []string{"", "DATA"}, New: m,
		Properties: problem.Of(problem.Integrity),
	}
}

func TestAPanicIsFound(t *testing.T) {
	r := row{protocol: madeIn(func(parley.ID) parley.Machine { return &panics{} }), plan: carries()}
	c := try(&r, theColumn("slow"), 0, 5, new(sim.Sim))
	if word, _ := c.verdict(); word != "VIOLATED" || c.violated != 5 || c.breaches[0].property != run.Sound {
		t.Errorf("%s: %+v", word, c.breaches)
	}
}

func TestNothingIsNoSuccess(t *testing.T) {
	r := row{protocol: madeIn(func(parley.ID) parley.Machine { return &mute{} }), plan: carries()}
	c := try(&r, theColumn("slow"), 0, 20, new(sim.Sim))
	if word, ok := c.verdict(); word != "NOTHING" || ok {
		t.Error(word)
	}
	r.plan.Workload = run.Workload{} // no message is sent, so none can be late
	c = try(&r, theColumn("slow"), 0, 20, new(sim.Sim))
	if word, ok := c.verdict(); word != "NO FAULT" || ok || !slices.Contains(c.why(), "no messages late") {
		t.Error(word, c.why())
	}
}

// outcomeOf returns the outcome of a run with one property.
func outcomeOf(mode parley.Mode, promised bool, broken error) *outcome {
	return &outcome{Trial: run.Trial{Faults: map[string]uint64{"crashes": 1}, Verdicts: []parley.Verdict{{
		Property: parley.Property{Name: "property", Mode: mode},
		Promise:  parley.Promise{Property: "property", Holds: promised}, Broken: broken,
	}}}, delivered: 1}
}

func TestVerdicts(t *testing.T) {
	bad := errors.New("bad")
	always, sometimes := parley.Always, parley.Sometimes
	nothing := outcomeOf(always, true, nil)
	nothing.delivered = 0
	calm := outcomeOf(always, true, nil)
	calm.Faults = nil
	restless := outcomeOf(always, false, nil)
	restless.GivenUp = true
	for _, test := range []struct {
		word string
		ok   bool
		want string // the property that must break
		runs []*outcome
	}{
		{"held", true, "", []*outcome{outcomeOf(always, true, nil), outcomeOf(always, false, nil)}},
		{"held*", true, "", []*outcome{outcomeOf(always, false, nil)}},
		{"broke 2", true, "property", []*outcome{
			outcomeOf(always, false, bad), outcomeOf(always, false, bad), outcomeOf(always, true, nil),
		}},
		{"VIOLATED", false, "", []*outcome{outcomeOf(always, true, nil), outcomeOf(always, true, bad)}},
		{"VIOLATED", false, "", []*outcome{restless}},
		{"NOT FOUND", false, "property", []*outcome{outcomeOf(always, true, nil)}},
		{"NOT FOUND", false, "other", []*outcome{outcomeOf(always, false, bad)}},
		{"NO FAULT", false, "", []*outcome{calm}},
		{"NOTHING", false, "", []*outcome{nothing}},
		{"NOTHING", false, "", []*outcome{outcomeOf(sometimes, true, bad)}},
		{"held*", true, "", []*outcome{outcomeOf(sometimes, true, bad), outcomeOf(sometimes, false, nil)}},
		{"held*", true, "", []*outcome{outcomeOf(sometimes, false, bad)}},
	} {
		c := newCell(&row{}, &column{shows: []string{"crashes"}})
		if test.want != "" {
			c.wants = []demand{{property: test.want}}
		}
		for _, run := range test.runs {
			c.add(run)
		}
		if word, ok := c.verdict(); word != test.word || ok != test.ok {
			t.Errorf("%s, %v; it is %s", word, ok, test.word)
		}
	}
}

// The same seeds give the same grid, whatever the memory was used for before.
func TestSameSeedsSameGrid(t *testing.T) {
	all := rows()
	r := &all[slices.IndexFunc(all, func(r row) bool { return r.protocol.Name == "group" })]
	used := new(sim.Sim)
	try(&all[3], theColumn("storm"), 5, 3, used)
	a, b := try(r, theColumn("storm"), 2, 6, used), try(r, theColumn("storm"), 2, 6, new(sim.Sim))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestOutput(t *testing.T) {
	var out bytes.Buffer
	c := choice{seeds: 150, rows: "t*phase", columns: "[c]*"}
	if ok, err := c.run(&out, io.Discard); !ok || err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"crash+suspect", "threephase", "broke", "held", "atomicity", "faults that occurred: ",
		"8 cells, 0 of them failed; 1,200 runs",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	for _, bad := range []choice{{rows: "nobody"}, {columns: "[", rows: "eig"}} {
		if _, err := bad.run(io.Discard, io.Discard); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// The page has all rows and columns.
func TestPageIsCurrent(t *testing.T) {
	text, err := part.Read("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	rows, cols := rows(), columns()
	want := []string{fmt.Sprintf("\n%s cells, ", prose.Number(uint64(len(rows)*len(cols))))}
	for _, r := range rows {
		want = append(want, "\n"+r.protocol.Name+" ")
	}
	for _, c := range cols {
		want = append(want, "  "+c.name)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s has no %q: run make grid", page, w)
		}
	}
}
