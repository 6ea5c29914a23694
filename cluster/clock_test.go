package cluster_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/clock/convergence"
	"parley/cluster"
	"parley/cluster/host"
	"parley/faulty"
)

// synchronized waits until the clocks of nodes are.
func synchronized(t *testing.T, nodes ...*cluster.Node) {
	t.Helper()
	for _, node := range nodes {
		within(t, 30*time.Second, "the clock is synchronized", func() bool { return node.Clock().Synchronized })
	}
}

// roomyClocks are readings that a busy machine manages.
var roomyClocks = cluster.ClockConfig{Error: 4 * time.Millisecond}

// apart returns how far apart the clocks of nodes are, by reading them in turn: it is off by
// the time that takes, which is returned as well.
func apart(nodes []*cluster.Node) (skew, took, bound time.Duration, ok bool) {
	begun := time.Now()
	var readings []cluster.Reading
	for _, node := range nodes {
		readings = append(readings, node.Clock())
	}
	took = time.Since(begun)
	earlier := func(a, b cluster.Reading) int { return a.Time.Compare(b.Time) }
	first, last := slices.MinFunc(readings, earlier), slices.MaxFunc(readings, earlier)
	ok = !slices.ContainsFunc(readings, func(r cluster.Reading) bool { return !r.Synchronized })
	return last.Time.Sub(first.Time), took, min(first.Bound, last.Bound), ok
}

// Nodes whose clocks show and gain what they like come to one time, each as near to all
// others as it says, and no clock goes back; and the same if one of them shows everybody
// something else.
func TestClock(t *testing.T) {
	each(t, func(t *testing.T, how string) {
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			c.Clocks, c.Clock = roomyClocks, host.Skewed{
				Clock: host.NewElapsed(), Offset: parley.Tick(i) * parley.Tick(time.Hour),
				Drift: []int64{-100, 100, 50, 0}[i],
			}
			if how != "" && i == 3 {
				b, err := faulty.Parse(how)
				must(t, err)
				c.FaultInjection = &cluster.FaultInjection{Traitor: b}
			}
		})
		if how != "" {
			nodes = nodes[:3]
		}
		synchronized(t, nodes...)
		var before time.Time
		seen := 0
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			skew, took, bound, ok := apart(nodes)
			if !ok {
				continue // on a busy machine a reading may be missed
			}
			seen++
			if skew > bound+took {
				t.Fatalf("clocks are %v apart, give or take %v, and the bound is %v", skew, took, bound)
			}
			if r := nodes[0].Clock(); r.Synchronized && r.Time.Before(before) {
				t.Fatalf("the clock goes back by %v", before.Sub(r.Time))
			} else if r.Synchronized {
				before = r.Time
			}
		}
		if seen == 0 {
			t.Error("never were all clocks synchronized")
		}
		// The date is within those that nodes took for it: theirs are up to three hours ahead.
		if r := nodes[0].Clock(); time.Until(r.Time) < -time.Minute || time.Until(r.Time) > 3*time.Hour+time.Minute {
			t.Errorf("it shows %v at %v", r.Time, time.Now())
		}
	}, "", "twofaced", "random", "silent")
}

// A node whose clock has jumped, as after a stop, knows that it was held up: it takes no part
// in the agreement that was under way, its clock does not count until it is in again, and it
// is seen that it stood still. The others do without it.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const round = 500 * time.Millisecond
		clock := &jumping{Clock: host.NewElapsed()}
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			c.Round, c.Clocks = round, roomyClocks
			switch i {
			case 0:
				c.Clock = clock
			case 3:
				c.FaultInjection = &cluster.FaultInjection{Traitor: faulty.Silent}
			}
		})
		synchronized(t, nodes[:3]...)
		ask := func() error {
			_, err := nodes[0].Agree(t.Context(), cluster.AgreeRequest{Value: []byte("x")})
			return err
		}
		if err := ask(); err != nil { // before the first one of all others are asked whether they have begun
			t.Error(err)
		}
		answer := make(chan error)
		go func() { answer <- ask() }()
		time.Sleep(round / 5) // within the first round, which the silent one makes last
		clock.ahead.Store(int64(2 * round))
		if err := <-answer; !errors.Is(err, cluster.ErrAbstained) {
			t.Errorf("who was held up answers %v", err)
		}
		within(t, 30*time.Second, "the clock is out", func() bool { return !nodes[0].Clock().Synchronized })
		if m := nodes[0].Measure(); m.Wake.Pauses == 0 || m.Wake.Most < round {
			t.Errorf("it was late by %v at most, and paused %d times", m.Wake.Most, m.Wake.Pauses)
		}
		synchronized(t, nodes[:3]...) // again
	})
}

// jumping is a clock that can be set forward.
type jumping struct {
	host.Clock
	ahead atomic.Int64
}

func (c *jumping) Now() parley.Tick { return c.Clock.Now() + parley.Tick(c.ahead.Load()) }

// A node whose clock gains too much for rounds begins no agreements; the others do.
func TestDrift(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			c.Clocks = cluster.ClockConfig{Error: time.Millisecond}
			if i == 3 {
				c.Clock = host.Skewed{Clock: host.NewElapsed(), Drift: 6000}
			}
		})
		q := cluster.AgreeRequest{Value: []byte("x"), M: 1}
		within(t, 120*time.Second, "too fast for rounds", func() bool {
			_, err := nodes[3].Agree(t.Context(), q)
			var wrong *cluster.RoundError
			return errors.As(err, &wrong) && wrong.Drift > 3000
		})
		var wrong *cluster.RoundError
		if _, err := nodes[0].Agree(t.Context(), q); errors.As(err, &wrong) && wrong.Drift != 0 {
			t.Error(err)
		}
	})
}

// A node whose clock is beyond what a correct one may show is named in the log, and counted
// each time; nobody's clock suffers by it.
func TestBeyond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told logged
		far := faulty.Behavior{
			Name: "far", Model: parley.OralByzantineFaults,
			Tell: func(_ *parley.Step, turn *parley.Turn) []parley.Outgoing {
				for i := range turn.Honest {
					if turn.Honest[i].Msg.Kind == convergence.Time {
						turn.Honest[i].Msg.Value += uint64(time.Hour)
					}
				}
				return turn.Honest
			},
		}
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			c.Clocks = roomyClocks
			switch i {
			case 0:
				c.Log = told.logger()
			case 3:
				c.FaultInjection = &cluster.FaultInjection{Traitor: far}
			}
		})
		synchronized(t, nodes[:3]...)
		within(t, 30*time.Second, "it is named", func() bool {
			log := told.String()
			return strings.Contains(log, "a node's clock is beyond what a correct one may show") &&
				strings.Contains(log, "node=node4 ahead=") && strings.Contains(log, `refused machine=clock from=3 why="a clock beyond the threshold"`)
		})
		if skew, took, bound, _ := apart(nodes[:3]); skew > bound+took {
			t.Errorf("%v apart", skew)
		}
	})
}

// A lone node is synchronized with itself, and among fewer than four all must be there.
func TestFewClocks(t *testing.T) {
	each(t, func(t *testing.T, n int) {
		nodes := joined(t, n, func(_ int, c *cluster.Config) { c.Clocks = roomyClocks })
		synchronized(t, nodes...)
		if n < 3 {
			return
		}
		if err := nodes[2].Close(); err != nil {
			t.Error(err)
		}
		within(t, 30*time.Second, "the clock does not count", func() bool { return !nodes[0].Clock().Synchronized })
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if r := nodes[0].Clock(); r.Synchronized || r.Bound < time.Hour {
				t.Fatalf("nothing is known, and it shows %+v", r)
			}
		}
	}, 1, 2, 3)
}

// A node that comes back, whose clock shows something else than before, is not synchronized
// until it has been near the others' in a resynchronization; it has the others' date then.
func TestClockOfRestarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var last cluster.Config
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			c.Clocks = roomyClocks
			if i == 3 {
				onDisk(c, false)
				last = *c
			}
		})
		synchronized(t, nodes...)
		must(t, nodes[3].Close())
		last.Broken = func(err error) { t.Error(err) }
		last.Clock = host.Skewed{Clock: host.NewElapsed(), Offset: parley.Tick(time.Hour)}
		back, err := cluster.Join(t.Context(), last)
		must(t, err)
		defer back.Close()
		if r := back.Clock(); r.Synchronized {
			t.Errorf("it begins synchronized: %+v", r)
		}
		nodes[3] = back
		synchronized(t, nodes...)
		within(t, 30*time.Second, "all are synchronized, and as near as they say", func() bool {
			skew, took, bound, ok := apart(nodes)
			if ok && skew > bound+took {
				t.Fatalf("%v apart, and the bound is %v", skew, bound)
			}
			return ok
		})
		if r := back.Clock(); r.Synchronized && r.Offset > -59*time.Minute {
			t.Errorf("its machine's clock is an hour ahead, and it is to be set by %v", r.Offset)
		}
	})
}
