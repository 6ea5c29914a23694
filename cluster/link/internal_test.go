package link

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/link/memory"
)

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The backoff is never 0 and never more than its bound.
func TestJitter(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := jitter(time.Second)
		low, high = min(low, d), max(high, d)
	}
	if low < 500*time.Millisecond || high > time.Second || high-low < 300*time.Millisecond {
		t.Errorf("from %s to %s", low, high)
	}
}

// A peer that cannot be reached is dialed again at growing intervals, up to half a second.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := testMesh(t)
		begin := time.Now()
		go m.peers[1].dial()
		time.Sleep(time.Minute)
		n := m.peers[1].refused[Unreachable].Load()
		if early := m.peers[1].connections.Load(); n < 120 || n > 250 || early != 0 {
			t.Errorf("%d attempts in %s", n, time.Since(begin))
		}
		m.cancel()
		synctest.Wait()
	})
}

// failsInTurn is a listener that alternately fails and returns a connection.
type failsInTurn struct {
	net.Listener
	calls atomic.Int64
}

func (l *failsInTurn) Accept() (net.Conn, error) {
	if l.calls.Add(1)%2 == 1 {
		return nil, errors.New("too many open files")
	}
	a, b := net.Pipe()
	_ = b.Close()
	return a, nil
}

// Refused connections reset the listener's backoff, or peers would wait behind a flood of them.
func TestAcceptBackoffEndsWithRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := testMesh(t)
		l := &failsInTurn{Listener: m.listen}
		m.listen, m.gate.max = l, 0
		go m.accept()
		time.Sleep(time.Second)
		if n := l.calls.Load(); n < 300 {
			t.Errorf("%d connections and failures in a second", n)
		}
		m.cancel()
		synctest.Wait()
	})
}

func testMesh(t *testing.T) *Mesh {
	t.Helper()
	m, err := New(Config{Peers: []string{"", "127.0.0.1:1"}, Network: memory.New(memory.Options{}).Host("a"), Handler: nothing{}, Identity: struct{ Identity }{}})
	must(t, err)
	return m
}

func TestGate(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	g := newGate(Limits{Strangers: 5, AddressRate: 2, AddressBurst: 3})
	enter := func(a netip.Addr, at time.Duration, want Reason) {
		t.Helper()
		if got := g.enter(a, at); got != want {
			t.Errorf("%s at %s: %v, not %v", a, at, got, want)
		}
	}
	for range 3 {
		enter(a, time.Second, 0)
	}
	enter(netip.MustParseAddr("::ffff:10.0.0.1"), time.Second, Rate) // the same address
	enter(a, 1400*time.Millisecond, Rate)
	enter(a, 1500*time.Millisecond, 0) // two a second
	enter(b, 1500*time.Millisecond, 0)
	enter(b, 1500*time.Millisecond, Crowd)
	for range 5 {
		g.leave()
	}
	enter(b, 1500*time.Millisecond, 0)
	enter(netip.MustParseAddr("2001:db8::ffff"), 1500*time.Millisecond, 0) // the same network
	enter(netip.MustParseAddr("2001:db8::2:1"), 1500*time.Millisecond, Rate)
	enter(a, time.Hour, 0)
}

func TestWindow(t *testing.T) {
	var w window
	if w.sum() != (RTT{}) {
		t.Error("not empty")
	}
	for i := range 5000 {
		w.add(0, time.Duration(i+1))
	}
	// The last 1024 are 3977 to 5000.
	if got, want := w.sum(), (RTT{Min: 3977, P50: 3977 + 512, P999: 3977 + 1022, Samples: 1024}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// Older late answers do not count for the current state of a link.
func TestRecentRoundTrips(t *testing.T) {
	var w window
	if w.recent(time.Hour) != (RecentRTT{}) {
		t.Error("not empty")
	}
	for i := range 400 { // four a second
		took := time.Millisecond
		if i == 300 || i == 396 {
			took = time.Second // at 75 s and at 99 s
		}
		w.add(time.Duration(i)*time.Second/4, took)
	}
	if got := w.sum().P999; got != time.Second {
		t.Errorf("999 of 1000 keep to %v", got)
	}
	want := RecentRTT{P50: time.Millisecond, P90: time.Millisecond, Samples: 40}
	if got := w.recent(100 * time.Second); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	for range 4 { // a tenth of them is late
		w.add(99*time.Second, time.Second)
	}
	if got := w.recent(100 * time.Second).P90; got != time.Second {
		t.Errorf("9 of 10 keep to %v, though 5 of 44 were late", got)
	}
}

// Answers that waited here while this process was paused are ignored.
func TestOwnPauseIsNoRoundTrip(t *testing.T) {
	m := testMesh(t)
	p := m.peers[1]
	s := newSession(p, newConn(nil), nil, Hello{}, 1)
	answer := func(sent, looked, came time.Duration) {
		t.Helper()
		s.pings[s.pinged%uint64(len(s.pings))] = sent
		s.pinged++
		m.coarse.Store(int64(looked))
		m.begin = time.Now().Add(-came)
		if why := s.pong(binary.BigEndian.AppendUint64(nil, uint64(sent))); why != 0 {
			t.Fatal(why)
		}
	}
	for _, c := range []struct {
		what               string
		sent, looked, came time.Duration
		look               bool // the process noticed before the answer was read
		counts             int
	}{
		{"at once", 10 * time.Second, 10 * time.Second, 10*time.Second + 30*time.Millisecond, false, 1},
		{"after a pause", 20 * time.Second, 20 * time.Second, 21 * time.Second, false, 1},
		{"after a pause that was noticed", 30 * time.Second, 30 * time.Second, 31 * time.Second, true, 1},
		{"of a peer who is slow", 40 * time.Second, 41 * time.Second, 41 * time.Second, false, 2},
	} {
		m.coarse.Store(int64(c.sent))
		looked := c.looked
		if c.look {
			m.look(c.came)
			looked = c.came
		}
		answer(c.sent, looked, c.came)
		if n := p.rtt.sum().Samples; n != c.counts {
			t.Errorf("%s: %d were counted, not %d", c.what, n, c.counts)
		}
	}
}

func TestNotesAreBounded(t *testing.T) {
	var n notes
	if !n.due(note{kind: "peer", who: "3", why: Silent}, 0) || n.due(note{kind: "peer", who: "3", why: Silent}, 59*time.Second) {
		t.Error("once a minute")
	}
	if !n.due(note{kind: "peer", who: "3", why: Broken}, 0) || !n.due(note{kind: "peer", who: "4", why: Silent}, 0) {
		t.Error("for each peer and reason")
	}
	for i := range 10_000 {
		n.due(note{kind: "address", who: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String(), why: Crowd}, 30*time.Second)
	}
	if len(n.last) > notesKept {
		t.Errorf("%d are kept", len(n.last))
	}
	if !n.due(note{kind: "peer", who: "5", why: Silent}, 31*time.Second) {
		t.Error("strangers have displaced a peer")
	}
	if !n.due(note{kind: "address", who: "10.1.0.0", why: Crowd}, 100*time.Second) || len(n.last) > 2 {
		t.Errorf("%d are kept after their time", len(n.last))
	}
}

// After a pause of this process, no peer is blamed for its silence meanwhile.
func TestPauseIsNotPeerSilence(t *testing.T) {
	m := testMesh(t)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	s := newSession(m.peers[1], newConn(ours), nil, Hello{}, 1)
	const start = time.Hour
	s.last = 2 * start  // no ping is due
	s.busy.Store(false) // the last read is handled
	s.heard.Store(int64(start))
	s.begun.Store(int64(start))
	s.keep(start+time.Minute, true)
	s.keep(start+time.Minute+m.c.Limits.Silence, false)
	if s.ended() {
		t.Errorf("blamed after a pause: %v", s.why)
	}
	s.begun.Store(0)
	s.keep(start+time.Minute+m.c.Limits.Silence+1, false)
	if !s.ended() || s.why.Reason != Silent {
		t.Errorf("not blamed for silence: %v", s.why)
	}
}

// Nor is a peer blamed while the handler is at work, neither for silence nor for an unfinished frame.
func TestBusyHandlerIsNotPeerSilence(t *testing.T) {
	m := testMesh(t)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	s := newSession(m.peers[1], newConn(ours), nil, Hello{}, 1)
	s.last = 2 * time.Hour // no ping is due
	if s.keep(time.Hour, false); s.ended() {
		t.Errorf("blamed while our handler hears that it is up: %v", s.why)
	}
	for _, begun := range []time.Duration{0, 1} {
		s.begun.Store(int64(begun))
		s.busy.Store(true)
		s.keep(time.Hour, false)
		s.busy.Store(false)
		s.keep(time.Hour+m.c.Limits.Silence, false)
		if s.ended() {
			t.Errorf("blamed for our work: %v", s.why)
		}
	}
}

// A concurrent write, such as a ping, does not keep the peer from receiving the reason of the end.
func TestByeDuringWrite(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate
	server.Close()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := ends(t)
		heard := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}))
			heard <- b
		}()
		c := newConn(ours)
		secure := tls.Server(c, &tls.Config{Certificates: server.TLS.Certificates})
		must(t, secure.Handshake())
		if !c.setFree() {
			t.Fatal("it always waits")
		}
		s := newSession(testMesh(t).peers[1], c, secure, Hello{}, 1) // writing is owned
		s.fail(&Down{Reason: Replaced})
		if got, want := <-heard, []byte{0, 0, 0, 2, typeBye, byte(Replaced)}; !bytes.Equal(got, want) {
			t.Errorf("the peer hears %v, not %v", got, want)
		}
	})
}

// ends returns the ends of a connection in memory.
func ends(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	n := memory.New(memory.Options{})
	l, err := n.Host("a").Listen(t.Context(), "tcp", ":1")
	must(t, err)
	theirs, err = n.Host("b").DialContext(t.Context(), "tcp", "a:1")
	must(t, err)
	ours, err = l.Accept()
	must(t, err)
	t.Cleanup(func() { _, _, _ = l.Close(), ours.Close(), theirs.Close() })
	return ours, theirs
}

// full returns a connection that was written to until it accepted no more, and the bytes written.
func full(t *testing.T, nc net.Conn) (c *conn, sent []byte) {
	t.Helper()
	if c = newConn(nc); !c.setFree() {
		t.Fatal("it always waits")
	}
	piece := make([]byte, 7000)
	for i := 0; !c.behind.Load(); i++ {
		for k := range piece {
			piece[k] = byte(i + k)
		}
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, piece...)
	}
	return c, sent
}

// spills checks that bytes that a connection does not accept are kept, and arrive in order after a drain. Later
// writes do not overtake them, even if the connection would accept them.
func spills(t *testing.T, ours, there net.Conn, patience time.Duration, pass func()) {
	t.Helper()
	c, sent := full(t, ours)
	sent = append(sent, "meanwhile, and after"...)
	got := make([]byte, len(sent))
	half := len(sent) / 2
	if _, err := io.ReadFull(there, got[:half]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("meanwhile, ")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := io.ReadFull(there, got[half:])
		done <- err
	}()
	if err := c.drain(patience); err != nil || c.behind.Load() {
		t.Fatal(err)
	}
	pass()
	if _, err := c.Write([]byte("and after")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("other bytes came: %v", err)
	}
}

func TestSpill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := ends(t)
		const patience = 200 * time.Millisecond
		spills(t, ours, theirs, patience, func() { time.Sleep(patience + 1) }) // it must not affect later writes
	})
}

// The spill is bounded by a block, and no write waits longer than its limit for a peer that does not read.
func TestSpillIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, _ := ends(t)
		c, _ := full(t, ours)
		var err error
		for err == nil {
			_, err = c.Write(make([]byte, 1000))
		}
		if !errors.Is(err, errSpill) || len(c.spill) > maxSpill || len(c.spill) < maxSpill-1000 {
			t.Fatalf("%v, with %d bytes kept", err, len(c.spill))
		}
		begin := time.Now()
		if why := broken(c.drain(50 * time.Millisecond)); why.Reason != Stuck || time.Since(begin) != 50*time.Millisecond {
			t.Errorf("drained into a peer who does not read, after %v: %v", time.Since(begin), why)
		}
	})
}

// The memory of a long frame is released.
func TestLongFramesAreForgotten(t *testing.T) {
	r := newReader(4 << 20)
	for range 64 {
		r.part(make([]byte, 60_000))
	}
	if b, why := r.whole([]byte{1}); why != 0 || len(b) != 64*60_000+1 {
		t.Fatal(why, len(b))
	}
	if cap(r.long) > 1<<20 {
		t.Errorf("%d bytes are kept", cap(r.long))
	}
}

type nothing struct{ Handler }

// For any input, the reader takes no more memory than its buffer and one long frame.
func FuzzReader(f *testing.F) {
	var q queue
	q.data(typeBulk, 7, []byte("head"), []byte("body"))
	q.data(typeUrgent, 1<<32-1, nil, nil)
	q.data(typeBulk, 7, nil, make([]byte, 70_000))
	q.add(typePing, make([]byte, 8)...)
	var all []byte
	for _, b := range q.blocks {
		all = append(all, b.b...)
	}
	f.Add(all, uint16(100))
	f.Add(all, uint16(65535))
	f.Add([]byte{0, 0, 0, 0}, uint16(1))
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<32-1), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, step uint16) {
		r := newReader(80_000)
		for len(b) > 0 {
			free := r.free()
			if len(free) == 0 {
				t.Fatal("no room, and no frame")
			}
			n := copy(free[:min(len(free), int(step)+1)], b)
			r.end += n
			b = b[n:]
			for {
				frame, why := r.next()
				if why != 0 {
					return
				}
				if frame == nil {
					break
				}
				switch frame[0] {
				case typePart:
					if r.part(frame[1:]) != 0 {
						return
					}
				case typeBulk:
					long, why := r.whole(frame[1:])
					if why != 0 {
						return
					}
					if _, rest, why := r.open(long); why == 0 && len(rest) > 80_000 {
						t.Fatalf("a frame of %d bytes", len(rest))
					}
				}
			}
			if len(r.buf) != 2*blockSize || cap(r.long) > 400_000 {
				t.Fatalf("%d and %d bytes", len(r.buf), cap(r.long))
			}
		}
	})
}

// Every hello has one encoding: a parsed hello of our version is encoded identically.
func FuzzHello(f *testing.F) {
	for _, newest := range []uint16{1, 2} {
		h := Hello{Cluster: "test", Min: 1, Max: newest, Incarnation: 7, Disk: Disk{Store: 8, Began: 9, Position: 10}}
		f.Add(h.encode()[header+1:])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseHello(b, WireMax)
		if ok && h.Max <= WireMax && !bytes.Equal(h.encode()[header+1:], b) {
			t.Errorf("%v was read as %+v", b, h)
		}
	})
}
