package link_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/link"
)

var _ link.Transport = (*link.Calls)(nil)

// calls starts n nodes that call each other. Each has its incarnation.
func calls(t testing.TB, n int, change func(c *link.Config)) (*system, []*link.Calls) {
	t.Helper()
	s := newSystem(t, n, change)
	all := make([]*link.Calls, n)
	t.Cleanup(func() {
		for _, m := range all {
			if m != nil {
				_ = m.Close()
			}
		}
	})
	for i := range n {
		all[i] = s.call(i)
	}
	return s, all
}

func (s *system) call(i int) *link.Calls {
	s.t.Helper()
	m, err := link.NewCalls(s.config[i])
	if err == nil {
		err = m.Start()
	}
	must(s.t, err)
	s.config[i].Listener = nil
	return m
}

// Frames arrive once and in order within a class, in both directions.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := calls(t, 3, nil)
		for i := range m {
			for j := range m {
				if i != j {
					s.host[i].await(t, fmt.Sprintf("up %d.1", j))
				}
			}
		}
		const k = 300
		var all sync.WaitGroup
		for i := range m {
			for j := range m {
				if i == j {
					continue
				}
				all.Go(func() {
					for x := range k {
						if !m[i].Send(parley.ID(j), link.Class(x%2), 300, []byte{'f'}, fmt.Append(nil, x)) {
							t.Error("not sent")
						}
						if x%7 == 0 {
							m[i].Flush(parley.ID(j))
						}
					}
					m[i].Flush(parley.ID(j))
				})
			}
		}
		all.Wait()
		for i := range m {
			await(t, "the last frames", func() bool {
				for _, p := range m[i].Stats().Peers {
					if p.FramesIn < k || p.FramesOut < k { // an answer comes after its frame
						return false
					}
				}
				return true
			})
			for j := range m {
				next := [2]int{0, 1}
				for line := range strings.Lines(s.host[i].all()) {
					var x int
					if n, _ := fmt.Sscanf(line, fmt.Sprintf("frame %d/300 f%%d", j), &x); n == 1 {
						if x != next[x%2] {
							t.Fatalf("%d to %d: %d came, and not %d", j, i, x, next[x%2])
						}
						next[x%2] += 2
					}
				}
				if i != j && next != [2]int{k, k + 1} {
					t.Fatalf("%d to %d: %v", j, i, next)
				}
			}
		}
		p := m[0].Stats().Peers[0]
		if !p.Connected || p.FramesOut != k || p.FramesLost != 0 || p.Queued != 0 || p.Incarnation != 1 {
			t.Errorf("%+v", p)
		}
		await(t, "a round trip", func() bool { return m[0].Stats().Peers[0].RTT.Samples > 0 })
	})
}

// A peer that ends is down, and up again with its next incarnation. Frames queued for it are lost, and counted.
func TestCallsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := calls(t, 2, nil)
		s.host[0].await(t, "up 1.1")
		s.host[1].await(t, "up 0.1")
		s.network.Hold(s.place(1), s.place(0)) // the answer to the first call
		send(m[0], 1, link.Bulk, 1, nil, []byte("taken"))
		s.host[1].await(t, "frame 0/1 taken")
		for range 3 {
			m[0].Send(1, link.Bulk, 1, nil, []byte("queued"))
		}
		if err := m[1].Close(); err != nil {
			t.Error(err)
		}
		if got := s.host[0].all(); got != "up 1.1" {
			t.Errorf("node 0 knows of the end before it can: %s", got)
		}
		s.network.Release(s.place(1), s.place(0))
		s.host[0].await(t, "down 1 connection broken")
		if m[0].Send(1, link.Bulk, 1, nil, nil) {
			t.Error("sent to nobody")
		}
		if p := m[0].Stats().Peers[0]; p.FramesLost != 3 || p.Connected || p.Refused[link.NotConnected] != 1 {
			t.Errorf("%+v", p)
		}
		s.config[1].Hello.Incarnation, s.config[1].Identity = 2, s.ca.node(t, 1)
		m[1] = s.call(1)
		s.host[0].await(t, "up 1.2")
		await(t, "up again", func() bool { return s.host[1].count("up 0.1") == 2 })
		send(m[1], 0, link.Urgent, 5, nil, []byte("again"))
		s.host[0].await(t, "frame 1/5 again")
		events := strings.Split(s.host[0].all(), "\n")
		if ups := slices.Index(events, "up 1.2"); slices.Index(events, "down 1 connection broken") > ups {
			t.Errorf("%q", events)
		}
	})
}

// A full queue ends the session, so that no frame is missing within one.
func TestCallsOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := calls(t, 2, func(c *link.Config) { c.Limits.Frame, c.Limits.Bulk = 1<<10, 1<<12 })
		s.host[0].await(t, "up 1.1")
		if m[0].Send(1, link.Bulk, 1, nil, make([]byte, 1<<10+1)) {
			t.Error("a frame too long was sent")
		}
		for i := 0; m[0].Send(1, link.Bulk, 1, nil, make([]byte, 1<<10)); i++ {
			if i == 4 {
				t.Fatal("more waits than may")
			}
		}
		s.host[0].await(t, "down 1 queue overflow")
		p := m[0].Stats().Peers[0]
		if p.FramesLost != 3 || p.Refused[link.Oversize] != 1 || p.Refused[link.Overflow] == 0 {
			t.Errorf("%+v", p)
		}
		await(t, "up again", func() bool { return s.host[0].count("up 1.1") == 2 })
	})
}

// Nodes of another cluster or configuration, unknown nodes, and nodes that are no longer trusted are refused.
func TestCallsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := calls(t, 3, func(c *link.Config) {
			if c.Self == 2 {
				c.Hello.Config[0]++
			}
		})
		s.host[0].await(t, "up 1.1")
		await(t, "the other configuration", func() bool { return m[0].Stats().Peers[1].Refused[link.OtherConfig] > 0 })
		await(t, "it is told why", func() bool { return m[2].Stats().Peers[0].Told == link.OtherConfig })
		if s.host[0].count("up 2.1") > 0 || m[0].Stats().Peers[1].Connected {
			t.Error("it is up")
		}
		c := s.config[1] // with a certificate of another authority
		c.Peers, c.Identity, c.Handler = []string{s.addrs[0], "127.0.0.1:0"}, newAuthority(t).node(t, 1), &host{}
		stranger, err := link.NewCalls(c)
		if err == nil {
			err = stranger.Start()
		}
		must(t, err)
		await(t, "nobody to talk to", func() bool { return len(stranger.Stats().Peers[0].Refused) > 0 })
		if stranger.Stats().Peers[0].Connected {
			t.Error("a stranger is up")
		}
		if err := stranger.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The first calls wait for connections and hellos, which is no round-trip time. Without pings there is none.
func TestCallsMeasurePings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := calls(t, 2, func(c *link.Config) { c.Limits.Ping, c.Limits.Silence = time.Minute, 3*time.Minute })
		s.host[0].await(t, "up 1.1")
		s.host[1].await(t, "up 0.1")
		for i := range m {
			if r := m[i].Stats().Peers[0].RTT; r.Samples != 0 {
				t.Errorf("node %d measured %+v", i, r)
			}
		}
	})
}

// Calls that were not started close their listener.
func TestCallsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, 1, nil)
		m, err := link.NewCalls(s.config[0])
		if err == nil {
			err = m.Close()
		}
		must(t, err)
		if err := s.config[0].Listener.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it listened on: %v", err)
		}
	})
}

// A peer whose certificate is revoked goes down.
func TestCallsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := calls(t, 2, nil)
		s.host[0].await(t, "up 1.1")
		s.ca.revoke(t, 1)
		s.host[0].await(t, "down 1 certificate not trusted any more")
	})
}

// A peer whose certificate is revoked, and which reconnects with its next incarnation before the session has
// ended, does not hide the reason.
func TestCallsRevokedAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := calls(t, 2, func(c *link.Config) {
			if c.Self == 0 {
				c.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
					time.Sleep(time.Second) // the peer reconnects meanwhile
					return len(b), nil
				}), nil))
			}
		})
		s.host[0].await(t, "up 1.1")
		s.ca.revoke(t, 1)
		if err := m[1].Close(); err != nil {
			t.Error(err)
		}
		s.config[1].Hello.Incarnation, s.config[1].Identity = 2, s.ca.node(t, 1)
		m[1] = s.call(1)
		s.host[0].await(t, "up 1.2")
		if got := s.host[0].all(); got != "up 1.1\ndown 1 certificate not trusted any more\nup 1.2" {
			t.Errorf("node 0 saw\n%s", got)
		}
	})
}

// A node that is closed at any time, also while it connects or waits for an answer, leaves no connection:
// otherwise the bubble would not end.
func TestCallsCloseOpenCalls(t *testing.T) {
	for after := time.Duration(0); after < 2*time.Millisecond; after += 50 * time.Microsecond {
		synctest.Test(t, func(t *testing.T) {
			s, m := calls(t, 2, nil)
			time.Sleep(after)
			send(m[0], 1, link.Bulk, 1, nil, []byte("asked"))
			begin := time.Now()
			if err := m[0].Close(); err != nil {
				t.Error(err)
			}
			if d := time.Since(begin); d != 0 {
				t.Errorf("after %v it takes %v to close", after, d)
			}
			s.network.Hold(s.place(1), s.place(0)) // no end comes from there
		})
	}
}
