package cli_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/cli"
)

// Where a link is missing, only a protocol that relays makes promises: a delivery that is missing for lack of a link
// is no violation.
func TestMissingLinks(t *testing.T) {
	const path = " '--graph={1: [2], 2: [3], 3: [4]}' --show verdict"
	var list []judged
	for _, name := range []string{"diffusion", "fifo", "causal"} {
		list = append(list, judged{"run " + name + path, 0, []string{"✓ validity held", "✓ agreement held"}, nil})
	}
	for name, broken := range map[string]string{
		"uniform": "validity", "bracha": "validity", "detector": "accuracy", "twophase": "non-triviality",
		"convergence": "no alarm",
	} {
		line := "run " + name + " -n 4 --until 400000" + path
		list = append(list, judged{line, 0, []string{"! " + broken + " not promised: broken"}, nil})
	}
	judge(t, list)
}

// A process that is drawn to crash is not one of the liars, which would make it faulty twice. If there are too few
// other processes, the flag is refused.
func TestRandomSparesLiars(t *testing.T) {
	var list []judged
	for seed := range 8 {
		line := fmt.Sprintf("run om --faulty 1=flip,2=silent --random '{crashes: 2, within: 900}' --seed %d --show verdict", seed+1)
		list = append(list, judged{line, 0, []string{"P3 crashes", "P4 crashes"}, nil})
	}
	for _, flags := range []string{
		"--faulty 1=flip --random '{crashes: 2, restarts: 1, lost-disks: 1}'", "--random '{crashes: 5}'",
		"--random '{crashes: 3, spared: [1, 2]}'",
	} {
		list = append(list, judged{"run om " + flags, 2, []string{"parley: --random: ", "allowed are "}, nil})
	}
	judge(t, list)
}

// A value that a request proposes replaces the value of --values for that process alone. A protocol without Lies can
// have liars nevertheless, and then promises nothing.
func TestRequestsAndLiars(t *testing.T) {
	list := []judged{{"run ballot -n 3 --values x,y,z --requests '[{at: 2, when: 700, propose: late}]' --show decisions", 0,
		[]string{"│ P1 │ x ", "│ P2 │ late ", "│ P3 │ z "}, nil}}
	for _, how := range []string{"flip", "twofaced", "random"} {
		list = append(list, judged{"run diffusion --seed 2 --faulty 2=" + how +
			" --requests '[{at: 1, when: 9, broadcast: 0}, {at: 2, when: 9, broadcast: 0}]'", 0, []string{"not promised: broken"}, nil})
	}
	judge(t, list)
}

// The command that repeats a run is one command, whatever its length: each line but the last ends with a backslash.
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

// A protocol with a clashing name or flag is reported before anything runs.
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
	// But a protocol may define the flag graph itself.
	var out bytes.Buffer
	if status := cli.Run([]parley.Protocol{clashing("graph")}, []string{"list"}, &out, &out); status != 0 {
		t.Error(out.String())
	}
}
