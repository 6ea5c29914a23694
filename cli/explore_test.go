package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/problem"
	"parley/broadcast/diffusion"
	"parley/cli"
	"parley/trace"
)

// The exit status says how the search ended: 0 exhausted and nothing found, 1 found, 2 bad usage, 3 ended early.
func TestExploreStatus(t *testing.T) {
	judge(t, []judged{
		{"explore om -n 4 -m 1 --step round", 0, []string{"\nexhausted: no promise breaks. In every state: "}, nil},
		{"explore om -n 4 -m 1 --step round --goal over", 1, []string{"\nfound: over"}, nil},
		{"explore om -n 4 -m 1 --step round --always 'not over'", 1, []string{"\nVIOLATED: always: not over"}, nil},
		{"explore om -n 3 -m 1 --step round --beyond-bound", 1, []string{"\nfound: validity breaks, which is not promised: "}, nil},
		{"explore om -n 3 -m 1 --step round", 2, nil, nil},
		{"explore om -n 5 -m 1 --states 100", 3, []string{"\nbudget hit (--states): not proven; "}, nil},
		{"explore om -n 4 -m 1 --depth 4", 3, []string{"\nbudget hit (--depth): not proven; "}, nil},
		{"explore om -n 4 -m 1 --order random --walks 50", 3, []string{"\nbudget hit (--walks): not proven; "}, nil},
		{"explore om -n 3 -m 1 --order random --walks 500 --beyond-bound", 1,
			[]string{"\nfound: validity breaks, which is not promised: "}, nil},
	})
}

// The story names the processes: with m+1 traitors, one process receives a second order in the last round, and no
// other does.
func TestExploreStory(t *testing.T) {
	out, stderr, _ := run("explore", "sm", "-n", "4", "-m", "1", "--faulty", "0,1", "--beyond-bound", "--step", "round",
		"--all", "--json", "--names", "lecture", "--values", "1")
	var got struct {
		Findings []struct {
			Property, Why string
			Story         []string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err, stderr)
	}
	want := []string{
		"round 0: p0 ✗ sends 1:0 to p1 ✗, p2 and p3", "round 1: p1 ✗ sends 1:0:1 to p2, 1:0:1 0:0:1 to p3",
		"round 1: p2 sends 1:0:2 to p1 ✗ and p3", "round 1: p3 sends 1:0:3 to p1 ✗ and p2", "p2 decides 1", "p3 decides 0",
	}
	found := false
	for _, f := range got.Findings {
		found = found || slices.Equal(f.Story, want) && f.Why == "p2 decided 1 and p3 decided 0"
		if f.Property != problem.Agreement || strings.Contains(f.Why, "process") {
			t.Errorf("%s: %s: %q", f.Property, f.Why, f.Story)
		}
	}
	if !found {
		t.Errorf("of %+v none is %q", got, want)
	}
}

// The story of a broken promise says that it is one. A protocol may have flags named like the keys of a scenario, but
// none named like those of explore.
func TestExplorePromise(t *testing.T) {
	p := promising("silence", func(h *parley.History) error {
		if len(h.Deliveries) > 0 {
			return errors.New(h.Name(h.Deliveries[0].At) + " delivered")
		}
		return nil
	})
	for status, own := range map[int][]string{1: {"crashes", "fifo", "requests", "workload", "detect"}, 2: {"liars"}} {
		p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
			for _, name := range own {
				fs.String(name, "", "its own")
			}
			return func(parley.Naming) (parley.Protocol, error) { return p, nil }
		}
		var out, stderr bytes.Buffer
		got := cli.Run([]parley.Protocol{p}, []string{"explore", "promising"}, &out, &stderr)
		found := strings.Contains(out.String(), "\nVIOLATED: silence: P") && strings.Contains(out.String(), "delivered\n")
		clash := strings.Contains(stderr.String(), "has a flag liars, which is one of the command line's own")
		if got != status || found != (status == 1) || clash != (status == 2) {
			t.Errorf("with flags %q: status %d\n%s%s", own, got, &out, &stderr)
		}
	}
}

// fallen panics when it is notified.
type fallen struct{ parley.Base }

func (fallen) Receive(*parley.Step, parley.ID, parley.Msg) { panic("told\nonce") }
func (fallen) Request(s *parley.Step, _ parley.Msg)        { s.SendAll(parley.Msg{Kind: 1}) }
func (fallen) State(*parley.Vars)                          {}

// falling returns a protocol of fallen machines.
func falling() parley.Protocol {
	p := diffusion.New(diffusion.Config{N: 3})
	p.Name, p.Flags, p.Properties = "falling", nil, nil
	p.New = func(parley.ID) parley.Machine { return fallen{} }
	return p
}

// A panic of a machine is found whatever the search looks for, and the story includes the transition that panics. The
// panic's text is put on one line.
func TestExplorePanic(t *testing.T) {
	p := falling()
	for _, args := range []string{"", "--order random", "--all --names article", "--goal 'P1 down'"} {
		var out, stderr bytes.Buffer
		status := cli.Run([]parley.Protocol{p}, append([]string{"explore", "falling"}, words(args)...), &out, &stderr)
		if status != 1 || !strings.Contains(out.String(), " run in which a machine panics, 2 transitions:\n   1 P") ||
			!strings.Contains(out.String(), "\nVIOLATED: P") ||
			!strings.Contains(out.String(), " panics on a delivery: told once\n") {
			t.Errorf("%s: status %d\n%s%s", args, status, out.String(), stderr.String())
		}
	}
	// The picture shows the panicking machine's state before the panic.
	p.Tree = func(parley.Machine) parley.Tree { return nil }
	dir := t.TempDir()
	file, drawn := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "run.svg")
	var out, stderr bytes.Buffer
	cli.Run([]parley.Protocol{p}, []string{"explore", "falling", "--requests", "[{at: 2, broadcast: a}]",
		"--workers", "1", "--trace", file, "--svg", drawn}, &out, &stderr)
	if !strings.Contains(out.String(), "\nVIOLATED: P1 panics on a delivery: told once\n") ||
		!strings.Contains(out.String(), "\nto see the run: parley trace show "+file) {
		t.Errorf("%s%s", out.String(), stderr.String())
	}
	if svg, err := os.ReadFile(drawn); err != nil || !strings.Contains(string(svg), "a panic") {
		t.Errorf("%v: %s", err, svg)
	}
}

// every has, for each protocol, a search that soon finds a run.
var every = []string{
	"eig -n 4 -m 1 --goal 'all correct decided'", "om -n 4 -m 1 --faulty 2=twofaced --goal over",
	"sm -n 3 -m 1 --goal over --step round", "interactive -n 4 -m 1 --goal 'all correct decided' --order depth",
	"phaseking -n 4 -m 1 --goal over --step round --order random", "agreed -n 4 -m 1 --faulty 4=flip --goal 'P2 decides abort'",
	"uniform -n 3 --crashes 1 --losses 1 --doubles 1 --goal 'P1 down and P3 delivers m1'",
	"forwarding -n 3 --crashes 1 --goal 'P1 down and P3 delivers m1'",
	"causal -n 3 --crashes 1 --losses 1 --beyond-bound", "fifo -n 3 --faulty 1 --beyond-bound",
	"atomic -n 3 --crashes 1 --goal 'P1 down and P2 delivers m1 before m2'",
	"timestamp -n 3 --crashes 1 --timeouts 1 --goal 'P2 delivers m1 and P1 down'",
	"bracha -n 4 -m 1 --faulty 4=twofaced --goal 'P2 delivered' --order random",
	"watch -n 3 --crashes 1 --goal 'P3 suspects P1'", "detector -n 2 --crashes 1 --goal 'P2 suspects P1'",
	"group -n 3 --false-suspicion 1 --timeouts 1 --goal 'P2.view = 2'",
	"ballot -n 3 --crashes 1 --restarts 1 --timeouts 3 --goal 'all decided' --order random",
	"twophase -n 3 --crashes 2 --restarts 2 --lost-disks 1 --beyond-bound --property atomicity",
	"twophase -n 3 --crashes 1 --timeouts 3 --beyond-bound --property non-blocking",
	"threephase -n 3 --crashes 1 --goal 'P2 decides abort and P3 decides abort and P1 down'",
	"quorum -n 3 --crashes 1 --goal 'P2 decides commit and P1 down'", "bank -n 3 --goal 'some delivered'",
	"news-fifo -n 3 --beyond-bound --requests '[{at: 1, broadcast: article a}, {at: 2, broadcast: response c to a}]'",
}

// The trace of every run found can be shown, and replayed by the correct processes.
func TestExploreReplays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	for _, args := range every {
		out, stderr, status := run(append(append([]string{"explore"}, words(args)...), "--trace", file)...)
		if status != 1 {
			t.Errorf("explore %s: status %d\n%s%s", args, status, out, stderr)
			continue
		}
		if out, stderr, _ := run("run", "--replay", file); !strings.Contains(out, "\nreplayed: ") {
			t.Errorf("explore %s: the trace does not replay: %s", args, stderr)
		}
		if out, stderr, _ := run("trace", "show", file); out == "" {
			t.Errorf("explore %s: the trace does not show: %s", args, stderr)
		}
	}
}

// A trace that is complete but not a run of the protocol is not replayed.
func TestReplayRefuses(t *testing.T) {
	dir := t.TempDir()
	file, changed := filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "changed.jsonl")
	run("explore", "eig", "-n", "3", "-m", "1", "--beyond-bound", "--trace", file)
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	h, log, err := trace.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	write := func(change func(e *trace.Event)) {
		t.Helper()
		other := trace.Log{Keep: true}
		for _, e := range log.Events {
			change(&e)
			other.Add(e)
		}
		var b bytes.Buffer
		if err := trace.Write(&b, h, &other); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(changed, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(func(*trace.Event) {})
	if _, stderr, status := run("run", "--replay", changed); status != 0 {
		t.Errorf("nothing was changed: status %d, %s", status, stderr)
	}
	write(func(e *trace.Event) {
		if e.Op == trace.Deliver && e.At == 2 {
			e.Msg.Body = []byte("1")
		}
	})
	if _, stderr, status := run("run", "--replay", changed); status != 2 ||
		!strings.Contains(stderr, "changed.jsonl: the repeated run differs from the trace: event ") {
		t.Errorf("a decision was changed: status %d, %s", status, stderr)
	}
	h.Facts.Bare = true
	write(func(*trace.Event) {})
	if _, stderr, status := run("run", "--replay", changed); status != 2 || !strings.Contains(stderr, "eig uses no failure detector") {
		t.Errorf("it has no detector: status %d, %s", status, stderr)
	}
}

// Before a search that may never end, explore warns of that. Ctrl-C ends the search and prints the results so far.
func TestExploreInterrupted(t *testing.T) {
	p := begin(t, " MiB\n", "explore", "eig", "-n", "7", "-m", "2") // it is searching
	status := p.end(os.Interrupt)
	out := p.printed()
	for _, text := range []string{
		"there are at least 115,964,116,992 states, because the messages of a round ",
		": this search will not visit all; to visit fewer states: --step round or ",
		"\ninterrupted: not proven; nothing was found so far\n",
	} {
		if status != 130 || !strings.Contains(out, text) {
			t.Errorf("got status %d, want 130 and %q:\n%s", status, text, out)
		}
	}
}
