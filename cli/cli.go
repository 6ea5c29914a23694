// Package cli is the command line. It is given the protocols, so that a module
// of one's own gets all of it for a protocol of one's own:
//
//	func main() { cli.Main(append(catalog.All(), mine.New(mine.Config{N: 4}))) }
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley"
)

// The exit statuses.
const (
	fine     = 0
	violated = 1 // a promised property was violated, or a vector failed
	usage    = 2 // bad flags, files or input
	budget   = 3 // the search ended before an answer
)

// Main runs the command line of the process and exits.
func Main(protocols []parley.Protocol) {
	os.Exit(Run(protocols, os.Args[1:], os.Stdout, os.Stderr))
}

// Run runs one command line and returns the exit status.
func Run(protocols []parley.Protocol, args []string, stdout, stderr io.Writer) int {
	a := &app{protocols: protocols, out: stdout, err: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var status statusError
	switch {
	case err == nil:
		return fine
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(stderr, "parley: %s\n", plain(err.Error()))
	return usage
}

// leaks are what packages for flags say of a number that is none.
var leaks = regexp.MustCompile(`strconv\.\w+: parsing "[^"]*": (invalid syntax|value out of range)|parse error$`)

// plain puts an error on one line, in words for who typed the flag.
func plain(text string) string {
	return leaks.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "a whole number was expected")
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
			return fmt.Errorf("%s: one %s was expected, and %d are given", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// version is that of the module, as the go command wrote it into the program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// statusError ends a command whose report has been printed with a status.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

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
			"message by message, and says which theorem promised the outcome.",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(a.demo(), a.run(), a.sweep(), a.list(), a.bounds(), a.conform(), a.bench(), a.trace())
	return root
}

// width is the width to fold to: the terminal's, or the one given, or 100.
func (a *app) width(given int) int {
	if given > 0 {
		return max(given, 20)
	}
	if f, ok := a.out.(*os.File); ok {
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

// find returns the protocol of a name; an unknown one gets the nearest names.
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
