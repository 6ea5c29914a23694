package convergence_test

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"parley"
	"parley/clock/convergence"
)

// The values of a Plan are consistent.
func TestPlan(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for m := 0; m < n && m <= n/3+1; m++ {
			c := convergence.Config{N: n, M: m, Rho: 20, Slew: 100_000}
			plan := planned(t, c)
			if plan.Delta != plan.Theorem || plan.Threshold != plan.Delta+plan.Error || plan.Error <= plan.Eps ||
				plan.Window <= plan.Threshold+plan.RoundTrip ||
				plan.Window+plan.Span >= plan.Period || plan.Ever < plan.Delta || plan.Initial > plan.Delta {
				t.Errorf("n = %d, m = %d: %+v", n, m, plan)
			}
			// The largest adjustment keeps the rate, including a joiner's.
			if (plan.Threshold+plan.Error)*1_000_000 > plan.Span*parley.Tick(plan.Slew) {
				t.Errorf("n = %d, m = %d: %d in %d ticks", n, m, plan.Threshold, plan.Span)
			}
			// delta is a solution: with it, the next delta is no larger.
			again := c
			again.Period, again.Delta = plan.Period, plan.Delta
			if next := planned(t, again); next.Theorem > plan.Delta {
				t.Errorf("n = %d, m = %d: from delta = %d follows %d", n, m, plan.Delta, next.Theorem)
			}
		}
	}
}

// A joiner, and a start, need a delta at least as large as their own differences.
func TestDeltaHasRoom(t *testing.T) {
	plan := planned(t, convergence.Config{N: 100, M: 6, Rho: 1, Slew: 200_000})
	if plan.Delta != 5*plan.Error {
		t.Errorf("delta = %d, error %d", plan.Delta, plan.Error)
	}
	plan = planned(t, convergence.Config{N: 4, Begin: convergence.Cold})
	if plan.Initial < 2*plan.Least+4*plan.Eps {
		t.Errorf("a start brings clocks to %d, and they may begin within %d", 2*plan.Least+4*plan.Eps, plan.Initial)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		c    convergence.Config
		flag string
		says string
	}{
		{convergence.Config{}, "n", "allowed are 1 to 256"},
		{convergence.Config{N: 257}, "n", "allowed are 1 to 256"},
		{convergence.Config{N: 4, M: 4}, "m", "n-1 = 3"},
		{convergence.Config{N: 4, M: -1}, "m", "n-1 = 3"},
		{convergence.Config{N: 4, M: 1, Form: 2}, "form", "number 2"},
		{convergence.Config{N: 4, M: 1, Begin: 4}, "begin", "number 4"},
		{convergence.Config{N: 4, M: 1, Resyncs: -1}, "resyncs", "-1"},
		{convergence.Config{N: 4, M: 1, Eps: -1}, "eps", "-1"},
		{convergence.Config{N: 4, M: 1, Period: 1 << 60}, "period", "allowed"},
		{convergence.Config{N: 4, M: 1, Slew: 9}, "slew", "10 to 500000"},
		{convergence.Config{N: 4, M: 1, Period: 150_000}, "period", "too short"},
		{convergence.Config{N: 4, M: 1, Rho: 100_000}, "rho", "no period is long enough"},
		{convergence.Config{N: 4, M: 1, Rho: 100_000, Period: 1_000_000}, "period", "drift apart"},
		// 500 parts per million are too slow for clocks that drift by 100.
		{convergence.Config{N: 4, M: 1, Eps: 500_000, Period: 10_000_000_000, Slew: 500}, "period", "--slew 500"},
	} {
		_, err := c.c.Plan()
		var about *parley.FlagError
		if !errors.As(err, &about) || about.Flag != c.flag || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a protocol of no process")
		}
	}()
	convergence.New(convergence.Config{})
}

func made(args ...string) (parley.Protocol, error) {
	fs := flag.NewFlagSet("convergence", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	build := convergence.New(convergence.Config{N: 4, M: 1, Resyncs: 8}).Flags(fs)
	if err := fs.Parse(args); err != nil {
		return parley.Protocol{}, err
	}
	return build(nil)
}

func TestFlags(t *testing.T) {
	p, err := made("-n", "10")
	if err != nil || p.N != 10 || p.M != 3 || p.Span != 0 {
		t.Error(p.N, p.M, err)
	}
	p, err = made("-n", "7", "-m", "1", "-begin", "cold", "-form", "values", "-resyncs", "0", "-eps", "100",
		"-least", "7", "-rho", "50", "-slew", "40000", "-period", "50000", "-delta", "900")
	if err != nil || p.M != 1 || p.Proposers.Len() != 7 || p.Span < 8*50_000 ||
		!strings.Contains(p.Properties[0].Says, "delta = 900") {
		t.Error(p.N, p.M, p.Span, err)
	}
	// Two sets of flags of one protocol are independent.
	one := convergence.New(convergence.Config{N: 4, M: 1, Eps: 500})
	for _, eps := range []string{"300", "500"} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		build := one.Flags(fs)
		if got := fs.Lookup("eps").DefValue; got != "500" {
			t.Errorf("the default of --eps is %s", got)
		}
		if err := fs.Parse([]string{"-eps", eps}); err != nil {
			t.Fatal(err)
		}
		if _, err := build(nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][]string{
		{"m", "-m", "x"}, {"form", "-form", "median"}, {"begin", "-begin", "warm"}, {"n", "-n", "0"},
		{"period", "-period", "100"},
	} {
		_, err := made(c[1:]...)
		var about *parley.FlagError
		if !errors.As(err, &about) || about.Flag != c[0] {
			t.Errorf("%v: %v", c, err)
		}
	}
}
