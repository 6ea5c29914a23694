package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"parley/internal/draw/prose"
)

// totals are the sums over all cells.
type totals struct {
	cells, failed             int
	runs, received, delivered uint64
	promised                  uint64 // runs in which something was promised
	faults                    map[string]uint64
}

func (g *grid) totals() totals {
	t := totals{faults: make(map[string]uint64)}
	for _, row := range g.cells {
		for _, c := range row {
			t.cells++
			if _, ok := c.verdict(); !ok {
				t.failed++
			}
			t.runs += c.runs
			t.received += c.received
			t.delivered += c.delivered
			t.promised += c.promised
			// order: sums
			for kind, n := range c.faults {
				t.faults[kind] += n
			}
		}
	}
	return t
}

// block is the number of columns of the table side by side.
const block = 7

// print writes the grid as text.
func (g *grid) print(out io.Writer, t totals, took time.Duration) error {
	var b strings.Builder
	for cols := 0; cols < len(g.cols); cols += block {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		last := min(cols+block, len(g.cols))
		for _, col := range g.cols[cols:last] {
			fmt.Fprintf(w, "\t%s", col.name)
		}
		fmt.Fprintln(w)
		for r := range g.rows {
			fmt.Fprint(w, g.rows[r].protocol.Name)
			for _, c := range g.cells[r][cols:last] {
				word, _ := c.verdict()
				fmt.Fprintf(w, "\t%s", word)
			}
			fmt.Fprintln(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	b.WriteString(legend)
	g.found(&b)
	g.failures(&b)
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(t.faults)) {
		kinds = append(kinds, kind+" "+prose.Number(t.faults[kind]))
	}
	fmt.Fprintf(&b, "\n%s cells, %s of them failed; %s runs in %.1f s; something was promised in %s of the runs\n",
		prose.Number(uint64(t.cells)), prose.Number(uint64(t.failed)), prose.Number(t.runs), took.Seconds(),
		prose.Number(t.promised))
	fmt.Fprintf(&b, "messages received %s, delivered to the layer above %s\n%s\n", prose.Number(t.received),
		prose.Number(t.delivered), prose.Fold("faults that occurred: "+strings.Join(kinds, ", "), 100))
	_, err := io.WriteString(out, b.String())
	return err
}

const legend = `held: no run broke anything, and something was promised.
held*: no run broke anything, and nothing was promised.
broke N: N runs broke something that was not promised.
A cell fails with VIOLATED: a promise was broken. NOT FOUND: a property that must break did not break.
NO FAULT: no fault occurred. NOTHING: nothing was delivered, or a state that must sometimes occur never occurred.

`

// found lists the violations that were demanded, with the number of runs and the reason from theory.
func (g *grid) found(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "protocol\tfault\tmust break\tbroke in\treason")
	for r := range g.rows {
		for _, c := range g.cells[r] {
			for _, d := range c.wants {
				fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t%s\n", d.row, d.column, d.property,
					c.broken[d.property], c.runs, d.because)
			}
		}
	}
	_ = w.Flush() // into memory
}

// failures says what is wrong with the failed cells, and how to repeat it.
func (g *grid) failures(b *strings.Builder) {
	for r := range g.rows {
		for i, c := range g.cells[r] {
			word, ok := c.verdict()
			if ok {
				continue
			}
			fmt.Fprintf(b, "\n%s, %s: %s", g.rows[r].protocol.Name, g.cols[i].name, word)
			if c.violated > 0 {
				fmt.Fprintf(b, " in %d of %d runs", c.violated, c.runs)
			}
			b.WriteByte('\n')
			for _, line := range c.why() {
				fmt.Fprintf(b, "  %s\n", line)
			}
			for _, x := range c.breaches {
				fmt.Fprintf(b, "  seed %d breaks %s: %s\n    promised: %s\n    again: %s\n", x.seed, x.property, x.how,
					x.because, command(x.again))
				if len(x.least) > 0 {
					fmt.Fprintf(b, "    least: %s\n", command(x.least))
				}
			}
		}
	}
}

// command returns a command line for a shell.
func command(args []string) string {
	out := "go run ./internal/faultgrid"
	for _, arg := range args {
		if strings.ContainsAny(arg, " {}[]*?&|;<>()$`\"'\\#~") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		out += " " + arg
	}
	return out
}
