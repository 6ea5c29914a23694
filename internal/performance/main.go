// Command performance runs "parley bench" on systems in which m processes lie, and writes the table of
// docs/reference/performance.md.
//
//	go run ./internal/performance [-runs N]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"parley/internal/made"
	"parley/internal/must"
)

const page = "docs/reference/performance.md"

var part = made.Part{Name: "whole systems", Command: "make performance"}

// systems are the rows of the table: what is measured, and by which command.
var systems = [][2]string{
	{"EIG n=16 m=5, depth-first, one core", "parley bench eig -n 16 -m 5 --engine depthfirst --workers 1"},
	{"EIG n=19 m=6, depth-first, one core", "parley bench eig -n 19 -m 6 --engine depthfirst --workers 1"},
	{"the same on two cores", "parley bench eig -n 19 -m 6 --engine depthfirst --workers 2"},
	{"EIG n=22 m=7, depth-first, one core", "parley bench eig -n 22 -m 7 --engine depthfirst --workers 1"},
	{"the same on two cores", "parley bench eig -n 22 -m 7 --engine depthfirst --workers 2"},
	{"EIG n=16 m=5, level by level", "parley bench eig -n 16 -m 5 --engine levels"},
	{"EIG n=19 m=6, level by level", "parley bench eig -n 19 -m 6 --engine levels"},
	{"EIG n=16 m=5, one machine per process", "parley bench eig -n 16 -m 5 --engine machine"},
	{"EIG n=19 m=6, one machine per process", "parley bench eig -n 19 -m 6 --engine machine"},
	{"OM n=13 m=4", "parley bench om -n 13 -m 4"},
	{"phase king n=100 m=33", "parley bench phaseking -n 100 -m 33"},
	{"SM n=100 m=98, the staircase, ideal tokens", "parley bench sm -n 100 -m 98"},
	{"SM n=20 m=18, the staircase, Ed25519", "parley bench sm -n 20 -m 18 --signatures ed25519"},
}

func main() {
	runs := flag.Int("runs", 9, "`number` of runs of each command")
	flag.Parse()
	if err := write(page, max(1, *runs)); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// write measures, and writes the table into the page.
func write(page string, runs int) (err error) {
	defer must.Return(&err)
	dir := must.Get(os.MkdirTemp("", "performance-"))
	defer func() { _ = os.RemoveAll(dir) }()
	parley := filepath.Join(dir, "parley")
	build := exec.Command("go", "build", "-o", parley, "./cmd/parley")
	build.Stderr = os.Stderr
	must.Do(build.Run())
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Lowest time and largest memory of %d runs of each command.\n\n"+
		"| what | command | time | memory |\n| --- | --- | ---: | ---: |\n", made.Here(), runs)
	for _, s := range systems {
		row := measure(parley, s, runs)
		fmt.Print(row)
		b.WriteString(row)
	}
	return part.Write(page, b.String())
}

// measure returns the row of a system: the lowest time of several runs, and the largest memory. It fails by must.
func measure(parley string, system [2]string, runs int) string {
	var least time.Duration
	most := 0.0
	for i := range runs {
		cmd := exec.Command(parley, append(strings.Fields(system[1])[1:], "--json")...)
		cmd.Stderr = os.Stderr
		var r struct {
			Seconds float64 `json:"wall_seconds"`
			Memory  float64 `json:"peak_rss_bytes"`
		}
		must.Do(json.Unmarshal(must.Get(cmd.Output()), &r))
		took := time.Duration(r.Seconds * float64(time.Second))
		if i == 0 || took < least {
			least = took
		}
		most = max(most, r.Memory)
	}
	return fmt.Sprintf("| %s | `%s` | %s | %.1f MiB |\n", system[0], system[1], short(least), most/(1<<20))
}

// short returns a time with three digits.
func short(d time.Duration) string {
	unit, name := time.Millisecond, "ms"
	if d >= time.Second {
		unit, name = time.Second, "s"
	}
	v := float64(d) / float64(unit)
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f %s", v, name)
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, name)
	}
	return fmt.Sprintf("%.0f %s", v, name)
}
