package cli

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/internal/draw/prose"
)

// boundsOutput is the JSON output of "parley bounds".
type boundsOutput struct {
	N          int      `json:"n"`
	M          int      `json:"m"`
	Algorithms []limits `json:"algorithms"`
}

// limits is what one algorithm can do with n processes and m faults.
type limits struct {
	Name      string           `json:"name"`
	Faults    string           `json:"faults"`
	Possible  bool             `json:"possible"`
	Why       string           `json:"why,omitempty"`
	SmallestN int              `json:"smallest_n"`
	LargestM  int              `json:"largest_m"`
	Rounds    int              `json:"rounds"`
	AtMost    bool             `json:"at_most"`
	PerRound  []parley.Traffic `json:"per_round"`
	Total     parley.Traffic   `json:"total"`

	model string // one word
}

// boundsCommand is "parley bounds".
func boundsCommand(a *console.App) *cobra.Command {
	var n, m int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bounds",
		Short: "Show which algorithms tolerate m faults, and their cost",
		Long: "Bounds prints a line for each algorithm that works in rounds. The line says whether n " +
			"processes tolerate m faults. It also has the smallest n that tolerates m faults, the " +
			"largest m that n processes tolerate, and the cost in rounds, messages, bits, and " +
			"signatures. The exit status is 0.",
		Example: "  parley bounds -n 10 -m 3",
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if n < 2 || n > parley.MaxProcesses {
				return parley.CheckN(n, 2)
			}
			if m < 0 || m > n-1 {
				return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to %d", m, n, n-1)
			}
			all := limitsOf(a, n, m)
			if asJSON {
				return a.PrintJSON(boundsOutput{n, m, all})
			}
			return printBounds(a, n, m, all)
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 7, "number of `processes`")
	cmd.Flags().IntVarP(&m, "m", "m", 2, "number of `faults`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(cmd.Flags(), "bounds", boundsOutput{})
	return cmd
}

// variants are settings of a protocol that have a bound of their own.
var variants = []struct{ protocol, flag, value string }{
	{"consensus", "over", "sm"},
	{"phaseking", "form", "tworound"},
}

// withVariants returns the protocols, each followed by its variants.
func withVariants(a *console.App) []parley.Protocol {
	var all []parley.Protocol
	for _, p := range a.Protocols {
		all = append(all, p)
		for _, v := range variants {
			if v.protocol != p.Name || p.Flags == nil {
				continue
			}
			fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
			build := p.Flags(fs)
			if fs.Set(v.flag, v.value) != nil {
				continue // another module's protocol with this name
			}
			if q, err := build(nil); err == nil {
				q.Name += " --" + v.flag + "=" + v.value
				all = append(all, q)
			}
		}
	}
	return all
}

func limitsOf(a *console.App, n, m int) []limits {
	var all []limits
	for _, p := range withVariants(a) {
		if p.Bound == nil || p.Cost == nil || p.Timing != parley.Synchronous {
			continue // its cost is not counted in rounds
		}
		cost := p.Cost(n, m)
		l := limits{
			Name: p.Name, Faults: p.Faults.String(), Possible: true, Rounds: cost.Rounds, AtMost: cost.AtMost,
			PerRound: cost.PerRound, Total: cost.Total(), model: models[p.Faults],
			SmallestN: leastProcesses(p, m), LargestM: mostFaults(p, n),
		}
		if err := p.Bound(n, m); err != nil {
			l.Possible, l.Why = false, err.Error()
		}
		all = append(all, l)
	}
	return all
}

func printBounds(a *console.App, n, m int, all []limits) error {
	var b strings.Builder
	fmt.Fprintf(&b, "What %d processes can do about %s\n\n", n, prose.Count(uint64(m), "fault", "faults"))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "algorithm\tfaults\tpossible\tn >=\tm <=\trounds\tmessages\tbits\tsignatures\n")
	for _, l := range all {
		possible, most := "yes", ""
		if !l.Possible {
			possible = "no"
		}
		if l.AtMost {
			most = "<= "
		}
		counted := func(n uint64) string {
			if n == 0 {
				return "0"
			}
			return most + prose.Number(n)
		}
		least := "none"
		if l.SmallestN > 0 {
			least = strconv.Itoa(l.SmallestN)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", l.Name, l.model, possible, least, l.LargestM, l.Rounds,
			counted(l.Total.Messages), counted(l.Total.Bits), counted(l.Total.Signatures))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.WriteString("\nMessages per round, all processes correct\n\n")
	printPerRound(&b, all)
	b.WriteString("\n")
	for _, l := range all {
		if !l.Possible {
			b.WriteString(prose.Fold(l.Name+": "+l.Why, a.Width(0)) + "\n")
		}
	}
	legend := fmt.Sprintf("n >=: the fewest processes that tolerate m = %d. m <=: the most faults that n = "+
		"%d processes tolerate. \"parley list\" shows how many processes the protocols without rounds need.", m, n)
	b.WriteString(prose.Fold(legend, a.Width(0)) + "\n")
	b.WriteString(prose.Fold("Messages are counted as in the papers. A message is one value with its path "+
		"(eig, om), one signed value (sm), or one vote (phaseking). eig also counts the copy that a process "+
		"sends to itself, as its article does. Bits are counted for values of one bit and for the names of "+
		"processes.", a.Width(0)) + "\n")
	_, err := io.WriteString(a.Out, b.String())
	return err
}

// printPerRound prints one row for each algorithm and one column for each round. If there are more than 12 rounds, it
// prints only those in which a value changes.
func printPerRound(b *strings.Builder, all []limits) {
	const most = 12
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	last, wide := 0, 0
	for _, l := range all {
		last, wide = max(last, min(l.Rounds, most)), max(wide, len(l.Name))
	}
	fmt.Fprintf(w, "%-*s\t", wide, "round")
	for r := range last {
		fmt.Fprintf(w, "%d\t", r)
	}
	fmt.Fprintln(w)
	for _, l := range all {
		fmt.Fprintf(w, "%-*s\t", wide, l.Name)
		for r := range min(len(l.PerRound), most) {
			fmt.Fprintf(w, "%s\t", prose.Number(l.PerRound[r].Messages))
		}
		if len(l.PerRound) > most {
			fmt.Fprintf(w, "… %d more\t", len(l.PerRound)-most)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	for line := range strings.Lines(table.String()) {
		b.WriteString(line[2:]) // cuts the indentation of the name column
	}
}
