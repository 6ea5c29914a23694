package order_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/link"
	"parley/cluster/link/memory"
	"parley/internal/bench/order"
)

// Every phase measures messages, which all nodes deliver in one order.
func TestRun(t *testing.T) {
	for _, s := range []order.Spec{
		{Level: cluster.Total, N: 3},
		{Level: cluster.Total, N: 3, Dir: t.TempDir()},
		{Level: cluster.Byzantine, N: 4, M: 1},
		{Level: cluster.Byzantine, N: 4, M: 1, Silent: 1, Duration: time.Second, Phases: []string{"latl", "many"}},
	} {
		s.Size, s.Window, s.Rate = 64, 64, 5000
		s.Duration = cmp.Or(s.Duration, 100*time.Millisecond)
		if s.Phases == nil {
			s.Phases = order.Phases
			if s.Level == cluster.Total {
				s.Phases = order.Phases[:6] // without kill
			}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			network := memory.New(memory.Options{})
			s.Network = func(node int) link.Network { return network.Host(fmt.Sprint("h", node)) }
			if wrong := measured(t.Context(), s); len(wrong) > 0 {
				t.Errorf("%+v: %q", s, wrong)
			}
		})
	}
}

// measured returns what is wrong with a measurement.
func measured(ctx context.Context, s order.Spec) (wrong []string) {
	r, err := order.Run(ctx, s)
	if err != nil {
		return []string{err.Error()}
	}
	if k := r.Kill; (k != nil) != slices.Contains(s.Phases, "kill") || k != nil && (k.Before <= 0 || k.After <= 0 ||
		k.Silent <= 0 || k.Silent > 100 || k.Lone <= 0) {
		wrong = append(wrong, fmt.Sprintf("phase kill: %+v", k))
	}
	for phase, rate := range map[string]*order.Rate{"one": r.One, "many": r.Many} {
		switch asked := slices.Contains(s.Phases, phase); {
		case asked != (rate != nil):
			wrong = append(wrong, fmt.Sprintf("phase %s: %v", phase, rate))
		case asked && (rate.PerSecond <= 0 || !rate.Drained || !rate.Same):
			wrong = append(wrong, fmt.Sprintf("phase %s: %+v", phase, *rate))
		}
	}
	for phase, l := range map[string]*order.Latency{"latl": r.First, "latf": r.Second} {
		switch asked := slices.Contains(s.Phases, phase); {
		case asked != (l != nil):
			wrong = append(wrong, fmt.Sprintf("phase %s: %v", phase, l))
		case asked && (l.Count == 0 || l.AllP50 <= 0 || l.AllP50 < l.OwnP50/2 || l.AllP99 < l.AllP50):
			wrong = append(wrong, fmt.Sprintf("phase %s: %+v", phase, *l))
		}
	}
	for phase, o := range map[string]*order.Open{"open": r.Open, "openm": r.OpenMany} {
		switch asked := slices.Contains(s.Phases, phase); {
		case asked != (o != nil):
			wrong = append(wrong, fmt.Sprintf("phase %s: %v", phase, o))
		case asked && (!o.Drained || o.All.Count == 0 || o.All.Count != o.Own.Count || o.Own.P50 <= 0 ||
			o.All.P50 < o.Own.P50/2 || o.All.P50 > o.All.P99 || o.All.P99 > o.All.P999 || o.All.P999 > o.All.Most):
			wrong = append(wrong, fmt.Sprintf("phase %s: %+v", phase, *o))
		}
	}
	return wrong
}

// An invalid spec is refused, and the error names the flag.
func TestCheck(t *testing.T) {
	good := order.Spec{Level: cluster.Byzantine, N: 4, M: 1, Size: 64, Window: 8, Rate: 1, Duration: time.Second, Phases: order.Phases}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		flag   string
		change func(s *order.Spec)
	}{
		{"nodes", func(s *order.Spec) { s.N = 3 }},
		{"silent", func(s *order.Spec) { s.Silent = 2 }},
		{"sizes", func(s *order.Spec) { s.Size = 9 }},
		{"window", func(s *order.Spec) { s.Window = 0 }},
		{"rate", func(s *order.Spec) { s.Rate = 0 }},
		{"dur", func(s *order.Spec) { s.Duration = 0 }},
		{"phases", func(s *order.Spec) { s.Phases = []string{"all"} }},
		{"phases", func(s *order.Spec) { s.Silent = 1 }},
		{"phases", func(s *order.Spec) { s.Level, s.M = cluster.Total, 0 }},
	} {
		s := good
		bad.change(&s)
		var wrong *parley.FlagError
		if err := s.Check(); !errors.As(err, &wrong) || wrong.Flag != bad.flag {
			t.Errorf("%+v: %v, want an error of --%s", s, err, bad.flag)
		}
	}
}
