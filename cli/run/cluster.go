package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/child"
	"parley/cli/console"
	"parley/cluster/harness"
	"parley/faulty"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
)

// setup is a complete run on its host.
type setup struct{ form.Setup }

// run makes the run. tree returns the tree of one process; nil means the tree that the log yields.
func (s setup) run() (log *trace.Log, facts trace.Facts, tree func(parley.ID) parley.Tree, err error) {
	if s.Host != "" {
		log, facts, err = s.processes(context.Background())
		return log, facts, nil, err
	}
	if len(s.Node) > 0 {
		log, facts, err = s.programs(context.Background())
		return log, facts, nil, err
	}
	done, err := s.Simulate()
	if err != nil {
		return nil, facts, nil, err
	}
	return done.Log, done.Facts, done.Tree, nil
}

// possible refuses a run that this computer cannot make with real processes.
func (f *flags) possible(s setup) error {
	switch {
	case s.Host == "":
	case s.Protocol.N > child.Most:
		return parley.FlagErrorf("n", "%d processes: allowed with --host cluster are 1 to %d", s.Protocol.N, child.Most)
	case len(s.Plan.Pauses) > 0 && !child.CanHold:
		return f.Plan.Entry("pauses", 0, errors.New("this operating system cannot pause a process: omit it"))
	}
	return nil
}

// crashTick returns when to kill a process whose fault is a crash.
func (s setup) crashTick(how faulty.Behavior) (parley.Tick, bool) {
	if at, is := form.CrashTime(how); is {
		return parley.Tick(at / s.At.Tick(s.Protocol)), true
	}
	text, is := strings.CutPrefix(how.Name, "crash@r")
	text, _, _ = strings.Cut(text, ":")
	round, err := strconv.Atoi(text)
	if !is || err != nil {
		return 0, false
	}
	// The process has sent its messages by the middle of the round.
	return parley.Tick(round)*form.RoundTicks(s.Protocol) + 3*form.RoundTicks(s.Protocol)/4, true
}

// limit is how long to wait for a run that may never become idle.
const limit = 2 * time.Minute

// harnessRun returns the run as one between real processes.
func (s setup) harnessRun(dir string) *harness.Run {
	opt, relies := s.Options(), s.Protocol.Relies
	tick := s.At.Tick(s.Protocol)
	opt.Promised = cmp.Or(opt.Promised, relies)
	opt.Promised.Delay = cmp.Or(opt.Promised.Delay, relies.Delay, opt.Delay.Most, 900)
	last := lastOf(opt)
	liars := s.Liars()
	var crashes []sim.Crash
	for id := range liars.All() {
		if at, is := s.crashTick(s.Faulty[id]); is {
			crashes = append(crashes, sim.Crash{At: id, When: at})
		}
	}
	opt.Crashes = append(crashes, opt.Crashes...)
	return &harness.Run{
		Options: opt, Header: s.Header(trace.Facts{}), Dir: dir, Tick: tick,
		Early: s.Protocol.Timing == parley.Synchronous, Liars: liars, Limit: limit + time.Duration(last)*tick,
		Start: func(ctx context.Context, id parley.ID) (*harness.Child, error) { return child.Start(ctx, id, "member") },
	}
}

// lastOf returns the time of the last planned event for a process of a run.
func lastOf(opt sim.Options) parley.Tick {
	last := opt.Until
	for _, v := range opt.Suspicions {
		last = max(last, v.When)
	}
	for _, q := range opt.Requests {
		last = max(last, q.When)
	}
	for _, c := range opt.Crashes {
		last = max(last, c.When+c.Back)
	}
	for _, p := range opt.Pauses {
		last = max(last, p.From+p.For)
	}
	return last
}

// processes makes the run between real processes.
func (s setup) processes(ctx context.Context) (*trace.Log, trace.Facts, error) {
	if err := child.Allowed("--host cluster", "a process of a cluster starts no others"); err != nil {
		return nil, trace.Facts{}, err
	}
	dir, err := os.MkdirTemp("", "parley-run-")
	if err != nil {
		return nil, trace.Facts{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, stop := console.UntilSignal(ctx)
	defer stop()
	defer child.LockThread()()
	h, log, err := s.harnessRun(dir).Do(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, h.Facts, console.EndWith(console.Interrupted, errors.New("the run was interrupted"))
	case err != nil:
		return nil, h.Facts, err
	case !h.Facts.Over:
		return nil, h.Facts, console.EndWith(console.Unfinished, fmt.Errorf("the run is not over after %s: "+
			"limit it with --for, or shorten --tick", limit))
	}
	return log, h.Facts, nil
}

// Member is the hidden command "parley member": one process of a run.
func Member(a *console.App) *cobra.Command {
	return &cobra.Command{
		Use: "member", Hidden: true, Args: console.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt) // the parent process receives Ctrl-C as well, and ends this one
			return harness.Serve(nil, os.Stdin, a.Out, func(of harness.Spec) (parley.Machine, error) { return machineOf(a, of) })
		},
	}
}

// machineOf returns the machine of a process, which lies if the process is faulty.
func machineOf(a *console.App, of harness.Spec) (parley.Machine, error) {
	h := of.Header
	h.Node = nil
	s, err := form.Remake(a.Protocols, h)
	if err != nil {
		return nil, err
	}
	how, lies := s.Faulty[of.Self]
	if !lies {
		return s.Protocol.New(of.Self), nil
	}
	rush := parley.Tick(0)
	if s.Protocol.Timing == parley.Synchronous {
		rush = form.RoundTicks(s.Protocol) / 2
	}
	return faulty.New(s.Protocol, rush, map[parley.ID]faulty.Behavior{of.Self: how}), nil
}
