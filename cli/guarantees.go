package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"parley"
	"parley/cli/console"
	"parley/internal/draw/prose"
)

// faultColumn is a kind of fault, and how it changes the run conditions.
type faultColumn struct {
	Name string // in the JSON list and the legend
	head string // the head of the column
	set  func(*parley.RunConditions)
}

// faultColumns are the columns of the table of guarantees. Each column has one kind of fault.
var faultColumns = []faultColumn{
	{"m processes crash for good", "crash", func(a *parley.RunConditions) { a.Faulty = a.M }},
	{"m processes omit to send or receive", "omit", func(a *parley.RunConditions) {
		a.Faulty, a.Worst = a.M, parley.OmissionFaults
	}},
	{"m processes lie, but cannot forge signatures", "lie", func(a *parley.RunConditions) {
		a.Faulty, a.Worst = a.M, parley.OralByzantineFaults
	}},
	{"links lose messages", "lost", func(a *parley.RunConditions) { a.Network.Lost = true }},
	{"links deliver messages twice", "twice", func(a *parley.RunConditions) { a.Network.Doubled = true }},
	{"links do not keep the order", "order", func(a *parley.RunConditions) { a.Network.Reordered = true }},
	{"messages take longer than the promised delay", "late", func(a *parley.RunConditions) { a.Network.Late = true }},
	{"the network is partitioned for a time", "cut", func(a *parley.RunConditions) { a.Network.Cut = true }},
	{"a process is suspected although it has not crashed", "susp", func(a *parley.RunConditions) {
		a.Processes.Suspected = true
	}},
	{"a process is paused for a time", "pause", func(a *parley.RunConditions) { a.Processes.Paused = true }},
	{"a process crashes and restarts", "back", func(a *parley.RunConditions) {
		a.Away, a.Processes.Restarted = 1, true
	}},
	{"a process restarts without its disk", "disk", func(a *parley.RunConditions) {
		a.Away, a.Processes.Restarted, a.Processes.LostDisk = 1, true, true
	}},
}

// guarantee is what a protocol still promises under one kind of fault.
type guarantee struct {
	Circumstance string   `json:"circumstance"`
	Promised     []string `json:"promised"`
	Not          []string `json:"not_promised,omitempty"`
	Because      string   `json:"because,omitempty"` // for the first property that is not promised

	cell string
}

// guarantees returns what a protocol promises under each kind of fault.
func guarantees(p parley.Protocol) []guarantee {
	var out []guarantee
	calm := promised(p, parley.RunConditions{N: p.N, M: p.M})
	for _, c := range faultColumns {
		a := parley.RunConditions{N: p.N, M: p.M}
		c.set(&a)
		if p.Faults == parley.SignedByzantineFaults {
			a.Worst = min(a.Worst, p.Faults) // signatures cannot be forged
		}
		g := guarantee{Circumstance: c.Name, Promised: []string{}}
		safety := true
		for _, v := range promised(p, a) {
			switch {
			case v.Promise.Holds:
				g.Promised = append(g.Promised, v.Property.Name)
			case slices.ContainsFunc(calm, func(w parley.Verdict) bool {
				return w.Property.Name == v.Property.Name && w.Promise.Holds
			}):
				g.Not = append(g.Not, v.Property.Name)
				safety = safety && v.Property.Mode != parley.Always
				if g.Because == "" {
					g.Because = v.Promise.Because
				}
			}
		}
		switch {
		case len(g.Not) == 0:
			g.cell = "all"
		case len(g.Promised) == 0:
			g.cell = "-"
		case safety:
			g.cell = "safe"
		default:
			g.cell = "some"
		}
		out = append(out, g)
	}
	return out
}

// promised returns the verdicts on an empty run; their promises are what counts. It leaves out the properties with
// Mode Sometimes.
func promised(p parley.Protocol, a parley.RunConditions) []parley.Verdict {
	all := parley.Judge(p, a, &parley.History{N: p.N})
	return slices.DeleteFunc(all, func(v parley.Verdict) bool { return v.Property.Mode == parley.Sometimes })
}

const tableLegend = "Each column has only one kind of fault. A cell says which properties remain promised, out of " +
	"the properties that are promised without faults. \"parley list PROTOCOL\" prints the reasons."

const cellLegend = `all   all properties
safe  all safety properties (nothing bad ever happens), but not all
      liveness properties (something good eventually happens)
some  some properties, but not all safety properties
-     no property
`

// printGuarantees writes the table and its legend.
func printGuarantees(a *console.App, w io.Writer, protocols []parley.Protocol) error {
	var b strings.Builder
	wide := 0
	for _, p := range protocols {
		wide = max(wide, len(p.Name))
	}
	row := func(name string, cells func(yield func(string))) {
		line := fmt.Sprintf("%-*s ", wide, name)
		cells(func(cell string) { line += fmt.Sprintf(" %-5s", cell) })
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("", func(yield func(string)) {
		for _, c := range faultColumns {
			yield(c.head)
		}
	})
	for _, p := range protocols {
		row(p.Name, func(yield func(string)) {
			for _, g := range guarantees(p) {
				yield(g.cell)
			}
		})
	}
	b.WriteString("\n")
	for _, c := range faultColumns {
		fmt.Fprintf(&b, "%-6s %s\n", c.head, c.Name)
	}
	b.WriteString("\n" + prose.Fold(tableLegend, a.Width(0)) + "\n\n" + cellLegend)
	_, err := io.WriteString(w, b.String())
	return err
}

// describe writes the description of one protocol.
func describe(a *console.App, w io.Writer, p parley.Protocol) error {
	var b strings.Builder
	width := a.Width(0)
	fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Title)
	head := fmt.Sprintf("Timing: %s. Faults: %s. Source: %s.", p.Timing, p.Faults, p.Paper)
	b.WriteString(prose.Fold(head, width) + "\n")
	if bound := smallest(p); bound != "" {
		fmt.Fprintf(&b, "Bound: %s\n", bound)
	}
	b.WriteString("\nProperties, and whether they are promised when nothing fails\n")
	for _, v := range promised(p, parley.RunConditions{N: p.N, M: p.M}) {
		mark := "✓"
		if !v.Promise.Holds {
			mark = "✗"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, v.Property.Name)
		b.WriteString(prose.Fold("  "+v.Property.Says+"\n  "+v.Promise.Because, width) + "\n")
	}
	b.WriteString("\nWhat is no longer promised if\n")
	for _, g := range guarantees(p) {
		if len(g.Not) == 0 {
			fmt.Fprintf(&b, "✓ %s: nothing\n", g.Circumstance)
			continue
		}
		what := strings.Join(g.Not, ", ")
		if len(g.Promised) == 0 {
			what = "everything"
		}
		b.WriteString(prose.Fold(fmt.Sprintf("✗ %s: %s\n  %s", g.Circumstance, what, g.Because), width) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
