// Command faultgrid runs every protocol with every kind of fault and many seeds. It prints a table with a row for
// each protocol and a column for each kind of fault. If a protocol still promises a property under a fault, this
// property must hold. If a fault is beyond the protocol's model, and the row demands a violation, at least one run
// must show a violation. A cell of the table also fails if its fault did not occur or if nothing was delivered,
// because such a cell shows nothing.
//
//	go run ./internal/faultgrid [-seeds N] [-first N] [-only GLOB] [-column GLOB]
//	go run ./internal/faultgrid run ROW FLAGS...
//
// The second form is "parley run" for the protocols of the table. For each broken promise, the command prints the
// arguments that repeat the run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"parley"
	"parley/cli"
	"parley/internal/made"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		os.Exit(cli.Run(protocols(rows()), os.Args[1:], os.Stdout, os.Stderr))
	}
	var c choice
	flag.Uint64Var(&c.seeds, "seeds", 240, "number of `seeds` for each cell; slow protocols get a fraction of it")
	flag.Uint64Var(&c.first, "first", 0, "the first `seed`")
	flag.StringVar(&c.rows, "only", "", "only the protocols whose name matches the `glob`")
	flag.StringVar(&c.columns, "column", "", "only the kinds of fault whose name matches the `glob`")
	flag.Parse()
	var text strings.Builder
	ok, err := c.run(io.MultiWriter(os.Stdout, &text), os.Stderr)
	if err == nil && c == (choice{seeds: c.seeds, first: c.first}) { // all of it
		err = part.Write(page, fmt.Sprintf("%s.\n\n```\n%s```\n", made.Here(), &text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grid:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// protocols returns the protocols of the rows.
func protocols(rows []row) (out []parley.Protocol) {
	for _, r := range rows {
		out = append(out, r.protocol)
	}
	return out
}

// page has the latest grid, in part.
const page = "docs/reference/grid.md"

var part = made.Part{Name: "grid", Command: "make grid"}

// choice selects a part of the grid.
type choice struct {
	seeds, first  uint64
	rows, columns string
}

// run fills the grid, prints it and reports whether all cells are as required.
func (c choice) run(out, progress io.Writer) (ok bool, err error) {
	rows, err := matching(rows(), c.rows, func(r row) string { return r.protocol.Name })
	if err != nil {
		return false, err
	}
	cols, err := matching(columns(), c.columns, func(col column) string { return col.name })
	if err != nil {
		return false, err
	}
	began := time.Now()
	g := fill(rows, cols, c.first, c.seeds, ticker(progress, len(rows)*len(cols)))
	t := g.totals()
	return t.failed == 0, g.print(out, t, time.Since(began))
}

// matching returns the elements whose name matches the glob, or all if the glob is empty.
func matching[T any](all []T, glob string, name func(T) string) ([]T, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return nil, fmt.Errorf("%q: %w", glob, err)
	}
	out := slices.DeleteFunc(all, func(one T) bool {
		match, _ := path.Match(glob, name(one))
		return glob != "" && !match
	})
	if len(out) == 0 {
		return nil, errors.New("nothing is called " + glob)
	}
	return out, nil
}

// ticker returns a function to call after each cell, which shows the progress if out is a terminal.
func ticker(out io.Writer, cells int) func() {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	ticks := make(chan struct{})
	go func() {
		for n := 1; n <= cells; n++ {
			<-ticks
			fmt.Fprintf(f, "\r\x1b[K%d of %d cells", n, cells)
		}
		fmt.Fprint(f, "\r\x1b[K")
	}()
	return func() { ticks <- struct{}{} }
}
