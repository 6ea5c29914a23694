package link_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/link"
	"parley/cluster/link/memory"
)

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bubble runs a subtest in a bubble with virtual time.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// send sends a frame and flushes it.
func send(m link.Transport, to parley.ID, class link.Class, channel uint32, head, body []byte) {
	m.Send(to, class, channel, head, body)
	m.Flush(to)
}

// authority issues the certificates of a test, whose nodes share their trust.
type authority struct {
	*cert.Authority
	trust *cert.Trust
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	by, err := cert.NewAuthority("test", 2*time.Hour, nil)
	must(t, err)
	trust, err := cert.NewTrust(by.Anchors(), nil)
	must(t, err)
	return &authority{by, trust}
}

// identity is a node of an authority's cluster.
type identity struct{ link.Members }

func (a *authority) node(t testing.TB, id int) identity {
	t.Helper()
	issued, err := a.IssueNode(strconv.Itoa(id), nil, time.Hour)
	must(t, err)
	out := identity{link.Members{Self: issued.Self(), Trust: a.trust}}
	for id := range 16 { // more than in any test
		out.Names = append(out.Names, strconv.Itoa(id))
	}
	return out
}

// Dial accepts any node: the tests require that the mesh checks which one it is.
func (i identity) Dial(parley.ID) *tls.Config {
	return i.Trust.Dial(i.Self, cert.Identity{Cluster: "test", Kind: cert.Node, Name: cert.Any})
}

// revoke revokes the certificates of a node.
func (a *authority) revoke(t testing.TB, id int) {
	t.Helper()
	_, err := a.Revoke(strconv.Itoa(id))
	if err == nil {
		err = a.trust.Set(a.Anchors())
	}
	must(t, err)
}

// host is a handler that records events.
type host struct {
	mu     sync.Mutex
	events []string
	frame  func(from parley.ID, channel uint32, b []byte) // or nil: recorded
	burst  func(from parley.ID)
}

func (h *host) note(form string, args ...any) {
	h.mu.Lock()
	h.events = append(h.events, fmt.Sprintf(form, args...))
	h.mu.Unlock()
}

func (h *host) Up(id parley.ID, incarnation uint64) { h.note("up %d.%d", id, incarnation) }
func (h *host) Frame(from parley.ID, channel uint32, b []byte) {
	if h.frame != nil {
		h.frame(from, channel, b)
		return
	}
	if len(b) > 40 {
		h.note("frame %d/%d %d bytes", from, channel, len(b))
	} else {
		h.note("frame %d/%d %s", from, channel, b)
	}
}
func (h *host) Burst(from parley.ID) {
	if h.burst != nil {
		h.burst(from)
	}
}
func (h *host) Down(id parley.ID, why error) {
	var d *link.Down
	if !errors.As(why, &d) {
		panic(why)
	}
	h.note("down %d %s", id, d.Reason)
}

// all returns the events so far, one a line.
func (h *host) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.events, "\n")
}

func (h *host) count(event string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e == event {
			n++
		}
	}
	return n
}

// await waits until so returns true.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (h *host) await(t testing.TB, event string) {
	t.Helper()
	await(t, event, func() bool { return h.count(event) > 0 })
}

func quick() link.Limits {
	return link.Limits{Backoff: 2 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Ping: 20 * time.Millisecond, Pings: 1000}
}

// system is the nodes of one cluster in this process.
type system struct {
	t       testing.TB
	ca      *authority
	network *memory.Network // nil for a benchmark
	outside link.Network    // from which a test dials
	addrs   []string
	config  []link.Config
	mesh    []*link.Mesh
	host    []*host
}

// newSystem creates n nodes without starting them; change may change each node's configuration. The nodes of a
// test are connected in memory, in a bubble, which requires that everything has ended with the test; those of a
// benchmark use sockets of this computer.
func newSystem(t testing.TB, n int, change func(c *link.Config)) *system {
	t.Helper()
	s := &system{t: t}
	if _, timed := t.(*testing.B); timed {
		s.make(n, func(int) link.Network { return machine{} }, change)
		return s
	}
	s.network = memory.New(memory.Options{})
	s.outside = s.network.Host("outside")
	s.make(n, func(i int) link.Network { return s.place(i) }, change)
	return s
}

// onThisMachine returns a pair of nodes on the system's sockets.
func onThisMachine(t testing.TB, change func(c *link.Config)) *system {
	t.Helper()
	s := &system{t: t}
	s.make(2, func(int) link.Network { return machine{} }, change)
	s.start(0, 1)
	s.connected(0, 1)
	return s
}

func (s *system) make(n int, at func(i int) link.Network, change func(c *link.Config)) {
	t := s.t
	t.Helper()
	s.ca, s.mesh = newAuthority(t), make([]*link.Mesh, n)
	var listeners []net.Listener
	for i := range n {
		l, err := at(i).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		listeners = append(listeners, l)
		s.addrs = append(s.addrs, l.Addr().String())
	}
	for i := range n {
		h := &host{}
		c := link.Config{
			Self: parley.ID(i), Peers: s.addrs, Listener: listeners[i], Network: at(i), Identity: s.ca.node(t, i),
			Hello: link.Hello{Cluster: "test", Incarnation: 1}, Limits: quick(), Handler: h,
		}
		if change != nil {
			change(&c)
		}
		s.host, s.config = append(s.host, h), append(s.config, c)
	}
	t.Cleanup(func() {
		for i := range n {
			s.stop(i)
			_ = listeners[i].Close()
		}
	})
}

// place returns the host of a node in memory.
func (s *system) place(i int) *memory.Host { return s.network.Host(fmt.Sprint("node", i)) }

// machine is the network of the system, for measurements and what memory does not have.
type machine struct{}

func (machine) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, network, address)
}

func (machine) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	return new(net.ListenConfig).ListenPacket(ctx, network, address)
}

func (machine) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// dial makes a TCP connection to a node.
func (s *system) dial(to int) net.Conn {
	s.t.Helper()
	c, err := s.outside.DialContext(s.t.Context(), "tcp", s.addrs[to])
	must(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *system) start(nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		m, err := link.New(s.config[i])
		if err == nil {
			err = m.Start()
		}
		must(s.t, err)
		s.mesh[i] = m
		s.config[i].Listener = nil // the next incarnation listens itself
	}
}

func (s *system) stop(i int) {
	if s.mesh[i] != nil {
		_ = s.mesh[i].Close()
	}
}

// pair returns two connected nodes.
func pair(t testing.TB, change func(c *link.Config)) *system {
	t.Helper()
	s := newSystem(t, 2, change)
	s.start(0, 1)
	s.connected(0, 1)
	return s
}

// connected waits until two nodes are connected.
func (s *system) connected(i, j int) {
	s.t.Helper()
	await(s.t, "connected", func() bool { return s.peer(i, j).Connected && s.peer(j, i).Connected })
}

// peer returns node i's counters of node j.
func (s *system) peer(i, j int) link.PeerStats {
	for _, p := range s.mesh[i].Stats().Peers {
		if p.ID == parley.ID(j) {
			return p
		}
	}
	panic("no such peer")
}

// refused waits until node i has counted a reason for node j, or for strangers (-1).
func (s *system) refused(i, j int, why link.Reason) {
	s.t.Helper()
	get := func() map[link.Reason]uint64 {
		if j < 0 {
			return s.mesh[i].Stats().Refused
		}
		return s.peer(i, j).Refused
	}
	for end := time.Now().Add(10 * time.Second); get()[why] == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("node %d has not counted %q, but %v", i, why, get())
		}
	}
}

// wire is a connection that a test makes by hand, with the certificate of a node.
type wire struct {
	t testing.TB
	net.Conn
}

func (s *system) wire(id, to int) wire {
	s.t.Helper()
	c := tls.Client(s.dial(to), s.ca.node(s.t, id).Dial(parley.ID(to)))
	must(s.t, c.Handshake())
	s.t.Cleanup(func() { _ = c.Close() })
	return wire{s.t, c}
}

func frame(kind byte, body ...byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(1+len(body))), kind), body...)
}

// The types of frames on the wire.
const (
	hello = iota + 1
	bye
	ping
	pong
	urgent
	bulk
	part
)

func helloFrame(cluster string, minVersion, maxVersion uint16, incarnation uint64, digest byte, more ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, minVersion)
	b = binary.BigEndian.AppendUint16(b, maxVersion)
	b = binary.BigEndian.AppendUint64(b, incarnation)
	b = append(b, digest)
	b = append(b, make([]byte, 31)...)
	b = append(append(b, byte(len(cluster))), cluster...)
	return frame(hello, append(b, more...)...)
}

func (w wire) send(b []byte) {
	w.t.Helper()
	if _, err := w.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// next reads a frame, and returns its type and its content; 0 at the end.
func (w wire) next() (byte, []byte) {
	_ = w.SetReadDeadline(time.Now().Add(10 * time.Second))
	var head [4]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return 0, nil
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(w, b); err != nil {
		return 0, nil
	}
	return b[0], b[1:]
}

// told reads until a bye, and returns its reason.
func (w wire) told() link.Reason {
	for {
		switch kind, b := w.next(); kind {
		case 0:
			return 0
		case bye:
			return link.Reason(b[0])
		}
	}
}

// intruder connects as node id with an accepted hello.
func (s *system) intruder(id, to int) wire {
	s.t.Helper()
	w := s.wire(id, to)
	w.send(helloFrame("test", 1, 1, 1, 0))
	if kind, _ := w.next(); kind != hello {
		s.t.Fatalf("the hello was answered by a frame of type %d", kind)
	}
	return w
}
