// Package explore implements "parley explore": it searches all runs of a small system, and reports what it explored
// and found.
package explore

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/explore"
	"parley/explore/goal"
	"parley/explore/split"
	"parley/internal/lists"
)

// Command is "parley explore".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explore PROTOCOL",
		Short: "Search every schedule, crash and lie of a small system",
		Long: "Explore runs a protocol through everything that may happen in a small system: every order of\n" +
			"deliveries, every crash and loss that the flags allow, every lie of every liar. It ends when all\n" +
			"is visited, or with the shortest run that breaks a promise, told step by step. The exit status is\n" +
			"0 if all was visited and nothing found, 1 if something was, 3 if the search ended before: after\n" +
			"a minute, unless --for says otherwise. Ctrl-C ends it with what is known and status 130, a second\n" +
			"Ctrl-C at once.\n\n" +
			"The system has three processes, or as many as bear one fault, if -n does not say. In a protocol that\n" +
			"bears liars, m processes lie unless --faulty or --liars say otherwise; where values are proposed, all\n" +
			"are tried. Crashes and other faults come only as the flags say. A protocol on a detector is explored\n" +
			"without its heartbeats: processes are told of crashes, after all that\n" +
			"was sent to them before, or with --overtaking at any time.\n\n" +
			"A step is one message, or with --step round all up to the end of a round: fewer states, but no\n" +
			"faults but lies, and the adversaries are counted. With --step split each process is taken through\n" +
			"the last round by itself: far fewer still.\n\n" + goal.Help,
		Example: "  parley explore eig -n 4 -m 1\n  parley explore sm -n 3 -m 1 --step round\n" +
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
		Long: fmt.Sprintf("%s\n\nTiming: %s. Faults: %s. Source: %s.", p.Title, p.Timing, p.Faults, p.Paper),
	}
	f := newFlags(p, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return searchAll(cmd.Context(), a, f) }
	return cmd
}

// searchAll makes the search and reports on it.
func searchAll(ctx context.Context, a *console.App, f *flags) error {
	report, err := a.ReportTo(f.json, console.OutputFile{Flag: "trace", Name: f.traceTo}, console.OutputFile{Flag: "svg",
		Name: f.svg})
	if err != nil {
		return err
	}
	s, err := f.setup()
	if err != nil {
		return err
	}
	if why := s.endless(); why != "" {
		fmt.Fprintf(a.Err, "%s; %s\n", why, s.smaller())
	}
	ctx, release := console.Interruptible(ctx)
	defer release()
	show, clear := searchProgress(a, f.width)
	s.options.Progress, s.options.Memory, s.options.For = show, f.memory<<30, f.limit
	if f.pairs {
		return printPairs(ctx, a, s, report, clear)
	}
	e := &result{search: s, App: a}
	if f.step == "split" {
		if e.report, e.split, err = splitLast(ctx, s.options); err != nil {
			err = parley.FlagErrorf("step", "%w: use --step round", err)
		}
	} else {
		e.report, err = explore.Search(ctx, s.options)
	}
	clear()
	if err != nil {
		return err
	}
	e.addCounterexamples(ctx)
	e.interrupted = ctx.Err() != nil
	if err := e.write(); err != nil {
		return err
	}
	if f.json {
		return console.End(e.status(), e.printJSON())
	}
	return console.End(e.status(), e.print(report))
}

// splitLast is "parley explore PROTOCOL --step split": a search by rounds that splits the last round by receiver. Its
// report has the results that such a search yields.
func splitLast(ctx context.Context, o explore.Options) (explore.Report, *split.Report, error) {
	of, err := split.Search(ctx, o)
	if err != nil {
		return explore.Report{}, nil, err
	}
	r := explore.Report{Outcome: of.Outcome, Runs: of.Runs, Ends: of.Histories, Limit: of.Limit, Judged: of.Judged}
	r.States, r.Moves, r.Took = of.Stages, of.Evaluations, of.Took
	r.Findings = lists.Of(of.Findings, func(f split.Finding) explore.Finding { return f.Finding })
	return r, &of, nil
}
