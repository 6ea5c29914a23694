package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/cli"
	"parley/internal/scenario"
)

// outcome is what the scenarios look at in what --json prints.
type outcome struct {
	Verdicts []struct{ Property, Outcome string }
	Cost     struct {
		Measured []struct{ Messages uint64 }
	}
	Decisions   map[string]string
	Deliveries  map[string][]string
	Indications map[string][]string
}

// expected is a run of a scenario: the flags beside it and what is to come of it; on links
// what comes of it depends on how fast they are, or need not.
type expected = struct {
	Flags, Lines []string
	Depends      bool
}

func init() {
	cli.Expected = expectations
	cli.Meets = func(shown []byte, line string) error {
		var o outcome
		if err := json.Unmarshal(shown, &o); err != nil {
			return err
		}
		return o.meets(line)
	}
}

// expectations reads the comment lines "expect:" and "with:" of a scenario.
func expectations(t *testing.T, file string) []expected {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	runs := []expected{{}}
	for _, line := range strings.Split(string(b), "\n") {
		if flags, ok := strings.CutPrefix(line, "# with: "); ok {
			runs = append(runs, expected{Flags: words(flags), Depends: runs[0].Depends})
		} else if strings.HasPrefix(line, "# depends: ") {
			runs[len(runs)-1].Depends = true
		} else if what, ok := strings.CutPrefix(line, "# expect: "); ok {
			last := &runs[len(runs)-1]
			last.Lines = append(last.Lines, what)
		}
	}
	for _, run := range runs {
		if len(run.Lines) == 0 {
			t.Errorf("%s: nothing is expected of a run with %q", file, run.Flags)
		}
	}
	return runs
}

// meets tells whether one expectation is met, and what came instead.
func (o *outcome) meets(line string) error {
	what, want, _ := strings.Cut(line, ": ")
	have := "no such property"
	who, how, _ := strings.Cut(what, " ")
	list := func(of []string) string {
		if len(of) == 0 {
			return "nothing"
		}
		return strings.Join(of, ", ")
	}
	switch {
	case how == "delivers":
		have = list(o.Deliveries[who])
	case how == "decides":
		if have = o.Decisions[who]; have == "" {
			have = "nothing"
		}
	case how == "indicates":
		if have = list(o.Indications[who]); slices.Contains(o.Indications[who], want) {
			return nil
		}
	case what == "messages":
		sum := uint64(0)
		for _, round := range o.Cost.Measured {
			sum += round.Messages
		}
		have = fmt.Sprint(sum)
	default:
		for _, v := range o.Verdicts {
			if v.Property == what {
				have = v.Outcome
			}
		}
	}
	if have != want {
		return fmt.Errorf("%s: %s was expected, and %s came", what, want, have)
	}
	return nil
}

// Every scenario of the folder shows what its header says.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../docs/scenarios/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			for _, one := range expectations(t, file) {
				stdout, stderr, status := run(append([]string{"run", "--scenario", file, "--json"}, one.Flags...)...)
				var o outcome
				if err := json.Unmarshal([]byte(stdout), &o); err != nil || status != 0 {
					t.Fatalf("%q: status %d, %s, %v", one.Flags, status, stderr, err)
				}
				for _, line := range one.Lines {
					if err := o.meets(line); err != nil {
						t.Errorf("%q: %v", one.Flags, err)
					}
				}
			}
		})
	}
}

// An expectation that is not met is found.
func TestExpectationsCanFail(t *testing.T) {
	var o outcome
	if err := json.Unmarshal([]byte(`{"verdicts": [{"property": "validity", "outcome": "held"}],
		"cost": {"measured": [{"messages": 3}, {"messages": 4}]}, "decisions": {"P1": "commit"},
		"deliveries": {"P1": ["a", "b"]}, "indications": {"P1": ["suspects P2"]}}`), &o); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"validity: held": true, "validity: violated": false, "agreement: held": false,
		"P1 delivers: a, b": true, "P1 delivers: b, a": false, "P1 delivers: a": false, "P2 delivers: nothing": true,
		"P1 decides: commit": true, "P1 decides: abort": false, "P2 decides: nothing": true, "P2 decides: commit": false,
		"P1 indicates: suspects P2": true, "P1 indicates: suspects P3": false,
		"messages: 7": true, "messages: 8": false,
	} {
		if met := o.meets(line) == nil; met != want {
			t.Errorf("%s: %v", line, met)
		}
	}
}

// The table in the folder lists every scenario once, and nothing else; and each
// scenario says what it is about.
func TestScenarioTable(t *testing.T) {
	b, err := os.ReadFile("../docs/scenarios/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range scenario.Keys {
		if !strings.Contains(string(b), "`"+key+"`") {
			t.Errorf("the key %s is not explained", key)
		}
	}
	var listed []string
	for _, line := range strings.Split(string(b), "\n") {
		if _, after, ok := strings.Cut(line, ".yaml]("); ok && strings.HasPrefix(line, "| ") {
			name, _, _ := strings.Cut(after, ")")
			listed = append(listed, name)
		}
	}
	var there []string
	files, _ := filepath.Glob("../docs/scenarios/*.yaml")
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
		for _, name := range listed {
			if !slices.Contains(there, name) {
				t.Errorf("the table lists %s, which is not there", name)
			}
		}
		for _, name := range there {
			if !slices.Contains(listed, name) {
				t.Errorf("the table does not list %s", name)
			}
		}
		if len(listed) == len(there) {
			t.Error("the table lists a scenario twice")
		}
	}
}
