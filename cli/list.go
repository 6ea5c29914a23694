package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"parley"
)

// listed is one protocol as list prints it.
type listed struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Paper      string   `json:"paper"`
	Timing     string   `json:"timing"`
	Faults     string   `json:"faults"`
	Properties []string `json:"properties"`
	Bound      string   `json:"bound"`
}

// list is "parley list".
func (a *app) list() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the protocols, their models and their bounds",
		Example: "  parley list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var all []listed
			for _, p := range a.protocols {
				l := listed{
					Name: p.Name, Title: p.Title, Paper: p.Paper, Timing: p.Timing.String(), Faults: p.Faults.String(),
					Bound: smallest(p),
				}
				for _, q := range p.Properties {
					l.Properties = append(l.Properties, q.Name)
				}
				all = append(all, l)
			}
			if asJSON {
				enc := json.NewEncoder(a.out)
				enc.SetIndent("", "  ")
				return enc.Encode(all)
			}
			return a.printList(all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

// smallest says in words how many processes 1, 2 and 3 faults need.
func smallest(p parley.Protocol) string {
	if p.Bound == nil {
		return ""
	}
	text := "n >="
	for m := 1; m <= 3; m++ {
		n, ok := leastProcesses(p, m)
		if !ok {
			break
		}
		text += fmt.Sprintf(" %d (m=%d)", n, m)
		if m < 3 {
			text += ","
		}
	}
	return text
}

// leastProcesses is the smallest n that tolerates m faults.
func leastProcesses(p parley.Protocol, m int) (int, bool) {
	for n := m + 2; n <= parley.MaxProcesses; n++ {
		if p.Bound(n, m) == nil {
			return n, true
		}
	}
	return 0, false
}

// mostFaults is the largest m that n processes tolerate.
func mostFaults(p parley.Protocol, n int) (int, bool) {
	for m := n - 2; m >= 0; m-- {
		if p.Bound(n, m) == nil {
			return m, true
		}
	}
	return 0, false
}
