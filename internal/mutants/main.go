// Command mutants checks that the tests of the module detect seeded bugs, the mutants. It inserts one mutant at a
// time.
//
// The file PACKAGE/testdata/mutants.txt lists the mutants of a package, in the form documented at the type mutant.
// The command does not change the source tree: the flag -overlay passes the changed files to the go command. If no
// test fails with a mutant, the command reports an error. It also reports an error if the lines of a mutant are not
// found, or if a mutant does not compile. A mutant that is declared equivalent must make no test fail, and is
// listed separately.
//
// For each mutant, the table names the test that failed. If several tests failed, it names the first of them in the
// source. The table also says how many seeds this test had tried before it failed. A test over seeds tries the seeds
// from 0 or 1 on, and prints "seed 17", for example, when it fails. If a test tries several configurations, only the
// seeds of the configuration that failed count. A test without seeds is marked "unit" and counts as one seed.
//
//	go run ./internal/mutants [-short] [-only GLOB|assurance] [-j N]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"parley/internal/must"
)

// six are the mutants that make mutants-short tries, each with the tests of its package that suffice to catch it.
var six = []struct{ name, tests string }{
	{"agreement/eig/default-differs", "TestMissingIsTheDefault|TestNoStrictMajority"},
	{"agreement/eig/relays-wrong-rank", "TestAgainstOracle"},
	{"agreement/om/self-counted-twice", "TestExplored"},
	{"agreement/phaseking/one-phase-too-few", "TestExplored"},
	{"agreement/consensus/own-claim-votes-twice", "TestIsRuleOfVector"},
	{"agreement/sm/short-chain", "TestRefused"},
}

func main() {
	short := flag.Bool("short", false, "try only six mutants, each by a few tests")
	only := flag.String("only", "", "try only the mutants whose name matches the `glob`, as in agreement/eig/*, or\n"+
		"with \"assurance\" those that docs/explanation/assurance.md names, each by the tests beside it")
	jobs := flag.Int("j", runtime.NumCPU(), "how `many` to try at a time")
	flag.Parse()
	if err := run(os.Stdout, *short, *only, max(1, *jobs)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the chosen mutants and prints a table of the results.
func run(out io.Writer, short bool, only string, jobs int) (err error) {
	defer must.Return(&err)
	root := must.Get(moduleRoot())
	mutants := must.Get(findMutants(root))
	switch {
	case short:
		mutants = must.Get(quick(mutants))
	case only == "assurance":
		mutants = must.Get(assured(root, mutants))
	default:
		mutants = must.Get(matching(mutants, only))
	}
	must.Do(baseline(root, mutants))
	done := 0
	outcomes := tryAll(root, mutants, jobs, func(m mutant, o outcome) {
		done++
		fmt.Fprintf(os.Stderr, "%d of %d: %s: %s, %.0fs\n", done, len(mutants), m.name, o.verdict, o.took.Seconds())
	})
	must.Do(report(out, mutants, outcomes))
	if short || only == "assurance" {
		return nil
	}
	return updatePage(filepath.Join(root, page), must.Get(findMutants(root)), mutants, outcomes)
}

// tryAll tries the mutants, jobs at a time, and returns their outcomes in order. It calls tell after each.
func tryAll(root string, mutants []mutant, jobs int, tell func(mutant, outcome)) []outcome {
	outcomes, places := make([]outcome, len(mutants)), make(chan bool, jobs)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, m := range mutants {
		places <- true
		all.Go(func() {
			outcomes[i] = m.try(root)
			<-places
			mu.Lock()
			defer mu.Unlock()
			tell(m, outcomes[i])
		})
	}
	all.Wait()
	return outcomes
}

// report prints the table. It returns an error if any outcome is not good.
func report(out io.Writer, mutants []mutant, outcomes []outcome) (err error) {
	defer must.Return(&err)
	count := make(map[verdict]int)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(m mutant, o outcome, why string) {
		count[o.verdict]++
		fmt.Fprintf(w, "%s\t%s\t%.1fs\t%s\t%s\t%s\n", m.name, o.verdict, o.took.Seconds(), o.within(), o.by, why)
	}
	fmt.Fprintln(w, "MUTANT\tVERDICT\tTIME\tSEEDS\tBY\tBREAKS")
	for i, m := range mutants {
		if m.equivalent == "" {
			row(m, outcomes[i], m.breaks)
		}
	}
	must.Do(w.Flush())
	heading := "\nDECLARED EQUIVALENT\tVERDICT\tTIME\tSEEDS\tREASON, OR THE TEST THAT FAILED\n"
	for i, m := range mutants {
		if m.equivalent != "" {
			fmt.Fprint(w, heading)
			heading = ""
			row(m, outcomes[i], "")
		}
	}
	must.Do(w.Flush())
	tallies, total := tallied(mutants, outcomes)
	summary(out, append(tallies, total))
	fmt.Fprintf(out, "\n%d mutants: %d caught, %d survived, %d broken; %d equivalent, %d wrongly declared so\n",
		len(mutants)-count[equivalent]-count[mistaken], count[caught], count[survived], count[broken],
		count[equivalent], count[mistaken])
	for v := range count {
		if !v.good() {
			return errors.New("a mutant was not caught")
		}
	}
	if median := median(total.seeds); median > patience {
		return fmt.Errorf("those that were caught by seeds took %d of them in the median, and not %d", median, patience)
	}
	return nil
}

// matching returns the mutants whose name matches the glob, or all if the glob is empty.
func matching(all []mutant, glob string) ([]mutant, error) {
	var out []mutant
	for _, m := range all {
		ok, err := path.Match(glob, m.name)
		if err != nil {
			return nil, fmt.Errorf("-only %s: %w", glob, err)
		}
		if ok || glob == "" || strings.HasPrefix(m.name, strings.TrimSuffix(glob, "/")+"/") {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no mutant among %d matches %q", len(all), glob)
	}
	return out, nil
}

// quick returns the six, each to be tried with few tests.
func quick(all []mutant) ([]mutant, error) {
	var out []mutant
	for _, s := range six {
		i := slices.IndexFunc(all, func(m mutant) bool { return m.name == s.name })
		if i < 0 {
			return nil, fmt.Errorf("there is no mutant %s", s.name)
		}
		m := all[i]
		m.tests, m.run = m.tests[:1], s.tests
		out = append(out, m)
	}
	return out, nil
}

// moduleRoot returns the nearest folder, from the current one upward, with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = up
	}
}
