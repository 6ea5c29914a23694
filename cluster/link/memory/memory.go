// Package memory is a network within one process, for tests: connections and packets that no
// socket carries, and faults that come when the test says so.
//
// A [Network] has hosts, a [Host] has what net.ListenConfig and net.Dialer have. What a host
// sends arrives after the latency of its direction, and in the order in which it was sent.
// Between two hosts a test can hold what one sends (Hold), cut both directions (Cut), and
// break the connections that there are (Break).
//
// Nothing here waits but for a sync.Cond, a channel or a timer. In a bubble of
// testing/synctest a network that was made there goes by the bubble's time: latencies and
// deadlines are exact, and a test takes no longer than it has to compute.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Options describe a network. What is 0 has a default.
type Options struct {
	// Latency is how long a byte takes from one host to another, by default 100 us. A negative
	// one is none: what is sent is there at once, and a program that answers without end stops
	// virtual time.
	Latency time.Duration
	// Window is how many bytes a connection holds in each direction that the other end has not
	// read, by default 256 KiB. A write waits for room.
	Window int
}

// Network is some hosts that reach each other.
type Network struct {
	options Options

	mu     sync.Mutex // of all hosts, connections and sockets
	moved  *sync.Cond // a direction is held no longer
	hosts  []*Host
	routes map[[2]*Host]*route
}

// route is one direction between two hosts.
type route struct {
	latency time.Duration
	held    bool
	back    *route // the other direction
	pipes   map[*pipe]bool
}

// New returns a network without hosts.
func New(o Options) *Network {
	switch {
	case o.Latency == 0:
		o.Latency = 100 * time.Microsecond
	case o.Latency < 0:
		o.Latency = 0
	}
	o.Window = cmp.Or(o.Window, 256<<10)
	n := &Network{options: o, routes: make(map[[2]*Host]*route)}
	n.moved = sync.NewCond(&n.mu)
	return n
}

// Host is one computer of a network. It is a link.Network.
type Host struct {
	n         *Network
	name      string
	addr      netip.Addr
	port      uint16 // the last one that was taken without being asked for
	listeners map[uint16]*listener
	sockets   map[uint16]*Socket
}

// Host returns the host of a name, a new one if there is none. The first one has address
// 10.0.0.1, the next one 10.0.0.2.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(n.hosts, func(h *Host) bool { return h.name == name }); i >= 0 {
		return n.hosts[i]
	}
	number := len(n.hosts) + 1
	h := &Host{
		n: n, name: name, addr: netip.AddrFrom4([4]byte{10, 0, byte(number >> 8), byte(number)}), port: 32768,
		listeners: make(map[uint16]*listener), sockets: make(map[uint16]*Socket),
	}
	n.hosts = append(n.hosts, h)
	return h
}

// Network returns the network of the host.
func (h *Host) Network() *Network { return h.n }

// Addr is the address of a port of the host, as Listen and DialContext take it.
func (h *Host) Addr(port uint16) string { return netip.AddrPortFrom(h.addr, port).String() }

// Listen listens at an address of the host: its own name or number, or none, and a port, or 0
// for any. The network must be "tcp".
func (h *Host) Listen(_ context.Context, network, address string) (net.Listener, error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	port, err := h.bind(network, "tcp", address, func(port uint16) bool { return h.listeners[port] != nil })
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	l := &listener{h: h, port: port, come: sync.NewCond(&h.n.mu)}
	h.listeners[port] = l
	return l, nil
}

// ListenPacket opens a socket for packets, a *Socket. The network must be "udp".
func (h *Host) ListenPacket(_ context.Context, network, address string) (net.PacketConn, error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	port, err := h.bind(network, "udp", address, func(port uint16) bool { return h.sockets[port] != nil })
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	s := &Socket{h: h, port: port, come: sync.NewCond(&h.n.mu)}
	s.reading.wake = s.come
	h.sockets[port] = s
	return s, nil
}

// bind returns a port of the host that is not in use. The lock is held.
func (h *Host) bind(network, want, address string, used func(uint16) bool) (uint16, error) {
	if network != want {
		return 0, net.UnknownNetworkError(network)
	}
	at, port, err := h.n.find(h, address)
	switch {
	case err != nil:
		return 0, err
	case at != h:
		return 0, os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)
	}
	if port == 0 {
		port = h.ephemeral(used)
	} else if used(port) {
		return 0, os.NewSyscallError("bind", syscall.EADDRINUSE)
	}
	return port, nil
}

// ephemeral returns a port that nobody has had for long. The lock is held.
func (h *Host) ephemeral(used func(uint16) bool) uint16 {
	for {
		if h.port++; h.port < 32768 {
			h.port = 32768
		}
		if !used(h.port) {
			return h.port
		}
	}
}

// find is the host and the port that an address means for a host. The lock is held.
func (n *Network) find(self *Host, address string) (*Host, uint16, error) {
	name, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return nil, 0, fmt.Errorf("port %q: %w", digits, err)
	}
	addr, _ := netip.ParseAddr(name)
	addr = addr.Unmap()
	if name == "" || name == "localhost" || addr.IsValid() && (addr.IsLoopback() || addr.IsUnspecified()) {
		return self, uint16(port), nil
	}
	for _, h := range n.hosts {
		if h.name == name || h.addr == addr {
			return h, uint16(port), nil
		}
	}
	return nil, 0, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// DialContext connects to an address at which some host listens: after a message there and one
// back, and not while one of the directions is held. The network must be "tcp".
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.dial(ctx, network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return c, nil
}

func (h *Host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" {
		return nil, net.UnknownNetworkError(network)
	}
	defer context.AfterFunc(ctx, func() {
		h.n.mu.Lock()
		defer h.n.mu.Unlock()
		h.n.moved.Broadcast()
	})()
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	to, port, err := h.n.find(h, address)
	if err != nil {
		return nil, err
	}
	there := h.n.route(h, to)
	if wait := there.latency + there.back.latency; wait > 0 {
		h.n.mu.Unlock()
		err := sleep(ctx, wait)
		h.n.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	for there.held || there.back.held {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		h.n.moved.Wait()
	}
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	l := to.listeners[port]
	if l == nil {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return l.take(h, there), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended is the error of package net for a context that has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return os.ErrDeadlineExceeded
	}
	return ctx.Err()
}

// route is the direction from one host to another. The lock is held.
func (n *Network) route(from, to *Host) *route {
	if r := n.routes[[2]*Host{from, to}]; r != nil {
		return r
	}
	r := &route{latency: n.options.Latency, pipes: make(map[*pipe]bool)}
	n.routes[[2]*Host{from, to}] = r
	if r.back = r; from != to {
		r.back = n.route(to, from) // which finds this one
		r.back.back = r
	}
	return r
}

// SetLatency has what one host sends another from now on take so long.
func (n *Network) SetLatency(from, to *Host, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.route(from, to).latency = max(0, d)
}

// Hold keeps back what one host sends another, until Release. On a connection it waits in the
// window, as if the other one read nothing; packets are lost. Nobody can connect.
func (n *Network) Hold(from, to *Host) { n.hold(from, to, true) }

// Release lets what was held arrive at once.
func (n *Network) Release(from, to *Host) { n.hold(from, to, false) }

func (n *Network) hold(from, to *Host, held bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.route(from, to)
	r.held = held
	n.moved.Broadcast()
	for p := range r.pipes { // order: each only wakes who waits for it
		p.wake()
	}
	for p := range r.back.pipes { // order: the same
		p.wake()
	}
}

// Cut holds what a host and each of some others send each other: connections stay, and
// nothing arrives.
func (n *Network) Cut(h *Host, others ...*Host) {
	for _, other := range others {
		n.Hold(h, other)
		n.Hold(other, h)
	}
}

// Heal undoes Cut.
func (n *Network) Heal(h *Host, others ...*Host) {
	for _, other := range others {
		n.Release(h, other)
		n.Release(other, h)
	}
}

// Break resets all connections between two hosts: what was under way is lost, and both ends
// find out at once. New ones can be made.
func (n *Network) Break(a, b *Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range []*route{n.route(a, b), n.route(b, a)} {
		for p := range r.pipes { // order: each only wakes who waits for it
			p.reset = true
			p.buf, p.marks = nil, nil
			p.wake()
		}
	}
}
