package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/catalog"
	"parley/cli/console"
	"parley/cluster/harness"
	net "parley/cluster/link/memory"
	"parley/internal/report"
	"parley/trace"
)

// inside starts processes of a run within the test's process, on a network in memory. A process that is stopped is
// cut off from the n others until it resumes.
func inside(a *console.App, network *net.Network, n int) func(context.Context, parley.ID) (*harness.Child, error) {
	return func(_ context.Context, id parley.ID) (*harness.Child, error) {
		hear, in := io.Pipe()
		out, say := io.Pipe()
		nothing := func() error { return nil }
		var others []*net.Host
		for other := range parley.ID(n) {
			if other != id {
				others = append(others, network.Host(other.String()))
			}
		}
		cut := func(how func(*net.Host, ...*net.Host)) func() error {
			return func() error {
				how(network.Host(id.String()), others...)
				return nil
			}
		}
		go func() {
			err := harness.Serve(network.Host(id.String()), hear, say, func(of harness.Spec) (parley.Machine, error) { return machineOf(a, of) })
			_ = hear.Close()
			_ = say.CloseWithError(err)
		}()
		return &harness.Child{In: in, Out: out, Kill: in.Close, Stop: cut(network.Cut), Continue: cut(network.Heal), Wait: nothing}, nil
	}
}

// inBubble is onLinks in a bubble of synctest.
func inBubble(t *testing.T, p parley.Protocol, args ...string) (r *report.Report, received int, err error) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { r, received, err = onLinks(t.Context(), dir, p, args...) })
	return r, received, err
}

// onLinks makes a run whose processes are all within this one and connected by links on a network in memory. It
// returns how many messages arrived.
func onLinks(ctx context.Context, dir string, p parley.Protocol, args ...string) (r *report.Report, received int, err error) {
	f := newFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	if err := f.Set().Parse(append(args, "--host=cluster")); err != nil {
		return nil, 0, err
	}
	return f.onLinks(ctx, dir)
}

// onLinks makes the run that the flags describe.
func (f *flags) onLinks(ctx context.Context, dir string) (r *report.Report, received int, err error) {
	s, err := f.setup()
	if err != nil {
		return nil, 0, err
	}
	run := s.harnessRun(dir)
	run.Start = inside((&console.App{Protocols: catalog.All()}), net.New(net.Options{}), s.Protocol.N)
	run.Limit = 10 * time.Minute
	h, log, err := run.Do(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range log.Events {
		if e.Op == trace.Receive {
			received++
		}
	}
	r = report.New(s.Run, log, h.Facts)
	if !h.Facts.Over && !r.HeldUp {
		err = errors.New("it was given up")
	}
	return r, received, err
}

// faults returns a fault to try a protocol with: one within its model that occurs early in the run.
func faults(p parley.Protocol) string {
	switch {
	case p.Faults >= parley.SignedByzantineFaults:
		return "--faulty=2=twofaced"
	case p.Timing == parley.Synchronous:
		return "--faulty=2=crash@r1"
	}
	return "--crashes=[{process: 2, when: 20}]"
}

// Every protocol of the catalog runs between processes connected by links, and keeps its promises, with and without a
// fault.
func TestEveryProtocolOnLinks(t *testing.T) {
	for _, p := range catalog.All() {
		for _, fault := range []string{"", faults(p)} {
			for _, wrong := range tried(t, p, fault) {
				t.Errorf("%s %s: %s", p.Name, fault, wrong)
			}
		}
	}
}

// tried returns what is wrong with a run of a protocol.
func tried(t *testing.T, p parley.Protocol, fault string) (wrong []string) {
	t.Helper()
	args := []string{"--tick=20us"}
	switch {
	case p.Timing == parley.Synchronous:
		args = nil
	case p.Name == "convergence" || p.Name == "dated": // a run takes nearly a million ticks
		args[0] = "--tick=1us"
	}
	if fault != "" {
		args = append(args, fault)
	}
	r, received, err := inBubble(t, p, args...)
	if err != nil {
		return []string{err.Error()}
	}
	for _, v := range r.Judged {
		if v.Violated() && v.Property.Mode != parley.Sometimes {
			wrong = append(wrong, fmt.Sprintf("%s: %v", v.Property.Name, v.Broken))
		}
	}
	if received == 0 && fault == "" && !r.HeldUp {
		wrong = append(wrong, "nothing arrived")
	}
	return wrong
}

// A run on links decides the same as in the simulator, and costs the same.
func TestLinksAgreeWithSimulator(t *testing.T) {
	p, err := (&console.App{Protocols: catalog.All()}).Find("sm")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--faulty=1=twofaced", "--values=1", "--signatures=ed25519"}
	f := newFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	if err := f.Set().Parse(args); err != nil {
		t.Fatal(err)
	}
	s, err := f.setup()
	if err != nil {
		t.Fatal(err)
	}
	log, facts, _, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	simulated := report.New(s.Run, log, facts)
	real, _, err := inBubble(t, p, args...)
	if err != nil || real.HeldUp {
		t.Fatalf("on links: %v, held up: %t", err, real != nil && real.HeldUp)
	}
	if !slices.Equal(real.Cost.Measured, simulated.Cost.Measured) {
		t.Errorf("it costs %v on links, and %v in the simulator", real.Cost.Measured, simulated.Cost.Measured)
	}
	for who, value := range simulated.Decisions {
		if real.Decisions[who] != value {
			t.Errorf("%s decides on %q on links, and on %q in the simulator", who, real.Decisions[who], value)
		}
	}
}
