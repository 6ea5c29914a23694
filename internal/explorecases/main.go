// Command explorecases explores the small systems of the list explore/testdata/cases.txt one after another, and
// prints a table of the results. The column BYTES shows the memory for one visited state. If a number of states or
// a verdict differs from the list, the command fails.
//
//	go run ./internal/explorecases [-short] [-only GLOB] [-workers N] [-update]
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"slices"
	"text/tabwriter"
	"time"

	"parley/explore"
	"parley/internal/draw/prose"
	"parley/internal/made"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
}

// command carries out the flags.
func command() error {
	var c choice
	list := flag.String("list", own, "the `file` with the cases")
	flag.BoolVar(&c.short, "short", false, "only the cases that the tests try")
	flag.StringVar(&c.only, "only", "", "only the cases whose name matches the `glob`")
	flag.IntVar(&c.workers, "workers", 0, "how many `threads` search; 0: one for each processor")
	flag.Uint64Var(&c.states, "states", 0, "how many `states` a case visits at most; 0: all")
	update := flag.Bool("update", false, "write the results into the list")
	doc := flag.String("document", "", "write the tables into this `file`, below its line of dashes")
	bug := flag.String("bug", "", "try cases for the seeded bugs of a `folder`, until one is not as it should be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cases, err := read(*list)
	if err != nil {
		return err
	}
	switch {
	case *bug != "":
		c.of = *bug
		return c.bug(ctx, cases, os.Stdout, os.Stderr)
	case *doc != "":
		return write(*doc, *list)
	}
	err = c.run(ctx, cases, os.Stdout, os.Stderr)
	switch {
	case *update && errors.Is(err, errDiffers):
		return rewrite(*list, cases)
	case err == nil && *list == own && !c.short && c.only == "" && c.states == 0: // all of them
		return errors.Join(part.Write(page, made.Here()+":\n"+c.result+".\n"), write(page, own))
	}
	return err
}

// own is the list of this module.
const own = "explore/testdata/cases.txt"

// page has the cases of this module, and in part the result of the last run of all.
const page = "docs/reference/explored.md"

var part = made.Part{Name: "explored", Command: "make explore"}

// choice selects cases, and how to search them.
type choice struct {
	short    bool
	only, of string
	workers  int
	states   uint64

	result string // of a run, in a sentence
}

func (c *choice) wants(x *exploredCase) bool {
	match, err := path.Match(c.only, x.name)
	named := c.only == "" || match && err == nil
	return named && (!c.short || x.short) && (c.of == "" || slices.Contains(x.of, c.of))
}

var errDiffers = errors.New("this is not what the list says")

// run searches, and prints one line for each case.
func (c *choice) run(ctx context.Context, cases []exploredCase, out, progress io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CASE\tPROTOCOL\tWHAT MAY GO WRONG\tSTATES\tMOVES\tDEPTH\tENDS\tBYTES\tSECONDS\tSTATES/S\t"+
		"VERDICT\t")
	var states uint64
	var took time.Duration
	tried, wrong := 0, 0
	for i := range cases {
		x := &cases[i]
		if !c.wants(x) {
			continue
		}
		fmt.Fprintf(progress, "%s: ", x.name)
		workers := c.workers
		if x.want.property != "" {
			workers = 1 // the first finding is then always the same
		}
		r, err := c.search(ctx, x, workers)
		if err != nil {
			return err
		}
		x.got = found{states: r.States, ends: r.Ends, deep: r.Depth}.with(r.Findings, x.rounds)
		tried, states, took = tried+1, states+r.States, took+r.Took
		fmt.Fprintf(progress, "%d states, %s\n", r.States, x.verdict(&r))
		s := r.Took.Seconds()
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.0f\t%s\t\n", x.name, x.made, x.circumstances(),
			r.States, r.Moves, r.Depth, r.Ends, r.Bytes/max(1, r.States), s, float64(r.States)/s, x.verdict(&r))
		if why := x.differs(); why != "" {
			wrong++
			fmt.Fprintf(progress, "  %s\n", why)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	c.result = fmt.Sprintf("%d cases, %s different states in %.0f s; %d cases differ from the list",
		tried, prose.Number(states), took.Seconds(), wrong)
	fmt.Fprintf(out, "\n%s\n", c.result)
	switch {
	case wrong > 0:
		return errDiffers
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d of %d cases", tried, len(cases))
	}
	return nil
}

// bug prints the first of the cases, ordered by size, whose finding differs from that without a seeded bug, with the
// number of transitions and the broken property. With a bug a machine may panic: the last line of progress then names
// the case.
func (c *choice) bug(ctx context.Context, cases []exploredCase, out, progress io.Writer) error {
	slices.SortStableFunc(cases, func(a, b exploredCase) int { return cmp.Compare(a.want.states, b.want.states) })
	for i := range cases {
		x := &cases[i]
		if !c.wants(x) {
			continue
		}
		fmt.Fprintln(progress, x.name)
		r, err := c.search(ctx, x, 1)
		if err != nil {
			return err
		}
		if got := (found{}).with(r.Findings, x.rounds); got.property != x.want.property {
			_, err := fmt.Fprintf(out, "%s\t%d\t%s\n", x.name, got.moves, cmp.Or(got.property, "nothing"))
			return err
		}
	}
	return nil
}

// search makes the search of a case.
func (c *choice) search(ctx context.Context, x *exploredCase, workers int) (r explore.Report, err error) {
	o, err := x.options()
	if err == nil {
		o.Workers, o.States = workers, c.states
		r, err = explore.Search(ctx, o)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", x.name, err)
	}
	return r, err
}
