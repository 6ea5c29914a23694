package failover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/harness"
	"parley/cluster/link/memory"
	"parley/internal/bench/failover"
)

// starts returns a function that starts nodes in this process, on a network in memory. A killed node answers no more
// and its connections break; the connections of a paused node stay.
func starts(network *memory.Network, n int) func(context.Context, parley.ID) (*harness.Child, error) {
	return func(_ context.Context, id parley.ID) (*harness.Child, error) {
		host := func(id int) *memory.Host { return network.Host(fmt.Sprint("h", id)) }
		ours, in := io.Pipe()
		out, says := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := failover.Serve(host(int(id)), ours, says)
			_ = says.Close()
			ended <- err
		}()
		cut := func(breaks bool) func() error {
			return func() error {
				for other := range n {
					if network.Cut(host(int(id)), host(other)); breaks {
						network.Break(host(int(id)), host(other))
					}
				}
				return nil
			}
		}
		return &harness.Child{In: in, Out: out, Kill: cut(true), Stop: cut(false), Wait: func() error {
			for other := range n {
				network.Heal(host(int(id)), host(other))
			}
			return <-ended
		}}, nil
	}
}

// A killed node costs some milliseconds, and a paused one the time until it is suspected. Each node fails as often as
// requested, and no message is lost.
func TestRun(t *testing.T) {
	for _, stop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := failover.Spec{
				N: 3, Stop: stop, Suspect: time.Second, Every: 5 * time.Millisecond, Before: 200 * time.Millisecond,
				After: 3 * time.Second, Reps: 2,
			}
			said := 0
			r, err := failover.Run(t.Context(), s, starts(memory.New(memory.Options{}), s.N), func(string, time.Duration) { said++ })
			if err != nil {
				t.Fatal(err)
			}
			least, most := 0.0, 20.0
			if stop {
				least, most = 900, 1500
			}
			for i, f := range r.Failures {
				if f.Node != fmt.Sprint("n", i+1) || len(f.First) != 2 || len(f.Silent) != 2 || f.Lost != 0 {
					t.Errorf("stop %t: %+v", stop, f)
				}
				for _, ms := range append(f.First, f.Silent...) {
					if ms < least || ms > most {
						t.Errorf("stop %t: %s costs %v and %v ms", stop, f.Node, f.First, f.Silent)
					}
				}
			}
			if len(r.Failures) != 3 || said != 6 {
				t.Errorf("stop %t: %d nodes failed, %d failures were told of", stop, len(r.Failures), said)
			}
		})
	}
}

// An invalid spec is refused, and the error names the flag.
func TestCheck(t *testing.T) {
	good := failover.Spec{
		N: 3, Suspect: time.Second, Every: time.Millisecond, Before: time.Second, After: time.Second, Reps: 1,
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(s *failover.Spec){
		"nodes":   func(s *failover.Spec) { s.N = 2 },
		"reps":    func(s *failover.Spec) { s.Reps = 0 },
		"suspect": func(s *failover.Spec) { s.Suspect = time.Millisecond },
		"every":   func(s *failover.Spec) { s.Every = 0 },
		"before":  func(s *failover.Spec) { s.Before = 0 },
		"after":   func(s *failover.Spec) { s.After = time.Hour },
	} {
		s := good
		change(&s)
		var wrong *parley.FlagError
		if err := s.Check(); !errors.As(err, &wrong) || wrong.Flag != flag {
			t.Errorf("%+v: %v, want an error of --%s", s, err, flag)
		}
	}
}
