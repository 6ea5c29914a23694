package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/internal/conform"
)

// conformOutput is the JSON output of "parley conform".
type conformOutput struct {
	Files []conform.Result `json:"files"`
}

// conformCommand is "parley conform".
func conformCommand(a *console.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "conform PATH...",
		Short: "Run worked cases from JSON files against the protocols",
		Long: "A worked case gives a protocol its inputs, and states the results that it expects. Conform " +
			"runs the cases of JSON files. A PATH is a file, or a folder with JSON files. Conform prints a " +
			"line for each expectation that is not met, and then a count of the cases of each family. The " +
			"exit status is 0 if all cases pass, 1 if a case fails, and 2 if a file cannot be run. " +
			"Conform still runs the other files.\n\n" +
			"Learn more: docs/reference/vectors.md",
		Example: "  parley conform internal/conform/testdata",
		Args:    console.Args(1, 0, "at least one PATH of a file or folder is needed"),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := conform.Files(args)
			if err != nil {
				return console.PathError(err)
			}
			all, status := []conform.Result{}, console.Fine
			for _, f := range files {
				r, err := conform.File(f)
				if err != nil {
					status = console.Usage
					a.Complain(status, console.PathError(err))
					continue
				}
				all = append(all, r)
				if len(r.Failed) > 0 {
					status = max(status, console.Violated)
				}
			}
			if asJSON {
				return console.End(status, a.PrintJSON(conformOutput{all}))
			}
			return console.End(status, printConform(a, all))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(cmd.Flags(), "conform", conformOutput{})
	return cmd
}

func printConform(a *console.App, all []conform.Result) error {
	for _, r := range all {
		bad := make(map[string]bool)
		for _, f := range r.Failed {
			bad[f.Case] = true
			_, err := fmt.Fprintf(a.Out, "%s: %s: %s: expected %s, got %s\n", r.File, f.Case, f.Key, f.Want, f.Got)
			if err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(a.Out, "%s: %d passed, %d failed\n", r.Family, r.Cases-len(bad), len(bad)); err != nil {
			return err
		}
	}
	return nil
}
