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
	"github.com/spf13/pflag"

	"parley"
	"parley/cli/child"
	"parley/cli/console"
	"parley/cluster/harness"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// hostFlags are the flags that choose the host of a run: the simulator or real processes.
type hostFlags struct {
	fs          *pflag.FlagSet
	host        string
	round, tick time.Duration
	span        time.Duration
}

// The hosts of a run.
const (
	onSim     = "sim"
	onCluster = "cluster"
)

func (f *hostFlags) declare(fs *pflag.FlagSet) {
	f.fs = fs
	fs.StringVar(&f.host, "host", onSim, "host of the run: `sim|cluster`; sim is the simulator, cluster is "+
		"real processes on this computer")
	fs.DurationVar(&f.round, "round", 100*time.Millisecond, "`duration` of a round, 10ms to 1h, with --host cluster")
	fs.DurationVar(&f.tick, "tick", 50*time.Microsecond,
		"`duration` of a tick, 1µs to 1s, with --host cluster, for protocols without rounds")
	fs.DurationVar(&f.span, "for", 0, "`duration` of the run, up to 24h, with --host cluster (default: until "+
		"nothing is due)")
}

// simulated are the flags that only the simulator can honor, with the reason.
var simulated = map[string]string{
	"steps": "real processes do not count their steps together: use --for",
}

// check refuses flags that do not fit the host.
func (f *hostFlags) check(p parley.Protocol) error {
	switch f.host {
	case onSim:
		for _, flag := range []string{"round", "tick", "for"} {
			if f.fs.Changed(flag) {
				return parley.FlagErrorf(flag, "the simulator has virtual time: use --host cluster, or omit the flag")
			}
		}
		return nil
	case onCluster:
	default:
		return parley.FlagErrorf("host", "unknown host %q: allowed are %s and %s", f.host, onSim, onCluster)
	}
	var err error
	f.fs.Visit(func(g *pflag.Flag) {
		if why, only := simulated[g.Name]; only && planHelp[g.Name] == g.Usage && err == nil {
			err = parley.FlagErrorf(g.Name, "it is not allowed with --host cluster: %s", why)
		}
	})
	switch {
	case err != nil:
		return err
	case p.N > child.Most:
		return parley.FlagErrorf("n", "%d processes: allowed with --host cluster are 1 to %d", p.N, child.Most)
	case p.Timing == parley.Synchronous && f.fs.Changed("tick"):
		return parley.FlagErrorf("tick", "%s has rounds: use --round, the duration of a round", p.Name)
	case p.Timing != parley.Synchronous && f.fs.Changed("round"):
		return parley.FlagErrorf("round", "%s has no rounds: use --tick, the duration of a tick", p.Name)
	case f.round < 10*time.Millisecond || f.round > time.Hour:
		return parley.FlagErrorf("round", "%s: allowed are 10ms to 1h", f.round)
	case f.tick < time.Microsecond || f.tick > time.Second:
		return parley.FlagErrorf("tick", "%s: allowed are 1µs to 1s", f.tick)
	case f.fs.Changed("for") && (f.span <= 0 || f.span > 24*time.Hour):
		return parley.FlagErrorf("for", "%s: allowed are durations above 0, up to 24h", f.span)
	case f.fs.Changed("signatures") && f.fs.Lookup("signatures").Value.String() != "ed25519":
		return parley.FlagErrorf("signatures", "real processes sign with Ed25519 keys: allowed is ed25519")
	}
	return nil
}

// lasts returns the duration of a tick. A round has as many ticks as the protocol assumes, of which messages may take
// 9/10.
func (f *hostFlags) lasts(p parley.Protocol) time.Duration {
	switch {
	case f.host != onCluster:
		return 1
	case p.Timing == parley.Synchronous:
		return max(1, f.round/time.Duration(roundTicks(p)))
	}
	return f.tick
}

// words describes the host of a run.
func (f *hostFlags) words(p parley.Protocol) string {
	if p.Timing == parley.Synchronous {
		return fmt.Sprintf("real processes, mutual TLS, rounds of %s", f.round)
	}
	return fmt.Sprintf("real processes, mutual TLS, a tick is %s", f.tick)
}

func roundTicks(p parley.Protocol) parley.Tick {
	if p.Relies.Delay > 0 {
		return p.Relies.Delay * 10 / 9
	}
	return 1000
}

// suit converts the times of a run to its host, and refuses what the host cannot do.
func (f *hostFlags) suit(s *runSpec, plan *PlanFlags) error {
	if s.host = *f; f.host != onCluster {
		return nil
	}
	s.Host, s.Words = f.host, f.words(s.Protocol)
	tick := f.lasts(s.Protocol)
	for id, how := range s.Faulty { // order: the iterations are independent
		if at, is := crashTime(how); is {
			crash := faulty.CrashAt(parley.Tick(at / tick))
			crash.Name = how.Name
			s.Faulty[id] = crash
		}
	}
	if len(s.Plan.Pauses) > 0 && !child.CanHold {
		return plan.entry("pauses", 0, errors.New("this operating system cannot pause a process: omit it"))
	}
	if f.span > 0 {
		s.Plan.Until = parley.Tick(f.span / tick)
	}
	return nil
}

// crashTime returns when a behavior crashes, if it does so at a time.
func crashTime(how faulty.Behavior) (time.Duration, bool) {
	text, is := strings.CutPrefix(how.Name, "crash@")
	if !is || strings.HasPrefix(text, "r") {
		return 0, false
	}
	at, err := time.ParseDuration(text)
	return at, err == nil
}

// crashTick returns when to kill a process whose fault is a crash.
func (s runSpec) crashTick(how faulty.Behavior) (parley.Tick, bool) {
	if at, is := crashTime(how); is {
		return parley.Tick(at / s.host.lasts(s.Protocol)), true
	}
	text, is := strings.CutPrefix(how.Name, "crash@r")
	text, _, _ = strings.Cut(text, ":")
	round, err := strconv.Atoi(text)
	if !is || err != nil {
		return 0, false
	}
	// The process has sent its messages by the middle of the round.
	return parley.Tick(round)*roundTicks(s.Protocol) + 3*roundTicks(s.Protocol)/4, true
}

// limit is how long to wait for a run that may never become idle.
const limit = 2 * time.Minute

// harnessRun returns the run as one between real processes.
func (s runSpec) harnessRun(dir string) *harness.Run {
	opt, relies := s.Options(), s.Protocol.Relies
	tick := s.host.lasts(s.Protocol)
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
func (s runSpec) processes(ctx context.Context) (*trace.Log, trace.Facts, error) {
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
	s, err := Remake(a, h)
	if err != nil {
		return nil, err
	}
	how, lies := s.Faulty[of.Self]
	if !lies {
		return s.Protocol.New(of.Self), nil
	}
	rush := parley.Tick(0)
	if s.Protocol.Timing == parley.Synchronous {
		rush = roundTicks(s.Protocol) / 2
	}
	return faulty.New(s.Protocol, rush, map[parley.ID]faulty.Behavior{of.Self: how}), nil
}
