// Package console holds what all commands share: their output, exit statuses, the names of processes, argument
// checks, and output files.
package console

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/internal/lists"
)

// OneOf is the Args function of a command that only groups subcommands: it returns an error that names them.
func OneOf(cmd *cobra.Command, args []string) error {
	names := lists.Of(cmd.Commands(), (*cobra.Command).Name)
	given := "nothing"
	if len(args) > 0 {
		given = strconv.Quote(args[0])
	}
	return fmt.Errorf("parley %s: %s was given: allowed are %s", cmd.Name(), given, strings.Join(names, ", "))
}

// Args returns a check for least to most arguments, or for any number from least up if most is 0. expected describes
// them in the error, as in "one NODE was expected".
func Args(least, most int, expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most && most > 0 {
			return fmt.Errorf("%s: %s, and %s given", cmd.CommandPath(), expected, Given(n))
		}
		return nil
	}
}

// Given returns the number of arguments in words, with its verb.
func Given(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "only one is"
	}
	return fmt.Sprintf("%d are", n)
}
