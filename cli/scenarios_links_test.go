package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/pflag"

	"parley"
	"parley/catalog"
	"parley/cli/console"
	"parley/cli/show"
	"parley/internal/scenario"
)

// Shown is what the scenarios look at, and how a test holds a run to a scenario's header:
// see scenarios_test.go.
var (
	Expected func(t *testing.T, file string) (runs []struct {
		Flags, Lines []string
		Depends      bool
	})
	Meets func(shown []byte, line string) error
)

// Every scenario runs between processes that are joined by links, in virtual time, and shows
// there what its header says: all of it, or where that depends on more than the scenario says,
// the promises that hold. And no promise breaks.
func TestScenariosOnLinks(t *testing.T) {
	files, err := filepath.Glob("../docs/scenarios/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, one := range Expected(t, file) {
				r := scenarioOnLinks(t, file, one.Flags)
				var b bytes.Buffer
				if err := json.NewEncoder(&b).Encode(r); err != nil {
					t.Fatal(err)
				}
				for _, v := range r.Judged {
					if v.Violated() && v.Property.Mode != parley.Sometimes {
						t.Errorf("%q: %s: %v", one.Flags, v.Property.Name, v.Broken)
					}
				}
				for _, line := range one.Lines {
					if one.Depends && !strings.HasSuffix(line, ": held") {
						continue
					}
					if err := Meets(b.Bytes(), line); err != nil {
						t.Errorf("%q: %v", one.Flags, err)
					}
				}
			}
		})
	}
}

// scenarioOnLinks runs a scenario with some flags beside those of the file.
func scenarioOnLinks(t *testing.T, file string, flags []string) (r *show.Report) {
	t.Helper()
	s, err := readScenario(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := protocolOf((&console.App{Protocols: catalog.All()}), s)
	if err != nil {
		t.Fatal(err)
	}
	f := newRunFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	if err := f.fs.Parse(append([]string{"--host=cluster"}, flags...)); err != nil {
		t.Fatal(err)
	}
	if err := s.apply(f); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { r, _, err = f.onLinks(t.Context(), dir) })
	if err != nil {
		t.Fatalf("%q: %v", flags, err)
	}
	return r
}

// samples are values of the keys of a scenario, for a broadcast.
var samples = map[string]string{
	"requests": "[{at: 1, broadcast: a}]", "workload": "{broadcasts: 2}", "delay": "1..900", "fifo": "true", "loss": "0.5",
	"twice": "0.5", "graph": "{1: [2, 3], 3: [4]}", "links": "[{from: 1, delay: 9}]", "detect": "700", "until": "900",
	"partitions": "[{groups: [[1], [2]]}]", "crashes": "[{process: 1, step: 3, effects: 2}, {process: 2, when: 5, effects: 1}]",
	"pauses": "[{process: 1, for: 9}]", "clocks": "[{process: 1, drift: 100}]", "steps": "500", "heal": "500",
	"suspicions": "[{process: 1, suspects: 2}]", "random": "{crashes: 1, drift: 9}", "promised": "{delay: 900}",
}

// The keys that the documentation says are refused between real processes are, with the
// reason that it gives, and no others.
func TestScenariosOnClusterAreRefusedAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/scenarios/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| refused with `host: cluster` | why |\n| --- | --- |\n")
	table, _, found := strings.Cut(table, "\n\n")
	documented := make(map[string]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 2 {
			documented[strings.Trim(cells[0], "|` ")] = strings.TrimSuffix(cells[1], " |")
		}
	}
	if !found || len(documented) != strings.Count(table, "\n")+1 {
		t.Fatalf("the table has other lines than key and reason:\n%s", table)
	}
	p, err := (&console.App{Protocols: catalog.All()}).Find("timestamp")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range scenario.Keys {
		f := newRunFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
		if err := f.fs.Parse([]string{"--host=cluster", "--" + key + "=" + samples[key]}); err != nil {
			t.Fatal(err)
		}
		_, err := f.setup()
		why, refused := documented[key]
		want := "--" + key + ": it is for the simulator, and not for --host cluster: " + why
		switch {
		case refused && (err == nil || err.Error() != want):
			t.Errorf("%s: got %v, want %q as documented", key, err, want)
		case !refused && err != nil:
			t.Errorf("%s: got %v, want it taken, because the documentation does not say that it is refused", key, err)
		}
		delete(documented, key)
	}
	if len(documented) > 0 {
		t.Errorf("the documentation says of keys that there are not that they are refused: %v", documented)
	}
}
