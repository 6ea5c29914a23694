// Package cli implements the command line "parley". The caller passes the protocols that the commands run, so a
// program of another module can add its own protocols:
//
//	func main() { cli.Main(append(catalog.All(), mine.New(mine.Config{N: 4}))) }
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/bench"
	"parley/cli/cert"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cli/create"
	"parley/cli/demo"
	"parley/cli/exercise"
	"parley/cli/explore"
	"parley/cli/lab"
	"parley/cli/local"
	"parley/cli/node"
	"parley/cli/run"
	"parley/cli/traces"
	"parley/internal/input"
)

// Main runs the command line of the process and exits. It catches SIGPIPE: if the reader of its output has ended, the
// command ends by the write error and not by the signal. So it can remove its temporary folder.
func Main(protocols []parley.Protocol) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	input.Program = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	os.Exit(Run(protocols, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs one command line and returns the exit status.
func Run(protocols []parley.Protocol, args []string, stdout, stderr io.Writer) int {
	return runContext(context.Background(), protocols, args, stdout, stderr)
}

// runContext is Run with a context whose end interrupts the command as a signal does.
func runContext(ctx context.Context, protocols []parley.Protocol, args []string, stdout, stderr io.Writer) int {
	out := &console.Output{To: stdout}
	args = bench.LongFlags(args)
	a := &console.App{Protocols: protocols, Out: out, Err: stderr, JSON: console.WantsJSON(args),
		Version: version()}
	if err := clashes(a); err != nil {
		a.Complain(console.Usage, err)
		return console.Usage
	}
	root := rootCommand(a)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeValues(a, root)
	}
	root.SetArgs(run.Arguments(args))
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if failed := out.Failed(); failed != nil && (err == nil || errors.Is(err, failed)) {
		err = console.EndWith(console.Unfinished, failed)
	}
	switch status, ended := errors.AsType[console.ExitError](err); {
	case err == nil:
		return console.Fine
	case errors.Is(err, syscall.EPIPE): // the reader has ended, such as "head -1"
		return console.Unfinished
	case ended:
		return int(status)
	}
	status := console.Usage
	if ended, ok := errors.AsType[*console.EndedError](err); ok {
		status = ended.Status
	}
	a.Complain(status, err)
	return status
}

// Commands returns the command line as a tree of commands, for programs that document it. Its commands must not be
// executed.
func Commands(protocols []parley.Protocol) *cobra.Command {
	return rootCommand(&console.App{Protocols: protocols, Out: io.Discard, Err: io.Discard})
}

func rootCommand(a *console.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Make processes agree when some of them crash, lose messages, or lie",
		Long: "Parley makes processes agree when some of them crash, lose messages, or lie. It simulates,\n" +
			"explores, and runs the classical protocols, and says which theorem promised the outcome.\n\n" +
			console.StatusTable(),
		Example: "  parley run eig -n 4 -m 1 --faulty 3=twofaced\n" +
			"  parley explore om -n 4 -m 1 --step round\n" +
			"  parley demo --once",
		Version:               version(),
		SilenceErrors:         true,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return console.OneOf(cmd, args)
		},
	}
	root.SetFlagErrorFunc(console.UnknownFlag)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.DisableFlagParsing { // it does so itself, when it knows its flags
			return nil
		}
		return a.SetFromEnvironment(cmd.CommandPath(), cmd.Flags())
	}
	a.DeclareColor(root.PersistentFlags())
	console.Common(root.PersistentFlags(), "color")
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"protocols", "Run and check protocols:", []*cobra.Command{
			demo.Command(a), run.Command(a), run.Sweep(a), explore.Command(a), traces.Command(a),
			lab.Command(a, version()), listCommand(a), boundsCommand(a), conformCommand(a), bench.Command(a), create.Command(a),
			exercise.Command(a, openTrace(a)),
		}},
		{"nodes", "Run a cluster:", []*cobra.Command{
			local.Command(a), node.Command(a), cert.Command(a), node.Doctor(a), traces.Audit(a),
		}},
		{"calls", "Call a cluster:", []*cobra.Command{
			client.Agree(a), client.Broadcast(a), client.Subscribe(a), client.Table(a), client.Commit(a), client.Clock(a),
			client.Status(a),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(run.Member(a), environment())
	root.SetOut(a.Out)
	nameCompletion(root)
	foldHelp(a, root)
	for _, c := range root.Commands() {
		if c.Name() == "run" || c.Name() == "explore" {
			nameProtocols(a, c)
		}
	}
	return root
}

// openTrace returns the function that shows a trace file in the lab, until the user ends it.
func openTrace(a *console.App) func(ctx context.Context, file string) error {
	return func(ctx context.Context, file string) error {
		fmt.Fprintf(a.Out, "\nDrop the file %s on the page to see the failing run.\n", file)
		page := lab.Command(a, version())
		page.SetArgs([]string{})
		page.SilenceErrors, page.SilenceUsage = true, true
		return page.ExecuteContext(ctx)
	}
}

// flagsByVariables is the line of the help of every command that has flags.
const flagsByVariables = `{{if and .HasParent .HasAvailableLocalFlags}}

Environment variables set flags too: "parley help environment" says how.{{end}}`

// environment is the help on variables of the environment.
func environment() *cobra.Command {
	return &cobra.Command{
		Use: "environment", Short: "How environment variables set flags", Long: console.Environment,
	}
}

// clashes returns an error if two protocols have the same name, or if a protocol has a flag that the command line
// reserves.
func clashes(a *console.App) error {
	taken := slices.Concat(run.Reserved(), explore.Reserved(), []string{"help", "h", "protocol", "color"})
	seen := make(map[string]bool)
	for _, p := range a.Protocols {
		if p.Name == "" || seen[p.Name] {
			return fmt.Errorf("there are two protocols that are called %q, or one without a name", p.Name)
		}
		seen[p.Name] = true
		if p.Flags == nil {
			continue
		}
		own := flag.NewFlagSet(p.Name, flag.ContinueOnError)
		p.Flags(own)
		var err error
		own.VisitAll(func(g *flag.Flag) {
			if slices.Contains(taken, g.Name) {
				err = fmt.Errorf("the protocol %s has a flag %s, which is one of the command line's own: it needs another name",
					p.Name, g.Name)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
