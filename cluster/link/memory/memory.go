// Package memory implements a network within one process, for tests. It has connections and packets but no sockets,
// and a test can inject faults.
//
// A [Network] has hosts. A [Host] has the methods of net.ListenConfig and net.Dialer. Each direction between two
// hosts has a latency. Bytes arrive after this latency, in the order in which they were sent. A test can hold the
// bytes of one direction (Hold), cut both directions (Cut), and break the existing connections (Break).
//
// If a goroutine of a network waits, it waits for a sync.Cond, a channel, or a timer. So a network that was made in a
// bubble of testing/synctest uses the bubble's virtual time. Then latencies and deadlines are exact, and a test does
// not wait in real time.
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

// Options configure a network. A zero field means its default.
type Options struct {
	// Latency is how long a byte takes from one host to another, by default 100 us. A negative latency means no
	// latency: bytes arrive at once. Then programs that answer each other endlessly stop virtual time.
	Latency time.Duration
	// Window is how many unread bytes a connection holds in each direction, by default 256 KiB. A write waits for
	// room.
	Window int
}

// Network is a set of hosts that can reach each other.
type Network struct {
	options Options

	mu     sync.Mutex // guards all hosts, connections, and sockets
	moved  *sync.Cond // signaled when a direction is released
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
	port      uint16 // the last one that was chosen
	listeners map[uint16]*listener
	sockets   map[uint16]*Socket
}

// Host returns the host with a name, creating it if necessary. The first one has address 10.0.0.1, the next one
// 10.0.0.2.
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

// Addr returns the address of a port of the host, for Listen and DialContext.
func (h *Host) Addr(port uint16) string { return netip.AddrPortFrom(h.addr, port).String() }

// Listen listens on an address of the host and on a port. The address is the name of the host, its IP address, or
// empty. Port 0 means any port. The network must be "tcp".
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

// bind returns a free port of the host. The lock is held.
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

// ephemeral returns a port that was not used recently. The lock is held.
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

// find returns the host and the port that an address means for self. The lock is held.
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

// DialContext connects to a listening address. This takes one message in each direction, and waits while one of the
// directions is held. The network must be "tcp".
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

// ended returns the error of package net for a context that has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return os.ErrDeadlineExceeded
	}
	return ctx.Err()
}

// route returns the direction from one host to another. The lock is held.
func (n *Network) route(from, to *Host) *route {
	if r := n.routes[[2]*Host{from, to}]; r != nil {
		return r
	}
	r := &route{latency: n.options.Latency, pipes: make(map[*pipe]bool)}
	n.routes[[2]*Host{from, to}] = r
	if r.back = r; from != to {
		r.back = n.route(to, from) // it finds this one
		r.back.back = r
	}
	return r
}

// SetLatency sets the latency of bytes sent from now on from one host to another.
func (n *Network) SetLatency(from, to *Host, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.route(from, to).latency = max(0, d)
}

// Hold holds the bytes that one host sends to another, until Release. Bytes of a connection wait in the window, as if
// the other host did not read. Packets are lost. No connections can be made.
func (n *Network) Hold(from, to *Host) { n.hold(from, to, true) }

// Release makes everything that was held arrive at once.
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

// Cut holds both directions between a host and each of the others: connections stay open, but nothing arrives.
func (n *Network) Cut(h *Host, others ...*Host) {
	for _, other := range others {
		n.Hold(h, other)
		n.Hold(other, h)
	}
}

// Heal ends a Cut.
func (n *Network) Heal(h *Host, others ...*Host) {
	for _, other := range others {
		n.Release(h, other)
		n.Release(other, h)
	}
}

// Break resets all connections between two hosts: bytes in flight are lost, and both ends fail at once. New
// connections can be made.
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
