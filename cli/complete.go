package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/cli/console"
	"parley/faulty"
	"parley/internal/input"
	"parley/internal/lists"
)

// completeValues has the shell complete the values of flags and arguments of all commands. The values of a flag stand
// in its usage, with bars between them; a flag of a list takes several, with commas between.
func completeValues(a *console.App, root *cobra.Command) {
	behaviors := lists.Of(faulty.Named(), func(b faulty.Behavior) string { return b.Name })
	for _, cmd := range commands(root) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			complete := cobra.CompletionFunc(nil)
			kind, _ := pflag.UnquoteUsage(f)
			switch values := input.Values(f); {
			case values != nil && takesList(f):
				complete = inList(values)
			case values != nil:
				complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
			case f.Name == "faulty":
				complete = ofProcesses(behaviors)
			case f.Name == "property":
				complete = inList(properties(a, cmd.Name()))
			case kind == "file" || f.Name == "dir":
				return // files, which the shell completes itself
			default:
				complete = cobra.NoFileCompletions
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // which fails only for a flag that does not exist
		})
	}
	for _, name := range []string{"list", "sweep"} {
		if cmd, _, err := root.Find([]string{name}); err == nil {
			cmd.ValidArgs = a.Names()
		}
	}
}

// commands returns a command and all below it.
func commands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, c := range root.Commands() {
		all = append(all, commands(c)...)
	}
	return all
}

// takesList reports whether a flag takes a list of values.
func takesList(f *pflag.Flag) bool {
	return f.Value.Type() == "stringSlice" || f.Value.Type() == "rights"
}

// inList completes the last element of a list with commas between.
func inList(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := word[:strings.LastIndexByte(word, ',')+1]
		given := strings.Split(before, ",")
		var out []cobra.Completion
		for _, v := range values {
			if !slices.Contains(given, v) {
				out = append(out, before+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// ofProcesses completes the behavior in the last element of a list such as 1=silent,2=flip.
func ofProcesses(behaviors []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		i := strings.LastIndexByte(word, '=')
		if i <= strings.LastIndexByte(word, ',') {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return lists.Of(behaviors, func(b string) string { return word[:i+1] + b }),
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// properties returns the names of a protocol's properties.
func properties(a *console.App, protocol string) (names []string) {
	p, err := a.Find(protocol)
	if err != nil {
		return nil
	}
	for _, property := range p.Properties {
		names = append(names, property.Name)
	}
	return names
}
