package link_test

import (
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/link"
)

// heap returns the bytes in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 { // pools release their entries at the second one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// bounded checks that memory has grown by less than 32 MB since before.
func bounded(t *testing.T, before uint64) {
	t.Helper()
	if now := heap(); now > before+32<<20 {
		t.Errorf("%d MB more than before", (now-before)>>20)
	}
}

// dialAll opens n connections and writes the same bytes to each.
func (s *system) dialAll(n, to int, b []byte) {
	s.t.Helper()
	for range n {
		_, _ = s.dial(to).Write(b) // it may be closed already
	}
}

// The first bytes of a longer ClientHello.
var halfHandshake = append([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, make([]byte, 300)...)

// Connections without a hello: at most 64 are kept, and only for a short time.
func TestLoad2000Connects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *link.Config) {
			c.Limits.AddressRate, c.Limits.AddressBurst, c.Limits.Greeting = 1_000_000, 1_000_000, 400*time.Millisecond
		})
		before, goroutines := heap(), runtime.NumGoroutine()
		s.dialAll(2000, 1, nil)
		s.refused(1, -1, link.Crowd)
		if n := runtime.NumGoroutine() - goroutines; n > 64+8 {
			t.Errorf("%d goroutines more", n)
		}
		bounded(t, before)
		s.goOn()
		s.refused(1, -1, link.Late)
		w := wire{}
		await(t, "a peer is let in after the storm", func() bool {
			w = s.wireOrNot(0, 1)
			return w.Conn != nil
		})
	})
}

// wireOrNot returns a connection with an accepted hello, if it was possible.
func (s *system) wireOrNot(id, to int) wire {
	w := wire{s.t, tls.Client(s.dial(to), s.ca.node(s.t, id).Dial(parley.ID(to)))}
	s.t.Cleanup(func() { _ = w.Close() })
	if _, err := w.Write(helloFrame("test", 1, 1, 1, 0)); err != nil {
		return wire{}
	}
	if kind, _ := w.next(); kind != hello {
		return wire{}
	}
	return w
}

func TestLoad500HalfHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *link.Config) {
			c.Limits.AddressRate, c.Limits.AddressBurst, c.Limits.Greeting = 1_000_000, 1_000_000, 300*time.Millisecond
		})
		before := heap()
		s.dialAll(500, 1, halfHandshake)
		s.refused(1, -1, link.Crowd)
		bounded(t, before)
		s.goOn()
		s.refused(1, -1, link.Late)
	})
}

// One address is limited to its rate.
func TestLoadHandshakeRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *link.Config) { c.Limits.AddressRate, c.Limits.AddressBurst = 1, 12 })
		s.dialAll(40, 2, nil)
		await(t, "all but the first twelve to be refused", func() bool {
			return s.mesh[2].Stats().Refused[link.Rate] >= 25
		})
		s.goOn()
	})
}

// A peer that sends a byte now and then: before its hello, within a frame, within a record.
func TestLoadSlowLoris(t *testing.T) {
	slow := func(s *system, c io.Writer, b []byte) {
		for i := range b {
			if _, err := c.Write(b[i : i+1]); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		s.t.Error("he was heard to the end")
	}
	change := func(c *link.Config) {
		c.Limits.Greeting, c.Limits.FrameTime, c.Limits.Silence = 300*time.Millisecond, 200*time.Millisecond, 250*time.Millisecond
	}
	bubble(t, "handshake", func(t *testing.T) {
		s := besieged(t, change)
		c := s.dial(1)
		defer c.Close()
		slow(s, c, halfHandshake)
		s.refused(1, -1, link.Late)
		s.goOn()
	})
	bubble(t, "hello", func(t *testing.T) {
		s := besieged(t, change)
		slow(s, s.wire(0, 1), helloFrame("test", 1, 1, 1, 0))
		s.refused(1, 0, link.Late)
		s.goOn()
	})
	bubble(t, "frame", func(t *testing.T) {
		s := besieged(t, change)
		slow(s, s.intruder(0, 1), frame(bulk, make([]byte, 500)...))
		s.refused(1, 0, link.SlowFrame)
		s.goOn()
	})
	bubble(t, "record", func(t *testing.T) {
		s := besieged(t, change)
		c := s.dial(1)
		under := &trickle{Conn: c}
		w := wire{t, tls.Client(under, s.ca.node(t, 0).Dial(1))}
		defer w.Close()
		w.send(helloFrame("test", 1, 1, 1, 0))
		s.host[1].await(t, "up 0.1")
		under.slow.Store(true)
		_, _ = w.Write(frame(bulk, make([]byte, 500)...))
		s.refused(1, 0, link.Silent)
		s.goOn()
	})
}

// trickle writes slowly while slow is set.
type trickle struct {
	net.Conn
	slow atomic.Bool
}

func (c *trickle) Write(b []byte) (int, error) {
	if !c.slow.Load() {
		return c.Conn.Write(b)
	}
	for i := range b {
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return len(b), nil
}

// A silent peer counts as crashed.
func TestLoadSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *link.Config) { c.Limits.Silence = 200 * time.Millisecond })
		w := s.intruder(0, 1)
		begin := time.Now()
		s.host[1].await(t, "down 0 peer is silent")
		if d := time.Since(begin); d < 195*time.Millisecond || d > 210*time.Millisecond { // checked every 5 ms
			t.Errorf("he is taken for dead after %v", d)
		}
		if why := w.told(); why != link.Silent {
			t.Errorf("he is told %v", why)
		}
		s.goOn()
	})
}

// For a peer that never reads, the queue is bounded, then the connection is closed and the memory is free again.
func TestLoadReaderThatNeverReads(t *testing.T) {
	bubble(t, "overflow", func(t *testing.T) {
		s := besieged(t, func(c *link.Config) { c.Limits.Frame, c.Limits.Bulk = 1<<20, 8<<20 })
		before := heap()
		s.intruder(0, 1)
		s.host[1].await(t, "up 0.1")
		n := 0
		for ; n < 1000 && s.mesh[1].Send(0, link.Bulk, 1, nil, make([]byte, 60<<10)); n++ {
			s.mesh[1].Flush(0)
		}
		bounded(t, before)
		if n*60>>10 > 8+16 { // part of it in buffers of the system
			t.Errorf("%d MB were taken", n*60>>10)
		}
		s.host[1].await(t, "down 0 queue overflow")
		if p := s.peer(1, 0); p.Refused[link.Overflow] != 1 || p.FramesLost < 100 {
			t.Errorf("%+v", p)
		}
		s.goOn()
		if after := heap(); after > before+4<<20 {
			t.Errorf("%d KB are still held", (after-before)>>10)
		}
	})
	bubble(t, "urgent overflow", func(t *testing.T) {
		s := besieged(t, nil)
		s.intruder(0, 1)
		s.host[1].await(t, "up 0.1")
		for n := 0; n < 10_000 && s.mesh[1].Send(0, link.Urgent, 1, nil, make([]byte, 1000)); n++ {
			s.mesh[1].Flush(0)
		}
		s.host[1].await(t, "down 0 queue overflow")
		s.goOn()
	})
	bubble(t, "deadline", func(t *testing.T) {
		s := besieged(t, func(c *link.Config) { c.Limits.WriteTime = 100 * time.Millisecond })
		s.intruder(0, 1)
		s.host[1].await(t, "up 0.1")
		for range 300 {
			s.mesh[1].Send(0, link.Bulk, 1, nil, make([]byte, 60<<10))
		}
		s.mesh[1].Flush(0)
		s.host[1].await(t, "down 0 peer does not read")
		s.goOn()
	})
}

// Pings without end: answered up to the limit.
func TestLoadPingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *link.Config) { c.Limits.Pings = 200 })
		before := heap()
		w := s.intruder(0, 1)
		var flood []byte
		for range 500 {
			flood = append(flood, frame(ping, make([]byte, 8)...)...)
		}
		for range 200 {
			if _, err := w.Write(flood); err != nil {
				break
			}
		}
		s.host[1].await(t, "down 0 too many pings")
		bounded(t, before)
		s.goOn()
	})
}

// A peer that requests answers and does not read them, without a rate limit that would end the connection first.
func TestLoadPingsWithoutReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *link.Config) { c.Limits.Pings, c.Limits.Silence = 1<<30, 30*time.Second })
		before := heap()
		w := s.intruder(0, 1)
		var flood []byte
		for range 5000 {
			flood = append(flood, frame(ping, make([]byte, 8)...)...)
		}
		_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
		for {
			if _, err := w.Write(flood); err != nil {
				break
			}
		}
		s.refused(1, 0, link.Overflow)
		bounded(t, before)
		s.goOn()
	})
}
