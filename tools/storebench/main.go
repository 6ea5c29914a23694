// Command storebench compares cluster/store with other logs that a Go program can embed. It reports which damage to
// its files each log detects, how each log reacts when its disk fails, and how many records per second each log
// makes durable.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/must"
)

func main() {
	dir := flag.String("dir", os.TempDir(), "the `folder` to write in; commits measures the disk that it lies on")
	only := flag.String("only", "", "the `names` of candidates, with commas between them; by default all")
	reps := flag.Int("reps", 5, "commits: how often each candidate is measured, in turn with the others")
	dur := flag.Duration("dur", 3*time.Second, "commits: how long each measurement takes")
	flag.Parse()
	chosen := slices.DeleteFunc(candidates, func(c candidate) bool {
		return *only != "" && !slices.Contains(strings.Split(*only, ","), c.name)
	})
	scratch, err := os.MkdirTemp(*dir, "storebench")
	if err == nil {
		err = run(scratch, chosen, *reps, *dur)
		_ = os.RemoveAll(scratch)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "storebench:", err)
		os.Exit(1)
	}
}

// run executes a command, which fails by must. The last two are for this program itself: it starts them in
// processes of their own, because a candidate may end its process.
func run(dir string, chosen []candidate, reps int, dur time.Duration) (err error) {
	defer must.Return(&err)
	switch flag.Arg(0) {
	case "damage":
		damageTables(dir, chosen)
	case "faults":
		faultTable(dir, chosen)
	case "commits":
		commitTables(dir, chosen, reps, dur)
	case "judge":
		acknowledged, _ := strconv.Atoi(flag.Arg(2))
		fmt.Println(judge(chosen[0], flag.Arg(1), acknowledged))
	case "harm":
		fmt.Println(harm(chosen[0], flag.Arg(1), flag.Arg(2)))
	default:
		must.Failf("one of damage, faults, commits was expected, not %q", flag.Args())
	}
	return nil
}

// runApart runs a command of this program for one candidate and one folder in a process of its own, and
// returns its output. The files of a crashed process are beside the folder, and are deleted with it.
func runApart(c candidate, command, dir, more string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := []string{"-dir", filepath.Dir(dir), "-only", c.name, command, dir, more}
	out, err := exec.CommandContext(ctx, os.Args[0], args...).Output()
	if ctx.Err() != nil {
		return "hangs"
	} else if err != nil {
		return string(out) + crashed
	}
	return strings.TrimSpace(string(out))
}

// Verdicts on a folder that was opened and read.
const (
	whole   = "all there"
	told    = "reported"
	crashed = "crashes"   // the process ends, which is not silent either
	tail    = "tail lost" // silent: only a prefix of the acknowledged records is there
	wrong   = "wrong"     // silent: a record is changed, or missing between others
)

// judge opens a folder with the given number of acknowledged records, and reads it. There may be more.
func judge(c candidate, dir string, acknowledged int) string {
	l, err := c.open(dir, options{size: c.small})
	if err != nil {
		return told
	}
	defer func() { _ = l.close() }()
	got, err := l.read()
	if err != nil {
		return told
	}
	for i, r := range got {
		if !slices.Equal(r, record(i, small)) {
			return wrong
		}
	}
	if len(got) < acknowledged {
		return tail
	}
	return whole
}

const small = 128 // bytes of a record

// record returns the record with number i, which differs from all others.
func record(i, size int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, size), uint64(i))
	r := rand.New(rand.NewPCG(uint64(i), 1))
	for len(b) < size {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// row prints a row of a table, and heading the first one.
func row(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

func heading(cells ...string) {
	row(cells...)
	fmt.Println(strings.Repeat("| --- ", len(cells)) + "|")
}
