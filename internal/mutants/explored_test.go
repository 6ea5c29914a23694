package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	exploring  = flag.Bool("explore", false, "find the mutants by exploration, and print a table")
	which      = flag.String("mutants", "", "with -explore, only the mutants whose name matches the `glob`")
	anew       = flag.Bool("anew", false, "with -explore, also try all cases for mutants that none is said to find")
	patientFor = flag.Int("patience", 6_000_000, "with -explore, how many `states` a case visits at most")
)

// exploration is the result of exploration for a mutant: its line explored.
type exploration struct {
	by       string // the case that finds it; "-": none
	moves    int    // transitions of the shortest run that breaks something; 0: the machine panics
	property string // the broken property, or why no case finds the mutant
}

// parseExplored reads a case, the number of transitions and the broken property, or a dash and the reason.
func parseExplored(text string) (exploration, error) {
	by, rest, _ := strings.Cut(text, " ")
	moves, property, ok := strings.Cut(rest, " ")
	if by == "-" && rest != "" {
		return exploration{by: by, property: rest}, nil
	}
	n, err := strconv.Atoi(moves)
	if err != nil || !ok {
		return exploration{}, fmt.Errorf("explored: %q: write CASE MOVES PROPERTY, or - REASON", text)
	}
	return exploration{by, n, property}, nil
}

// TestExplored demands that each mutant says which explored case finds it, or why none does. With -explore it
// verifies that: it builds a command that explores with the mutant, which must find what the list says.
func TestExplored(t *testing.T) {
	root, mutants := module(t)
	said := make([]exploration, len(mutants))
	for i, m := range mutants {
		var err error
		if said[i], err = parseExplored(m.explored); err != nil && (m.explored != "" || m.equivalent == "" && !*exploring) {
			t.Error(m.wrong(m.at, "%w", err))
		}
	}
	if *exploring {
		exploreAll(t, root, mutants, said)
	}
}

// An incomplete line explored is refused.
func TestParseExplored(t *testing.T) {
	for text, want := range map[string]exploration{
		"sm-two 3 uniform agreement": {"sm-two", 3, "uniform agreement"},
		"- no case has one":          {by: "-", property: "no case has one"},
		"":                           {}, "-": {}, "sm": {}, "sm 2": {}, "sm two agreement": {},
	} {
		if got, err := parseExplored(text); got != want || (err == nil) != (want.by != "") {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// exploreAll explores the chosen mutants for which the list has a case or no entry, two at a time, and prints a
// table.
func exploreAll(t *testing.T, root string, mutants []mutant, said []exploration) {
	var chosen []int
	for i, m := range mutants {
		if ok, err := path.Match(*which, m.name); *which == "" || ok && err == nil {
			chosen = append(chosen, i)
		}
	}
	got, next := make([]exploration, len(mutants)), make(chan int)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := range next {
				got[i] = mutants[i].foundBy(root, said[i])
			}
		})
	}
	for _, i := range chosen {
		next <- i
	}
	close(next)
	all.Wait()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTANT\tFOUND BY\tIN\tWHAT BREAKS, OR WHY IT IS NOT FOUND")
	found := 0
	for _, i := range chosen {
		g, want := got[i], said[i]
		if g.by != want.by || g.by != "-" && (g.moves != want.moves || g.property != want.property) {
			t.Errorf("%s: %q finds it in %d (%s); the list says %q in %d (%s)", mutants[i].name,
				g.by, g.moves, g.property, want.by, want.moves, want.property)
		}
		if g.by != "-" {
			found++
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", mutants[i].name, g.by, g.moves, g.property)
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	fmt.Printf("\n%d of %d mutants are found by exploration\n", found, len(chosen))
}

// foundBy explores a mutant with the case from the list. A mutant without a case is skipped, unless the flag says to
// try it again; then all cases of its folder are tried.
func (m mutant) foundBy(root string, said exploration) exploration {
	only := said.by
	switch {
	case m.equivalent != "" || only == "-" && !*anew:
		return said
	case only == "-":
		only = ""
	}
	began := time.Now()
	got := m.explore(root, only)
	fmt.Fprintf(os.Stderr, "%s %s %d %s, %.0fs\n", m.name, got.by, got.moves, got.property, time.Since(began).Seconds())
	return got
}

// explore builds the command that searches cases with the mutant, and runs the cases of the mutant's folder.
func (m mutant) explore(root, only string) exploration {
	none := func(err error) exploration { return exploration{by: "-", property: err.Error()} }
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return none(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin, err := m.command(root, dir)
	if err != nil {
		return none(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-bug", path.Dir(m.name), "-only", only, "-states", strconv.Itoa(*patientFor))
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if at := strings.Index(stderr.String(), "panic: "); err != nil && at >= 0 {
		// The output before it names the case.
		tried := strings.Split(strings.TrimSpace(stderr.String()[:at]), "\n")
		return exploration{by: tried[len(tried)-1], property: "panic"}
	} else if err != nil {
		return none(fmt.Errorf("%w: %s", err, firstLine(stderr.String())))
	}
	f := strings.Split(strings.TrimSuffix(string(out), "\n"), "\t")
	if len(f) != 3 {
		return none(errors.New("no case finds it"))
	}
	e := exploration{by: f[0], property: f[2]}
	e.moves, err = strconv.Atoi(f[1])
	if err != nil {
		return none(err)
	}
	return e
}

// command builds internal/explorecases with the mutant.
func (m mutant) command(root, dir string) (bin string, err error) {
	overlay, _, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "cases")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-overlay="+overlay, "-o="+bin, "./internal/explorecases")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %s", firstLine(string(out)))
	}
	return bin, nil
}
