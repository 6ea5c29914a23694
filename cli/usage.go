package cli

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/cli/console"
	"parley/internal/draw/prose"
)

// foldHelp folds the help of all commands to the width of the terminal, and at most to 100 columns.
func foldHelp(a *console.App, root *cobra.Command) {
	width := min(a.Width(0), 100)
	declareFoldSets()
	fold := fmt.Sprintf(".FlagUsagesWrapped %d | foldSets %[1]d |", width)
	root.SetUsageTemplate(strings.NewReplacer(".FlagUsages |", fold,
		"{{if .HasHelpSubCommands}}", flagsByVariables+"{{if .HasHelpSubCommands}}").Replace(root.UsageTemplate()))
	for _, cmd := range commands(root) {
		cmd.Long = foldText(cmd.Long, width)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "(default") { // the usage says it better than the value
				zero, ok := map[string]string{"string": "", "stringSlice": "[]", "bool": "false"}[f.Value.Type()]
				if f.DefValue = zero; !ok {
					f.DefValue = "0"
				}
			}
		})
	}
}

// declareFoldSets makes foldSets a function of templates. Cobra keeps these in a variable that it does not guard.
var declareFoldSets = sync.OnceFunc(func() { cobra.AddTemplateFunc("foldSets", foldSets) })

// foldSets breaks lines of flag usages that are wider than width, in columns, behind a | of a set of values. It leaves
// a line that begins with a flag. Package pflag itself breaks only at spaces.
func foldSets(width int, text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(rest)]
		for !strings.HasPrefix(rest, "-") && len(indent)+prose.Width(rest) > width {
			at := strings.LastIndex(rest[:max(width-len(indent), 0)], "|")
			if at < 0 {
				break
			}
			out = append(out, indent+rest[:at+1])
			rest = rest[at+1:]
		}
		out = append(out, indent+rest)
	}
	return strings.Join(out, "\n")
}

// aRow is a row of a table: its first column and the rest.
var aRow = regexp.MustCompile(`^( +\S+ {2,})(.*)$`)

// foldText joins and folds the lines of each paragraph. A line that begins with a space stands for itself; if it is too
// long, its second column is folded.
func foldText(text string, width int) string {
	var out []string
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			out = append(out, prose.Fold(paragraph, width))
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == "" || line[0] == ' ':
			flush()
			if row := aRow.FindStringSubmatch(line); row != nil && prose.Width(line) > width {
				rest := prose.Fold(row[2], width-len(row[1]))
				line = row[1] + strings.ReplaceAll(rest, "\n", "\n"+strings.Repeat(" ", len(row[1])))
			}
			out = append(out, line)
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// nameProtocols has the help of a command with a subcommand for each protocol list only their names, because "parley
// list" describes them.
func nameProtocols(a *console.App, cmd *cobra.Command) {
	names := prose.Fold("  "+strings.Join(a.Names(), " "), min(a.Width(0), 100))
	before, rest, _ := strings.Cut(cmd.UsageTemplate(), "{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}")
	_, after, _ := strings.Cut(rest, "{{if .HasAvailableLocalFlags}}")
	cmd.SetUsageTemplate(before + "{{if .HasAvailableSubCommands}}\n\nProtocols (described by \"parley " +
		"list\"):\n" + names +
		"{{end}}{{if .HasAvailableLocalFlags}}" + after)
}
