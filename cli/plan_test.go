package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/cli"
)

// verdicts runs a command line and returns the outcome of each property.
func verdicts(t *testing.T, args ...string) (of map[string]string, status int) {
	t.Helper()
	stdout, stderr, status := run(append(args, "--json")...)
	var o struct {
		Verdicts []struct{ Property, Outcome string }
	}
	if err := json.Unmarshal([]byte(stdout), &o); err != nil {
		t.Fatalf("%q: status %d, %s", args, status, stderr)
	}
	of = make(map[string]string)
	for _, v := range o.Verdicts {
		of[v.Property] = v.Outcome
	}
	return of, status
}

// Where a link is missing nobody but a protocol that relays has promised anything: what
// a run lacks for want of it is no violation.
func TestMissingLinks(t *testing.T) {
	const path = "--graph={1: [2], 2: [3], 3: [4]}"
	for _, name := range []string{"diffusion", "fifo", "causal"} {
		if of, status := verdicts(t, "run", name, path); status != 0 || of["validity"] != "held" || of["agreement"] != "held" {
			t.Errorf("%s: status %d, %v", name, status, of)
		}
	}
	for name, broken := range map[string]string{
		"uniform": "validity", "bracha": "validity", "detector": "accuracy", "twophase": "non-triviality",
		"convergence": "no alarm",
	} {
		of, status := verdicts(t, "run", name, "-n", "4", path, "--until", "400000")
		if status != 0 || of[broken] != "not promised: broken" {
			t.Errorf("%s: status %d, %v", name, status, of)
		}
	}
}

// Who is drawn to crash is not a liar, who would be faulty twice; and if there are not
// enough others the flag is refused.
func TestRandomSparesLiars(t *testing.T) {
	for seed := range 8 {
		stdout, stderr, status := run("run", "om", "--faulty", "1=flip,2=silent", "--random", "{crashes: 2, within: 900}",
			"--seed", string(rune('1'+seed)), "--show", "verdict")
		if status != 0 || !strings.Contains(stdout, "P3 crashes") || !strings.Contains(stdout, "P4 crashes") {
			t.Errorf("status %d, %s%s", status, stdout, stderr)
		}
	}
	for _, args := range [][]string{
		{"--faulty", "1=flip", "--random", "{crashes: 2, restarts: 1, lost-disks: 1}"}, {"--random", "{crashes: 5}"},
		{"--random", "{crashes: 3, spared: [1, 2]}"},
	} {
		if _, stderr, status := run(append([]string{"run", "om"}, args...)...); status != 2 ||
			!strings.HasPrefix(stderr, "parley: --random: ") || !strings.Contains(stderr, "allowed are ") {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
}

// What a request proposes takes the place of the value of --values, and of no other's.
func TestProposeInPlaceOfValue(t *testing.T) {
	stdout, stderr, status := run("run", "ballot", "-n", "3", "--values", "x,y,z", "--requests",
		"[{at: 2, when: 700, propose: late}]", "--show", "decisions")
	for _, want := range []string{"│ P1      │ x ", "│ P2      │ late ", "│ P3      │ z "} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("no %q: status %d, %s%s", want, status, stdout, stderr)
		}
	}
}

// A protocol that knows no lies has liars all the same, and nothing is promised then.
func TestLiarsBeyondTheModel(t *testing.T) {
	for _, how := range []string{"flip", "twofaced", "random"} {
		of, status := verdicts(t, "run", "diffusion", "--seed", "2", "--faulty", "2="+how,
			"--requests", "[{at: 1, when: 9, broadcast: 0}, {at: 2, when: 9, broadcast: 0}]")
		if status != 0 || !slices.Contains([]string{of["validity"], of["agreement"], of["integrity"]}, "not promised: broken") {
			t.Errorf("%s: status %d, %v", how, status, of)
		}
	}
}

// The command that makes a run again is one command, however long: each line but the
// last ends with a backslash.
func TestCommandIsOne(t *testing.T) {
	out, _, _ := run("run", "fifo", "--requests", "[{at: 1, when: 9, broadcast: what he said}]", "--pauses",
		"[{process: 2, since: 100, for: 3000}]", "--delay", "1..700", "--seed", "77", "--show", "verdict")
	_, again, ok := strings.Cut(out, "the same again: ")
	lines := strings.Split(strings.TrimSpace(again), "\n")
	if !ok || len(lines) < 2 {
		t.Fatalf("one line is enough for it:\n%s", out)
	}
	command := ""
	for i, line := range lines {
		text, more := strings.CutSuffix(line, ` \`)
		if more != (i < len(lines)-1) || len(line) > 100 {
			t.Errorf("line %d: %s", i, line)
		}
		command += " " + text
	}
	if same, stderr, _ := run(append(words(command)[1:], "--show", "verdict")...); same != out {
		t.Errorf("%s:\n%s%s\nnot\n%s", command, same, stderr, out)
	}
}

// A protocol whose name or flag clashes is told of before anything runs.
func TestClashes(t *testing.T) {
	clashing := func(name string) parley.Protocol {
		p := diffusion.New(diffusion.Config{N: 3})
		p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
			fs.Int(name, 3, "")
			return func(parley.Naming) (parley.Protocol, error) { return p, nil }
		}
		return p
	}
	for _, all := range [][]parley.Protocol{
		{clashing("seed")}, {clashing("svg")}, {clashing("workers")}, {clashing("h")}, {clashing("n"), clashing("n")},
	} {
		var stderr bytes.Buffer
		if status := cli.Run(all, []string{"list"}, io.Discard, &stderr); status != 2 || !strings.Contains(stderr.String(), "diffusion") {
			t.Errorf("status %d, %s", status, &stderr)
		}
	}
	// But what a graph is may be the protocol's own affair.
	var out bytes.Buffer
	if status := cli.Run([]parley.Protocol{clashing("graph")}, []string{"list"}, &out, &out); status != 0 {
		t.Error(out.String())
	}
}
