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

	Guarantees []guarantee `json:"guarantees"`
}

// list is "parley list".
func (a *app) list() *cobra.Command {
	var asJSON, table bool
	cmd := &cobra.Command{
		Use:   "list [PROTOCOL]",
		Short: "List the protocols, their models, bounds and guarantees",
		Example: "  parley list\n  parley list --guarantees\n" +
			"  parley list om",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && !asJSON {
				p, err := a.find(args[0])
				if err != nil {
					return err
				}
				return a.describe(a.out, p)
			}
			if table && !asJSON {
				return a.printGuarantees(a.out)
			}
			var all []listed
			for _, p := range a.protocols {
				if len(args) == 1 && p.Name != args[0] {
					continue
				}
				l := listed{
					Name: p.Name, Title: p.Title, Paper: p.Paper, Timing: p.Timing.String(), Faults: p.Faults.String(),
					Bound: smallest(p), Guarantees: guarantees(p),
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
	cmd.Flags().BoolVar(&table, "guarantees", false, "print what remains promised when something goes wrong")
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
