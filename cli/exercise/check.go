package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cli/child"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/internal/draw/prose"
)

// checking are the flags of check and grade.
type checking struct {
	json, open bool
	trace      string
}

func (c *checking) declare(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&c.json, "json", false, "print one JSON object")
	fs.BoolVar(&c.open, "open", false, "then show the first failing run in the lab, until Ctrl-C (see parley lab)")
	fs.StringVar(&c.trace, "trace", "", "write the trace of the first failing run to a `file`")
	console.Prints(fs, "exercise", grade{})
}

// args returns the flags as arguments.
func (c checking) args() (args []string) {
	if c.json {
		args = append(args, "--json")
	}
	if c.open {
		args = append(args, "--open")
	}
	if c.trace != "" {
		args = append(args, "--trace="+c.trace)
	}
	return args
}

func checkCommand(a *console.App) *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Grade an exercise",
		Long: "Check builds the module in the folder DIR, by default the current one, and grades its machine. It simulates " +
			"runs with faults of every kind that the protocol tolerates, and explores a small system completely. It then " +
			"prints the outcome of each promise, the points, and a command that shows the first failing run.\n\n" +
			"A promise gives points if at least one run tested it, and if no run breaks it. Check changes only the file of " +
			"--trace. It needs Go. The exit status is 0 with all points, 1 with fewer, and 2 if DIR holds no exercise or " +
			"the module does not compile.",
		Example: "  parley exercise check om\n  cd om && parley exercise check --open",
		Args:    console.Args(0, 1, "at most one DIR is allowed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return build(cmd, a, append(args, ".")[0], c)
		},
	}
	c.declare(cmd)
	return cmd
}

// build builds the command of a module, and has it grade the module's machine.
func build(cmd *cobra.Command, a *console.App, dir string, c checking) error {
	e, err := in(cmd.CommandPath(), dir)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "parley-exercise-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	ctx, stop := console.UntilSignal(cmd.Context())
	defer stop()
	program := filepath.Join(tmp, e.name)
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	compile := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/"+e.name)
	compile.Dir, compile.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS="+flagsOfGo())
	done := a.Busy()
	text, err := compile.CombinedOutput()
	done()
	switch {
	case ctx.Err() != nil:
		return console.EndWith(console.Interrupted, errInterrupted)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: there is no command go: install Go, which is needed to build the exercise", cmd.CommandPath())
	case err != nil:
		_, _ = a.Err.Write(text)
		if bytes.Contains(text, []byte("; to add")) || bytes.Contains(text, []byte("; to update")) {
			return fmt.Errorf("%s: the go.mod or go.sum in %s lacks what the lines above name, and check does not change "+
				"them: run there the command that the lines name", cmd.CommandPath(), dir)
		}
		return fmt.Errorf("%s: the module in %s does not compile: check the lines above", cmd.CommandPath(), dir)
	}
	return gradeWith(ctx, cmd.CommandPath(), a, program, filepath.Join(tmp, "graded"),
		append([]string{e.name}, c.args()...))
}

// gradeWith has a program grade its machine. The program says in the file done that it came to the end.
func gradeWith(ctx context.Context, command string, a *console.App, program, done string, args []string) error {
	graded := exec.CommandContext(ctx, program, append([]string{"exercise", "grade", "--done=" + done}, args...)...)
	defer child.LockThread()()
	child.EndsWithParent(graded)
	graded.Cancel = func() error { return graded.Process.Signal(os.Interrupt) } // it ends in order
	graded.WaitDelay = 5 * time.Second
	graded.Stdout, graded.Stderr = a.Out, a.Err
	if out, ok := a.Out.(*console.Output); ok {
		graded.Stdout = out.To
	}
	err := graded.Run()
	_, unfinished := os.Stat(done)
	failed, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ended && failed.ExitCode() > 0 && unfinished == nil:
		return console.ExitError(failed.ExitCode())
	case ctx.Err() != nil:
		return console.EndWith(console.Interrupted, errInterrupted)
	case unfinished != nil && (err == nil || ended):
		return console.EndWith(console.Violated, fmt.Errorf("%s: the program ended by itself before it was graded, with %s: "+
			"the machine must not end the program", command, graded.ProcessState))
	}
	return err
}

// flagsOfGo returns the value of GOFLAGS for the module. It has the dependencies of Parley, and so needs no network and
// no change of its go.mod.
func flagsOfGo() string { return strings.TrimSpace(os.Getenv("GOFLAGS") + " -mod=readonly") }

// in returns the exercise that a folder holds.
func in(command, dir string) (exercise, error) {
	for _, e := range all {
		text, err := readMain(filepath.Join(dir, filepath.FromSlash(e.main())))
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return e, fmt.Errorf("%s: %w: check the folder", command, console.PathError(err))
		case !bytes.Equal(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), e.command()):
			return e, fmt.Errorf("%s: %s was changed, and grades depend on it: write it again with \"parley exercise new %s\"",
				command, filepath.Join(dir, filepath.FromSlash(e.main())), e.name)
		}
		return e, nil
	}
	return exercise{}, fmt.Errorf("%s: %s holds no exercise: name a folder that \"parley exercise new\" wrote", command,
		dir)
}

// readMain returns the beginning of a file, which is all of a file that exercise.command returns.
func readMain(file string) ([]byte, error) {
	const most = 64 << 10
	switch info, err := os.Stat(file); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // to open a pipe would wait for a writer
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most))
}

// gradeCommand is the hidden command that grades the machine of the program itself.
func gradeCommand(a *console.App) *cobra.Command {
	var c checking
	var done string
	cmd := &cobra.Command{
		Use: "grade NAME", Hidden: true, Args: console.Args(1, 1, "one NAME is needed"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if done != "" { // a program that ends before the command does writes no such file
				defer func() {
					if wrong := os.WriteFile(done, nil, 0o600); err == nil {
						err = wrong
					}
				}()
			}
			e, err := find(cmd.CommandPath(), args[0])
			if err != nil {
				return err
			}
			p, err := a.Find(e.protocol())
			if err != nil {
				return fmt.Errorf("%s: this program has no machine of %q: use parley exercise check", cmd.CommandPath(),
					e.name)
			}
			ctx, stop := console.UntilSignal(cmd.Context())
			defer stop()
			busy := a.Busy()
			g, err := e.graded(ctx, p, func(g grade) {
				busy()
				_ = report(ctx, a, g, checking{json: c.json, trace: c.trace})
				if done != "" {
					_ = os.WriteFile(done, nil, 0o600)
				}
				os.Exit(console.Violated) // nothing else ends the step
			})
			busy()
			if errors.Is(err, errInterrupted) {
				return console.EndWith(console.Interrupted, err)
			}
			if err != nil {
				return err
			}
			return report(ctx, a, g, c)
		},
	}
	c.declare(cmd)
	cmd.Flags().StringVar(&done, "done", "", "`file` to write at the end")
	cmd.Flag("done").Hidden = true
	return cmd
}

// report prints a grade, and writes or shows the first failing run.
func report(ctx context.Context, a *console.App, g grade, c checking) (err error) {
	var first *failing
	for _, p := range g.Promises {
		if first == nil {
			first = p.failing
		}
	}
	if first != nil {
		if err := a.WriteTrace(c.trace, first.header, first.log); err != nil {
			return err
		}
	}
	if c.json {
		err = a.PrintJSON(g)
	} else {
		_, err = fmt.Fprint(a.Out, g.text(a.Width(0)))
	}
	if g.Points < g.Of {
		err = console.End(console.Violated, err)
	}
	if !c.open || first == nil {
		return err
	}
	return lab.Open(ctx, a, lab.Recorded(first.header, first.log, c.trace), err)
}

// text returns the grade as a table.
func (g grade) text(width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s explored\n\n", g.Exercise, prose.Count(g.Runs, "simulated run", "simulated runs"),
		prose.Count(g.States, "state", "states"))
	rows := [][3]string{{"promise", "outcome", "points"}}
	for _, p := range g.Promises {
		rows = append(rows, [3]string{p.Promise, p.Outcome, fmt.Sprintf("%d of %d", p.Points, p.Of)})
	}
	rows = append(rows, [3]string{"", "", fmt.Sprintf("%d of %d", g.Points, g.Of)})
	var wide [3]int
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], len(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s  %-*s  %*s", wide[0], row[0], wide[1], row[1], wide[2], row[2])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	explain := func(name, why, again string) {
		fmt.Fprintf(&b, "\n%s\n  %s\n", prose.Fold(name+": "+why, width), again)
	}
	if g.Failed != "" {
		explain("nothing counts", g.Failed, g.Again)
	}
	for _, p := range g.Promises {
		switch {
		case p.Outcome == broken:
			explain(p.Promise, p.Says+". But in a run, "+p.Why, p.Again)
		case p.Outcome == untested && g.Failed == "":
			fmt.Fprintf(&b, "\n%s\n", prose.Fold(p.Promise+": no run demands anything of the machine, because it does too "+
				"little", width))
		}
	}
	if g.Points == g.Of {
		b.WriteString("\nall promises hold, and all were tested\n")
	}
	return b.String()
}
