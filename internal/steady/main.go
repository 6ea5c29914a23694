// Command steady runs all tests many times, on an idle computer and on a busy one. It demands that no test ever
// fails.
//
//	go run ./internal/steady [-runs N] [-page FILE]
//	go run ./internal/steady -short [-base REF]
//
// Every fourth run uses one processor (GOMAXPROCS=1), and every fourth run competes with two busy loops. The file
// bin/steady.json stores which runs have passed. So if you interrupt the command and start it again, it continues
// with the remaining runs, provided that the commit is the same. If a run fails, the file bin/steady.txt stores its
// output, and the next start of the command begins from scratch. When all runs have passed, the command writes the
// table into the page.
//
// With -short, the command runs only the tests of the packages that have changed since a commit. It runs them three
// times: alone, with one processor, and with two busy loops.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"parley/internal/made"
	"parley/internal/must"
)

func main() {
	s := series{out: os.Stdout}
	short := flag.Bool("short", false, "run what has changed, three times")
	base := flag.String("base", "", "with -short: changed since this `commit`; by default where the branch left main")
	page := flag.String("page", "docs/explanation/testing.md", "the `file` that gets the table")
	flag.IntVar(&s.runs, "runs", 20, "how `many` times")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if *short {
		err = s.short(ctx, *base)
	} else {
		err = s.full(ctx, *page)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "steady:", err)
		os.Exit(1)
	}
}

// full runs all tests as often as the series requires, and writes the page.
func (s *series) full(ctx context.Context, page string) (err error) {
	defer must.Return(&err)
	s.commit, s.state = clean(ctx, page), filepath.Join("bin", "steady.json")
	s.test = func(ctx context.Context, w way) (string, error) { return goTest(ctx, w, "./...") }
	must.Do(s.load())
	must.Do(s.do(ctx))
	table := s.table(made.Here())
	fmt.Fprint(s.out, "\n", table)
	return part.Write(page, table)
}

// short runs the tests of the changed packages, once in each way.
func (s *series) short(ctx context.Context, base string) (err error) {
	defer must.Return(&err)
	packages := changed(ctx, base)
	if len(packages) == 0 {
		fmt.Fprintln(s.out, "no package has changed")
		return nil
	}
	fmt.Fprintln(s.out, strings.Join(packages, " "))
	s.runs = 3
	s.test = func(ctx context.Context, w way) (string, error) { return goTest(ctx, w, packages...) }
	return s.do(ctx)
}
