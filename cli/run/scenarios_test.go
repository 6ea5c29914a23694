package run

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/pflag"

	"parley"
	"parley/catalog"
	"parley/cli/console"
	"parley/internal/naming"
	"parley/internal/report"
	"parley/internal/scenario"
)

// expected is a run of a scenario: its additional flags and its expected lines. If depends is true, the outcome on
// links may depend on their speed.
type expected struct {
	flags, lines []string
	depends      bool
}

// eachScenario calls test with every scenario and the expectations in its header, in the comment lines "expect:",
// "with:" and "depends:".
func eachScenario(t *testing.T, test func(t *testing.T, file string, one expected)) {
	t.Helper()
	files, err := filepath.Glob("../../docs/scenarios/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runs := []expected{{}}
			for _, line := range strings.Split(string(b), "\n") {
				last := &runs[len(runs)-1]
				if flags, ok := strings.CutPrefix(line, "# with: "); ok {
					name, value, _ := strings.Cut(flags, " ")
					runs = append(runs, expected{flags: []string{name}, depends: runs[0].depends})
					if value != "" {
						runs[len(runs)-1].flags = []string{name, strings.Trim(value, "'")}
					}
				} else if strings.HasPrefix(line, "# depends: ") {
					last.depends = true
				} else if what, ok := strings.CutPrefix(line, "# expect: "); ok {
					last.lines = append(last.lines, what)
				}
			}
			for _, one := range runs {
				if len(one.lines) == 0 {
					t.Errorf("nothing is expected of a run with %q", one.flags)
				}
				test(t, file, one)
			}
		})
	}
}

// flagsOf returns the flags of a scenario with additional flags.
func flagsOf(t *testing.T, file string, flags []string) *flags {
	t.Helper()
	s, err := readScenario(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := protocolOf(&console.App{Protocols: catalog.All()}, s)
	if err != nil {
		t.Fatal(err)
	}
	f := newFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	if err := f.Set().Parse(flags); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(f.Flags); err != nil {
		t.Fatal(err)
	}
	return f
}

// meets returns an error that says what came instead if a run does not meet an expectation.
func meets(r *report.Report, names naming.Names, line string) error {
	what, want, _ := strings.Cut(line, ": ")
	who, how, _ := strings.Cut(what, " ")
	id, _ := names.Parse(who, r.N)
	process := names.Full(id) == who
	have := []string{"no such process or property"}
	switch {
	case process && how == "delivers":
		have = r.Deliveries[who]
	case process && how == "decides":
		have = []string{r.Decisions[who]}
	case process && how == "indicates":
		if have = r.Indications[who]; slices.Contains(have, want) {
			return nil
		}
	case what == "messages":
		sum := uint64(0)
		for _, round := range r.Cost.Measured {
			sum += round.Messages
		}
		have = []string{fmt.Sprint(sum)}
	default:
		for _, v := range r.Verdicts {
			if v.Property == what {
				have = []string{v.Outcome}
			}
		}
	}
	if got := cmp.Or(strings.Join(have, ", "), "nothing"); got != want {
		return fmt.Errorf("%s: got %s, want %s", what, got, want)
	}
	return nil
}

// Every scenario of the folder has the outcome that its header states.
func TestScenarios(t *testing.T) {
	eachScenario(t, func(t *testing.T, file string, one expected) {
		f := flagsOf(t, file, one.flags)
		s, err := f.setup()
		if err != nil {
			t.Fatal(err)
		}
		log, facts, _, err := s.run()
		if err != nil {
			t.Fatal(err)
		}
		r := report.New(s.Run, log, facts)
		if r.Violated() {
			t.Errorf("%q: a promise was broken", one.flags)
		}
		for _, line := range one.lines {
			if err := meets(r, f.Names, line); err != nil {
				t.Errorf("%q: %v", one.flags, err)
			}
		}
	})
}

// An unmet expectation is detected.
func TestExpectationsCanFail(t *testing.T) {
	r := &report.Report{N: 2, Deliveries: map[string][]string{"P1": {"a", "b"}}}
	r.Verdicts = []report.Verdict{{Property: "FIFO order", Outcome: "held"}}
	for line, want := range map[string]bool{
		"P1 delivers: a, b": true, "P1 delivers: b, a": false, "P2 delivers: nothing": true, "P9 delivers: nothing": false,
		"FIFO order: held": true, "order: held": false,
	} {
		if met := meets(r, naming.Article, line) == nil; met != want {
			t.Errorf("%s: %v", line, met)
		}
	}
}

// The reference explains every key. The table in the folder lists every scenario once and nothing else, and each scenario
// says what it is about.
func TestScenarioTable(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range scenario.Keys {
		if !strings.Contains(string(reference), "`"+key+"`") {
			t.Errorf("the key %s is not explained", key)
		}
	}
	b, err := os.ReadFile("../../docs/scenarios/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, line := range strings.Split(string(b), "\n") {
		if _, after, ok := strings.Cut(line, ".yaml]("); ok && strings.HasPrefix(line, "| ") {
			name, _, _ := strings.Cut(after, ")")
			listed = append(listed, name)
		}
	}
	var there []string
	files, _ := filepath.Glob("../../docs/scenarios/*.yaml")
	for _, file := range files {
		there = append(there, filepath.Base(file))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(b), "\n"); !strings.HasPrefix(first, "# Lecture, ") && !strings.HasPrefix(first, "# The article, ") {
			t.Errorf("%s: its first line does not name the slide: %s", file, first)
		}
	}
	slices.Sort(listed)
	if slices.Sort(there); !slices.Equal(listed, there) {
		t.Errorf("got %q in the table, want %q, which are in the folder", listed, there)
	}
}

// Every scenario runs between processes connected by links, in virtual time, with the outcome that its header states:
// all of it, or, where that depends on more than the scenario, the promises that hold. No promise breaks.
func TestScenariosOnLinks(t *testing.T) {
	eachScenario(t, func(t *testing.T, file string, one expected) {
		f, dir := flagsOf(t, file, append([]string{"--host=cluster"}, one.flags...)), t.TempDir()
		var r *report.Report
		var err error
		synctest.Test(t, func(t *testing.T) { r, _, err = f.onLinks(t.Context(), dir) })
		if err != nil {
			t.Fatalf("%q: %v", one.flags, err)
		}
		for _, v := range r.Judged {
			if v.Violated() && v.Property.Mode != parley.Sometimes {
				t.Errorf("%q: %s: %v", one.flags, v.Property.Name, v.Broken)
			}
		}
		for _, line := range one.lines {
			if one.depends && !strings.HasSuffix(line, ": held") {
				continue
			}
			if err := meets(r, f.Names, line); err != nil {
				t.Errorf("%q: %v", one.flags, err)
			}
		}
	})
}

// samples are values of the keys of a scenario, for a broadcast protocol.
var samples = map[string]string{
	"requests": "[{at: 1, broadcast: a}]", "workload": "{broadcasts: 2}", "delay": "1..900", "fifo": "true", "loss": "0.5",
	"twice": "0.5", "graph": "{1: [2, 3], 3: [4]}", "links": "[{from: 1, delay: 9}]", "detect": "700", "until": "900",
	"partitions": "[{groups: [[1], [2]]}]", "crashes": "[{process: 1, step: 3, effects: 2}, {process: 2, when: 5, effects: 1}]",
	"pauses": "[{process: 1, for: 9}]", "clocks": "[{process: 1, drift: 100}]", "steps": "500", "heal": "500",
	"suspicions": "[{process: 1, suspects: 2}]", "random": "{crashes: 1, drift: 9}", "promised": "{delay: 900}",
}

// The keys that are refused between real processes are those that the documentation lists, with the same reasons.
func TestScenariosOnClusterAreRefusedAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| refused with `host: cluster` | why |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Count(table, "\n") + 1
	p, err := (&console.App{Protocols: catalog.All()}).Find("timestamp")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range scenario.Keys {
		f := newFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
		if err := f.Set().Parse([]string{"--host=cluster", "--" + key + "=" + samples[key]}); err != nil {
			t.Fatal(err)
		}
		_, err := f.setup()
		why, refused := strings.CutPrefix(fmt.Sprint(err), "--"+key+": it is not allowed with --host cluster: ")
		switch {
		case refused:
			rows--
			if !strings.Contains(strings.ReplaceAll(table, "`", ""), "| "+key+" | "+why+" |") { // the page marks flags
				t.Errorf("the documentation does not say that %s is refused: %s", key, why)
			}
		case err != nil:
			t.Errorf("%s: %v", key, err)
		}
	}
	if rows != 0 {
		t.Errorf("the documentation lists %d keys too many:\n%s", rows, table)
	}
}
