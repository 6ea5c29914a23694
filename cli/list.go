package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/internal/draw/prose"
	"parley/internal/lists"
)

// listOutput is the JSON output of "parley list".
type listOutput struct {
	Protocols []listed `json:"protocols"`
}

// listed is one protocol as "parley list" prints it.
type listed struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Paper      string   `json:"paper"`
	Timing     string   `json:"timing"`
	Faults     string   `json:"faults"`
	Properties []string `json:"properties"`
	Bound      string   `json:"bound"`

	Guarantees []guarantee `json:"guarantees"`
}

// listCommand is "parley list".
func listCommand(a *console.App) *cobra.Command {
	var asJSON, table bool
	cmd := &cobra.Command{
		Use:   "list [PROTOCOL]",
		Short: "List protocols with their models, bounds, and guarantees",
		Long: "List prints a line for each protocol: its timing, the faults that it tolerates, and how many " +
			"processes it needs. With PROTOCOL, it prints where the protocol comes from, the properties of " +
			"the protocol, and which properties are promised. The exit status is 0.\n\n" +
			"Learn more: docs/reference/guarantees.md",
		Example: "  parley list\n  parley list --guarantees\n" +
			"  parley list om",
		Args: console.Args(0, 1, "at most one PROTOCOL is allowed"),
		RunE: func(_ *cobra.Command, args []string) error {
			protocols := a.Protocols
			if len(args) == 1 {
				p, err := a.Find(args[0])
				if err != nil {
					return err
				}
				protocols = []parley.Protocol{p}
			}
			switch {
			case asJSON:
			case table:
				return printGuarantees(a, a.Out, protocols)
			case len(args) == 1:
				return describe(a, a.Out, protocols[0])
			default:
				return printList(a, a.Out)
			}
			return a.PrintJSON(listOutput{lists.Of(protocols, func(p parley.Protocol) listed {
				return listed{
					Name: p.Name, Title: p.Title, Paper: p.Paper, Timing: p.Timing.String(), Faults: p.Faults.String(),
					Properties: lists.Of(p.Properties, func(q parley.Property) string { return q.Name }),
					Bound:      smallest(p), Guarantees: guarantees(p),
				}
			})})
		},
	}
	cmd.Flags().BoolVar(&table, "guarantees", false, "print which promises remain under each kind of fault")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(cmd.Flags(), "list", listOutput{})
	return cmd
}

// needed returns the number of processes needed to tolerate 1, 2 and 3 faults, or nothing if the protocol has no
// bound.
func needed(p parley.Protocol) (least []int) {
	for m := 1; m <= 3 && p.Bound != nil; m++ {
		if n := leastProcesses(p, m); n > 0 {
			least = append(least, n)
		}
	}
	return least
}

// smallest returns needed in words.
func smallest(p parley.Protocol) string {
	var parts []string
	for i, n := range needed(p) {
		parts = append(parts, fmt.Sprintf("%d (m=%d)", n, i+1))
	}
	if len(parts) == 0 {
		return ""
	}
	return "n >= " + strings.Join(parts, ", ")
}

// leastProcesses returns the smallest n that tolerates m faults, or 0 if there is none.
func leastProcesses(p parley.Protocol, m int) int {
	for n := m + 2; n <= parley.MaxProcesses; n++ {
		if p.Bound(n, m) == nil {
			return n
		}
	}
	return 0
}

// mostFaults returns the largest m that n processes tolerate.
func mostFaults(p parley.Protocol, n int) int {
	m := n - 2
	for m > 0 && p.Bound(n, m) != nil {
		m--
	}
	return m
}

// models names each fault model in a word.
var models = map[parley.FaultModel]string{
	parley.CrashFaults: "crash", parley.OmissionFaults: "omit", parley.SignedByzantineFaults: "lie, signed",
	parley.OralByzantineFaults: "lie",
}

const listLegend = "timing: a protocol with \"rounds\" needs a bound on delays. A protocol with \"any\" " +
	"needs no such bound for its safety (nothing bad ever happens). n: how many processes the protocol " +
	"needs to tolerate 1, 2, and 3 faults; empty if one correct process is enough. \"parley list PROTOCOL\" " +
	"prints the source of the protocol, its properties, and which properties are promised. \"parley list " +
	"--guarantees\" prints which promises remain under each kind of fault."

// printList prints one line for each protocol, and where to find more.
func printList(a *console.App, w io.Writer) error {
	width := a.Width(0)
	rows := [][4]string{{"protocol", "timing", "faults", "n"}}
	for _, p := range a.Protocols {
		timing := "any"
		if p.Timing == parley.Synchronous {
			timing = "rounds"
		}
		rows = append(rows, [4]string{p.Name, timing, models[p.Faults], fewest(p)})
	}
	var wide [4]int
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], len(cell))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		line := ""
		for k, cell := range row {
			line += fmt.Sprintf("%-*s  ", wide[k], cell)
		}
		title := "what it is"
		if i > 0 {
			title = a.Protocols[i-1].Title
		}
		room := max(width-len(line), 20)
		for k, part := range strings.Split(prose.Fold(title, room), "\n") {
			if k > 0 {
				line = strings.Repeat(" ", len(line))
			}
			b.WriteString(line + part + "\n")
		}
	}
	b.WriteString("\n" + prose.Fold(listLegend, width) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// fewest returns needed as the text of a column.
func fewest(p parley.Protocol) string {
	return strings.Join(lists.Of(needed(p), strconv.Itoa), ",")
}
