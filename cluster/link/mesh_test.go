package link_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/link"
	"parley/cluster/link/memory"
)

func TestFramesBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pair(t, nil)
		for i := range 2 {
			to := parley.ID(1 - i)
			m := s.mesh[i]
			if !m.Send(to, link.Bulk, 7, []byte("he"), []byte("llo")) || !m.Send(to, link.Bulk, 300, nil, []byte("again")) ||
				!m.Send(to, link.Bulk, 1<<32-1, nil, nil) {
				t.Fatal("a frame was not taken")
			}
			m.Flush(to)
			s.host[to].await(t, "frame "+parley.ID(i).String()+"/4294967295 ")
		}
		if got, want := s.host[1].all(), "up 0.1\nframe 0/7 hello\nframe 0/300 again\nframe 0/4294967295 "; got != want {
			t.Errorf("node 1 saw\n%s\nnot\n%s", got, want)
		}
		p := s.peer(0, 1)
		if !p.Connected || p.Version != link.WireMax || p.Incarnation != 1 || p.Connections != 1 || p.FramesOut < 3 || p.BytesOut < 30 {
			t.Errorf("%+v", p)
		}
	})
}

// All pairs of a cluster connect, whichever node starts first. A node that has sent its hello is no longer a
// stranger.
func TestAllPairsConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, 4, func(c *link.Config) { c.Limits.Strangers = 1 })
		s.start(2, 0, 3, 1)
		for i := range 4 {
			for j := range i {
				s.connected(i, j)
			}
		}
		for i := range 4 {
			if n := len(s.mesh[i].Stats().Peers); n != 3 {
				t.Errorf("node %d has counted of %d peers", i, n)
			}
		}
	})
}

// A frame of any size up to the limit arrives unchanged, and its memory is released.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type one struct {
			n    int
			hash uint64
		}
		seed := maphash.MakeSeed()
		got := make(chan one, 1)
		s := pair(t, func(c *link.Config) {
			c.Limits.Frame = 3<<20 + 1
			c.Handler.(*host).frame = func(_ parley.ID, channel uint32, b []byte) {
				if channel != 1<<31 {
					panic("channel")
				}
				got <- one{len(b), maphash.Bytes(seed, b)}
			}
		})
		const fill = 64 << 10
		for _, n := range []int{0, 1, 100, 16 << 10, fill - 20, fill - 4, fill, fill + 900, fill + 1100, 2 * fill, 2*fill + 1, 1 << 20, 3<<20 + 1} {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(i * i >> 3)
			}
			cut := n / 3
			if !s.mesh[0].Send(1, link.Bulk, 1<<31, b[:cut], b[cut:]) {
				t.Fatalf("%d bytes were not taken", n)
			}
			s.mesh[0].Flush(1)
			if g := <-got; g.n != n || g.hash != maphash.Bytes(seed, b) {
				t.Errorf("of %d bytes came %d, or others", n, g.n)
			}
		}
		if s.mesh[0].Send(1, link.Bulk, 1, nil, make([]byte, 3<<20+2)) || s.mesh[0].Send(1, link.Urgent, 1, nil, make([]byte, fill+1)) {
			t.Error("a frame over the limit was taken")
		}
		if s.peer(0, 1).Refused[link.Oversize] != 2 || !s.peer(0, 1).Connected {
			t.Errorf("%+v", s.peer(0, 1))
		}
	})
}

// Two nodes send to each other as fast as they can, from many goroutines and from the reading ones: everything
// arrives, in order for each sender, and no node blocks.
func TestEverybodyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders, each = 4, 1500
		type progress struct {
			next [2 * senders]uint32
			n    atomic.Int64
		}
		var at [2]progress
		s := newSystem(t, 2, nil)
		for i := range 2 {
			s.host[i].frame = func(from parley.ID, channel uint32, b []byte) {
				p := &at[i]
				if k := binary.BigEndian.Uint32(b); k != p.next[channel] {
					t.Errorf("node %d, sender %d: frame %d came, %d was next", i, channel, k, p.next[channel])
				}
				p.next[channel]++
				p.n.Add(1)
				if channel < senders { // an answer of another size, which is not answered
					size := 4 + int(binary.BigEndian.Uint32(b))%5000
					if !s.mesh[i].Send(from, link.Bulk, channel+senders, b[:4], make([]byte, size)) {
						t.Errorf("node %d: an answer was not taken", i)
					}
				}
			}
			s.host[i].burst = func(from parley.ID) { s.mesh[i].Flush(from) }
		}
		s.start(0, 1)
		s.connected(0, 1)
		var wg sync.WaitGroup
		for i := range 2 {
			for k := range senders {
				wg.Go(func() {
					for n := range each {
						var b [4]byte
						binary.BigEndian.PutUint32(b[:], uint32(n))
						if !s.mesh[i].Send(parley.ID(1-i), link.Bulk, uint32(k), b[:], make([]byte, n%300)) {
							t.Errorf("node %d: a frame was not taken", i)
							return
						}
						if n%7 == 0 {
							s.mesh[i].Flush(parley.ID(1 - i))
						}
					}
					s.mesh[i].Flush(parley.ID(1 - i))
				})
			}
		}
		wg.Wait()
		for i := range 2 {
			await(t, "all frames and all answers", func() bool { return at[i].n.Load() == 2*senders*each })
		}
	})
}

// Large frames in both directions, each answered with an equally large one on the goroutine that read it. If that
// goroutine ever waited for the peer to read, both would wait forever.
func TestReadersThatWriteDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frames, size = 150, 64 << 10
		var got [2]atomic.Int64
		sent := make(chan struct{})
		s := newSystem(t, 2, nil)
		for i := range 2 {
			s.host[i].frame = func(from parley.ID, channel uint32, b []byte) {
				<-sent // until then sockets fill up
				if got[i].Add(1); channel == 0 && !s.mesh[i].Send(from, link.Bulk, 1, nil, b) {
					t.Errorf("node %d: an answer was not taken", i)
				}
				s.mesh[i].Flush(from)
			}
		}
		s.start(0, 1)
		s.connected(0, 1)
		body := make([]byte, size)
		for range frames {
			for i := range 2 {
				send(s.mesh[i], parley.ID(1-i), link.Bulk, 0, nil, body)
			}
		}
		close(sent)
		for i := range 2 {
			await(t, "frames and answers", func() bool { return got[i].Load() == 2*frames })
		}
		if s.peer(0, 1).Spills+s.peer(1, 0).Spills == 0 {
			t.Error("no socket was ever full: the test shows nothing")
		}
	})
}

// An urgent frame overtakes waiting bulk frames, even the parts of one frame.
func TestUrgentOvertakesBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{32 << 10, 16 << 20} {
			block := make(chan struct{})
			var h *host
			s := pair(t, func(c *link.Config) {
				if c.Self == 1 {
					h = c.Handler.(*host)
					h.frame = func(_ parley.ID, channel uint32, b []byte) {
						<-block
						h.note("frame on %d", channel)
					}
				}
			})
			n := 16 << 20 / size
			for range n {
				send(s.mesh[0], 1, link.Bulk, 1, nil, make([]byte, size))
			}
			send(s.mesh[0], 1, link.Urgent, 2, nil, []byte("now"))
			close(block)
			await(t, "all bulk frames", func() bool { return h.count("frame on 1") == n })
			if h.count("frame on 2") != 1 || strings.HasSuffix(h.all(), "frame on 2") {
				t.Errorf("of %d bytes each: the urgent frame came last or not at all", size)
			}
		}
	})
}

// A peer does not count as silent while the handler is busy with its frame.
func TestSlowHandlerBlamesNoPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silence = 300 * time.Millisecond
		work := make(chan struct{})
		s := newSystem(t, 2, func(c *link.Config) { c.Limits.Silence = silence })
		s.host[1].frame = func(parley.ID, uint32, []byte) { <-work }
		s.start(0, 1)
		s.connected(0, 1)
		send(s.mesh[0], 1, link.Urgent, 5, nil, []byte("much to do"))
		time.Sleep(3 * silence)
		close(work)
		send(s.mesh[1], 0, link.Urgent, 5, nil, []byte("done"))
		s.host[0].await(t, "frame 1/5 done")
		if got := s.host[1].all(); got != "up 0.1" {
			t.Errorf("node 1 saw\n%s", got)
		}
	})
}

func TestRoundTripTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pair(t, nil)
		await(t, "some pings", func() bool { return s.peer(0, 1).RTT.Samples >= 5 && s.peer(1, 0).RTT.Samples >= 5 })
		r := s.peer(0, 1).RTT // of two messages that take 100 us
		if there := 200 * time.Microsecond; r.Min != there || r.P50 != there || r.P999 != there {
			t.Errorf("%+v", r)
		}
	})
}

// A restarted node is connected again, and its peers get Down and Up in order.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pair(t, nil)
		for life := uint64(2); life <= 4; life++ {
			i := int(life) % 2 // the dialer and the listener in turn
			s.stop(i)
			await(t, "the end is seen", func() bool { return !s.peer(1-i, i).Connected })
			s.config[i].Hello.Incarnation = life
			s.start(i)
			s.connected(0, 1)
			s.host[1-i].await(t, fmt.Sprintf("up %d.%d", i, life))
		}
		s.host[1].await(t, "up 0.4")
		if got, want := s.host[1].all(), "up 0.1\ndown 0 closed\nup 0.2\ndown 0 closed\nup 0.2\ndown 0 closed\nup 0.4"; got != want {
			t.Errorf("node 1 saw\n%s\nnot\n%s", got, want)
		}
		if s.mesh[0].Send(1, link.Bulk, 1, nil, nil); s.peer(0, 1).Connections != 1 {
			t.Errorf("%+v", s.peer(0, 1))
		}
	})
}

// Close writes queued frames first, and the peer learns that the end was intended.
func TestCloseWritesQueuedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pair(t, nil)
		const n = 500
		for range n {
			send(s.mesh[0], 1, link.Bulk, 1, nil, []byte("last words"))
		}
		s.stop(0)
		s.host[1].await(t, "down 0 closed")
		if got := s.host[1].count("frame 0/1 last words"); got != n {
			t.Errorf("%d of %d frames came", got, n)
		}
	})
}

// Frames queued at the end of a connection are lost and counted; later ones are refused.
func TestLostIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		s := pair(t, func(c *link.Config) {
			if c.Self == 1 {
				c.Handler.(*host).frame = func(parley.ID, uint32, []byte) { <-block }
			}
		})
		for range 400 {
			send(s.mesh[0], 1, link.Bulk, 1, nil, make([]byte, 64<<10))
		}
		s.ca.revoke(t, 1)
		s.host[0].await(t, "down 1 certificate not trusted any more")
		if s.mesh[0].Send(1, link.Bulk, 1, nil, nil) {
			t.Error("a frame was taken for a peer that is down")
		}
		p := s.peer(0, 1)
		close(block)
		if p.FramesLost == 0 || p.Refused[link.NotConnected] == 0 || p.Queued != 0 || p.Connected {
			t.Errorf("%+v", p)
		}
	})
}

// A revoked certificate ends its connections.
func TestRevocationClosesLiveConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pair(t, nil)
		s.ca.revoke(t, 0)
		s.host[1].await(t, "down 0 certificate not trusted any more")
		s.refused(1, 0, link.Untrusted)
	})
}

// failing is a listener that fails at first, as without descriptors.
type failing struct {
	net.Listener
	left atomic.Int64
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptSurvivesEMFILE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pair(t, func(c *link.Config) {
			f := &failing{Listener: c.Listener}
			f.left.Store(4)
			c.Listener = f
		})
		if n := s.mesh[1].Stats().Refused[link.AcceptFailed]; n != 4 {
			t.Errorf("%d failures were counted", n)
		}
	})
}

// plain hides TryWrite of its connections.
type plain struct{ net.Listener }

func (p plain) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

// Without TryWrite, one goroutine of the connection does all writing.
func TestWithoutRawConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		s := newSystem(t, 2, func(c *link.Config) { c.Listener = plain{c.Listener} })
		for i := range 2 {
			s.host[i].frame = func(from parley.ID, channel uint32, b []byte) {
				got.Add(1)
				if channel == 0 {
					s.mesh[i].Send(from, link.Bulk, 1, nil, b)
				}
			}
			s.host[i].burst = func(from parley.ID) { s.mesh[i].Flush(from) }
		}
		s.start(0, 1)
		s.connected(0, 1)
		for range 200 {
			for i := range 2 {
				send(s.mesh[i], parley.ID(1-i), link.Bulk, 0, nil, make([]byte, 64<<10))
			}
		}
		await(t, "all frames", func() bool { return got.Load() == 800 })
	})
}

// A peer that is refused repeatedly is logged once a minute, and always counted.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		var mu sync.Mutex
		s := newSystem(t, 2, func(c *link.Config) {
			c.Hello.Config[0] = byte(c.Self)
			c.Names = []string{"node1", "node2"}
			if c.Self == 1 {
				c.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					return b.Write(p)
				}), nil))
			}
		})
		s.start(0, 1)
		await(t, "many refusals", func() bool { return s.peer(1, 0).Refused[link.OtherConfig] >= 5 })
		s.stop(1)
		mu.Lock()
		defer mu.Unlock()
		if n := strings.Count(b.String(), "other configuration"); n != 2 { // reason and error, in one line
			t.Errorf("logged %d times:\n%s", n, &b)
		}
		if !strings.Contains(b.String(), "peer=node1") {
			t.Errorf("the peer is not named:\n%s", &b)
		}
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Close ends everything in progress: a dial without an answer, a handshake, a connection.
func TestCloseInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		s.start(0, 1)
		s.connected(0, 1)
		c := s.dial(1)
		defer c.Close()
		_, _ = c.Write([]byte{22, 3, 1})
		s.stop(1)
		s.stop(0)
		if got := s.host[0].all(); !strings.HasSuffix(got, "down 1 closed") {
			t.Errorf("node 0 saw\n%s", got)
		}
	})
}

func TestConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := link.Config{
			Self: 0, Peers: []string{"127.0.0.1:0"}, Network: memory.New(memory.Options{}).Host("a"),
			Identity: newAuthority(t).node(t, 0), Handler: &host{},
		}
		for what, spoil := range map[string]func(c *link.Config){
			"no such node":    func(c *link.Config) { c.Self = 1 },
			"too many nodes":  func(c *link.Config) { c.Peers = make([]string, 257) },
			"no handler":      func(c *link.Config) { c.Handler = nil },
			"no identity":     func(c *link.Config) { c.Identity = nil },
			"a long name":     func(c *link.Config) { c.Hello.Cluster = strings.Repeat("x", 256) },
			"versions":        func(c *link.Config) { c.Hello.Min, c.Hello.Max = 3, 2 },
			"a negative size": func(c *link.Config) { c.Limits.Frame = -1 },
			"a negative time": func(c *link.Config) { c.Limits.Ping = -1 },
			"a small queue":   func(c *link.Config) { c.Limits.Bulk = 1 << 20 },
			"urgent":          func(c *link.Config) { c.Limits.Urgent = 1 },
			"frames":          func(c *link.Config) { c.Limits.Frame = 1<<30 + 1 },
			"silence":         func(c *link.Config) { c.Limits.Silence = 1 },
		} {
			c := good
			spoil(&c)
			if _, err := link.New(c); err == nil {
				t.Errorf("%s was accepted", what)
			}
		}
		m, err := link.New(good)
		must(t, err)
		must(t, m.Start())
		must(t, m.Close())
		good.Peers = []string{"256.0.0.1:0"}
		m, err = link.New(good)
		must(t, err)
		if err := m.Start(); err == nil {
			t.Error("listened at 256.0.0.1")
		}
		must(t, m.Close())
	})
}

func TestReasonsHaveNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[string]bool)
		for r := link.Closed; r <= link.FutureLife; r++ {
			if seen[r.String()] || strings.HasPrefix(r.String(), "reason") || r.String() == "" {
				t.Errorf("reason %d is %q", r, r)
			}
			seen[r.String()] = true
		}
		if (link.FutureLife + 1).String() != "reason 38" {
			t.Errorf("the last reason is another: %s", link.FutureLife+1)
		}
		err := &link.Down{Reason: link.ToldOff, Told: link.Duplicate, Err: syscall.EPIPE}
		if !errors.Is(err, syscall.EPIPE) || !strings.Contains(err.Error(), "refused by the peer: duplicate connection: ") {
			t.Error(err)
		}
	})
}
