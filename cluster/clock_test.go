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

// synchronized waits until the clocks of nodes are synchronized.
func synchronized(t *testing.T, nodes ...*cluster.Node) {
	t.Helper()
	for _, node := range nodes {
		within(t, 30*time.Second, "the clock is synchronized", func() bool { return node.Clock().Synchronized })
	}
}

// roomyClocks allows reading times of a busy computer.
var roomyClocks = cluster.ClockConfig{Error: 4 * time.Millisecond}

// apart reads the clocks of nodes in turn and returns how far apart they are. The result is off by at most the
// time took.
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

// Nodes with arbitrary initial clocks and drifts agree on one time, each as close to all others as its bound
// says, and no clock goes back; also if one of them is two-faced.
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
				continue // on a busy computer a reading may be missed
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
		// The date is within the range of the nodes' own dates, which are up to three hours ahead.
		if r := nodes[0].Clock(); time.Until(r.Time) < -time.Minute || time.Until(r.Time) > 3*time.Hour+time.Minute {
			t.Errorf("it shows %v at %v", r.Time, time.Now())
		}
	}, "", "twofaced", "random", "silent")
}

// A node whose clock has jumped, as after a suspension, detects that it was paused: it takes no part in the
// agreement in flight, its clock does not count until it is synchronized again, and the pause is reported. The
// others continue without it.
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
		if err := ask(); err != nil { // before the first one, all others must report that they are prepared
			t.Error(err)
		}
		answer := make(chan error)
		go func() { answer <- ask() }()
		time.Sleep(round / 5) // within the first round, which the silent node prolongs
		clock.ahead.Store(int64(2 * round))
		if err := <-answer; !errors.Is(err, cluster.ErrAbstained) {
			t.Errorf("who was held up answers %v", err)
		}
		within(t, 30*time.Second, "the clock is out", func() bool { return !nodes[0].Clock().Synchronized })
		if m := nodes[0].Measure(); m.Wake.Pauses == 0 || m.Wake.Most < round {
			t.Errorf("it was late by %v at most, and paused %d times", m.Wake.Most, m.Wake.Pauses)
		}
		synchronized(t, nodes[:3]...) // once more
	})
}

// jumping is a clock that can be set forward.
type jumping struct {
	host.Clock
	ahead atomic.Int64
}

func (c *jumping) Now() parley.Tick { return c.Clock.Now() + parley.Tick(c.ahead.Load()) }

// A node whose clock drifts too fast for rounds begins no agreements; the others do.
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

// A node whose clock is beyond the threshold is logged, and counted each time; no other clock is affected.
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
			return strings.Contains(log, "clock of a node differs more than a correct one may") &&
				strings.Contains(log, "node=node4 ahead=") && strings.Contains(log, `msg="message refused" machine=clock from=3 reason="a clock beyond the threshold"`)
		})
		if skew, took, bound, _ := apart(nodes[:3]); skew > bound+took {
			t.Errorf("%v apart", skew)
		}
	})
}

// A single node is synchronized with itself. Among fewer than four nodes, all must be connected.
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

// A restarted node with another clock is not synchronized until it has been close to the others' in a
// resynchronization. It then has the others' date.
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
