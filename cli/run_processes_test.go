package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ran is the part of the output of "run --json" that the tests use.
type ran struct {
	Host     string
	Verdicts []struct{ Property, Outcome string }
}

// Real processes are killed, restarted and paused. The test demands only properties that hold on a computer of any
// speed. TestScenariosOnLinks tests all other promises, on links in memory.
func TestRunProcesses(t *testing.T) {
	for name, args := range map[string][]string{
		"killed, and back": {"twophase", "--crashes=[{process: 2, when: 5, back: 2000}]"},
		"paused":           {"bracha", "--pauses=[{process: 2, since: 100, for: 100ms}]"},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, status := run(slices.Concat([]string{"run"}, args, []string{"--host=cluster", "--json"})...)
			var r ran
			if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || stderr != "" || r.Host != "cluster" {
				t.Fatalf("status %d, %v, %s%s", status, err, stderr, out)
			}
			checkJSON(t, append([]string{"run"}, args...), out)
			for _, v := range r.Verdicts {
				if (v.Property == "atomicity" || v.Property == "agreement") && !strings.HasSuffix(v.Outcome, "held") {
					t.Errorf("%s: %s", v.Property, v.Outcome)
				}
			}
		})
	}
}

// The trace of a run between processes can be shown later, but not replayed.
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
