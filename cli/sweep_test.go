package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/cli"
	making "parley/run"
)

// boastful is diffusion that promises agreement whatever faults the links have.
func boastful(n int) parley.Protocol {
	p := diffusion.New(diffusion.Config{N: n})
	p.Name = "boastful"
	p.Promises = func(parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: problem.Agreement, Holds: true, Because: "it says so"}}
	}
	p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
		n := fs.Int("n", n, "")
		return func(parley.Naming) (parley.Protocol, error) { return boastful(*n), nil }
	}
	return p
}

// A sweep finds a broken promise and the first seed that breaks it, and shrinks the run; both printed commands break
// the promise again.
func TestSweepFinds(t *testing.T) {
	all := []parley.Protocol{boastful(4)}
	command := func(args ...string) (string, int) {
		var out, stderr bytes.Buffer
		status := cli.Run(all, args, &out, &stderr)
		if stderr.Len() > 0 {
			t.Fatalf("%q: %s", args, stderr.String())
		}
		return out.String(), status
	}
	args := []string{"sweep", "boastful", "--seeds", "1..400", "--random", "{partitions: 2, pauses: 3, within: 3000, last: 900}"}
	out, status := command(append(args, "--json")...)
	var found struct {
		Runs   uint64
		Broken []struct {
			Seed         uint64
			Property     string
			Again, Least []string
		}
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || status != 1 || len(found.Broken) == 0 {
		t.Fatalf("status %d, %v, %s", status, err, out)
	}
	first := found.Broken[0]
	if first.Property != problem.Agreement || found.Runs >= 400 || first.Seed > found.Runs {
		t.Errorf("seed %d breaks %s in %d runs", first.Seed, first.Property, found.Runs)
	}
	for _, again := range [][]string{first.Again, first.Least} {
		out, status := command(append([]string{"run"}, again...)...)
		if status != 1 || !strings.Contains(out, "✗ agreement    VIOLATED") {
			t.Errorf("%q: status %d\n%s", again, status, out)
		}
	}
	least := strings.Join(first.Least, " ")
	if strings.Contains(least, "pauses") || strings.Contains(least, "random") || strings.Count(least, "broadcast:") != 1 ||
		strings.Count(least, "from:") != 1 {
		t.Errorf("one link and one broadcast are enough: %s", least)
	}
	// As text, with the commands quoted for a shell.
	if text, _ := command(args...); !strings.Contains(text, "breaks agreement: ") ||
		!strings.Contains(text, "\n  again: parley run boastful ") || !strings.Contains(text, "\n  least: parley run boastful ") {
		t.Errorf("what was found is not said:\n%s", text)
	}
	if out, _ := command(append(args, "--all", "--json")...); !strings.Contains(out, `"runs": 400`) {
		t.Error("with --all it does not go on")
	}
}

// promising is diffusion with one more property, which it promises.
func promising(property string, check func(h *parley.History) error) parley.Protocol {
	p := diffusion.New(diffusion.Config{N: 4})
	p.Name, p.Flags = "promising", nil
	p.Properties = append(slices.Clip(p.Properties), parley.Property{Name: property, Says: property, Check: check})
	p.Promises = func(parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: property, Holds: true, Because: "it says so"}}
	}
	return p
}

// The least command contains only what the failure needs. One that needs no request is printed as a run without any:
// not as one in which some are drawn because none is given. Links that do not keep the order, although the protocol
// relies on it, remain such links. Liars are left out too.
func TestLeast(t *testing.T) {
	back := promising("peace", func(h *parley.History) error {
		if len(h.Restarts) > 0 {
			return errors.New("one is back")
		}
		return nil
	})
	back.Relies.FIFO = true
	honest := making.Lying(promising(problem.Integrity, nil))
	honest.Faults, honest.Properties = parley.OralByzantineFaults, problem.Of(problem.Integrity)
	for _, c := range []struct {
		p                        parley.Protocol
		args                     string
		has                      string
		requests, crashes, liars int
	}{
		{back, "--fifo=false --random '{restarts: 3}'", "--fifo=false", 0, 1, 0},
		{honest, "--faulty 2=flip,3=flip --workload '{broadcasts: 6, from: [1, 2, 3]}' --random '{restarts: 1}'", "flip", 1, 0, 1},
	} {
		var out, stderr bytes.Buffer
		status := cli.Run([]parley.Protocol{c.p}, words("sweep promising --json "+c.args), &out, &stderr)
		var found struct{ Broken []struct{ Least []string } }
		if err := json.Unmarshal(out.Bytes(), &found); err != nil || status != 1 || len(found.Broken) == 0 {
			t.Fatalf("status %d, %v, %s %s", status, err, &out, &stderr)
		}
		least := strings.Join(found.Broken[0].Least, " ")
		if strings.Count(least, "at:") != c.requests || strings.Count(least, "process:") != c.crashes || !strings.Contains(least, c.has) ||
			strings.Count(least, "flip") != c.liars || strings.Contains(least, "--random") || strings.Contains(least, "--workload") {
			t.Errorf("%s: %d requests, %d crashes and %d liars are enough", least, c.requests, c.crashes, c.liars)
		}
		out.Reset()
		status = cli.Run([]parley.Protocol{c.p}, append([]string{"run"}, found.Broken[0].Least...), &out, &stderr)
		if status != 1 || !strings.Contains(out.String(), "VIOLATED") || strings.Contains(out.String(), "broadcasts m") != (c.requests > 0) {
			t.Errorf("%s does not break it again: status %d\n%s %s", least, status, &out, &stderr)
		}
	}
}

// A panic of a machine is a failure like any other: the report has its seed and the least run.
func TestSweepFindsPanics(t *testing.T) {
	p := falling()
	var out, stderr bytes.Buffer
	status := cli.Run([]parley.Protocol{p}, []string{"sweep", p.Name, "--seeds", "7..9"}, &out, &stderr)
	_, least, _ := strings.Cut(out.String(), "least: ")
	if text := out.String(); status != 1 || !strings.Contains(text, "does not panic  3 BROKEN") || strings.Count(least, "at:") != 1 ||
		!strings.Contains(text, "seed 7 breaks does not panic: told") {
		t.Errorf("status %d\n%s%s", status, text, &stderr)
	}
}

// A sweep has no picture and refuses the flags of pictures.
func TestSweepShowsNothing(t *testing.T) {
	var list []judged
	for _, flag := range []string{"--svg=x.svg", "--trace=x.jsonl", "--show=verdict", "--alive"} {
		list = append(list, judged{"sweep fifo --seeds 1 " + flag, 2, []string{"a sweep shows no single run"}, nil})
	}
	// It refuses a single seed as well. A scenario may be named in either place.
	judge(t, append(list, judged{"sweep fifo --seed 3", 2, []string{"--seed: a sweep runs many seeds"}, nil},
		judged{"sweep --help", 0, []string{"--seeds", "--all"}, nil}, judged{"sweep fifo --help", 0, []string{"--seeds", "--all"}, nil}))
	const file = "../docs/scenarios/fifo.yaml"
	want, _, _ := run("sweep", file, "--seeds", "1..3", "--json")
	for _, args := range [][]string{{"fifo", "--scenario", file}, {"--scenario=" + file}} {
		got, stderr, status := run(append(append([]string{"sweep"}, args...), "--seeds", "1..3", "--json")...)
		if status != 0 || counts(t, got) != counts(t, want) {
			t.Errorf("%q: status %d, %s%s\nnot %s", args, status, got, stderr, want)
		}
	}
}

// counts returns the counts that a sweep prints, without its duration.
func counts(t *testing.T, text string) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "wall_seconds")
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
