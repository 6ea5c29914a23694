// Package explore implements "parley explore". It searches all runs of a small system, and reports how much it
// searched and what it found.
package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/explore"
	"parley/explore/goal"
	"parley/internal/draw"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/internal/draw/term"
	"parley/internal/exploration"
	"parley/internal/lists"
)

// Command is "parley explore".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explore PROTOCOL",
		Short: "Search every schedule, crash, and lie of a small system",
		Long: "Explore visits all states of a small system: every order of deliveries, every crash and loss " +
			"that the flags allow, and every lie of faulty processes. It ends when it has visited all " +
			"states, or when it finds a run that breaks a promise. If it finds such runs, it prints the " +
			"shortest one, step by step. It changes only the files of --trace and --svg.\n\n" +
			"The exit status is 0 if the search visited all states and found nothing, and 1 if it found " +
			"something. It is 3 if the search ended before it had visited all states (by default after 1 " +
			"minute: see --for). It is 130 after Ctrl-C; explore then reports what it knows. A second " +
			"Ctrl-C ends the search at once.\n\n" +
			"Without -n, the system has three processes, or more if the protocol needs more to tolerate one " +
			"fault. If the protocol tolerates Byzantine faults, explore tries every choice of m faulty " +
			"processes; --faulty and --liars change this. Explore also tries every initial value of " +
			"--try-values. Other faults occur only if flags such as --crashes 1 allow them.\n\n" +
			"If a protocol uses a failure detector, explore replaces the detector and its heartbeats by " +
			"notices of crashes. A process gets the notice of a crash after it has received all " +
			"messages that the " +
			"crashed process sent to it. With --overtaking, the notice may arrive at any time after the " +
			"crash.\n\n" +
			"A step is one message, timer, or crash. With --step round, a step is one round: the system has " +
			"fewer states, and no faults except lies. With --step split, a step is also one round, and in " +
			"the last round explore treats each receiver separately. The system then has far fewer " +
			"states.\n\n" +
			"With --open, explore also opens the lab, and ends after Ctrl-C. The lab shows the run that " +
			"was found, or the form of the search if nothing was found.\n\n" +
			goal.Help + "\n\nLearn more: docs/explanation/exploring.md",
		Example: "  parley explore eig -n 4 -m 1\n  parley explore sm -n 3 -m 1 --step round\n" +
			"  parley explore twophase -n 3 --crashes 1 --property non-blocking --beyond-bound --open\n" +
			"  parley explore diffusion -n 3 --crashes 1\n" +
			"  parley explore twophase -n 3 --crashes 1 --always 'not (some decides commit and some decides abort)'",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.NoProtocol(cmd)
			}
			_, err := a.Find(args[0])
			return err
		},
	}
	for _, p := range a.Protocols {
		cmd.AddCommand(protocolCommand(a, p))
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && renamed[unknown.GetSpecifiedName()] != "" {
			name := unknown.GetSpecifiedName()
			return fmt.Errorf("unknown flag --%s: %s", name, renamed[name])
		}
		return console.UnknownFlag(cmd, err)
	})
	return cmd
}

func protocolCommand(a *console.App, p parley.Protocol) *cobra.Command {
	cmd := &cobra.Command{
		Use: p.Name, Short: p.Title, Args: console.NoArgs,
		Long: fmt.Sprintf("Explore visits all states of a small system of this protocol: %s.\n\nTiming: %s. Faults: %s. "+
			"Source: %s.\n\n\"parley explore --help\" explains exit statuses, steps, and goals.", p.Title, p.Timing, p.Faults,
			p.Paper),
	}
	f := newFlags(p, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return searchAll(cmd.Context(), a, f) }
	return cmd
}

// searchAll makes the search and reports on it.
func searchAll(ctx context.Context, a *console.App, f *flags) error {
	to, err := a.ReportTo(f.json, console.OutputFile{Flag: "trace", Name: f.traceTo},
		console.OutputFile{Flag: "svg", Name: f.svg})
	if err != nil {
		return err
	}
	s, err := f.setup()
	if err != nil {
		return err
	}
	if why := s.Endless(); why != "" {
		a.Notice("%s; %s", why, s.Smaller())
	}
	ctx, release := console.Interruptible(ctx)
	defer release()
	show, clear := searchProgress(a, f.width)
	if f.Pairs() {
		style := reading.Style{Width: a.Width(f.width), Color: a.Colors()}
		found, err := exploration.Pairs(ctx, s, style, show)
		clear()
		if err != nil {
			return err
		}
		return f.show(ctx, a, f.scene(), reportPairs(a, f, found, to))
	}
	found, err := exploration.Run(ctx, s, show)
	clear()
	if err != nil {
		return err
	}
	e := &result{found, a, f}
	if err := e.write(); err != nil {
		return err
	}
	if f.json {
		err = a.PrintJSON(e.Output())
	} else {
		err = e.print(to)
	}
	scene := f.scene()
	if run := e.Found(); run != nil {
		scene = lab.Recorded(run.Header, run.Log, f.traceTo)
	}
	return f.show(ctx, a, scene, console.End(status(e.Outcome()), err))
}

// show opens the lab if the user wants it. The command ended by an error, which show returns.
func (f *flags) show(ctx context.Context, a *console.App, s lab.Scene, ended error) error {
	if !f.open || ctx.Err() != nil {
		return ended
	}
	return lab.Open(ctx, a, s, ended)
}

// status returns the exit status for an outcome.
func status(of explore.Outcome) int {
	switch of {
	case explore.Exhausted:
		return console.Fine
	case explore.Found:
		return console.Violated
	case explore.Interrupted:
		return console.Interrupted
	}
	return console.Unfinished
}

// reportPairs prints and draws the result of a search for runs that look the same to a process.
func reportPairs(a *console.App, f *flags, found *exploration.Pairing, to io.Writer) (err error) {
	if f.svg != "" && found.Drawn != nil {
		picture := svg.File(draw.Pairs(found.Protocol(), *found.Drawn))
		if err := a.WriteFile(console.OutputFile{Flag: "svg", Name: f.svg}, picture); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		err = a.PrintJSON(found.Output())
	case found.Drawn == nil:
		fold := func(line string) string { return prose.Fold(line, a.Width(f.width)) + "\n" }
		_, err = io.WriteString(to, strings.Join(lists.Of(append(found.About(), "", found.Verdict), fold), ""))
	default:
		_, err = io.WriteString(to, term.Pairs(found.Protocol(), *found.Drawn))
	}
	return console.End(status(found.Outcome), err)
}
