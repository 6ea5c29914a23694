package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/cli"
)

// boastful is diffusion that promises agreement whatever happens to links.
func boastful(n int) parley.Protocol {
	p := diffusion.New(diffusion.Config{N: n})
	p.Name = "boastful"
	p.Promises = func(parley.Assumptions) []parley.Promise {
		return []parley.Promise{{Property: problem.Agreement, Holds: true, Because: "it says so"}}
	}
	p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
		n := fs.Int("n", n, "")
		return func(parley.Naming) (parley.Protocol, error) { return boastful(*n), nil }
	}
	return p
}

// A broken promise is found, with the first seed that breaks it; it is made as small
// as it gets; and both commands that are printed break it again.
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
	// For people, with the commands as a shell takes them; and the same on one worker.
	out, _ = command(args...)
	single, _ := command(append(args, "--workers", "1")...)
	for _, text := range []string{out, single} {
		if !strings.Contains(text, "breaks agreement: ") || !strings.Contains(text, "\n  again: parley run boastful ") ||
			!strings.Contains(text, "\n  least: parley run boastful ") {
			t.Errorf("what was found is not said:\n%s", text)
		}
	}
	_, said, _ := strings.Cut(out, "\nseed ")
	_, saidAlone, _ := strings.Cut(single, "\nseed ")
	if strings.Split(said, "\n")[0] != strings.Split(saidAlone, "\n")[0] {
		t.Errorf("two workers find\n%s\nand one\n%s", said, saidAlone)
	}
	if out, _ := command(append(args, "--all", "--json")...); !strings.Contains(out, `"runs": 400`) {
		t.Error("with --all it does not go on")
	}
}
