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
	Cells     int               `json:"cells"`
	Failed    int               `json:"failed_cells"`
	Runs      uint64            `json:"runs"`
	Received  uint64            `json:"messages_received"`
	Delivered uint64            `json:"delivered"`
	Faults    map[string]uint64 `json:"faults"`
	Promised  uint64            `json:"runs_inside_the_model"` // at least in part
	Demanded  int               `json:"demanded_violations"`
	Seconds   float64           `json:"wall_seconds"`
}

func (g *grid) totals(wall time.Duration) totals {
	t := totals{Faults: make(map[string]uint64), Seconds: wall.Seconds()}
	for _, row := range g.cells {
		for _, c := range row {
			t.Cells++
			if _, ok := c.verdict(); !ok {
				t.Failed++
			}
			t.Runs += c.runs
			t.Received += c.received
			t.Delivered += c.delivered
			t.Promised += c.promised
			t.Demanded += len(c.wants)
			// order: sums
			for kind, n := range c.faults {
				t.Faults[kind] += n
			}
		}
	}
	return t
}

// block is how many columns of the table stand side by side.
const block = 7

// print writes the grid for people.
func (g *grid) print(out io.Writer, t totals) error {
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
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		kinds = append(kinds, kind+" "+prose.Number(t.Faults[kind]))
	}
	fmt.Fprintf(&b, "\n%s cells, %s of them failed; %s runs in %.1f s, in %s something was promised\n",
		prose.Number(uint64(t.Cells)), prose.Number(uint64(t.Failed)), prose.Number(t.Runs), t.Seconds,
		prose.Number(t.Promised))
	fmt.Fprintf(&b, "messages received %s, delivered to above %s\n%s\n", prose.Number(t.Received),
		prose.Number(t.Delivered), prose.Fold("faults that came: "+strings.Join(kinds, ", "), 100))
	_, err := io.WriteString(out, b.String())
	return err
}

const legend = `held: no run broke anything, and something was promised; held*: and nothing was promised.
broke N: N runs broke what is not promised of them.
Failed: VIOLATED: a promise was broken. NOT FOUND: what must break there did not. NO FAULT: none came.
NOTHING: nothing was delivered, or what is promised to be seen sometimes never was.

`

// found lists the violations that were demanded, in how many runs they were, and why
// theory expects them.
func (g *grid) found(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "beyond the model\tunder\tmust break\tbroke in\tfor")
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

// failures says what is wrong with the cells that failed, and how to see it.
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
				fmt.Fprintf(b, "  seed %d breaks %s: %s\n    promised: %s\n    again: %s\n", x.Seed, x.Property, x.How,
					x.Because, command(x.Again))
				if len(x.Least) > 0 {
					fmt.Fprintf(b, "    least: %s\n", command(x.Least))
				}
			}
		}
	}
}

// command is a command line as a shell takes it.
func command(args []string) string {
	out := "go run ./internal/grid"
	for _, arg := range args {
		if strings.ContainsAny(arg, " {}[]*?&|;<>()$`\"'\\#~") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		out += " " + arg
	}
	return out
}

// summary is what -json prints.
func (g *grid) summary(t totals) any {
	type square struct {
		Protocol  string            `json:"protocol"`
		Fault     string            `json:"fault"`
		Verdict   string            `json:"verdict"`
		OK        bool              `json:"ok"`
		Runs      uint64            `json:"runs"`
		Promised  uint64            `json:"runs_inside_the_model"`
		Delivered uint64            `json:"delivered"`
		Faults    map[string]uint64 `json:"faults"`
		Broken    map[string]uint64 `json:"broken_beyond_the_model"`
		Demanded  []string          `json:"demanded,omitempty"` // of these at least one run each
		Why       []string          `json:"why,omitempty"`
		Violated  uint64            `json:"runs_that_broke_a_promise"`
		Breaches  []breach          `json:"breaches,omitempty"`
	}
	var squares []square
	for r := range g.rows {
		for i, c := range g.cells[r] {
			word, ok := c.verdict()
			s := square{
				Protocol: g.rows[r].protocol.Name, Fault: g.cols[i].name, Verdict: word, OK: ok, Runs: c.runs,
				Promised: c.promised, Delivered: c.delivered, Faults: c.faults, Broken: c.broken,
				Violated: c.violated, Breaches: c.breaches,
			}
			for _, d := range c.wants {
				s.Demanded = append(s.Demanded, d.property)
			}
			if !ok {
				s.Why = c.why()
			}
			squares = append(squares, s)
		}
	}
	return struct {
		Totals totals   `json:"totals"`
		Cells  []square `json:"cells"`
	}{t, squares}
}
