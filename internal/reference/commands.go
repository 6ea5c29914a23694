package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/catalog"
	"parley/cli"
	"parley/cli/console"
	"parley/internal/must"
)

// printed returns what a command prints. It fails by must.
func printed(args ...string) []byte {
	var out, wrong bytes.Buffer
	if cli.Run(catalog.All(), args, &out, &wrong) != console.Fine {
		must.Failf("parley %s: %s", strings.Join(args, " "), wrong.String())
	}
	return out.Bytes()
}

// commandsPart describes all commands with their flags. The commands for one protocol each have one section together.
func commandsPart(root *cobra.Command) string {
	var b strings.Builder
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		if name := cmd.Name(); name == "run" || name == "explore" {
			describe(&b, cmd)
			describeProtocols(&b, cmd)
			continue
		}
		for _, one := range everyCommand(cmd) {
			describe(&b, one)
		}
	}
	return b.String()
}

// describe writes the section of a command.
func describe(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "### %s\n\n%s.\n\n", cmd.CommandPath(), cmd.Short)
	if !cmd.HasAvailableSubCommands() || slices.Contains([]string{"run", "explore", "node"}, cmd.Name()) {
		fmt.Fprintf(b, "```\n%s\n```\n\n", cmd.UseLine())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(b, "You can also write %s for this command.\n\n", code(cmd.Parent().CommandPath()+" "+cmd.Aliases[0]))
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "```text\n%s\n```\n\n", strings.TrimSpace(cmd.Long))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "Examples:\n\n```\n%s\n```\n\n", strings.ReplaceAll(strings.TrimSpace(cmd.Example), "\n  ", "\n"))
	}
	var flags []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	writeFlags(b, cmd.CommandPath(), flags)
}

// writeFlags writes a table of flags, if there are some.
func writeFlags(b *strings.Builder, command string, flags []*pflag.Flag) {
	var rows [][]string
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		kind, usage := pflag.UnquoteUsage(f)
		rows = append(rows, []string{
			code(strings.TrimSpace(flagName(f) + " " + kind)), usage + defaultOf(f), code(console.Variables(command, f)...),
		})
	}
	if len(rows) > 0 {
		b.WriteString(table([]string{"flag", "meaning", "variables"}, rows) + "\n")
	}
}

// describeProtocols writes the flags of the commands below one that has a command for each protocol: first those that
// all have, and then those of single protocols.
func describeProtocols(b *strings.Builder, parent *cobra.Command) {
	holders := make(map[string][]string) // protocols that have a flag, in this form
	forms := make(map[string]*pflag.Flag)
	var order []string
	all := 0
	for _, cmd := range parent.Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		all++
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			form := strings.Join([]string{f.Name, f.Usage, f.DefValue}, "\n")
			if forms[form] == nil {
				forms[form] = f
				order = append(order, form)
			}
			holders[form] = append(holders[form], cmd.Name())
		})
	}
	slices.Sort(order)
	var common, own []*pflag.Flag
	var of [][]string
	for _, form := range order {
		if len(holders[form]) == all {
			common = append(common, forms[form])
		} else {
			own, of = append(own, forms[form]), append(of, holders[form])
		}
	}
	fmt.Fprintf(b, "Flags of all protocols:\n\n")
	writeFlags(b, parent.CommandPath()+" PROTOCOL", common)
	fmt.Fprintf(b, "Flags of some protocols; a flag may mean something else to another protocol:\n\n")
	var rows [][]string
	for i, f := range own {
		if f.Hidden || f.Name == "help" {
			continue
		}
		kind, usage := pflag.UnquoteUsage(f)
		who := code(of[i]...)
		if len(of[i])*2 > all {
			who = fmt.Sprintf("%d of %d protocols", len(of[i]), all)
		}
		rows = append(rows, []string{code(strings.TrimSpace(flagName(f) + " " + kind)), usage + defaultOf(f), who})
	}
	b.WriteString(table([]string{"flag", "meaning", "protocols"}, rows) + "\n")
}
