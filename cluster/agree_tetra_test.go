package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/link/memory"
	"parley/faulty"
)

// agreeBy requests an agreement by tetra at a node.
func agreeBy(ctx context.Context, node *cluster.Node, value string) (cluster.Decision, error) {
	return node.Agree(ctx, cluster.AgreeRequest{Value: []byte(value), Algorithm: cluster.Tetra})
}

// With tetra, all nodes decide on the values of all sources at the same time, also on the empty value.
func TestTetra(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(int, *cluster.Config) {})
		ledgers := ledgers(nodes)
		var asked sync.WaitGroup
		for _, node := range nodes {
			for k := range 10 {
				asked.Go(func() {
					value := strings.Repeat("x", k)
					if d, err := agreeBy(t.Context(), node, value); err != nil || d.Nothing || string(d.Value) != value {
						t.Errorf("asked for %q: %+v, %v", value, d, err)
					}
				})
			}
		}
		asked.Wait()
		for id, l := range ledgers {
			within(t, 5*time.Second, "all decide", func() bool { return len(l.values(parley.All)) == 40 })
			if a, b := l.values(parley.All), ledgers[0].values(parley.All); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("node %d decided %v, and the first one %v", id, a, b)
			}
		}
		s := nodes[1].Status().Streams
		if len(s) != 4 || s[0].Algorithm != "tetra" || s[0].Opened != 10 || s[0].Done != 10 || s[0].Mute {
			t.Errorf("%+v", s)
		}
	})
}

// A liar among four nodes changes nothing: all others decide alike, and on the values of correct sources.
func TestTetraLiar(t *testing.T) {
	each(t, func(t *testing.T, how string) {
		one, err := faulty.Parse(how)
		must(t, err)
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			if i == 3 {
				c.FaultInjection = &cluster.FaultInjection{Traitor: one}
			}
		})
		ledgers := ledgers(nodes)
		var asked sync.WaitGroup
		for k := range 12 {
			asked.Go(func() {
				value := fmt.Sprint(k % 2)
				// The agreements of a faulty source may never end.
				d, err := agreeBy(soon(t, 5*time.Second), nodes[k%4], value)
				if k%4 < 3 && (err != nil || string(d.Value) != value) {
					t.Errorf("node %d asked for %s: %+v, %v", k%4, value, d, err)
				}
			})
		}
		asked.Wait()
		within(t, 10*time.Second, "all decide alike", func() bool {
			for i := range 3 {
				for source := range parley.ID(3) {
					if len(ledgers[i].values(source)) != 3 {
						return false
					}
				}
				if fmt.Sprint(ledgers[i].values(parley.All)) != fmt.Sprint(ledgers[0].values(parley.All)) {
					return false
				}
			}
			return true
		})
	}, "silent", "twofaced", "flip", "random", "twin")
}

// Nobody decides on the value of a silent source, and its caller does not know the outcome. This does not disturb the
// agreements of the others.
func TestTetraSilentSource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			if i == 3 {
				c.FaultInjection = &cluster.FaultInjection{Traitor: faulty.Silent}
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := agreeBy(ctx, nodes[3], "x")
		if !errors.Is(err, cluster.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller of the silent source gets %v", err)
		}
		for _, node := range nodes[:3] {
			if d, err := agreeBy(t.Context(), node, "y"); err != nil || string(d.Value) != "y" {
				t.Errorf("%+v, %v", d, err)
			}
		}
	})
}

// Messages that take much longer than a round allows delay a decision, and change nothing else. Agreements in rounds
// are refused.
func TestTetraNeedsNoRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = 500 * time.Microsecond }) // messages take 100 us
		within(t, 10*time.Second, "delays are measured", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := nodes[0].Agree(ctx, cluster.AgreeRequest{})
			var short *cluster.RoundError
			return errors.As(err, &short)
		})
		if d, err := agreeBy(t.Context(), nodes[0], "x"); err != nil || string(d.Value) != "x" {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// Nodes decide nothing if the source's value reached too few of them before the first view ended. The source and all
// others learn the same.
func TestTetraDecidesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := configured(t, 4, func(_ int, c *cluster.Config) { c.Times = cluster.Times{} }).begin()
		host := func(i int) *memory.Host { return r.network.Host(fmt.Sprintf("node%d", i+1)) }
		for _, i := range []int{1, 3} { // what the source sends them is lost
			r.network.Hold(host(0), host(i))
		}
		var d cluster.Decision
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			d, err = agreeBy(t.Context(), r.nodes[0].Load(), "x")
		}()
		time.Sleep(10 * time.Millisecond)
		for _, i := range []int{1, 3} {
			r.network.Break(host(0), host(i))
			r.network.Release(host(0), host(i))
		}
		<-done
		if err != nil || !d.Nothing || d.Value != nil || d.Slot != 1 {
			t.Errorf("%+v, %v", d, err)
		}
		if d, err = agreeBy(t.Context(), r.nodes[0].Load(), "x"); err != nil || d.Nothing || string(d.Value) != "x" {
			t.Errorf("the next agreement: %+v, %v", d, err)
		}
	})
}

// A node that was disconnected learns what the others decided meanwhile.
func TestTetraLateNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := configured(t, 4, func(_ int, c *cluster.Config) { c.Times = cluster.Times{} }).begin()
		var late sync.Mutex
		heard := make(map[uint64]string)
		r.nodes[3].Load().Decisions(func(d cluster.Decision) {
			late.Lock()
			defer late.Unlock()
			heard[d.Slot] = string(d.Value)
		})
		host := func(i int) *memory.Host { return r.network.Host(fmt.Sprintf("node%d", i+1)) }
		r.network.Cut(host(3), host(0), host(1), host(2))
		for k := range 3 {
			if d, err := agreeBy(t.Context(), r.nodes[0].Load(), fmt.Sprint(k)); err != nil || d.Nothing {
				t.Errorf("%+v, %v", d, err)
			}
		}
		for i := range 3 {
			r.network.Break(host(3), host(i))
		}
		r.network.Heal(host(3), host(0), host(1), host(2))
		within(t, 20*time.Second, "they are connected", func() bool {
			_, err := r.nodes[3].Load().Agree(soon(t, time.Second), cluster.AgreeRequest{Algorithm: cluster.Tetra})
			return err == nil
		})
		must(t, second(agreeBy(t.Context(), r.nodes[0].Load(), "last")))
		within(t, 5*time.Second, "it learns all decisions", func() bool {
			late.Lock()
			defer late.Unlock()
			return heard[1] == "0" && heard[2] == "1" && heard[3] == "2" && heard[4] == "last"
		})
	})
}

// After a restart of one node after another, and of all at once, the nodes agree again. A restarted node takes part
// without a request, and never in a slot in which it took part before.
func TestTetraAfterRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *cluster.Config) {
			onDisk(c, false)
			c.Agreements = []cluster.AgreementConfig{{Algorithm: cluster.Tetra, M: 1}}
		})
		last := make([]uint64, 4)
		agree := func(what string) {
			for i := range r.nodes {
				d, err := agreeBy(soon(t, 20*time.Second), r.nodes[i].Load(), what)
				if err != nil || string(d.Value) != what || d.Slot <= last[i] {
					t.Fatalf("%s: node %d after slot %d: %+v, %v: %+v", what, i, last[i], d, err, r.nodes[i].Load().Status().Streams)
				}
				last[i] = d.Slot
			}
		}
		agree("before")
		for i := range r.nodes {
			r.stop(i)
			r.start(i)
			r.settle()
			agree(fmt.Sprint("after the restart of ", i))
		}
		r.stop(all(4)...)
		r.start(all(4)...)
		r.settle()
		agree("at once")
	})
}

// A node that has lost its disk takes part again, in later slots.
func TestTetraLostDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *cluster.Config) {
			onDisk(c, false)
			c.Agreements = []cluster.AgreementConfig{{Algorithm: cluster.Tetra, M: 1}}
		})
		must(t, second(agreeBy(soon(t, 20*time.Second), r.nodes[2].Load(), "before")))
		r.stop(2)
		onDisk(&r.configs[2], false)
		r.configs[2].Rejoin = true
		r.start(2)
		within(t, 20*time.Second, "it takes part", func() bool {
			for _, s := range r.nodes[2].Load().Status().Streams {
				if s.Mute {
					return false
				}
			}
			return true
		})
		r.stop(0) // the others need it now
		within(t, 20*time.Second, "it decides", func() bool {
			d, err := agreeBy(soon(t, 5*time.Second), r.nodes[2].Load(), "after")
			return err == nil && string(d.Value) == "after" && d.Slot > 1
		})
	})
}

// With more than m nodes down, and for invalid requests, nothing begins.
func TestTetraRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(int, *cluster.Config) {})
		for _, c := range []struct {
			q    cluster.AgreeRequest
			want string
			is   error
		}{
			{cluster.AgreeRequest{Value: make([]byte, 1025)}, "1025 bytes: with tetra and m = 1 at most 1024", cluster.ErrTooLarge},
			{cluster.AgreeRequest{M: 2}, "4 nodes tolerate at most 1 liars with tetra", cluster.ErrRefused},
			{cluster.AgreeRequest{Evidence: true}, "no evidence of agreements by tetra", cluster.ErrRefused},
		} {
			c.q.Algorithm = cluster.Tetra
			_, err := nodes[0].Agree(t.Context(), c.q)
			if !errors.Is(err, c.is) || errors.Is(err, cluster.ErrUnknown) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, not %q", c.q, err, c.want)
			}
		}
		_, err := nodes[0].AgreeVector(t.Context(), cluster.VectorRequest{Name: "x", Algorithm: cluster.Tetra})
		if !errors.Is(err, cluster.ErrRefused) || !strings.Contains(err.Error(), "not on a vector") {
			t.Error(err)
		}
		for _, node := range nodes[2:] {
			must(t, node.Close())
		}
		within(t, 5*time.Second, "they are missed", func() bool {
			_, err := agreeBy(soon(t, time.Second), nodes[0], "x")
			return err != nil && strings.Contains(err.Error(), "node3, node4 are not connected, and an agreement with m = 1")
		})
	})
}
