// Package console holds what all commands share: where they write, exit statuses, the names of
// processes, checks of arguments, and output files.
package console

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/internal/lists"
)

// OneOf is the Args of a command that has others below it and does nothing itself.
func OneOf(cmd *cobra.Command, args []string) error {
	names := lists.Of(cmd.Commands(), (*cobra.Command).Name)
	given := "nothing"
	if len(args) > 0 {
		given = strconv.Quote(args[0])
	}
	return fmt.Errorf("parley %s: %s was given: allowed are %s", cmd.Name(), given, strings.Join(names, ", "))
}

// Args demands from least to most arguments, or any number above least if most is 0. expected says which, as in
// "one NODE was expected".
func Args(least, most int, expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most && most > 0 {
			return fmt.Errorf("%s: %s, and %s given", cmd.CommandPath(), expected, Given(n))
		}
		return nil
	}
}

// Given is how many arguments there are, with its verb.
func Given(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "only one is"
	}
	return fmt.Sprintf("%d are", n)
}
