package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/cli/console"
)

// manualPages returns a manual page for each command, by file name. They have no date: the same program makes the same
// pages.
func manualPages(root *cobra.Command) map[string][]byte {
	pages := make(map[string][]byte)
	for _, cmd := range everyCommand(root) {
		pages[manualName(cmd)+".1"] = []byte(manualPage(cmd))
	}
	return pages
}

// manualName returns the name of a command's page, such as parley-cluster-up.
func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff escapes a text for a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			b.WriteString(`\&`)
		}
		b.WriteString(line)
	}
	return b.String()
}

func manualPage(cmd *cobra.Command) string {
	var b strings.Builder
	line := func(form string, args ...any) { fmt.Fprintf(&b, form+"\n", args...) }
	verbatim := func(text string) { line(".PP\n.nf\n%s\n.fi", roff(strings.Trim(text, "\n"))) }
	line(`.TH "%s" "1" "" "Parley" "Parley Manual"`, roff(strings.ToUpper(manualName(cmd))))
	line(".nh\n.ad l")
	line(".SH NAME\n%s \\- %s", roff(manualName(cmd)), roff(cmd.Short))
	line(".SH SYNOPSIS")
	if cmd.Runnable() {
		verbatim(cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		verbatim(cmd.CommandPath() + " COMMAND")
	}
	if cmd.Long != "" {
		line(".SH DESCRIPTION")
		verbatim(cmd.Long)
	}
	options := false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !options {
			line(".SH OPTIONS")
			options = true
		}
		kind, usage := pflag.UnquoteUsage(f)
		line(".TP\n%s\n%s", strings.TrimSpace(`\fB`+roff(flagName(f))+`\fR `+roff(kind)), roff(usage+defaultOf(f)))
		if names := console.Variables(cmd.CommandPath(), f); len(names) > 0 {
			line("(%s)", roff(strings.Join(names, ", ")))
		}
	})
	if cmd.Example != "" {
		line(".SH EXAMPLES")
		verbatim(cmd.Example)
	}
	line(".SH EXIT STATUS")
	for _, s := range console.Statuses {
		line(".TP\n%d\n%s", s.Status, roff(s.Means))
	}
	if cmd.Parent() == nil {
		line(".SH ENVIRONMENT")
		verbatim(console.Environment)
	}
	line(".SH SEE ALSO")
	var others []string
	if cmd.HasParent() {
		others = append(others, `\fB`+roff(manualName(cmd.Parent()))+`\fR(1)`)
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			others = append(others, `\fB`+roff(manualName(sub))+`\fR(1)`)
		}
	}
	line("%s", strings.Join(others, ", "))
	return b.String()
}

// flagName returns the ways to write a flag: "-m", "--seed" or "-v, --version".
func flagName(f *pflag.Flag) string {
	switch f.Shorthand {
	case "":
		return "--" + f.Name
	case f.Name:
		return "-" + f.Name
	}
	return "-" + f.Shorthand + ", --" + f.Name
}

// defaultOf returns the default of a flag as its help shows it.
func defaultOf(f *pflag.Flag) string {
	switch {
	case f.Name == "workers": // the number of cores of this computer
		return " (default: one for each core)"
	case strings.Contains(f.Usage, "(default"), slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue):
		return ""
	case f.Value.Type() == "string":
		return fmt.Sprintf(" (default %q)", f.DefValue)
	}
	return " (default " + f.DefValue + ")"
}
