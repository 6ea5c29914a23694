// Package cli is the command line. It is given the protocols, so that a module
// of one's own gets all of it for a protocol of one's own:
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
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"parley"
	"parley/internal/scenario"
)

// Main runs the command line of the process and exits. If nobody reads its output any more,
// it does so by the error of writing, and not by a signal: it leaves no folder behind.
func Main(protocols []parley.Protocol) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(Run(protocols, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs one command line and returns the exit status.
func Run(protocols []parley.Protocol, args []string, stdout, stderr io.Writer) int {
	return runContext(context.Background(), protocols, args, stdout, stderr)
}

// runContext is Run with a context, whose end is that of a signal.
func runContext(ctx context.Context, protocols []parley.Protocol, args []string, stdout, stderr io.Writer) int {
	out := &output{to: stdout}
	a := &app{protocols: protocols, out: out, err: stderr}
	if err := a.clashes(); err != nil {
		fmt.Fprintf(stderr, "parley: %v\n", err)
		return usage
	}
	root := a.root()
	root.SetArgs(scenarioFlags(longFlags(args)))
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if failed := out.failed(); failed != nil && (err == nil || errors.Is(err, failed)) {
		err = &endedError{unfinished, failed}
	}
	var status statusError
	var ended *endedError
	switch {
	case err == nil:
		return fine
	case errors.Is(err, syscall.EPIPE): // nobody reads on, as of a command before "head -1"
		return unfinished
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(stderr, "parley: %s\n", plain(err))
	if errors.As(err, &ended) {
		return ended.status
	}
	return usage
}

// plain puts an error on one line, and one about the value of a flag in words for who
// gave it.
func plain(err error) string {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		err = &parley.FlagError{Flag: bad.GetFlag().Name, Err: valueError(bad)}
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// valueError says what value a flag was given and what was expected.
func valueError(bad *pflag.InvalidValueError) error {
	want := bad.Unwrap().Error()
	switch bad.GetFlag().Value.Type() {
	case "bool":
		want = "allowed are true and false"
	case "int":
		want = "a whole number was expected"
	case "uint64", "uint32":
		want = "a whole number from 0 on was expected"
	case "duration":
		want = "a time with its unit was expected, as in 100ms or 1.5s"
	case "stringToString":
		want = "NAME=VALUE was expected"
	}
	return fmt.Errorf("%q: %s", bad.GetValue(), want)
}

// oneOf is the Args of a command that has others below it and does nothing itself.
func oneOf(cmd *cobra.Command, args []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	given := "nothing"
	if len(args) > 0 {
		given = strconv.Quote(args[0])
	}
	return fmt.Errorf("parley %s: %s was given: allowed are %s", cmd.Name(), given, strings.Join(names, ", "))
}

// exactly demands one argument by name.
func exactly(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s: one %s was expected, and %s given", cmd.CommandPath(), what, number(len(args)))
		}
		return nil
	}
}

// needs demands so many arguments, of which the first is named.
func needs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return fmt.Errorf("%s: %s was expected, and %s given", cmd.CommandPath(), what, number(len(args)))
		}
		return nil
	}
}

// number is how many arguments there are, with its verb.
func number(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "only one is"
	}
	return fmt.Sprintf("%d are", n)
}

// version is that of the module, as the go command wrote it into the program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// app is what all commands share.
type app struct {
	protocols []parley.Protocol
	out, err  io.Writer
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Makes processes agree when some of them crash, fall silent or lie",
		Long: "Parley runs the protocols of fault-tolerant agreement, shows what happens in them\n" +
			"message by message, and says which theorem promised the outcome.\n\n" + statusTable(),
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages |", ".FlagUsagesWrapped 100 |"))
	root.AddCommand(a.demo(), a.withReplay(a.run()), a.explore(), a.sweep(), a.list(), a.bounds(), a.conform(),
		a.bench(), a.trace(), a.audit(), a.cert(), a.node(), a.doctor(), a.cluster(),
		a.agree(), a.cast(), a.listen(), a.log(), a.clock(), a.commit(), a.status(), a.member())
	return root
}

// width is the width to fold to: the terminal's, or the one given, or 100.
func (a *app) width(given int) int {
	if given > 0 {
		return max(given, 20)
	}
	if f, ok := a.terminal(); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 20)
		}
	}
	return 100
}

// busy says every two seconds that work goes on, if there is a terminal to say
// it on, until the returned function is called.
func (a *app) busy() (stop func()) {
	f, ok := a.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for seconds := 2; ; seconds += 2 {
			select {
			case <-done:
				if seconds > 2 {
					fmt.Fprint(f, "\r\x1b[K")
				}
				return
			case <-time.After(2 * time.Second):
				fmt.Fprintf(f, "\rrunning, %d s", seconds)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// clashes tells which protocol has a name that another one has, or a flag that is one
// of the command line's own.
func (a *app) clashes() error {
	var taken []string
	newRunFlags(parley.Protocol{}, pflag.NewFlagSet("", pflag.ContinueOnError)).fs.VisitAll(func(g *pflag.Flag) {
		if !slices.Contains(scenario.Keys, g.Name) { // those a protocol may have in their place
			taken = append(taken, g.Name)
		}
	})
	taken = append(taken, "help", "h", "seeds", "all", "workers", "protocol")
	taken = append(taken, exploreNames()...)
	seen := make(map[string]bool)
	for _, p := range a.protocols {
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

// find returns the protocol of a name.
func (a *app) find(name string) (parley.Protocol, error) {
	var all []string
	for _, p := range a.protocols {
		if p.Name == name {
			return p, nil
		}
		all = append(all, p.Name)
	}
	return parley.Protocol{}, fmt.Errorf("there is no protocol %q: allowed are %s", name, strings.Join(all, ", "))
}
