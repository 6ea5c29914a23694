package order_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"parley"
	"parley/cluster"
	"parley/internal/bench/order"
)

// Every phase measures something, of messages that all nodes deliver in one order.
func TestRun(t *testing.T) {
	for _, s := range []order.Spec{
		{Level: cluster.Total, N: 3},
		{Level: cluster.Total, N: 3, Dir: t.TempDir()},
		{Level: cluster.Byzantine, N: 4, M: 1},
		{Level: cluster.Byzantine, N: 4, M: 1, Silent: 1, Round: 50 * time.Millisecond, Duration: time.Second},
	} {
		s.Size, s.Window, s.Phases = 64, 64, order.Phases
		s.Duration = cmp.Or(s.Duration, 100*time.Millisecond)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		r, err := order.Run(s)
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		for name, rate := range map[string]*order.Rate{"one": r.One, "many": r.Many} {
			if rate.PerSecond <= 0 || !rate.Drained || !rate.Same {
				t.Errorf("%+v, phase %s: %+v", s, name, *rate)
			}
		}
		for name, l := range map[string]*order.Latency{"first": r.First, "second": r.Second} {
			if l.Count == 0 || l.AllP50 <= 0 || l.AllP50 < l.OwnP50/2 || l.AllP99 < l.AllP50 {
				t.Errorf("%+v, phase %s: %+v", s, name, *l)
			}
		}
	}
}

// What can not be measured is refused, by the flag that says it.
func TestCheck(t *testing.T) {
	good := order.Spec{Level: cluster.Byzantine, N: 4, M: 1, Size: 64, Window: 8, Duration: time.Second, Phases: order.Phases}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(s *order.Spec){
		"nodes":  func(s *order.Spec) { s.N = 3 },
		"silent": func(s *order.Spec) { s.Silent = 2 },
		"sizes":  func(s *order.Spec) { s.Size = 9 },
		"window": func(s *order.Spec) { s.Window = 0 },
		"dur":    func(s *order.Spec) { s.Duration = 0 },
		"phases": func(s *order.Spec) { s.Phases = []string{"all"} },
	} {
		s := good
		change(&s)
		var wrong *parley.FlagError
		if err := s.Check(); !errors.As(err, &wrong) || wrong.Flag != flag {
			t.Errorf("%+v: %v, want an error of --%s", s, err, flag)
		}
	}
}
