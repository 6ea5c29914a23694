package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ran is what "run --json" prints, as far as it is looked at.
type ran struct {
	Host      string
	Decisions map[string]string
	Verdicts  []struct{ Property, Outcome string }
}

// Protocols run between real processes, which lie, are killed, come back and stand still,
// and are judged as in the simulator.
func TestRunProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		args      []string
		decisions map[string]string
		outcomes  map[string]string
	}{
		"liars": {
			[]string{"eig", "--faulty=3=flip,6=crash@r1:2", "--round=500ms"},
			map[string]string{"P1": "1", "P2": "1", "P4": "1", "P5": "1", "P7": "1"},
			map[string]string{"agreement": "held", "validity": "held"},
		},
		"signatures": {
			[]string{"sm", "--faulty=1=twofaced", "--signatures=ed25519", "--round=500ms"}, nil,
			map[string]string{"agreement": "held"},
		},
		"killed": {
			[]string{"timestamp", "-n3", "--crashes=[{process: 2, when: 2000}]"}, nil,
			map[string]string{"one sequence": "held", "uniform agreement": "held"},
		},
		"killed, and back": {
			[]string{"twophase", "--crashes=[{process: 2, when: 5, back: 2000}]"}, nil,
			map[string]string{"atomicity": "held", "stability": "held"},
		},
		"crashed between two sends": {
			[]string{"diffusion", "-n4", "--requests=[{at: 1, when: 100, broadcast: a}]",
				"--crashes=[{process: 1, step: 2, effects: 1}]"}, nil,
			map[string]string{"agreement": "held", "validity": "not applicable"},
		},
		"bad weather": {
			[]string{"bracha", "-n4", "-m1", "--requests=[{at: 1, when: 100, broadcast: a}]", "--delay=1..900",
				"--clocks=[{process: 1, offset: 5}]", "--twice=0.5"}, nil,
			map[string]string{"agreement": "held", "validity": "held"},
		},
		"stands still": {
			[]string{"bracha", "--pauses=[{process: 2, since: 100, for: 100ms}]"}, nil,
			map[string]string{"agreement": "held", "validity": "held"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong []string
			for range 3 { // a busy machine may hold processes up, which then take no part
				wrong = nil
				out, stderr, status := run(slices.Concat([]string{"run"}, test.args, []string{"--host=cluster", "--json"})...)
				var r ran
				if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || stderr != "" || r.Host != "cluster" {
					t.Fatalf("status %d, %v, %s%s", status, err, stderr, out)
				}
				for who, value := range test.decisions {
					if r.Decisions[who] != value {
						wrong = append(wrong, fmt.Sprintf("%s decides on %q", who, r.Decisions[who]))
					}
				}
				for _, v := range r.Verdicts {
					if want := test.outcomes[v.Property]; want != "" && !strings.HasSuffix(v.Outcome, want) {
						wrong = append(wrong, v.Property+": "+v.Outcome)
					}
				}
				if len(wrong) == 0 {
					return
				}
			}
			t.Error(wrong)
		})
	}
}

// A trace of a run between processes can be looked at later; it can not be run again.
func TestProcessesTraced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	first, stderr, status := run("run", "eig", "-n4", "-m1", "--faulty=3=twofaced", "--host=cluster", "--trace", file)
	if status != 0 {
		t.Fatal(stderr)
	}
	again, stderr, status := run("trace", "show", file)
	if status != 0 || again != first {
		t.Errorf("status %d, %s: first\n%s\nthen\n%s", status, stderr, first, again)
	}
	if _, stderr, status := run("run", "--replay", file); status != 2 || !strings.Contains(stderr, "real processes") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
