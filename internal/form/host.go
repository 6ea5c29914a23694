package form

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/faulty"
)

// Host are the flags that choose the host of a run: the simulator or real processes.
type Host struct {
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

func (f *Host) declare(fs *pflag.FlagSet) {
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
func (f *Host) check(p parley.Protocol) error {
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

// Tick returns the duration of a tick. A round has as many ticks as the protocol assumes, of which messages may take
// 9/10.
func (f *Host) Tick(p parley.Protocol) time.Duration {
	switch {
	case f.host != onCluster:
		return 1
	case p.Timing == parley.Synchronous:
		return max(1, f.round/time.Duration(RoundTicks(p)))
	}
	return f.tick
}

// words describes the host of a run.
func (f *Host) words(p parley.Protocol) string {
	if p.Timing == parley.Synchronous {
		return fmt.Sprintf("real processes, mutual TLS, rounds of %s", f.round)
	}
	return fmt.Sprintf("real processes, mutual TLS, a tick is %s", f.tick)
}

// RoundTicks returns the number of ticks of a round.
func RoundTicks(p parley.Protocol) parley.Tick {
	if p.Relies.Delay > 0 {
		return p.Relies.Delay * 10 / 9
	}
	return 1000
}

// suit converts the times of a run to its host.
func (f *Host) suit(s *Setup) {
	if s.At = *f; f.host != onCluster {
		return
	}
	s.Host, s.Words = f.host, f.words(s.Protocol)
	tick := f.Tick(s.Protocol)
	for id, how := range s.Faulty { // order: the iterations are independent
		if at, is := CrashTime(how); is {
			crash := faulty.CrashAt(parley.Tick(at / tick))
			crash.Name = how.Name
			s.Faulty[id] = crash
		}
	}
	if f.span > 0 {
		s.Plan.Until = parley.Tick(f.span / tick)
	}
}

// CrashTime returns when a behavior crashes, if it does so at a time.
func CrashTime(how faulty.Behavior) (time.Duration, bool) {
	text, is := strings.CutPrefix(how.Name, "crash@")
	if !is || strings.HasPrefix(text, "r") {
		return 0, false
	}
	at, err := time.ParseDuration(text)
	return at, err == nil
}
