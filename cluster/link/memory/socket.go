package memory

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// Socket sends and receives packets. A packet is lost if the receiving socket has no room, or does not exist.
type Socket struct {
	h      *Host
	port   uint16
	queue  []packet // in the order of arrival
	bytes  int
	closed bool
	come   *sync.Cond

	reading deadline
	arrival *time.Timer
}

type packet struct {
	from netip.AddrPort
	b    []byte
	at   time.Time
}

// socketRoom is how many bytes may wait to be read.
const socketRoom = 1 << 20

// ReadFromUDPAddrPort waits for a packet. A packet longer than b is truncated.
func (s *Socket) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	s.h.n.mu.Lock()
	defer s.h.n.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case s.closed:
			return 0, netip.AddrPort{}, s.failed("read", net.ErrClosed)
		case s.reading.passed(now):
			return 0, netip.AddrPort{}, s.failed("read", os.ErrDeadlineExceeded)
		case len(s.queue) > 0 && !s.queue[0].at.After(now):
			p := s.queue[0]
			s.queue, s.bytes = s.queue[1:], s.bytes-len(p.b)
			return copy(b, p.b), p.from, nil
		case len(s.queue) > 0:
			s.after(s.queue[0].at.Sub(now))
		}
		s.come.Wait()
	}
}

// after makes waiting readers check again after d. The lock is held.
func (s *Socket) after(d time.Duration) {
	if s.arrival == nil {
		s.arrival = time.AfterFunc(d, func() {
			s.h.n.mu.Lock()
			defer s.h.n.mu.Unlock()
			s.come.Broadcast()
		})
		return
	}
	s.arrival.Reset(d)
}

// WriteToUDPAddrPort sends a packet.
func (s *Socket) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	n := s.h.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.closed {
		return 0, s.failed("write", net.ErrClosed)
	}
	there, port, err := n.find(s.h, to.String())
	if err != nil {
		return 0, s.failed("write", err)
	}
	r := n.route(s.h, there)
	if r.held {
		return len(b), nil
	}
	there.packet(port, packet{netip.AddrPortFrom(s.h.addr, s.port), bytes.Clone(b), time.Now().Add(r.latency)})
	return len(b), nil
}

// packet adds a packet, after those that arrive no later. The lock is held.
func (h *Host) packet(port uint16, p packet) {
	s := h.sockets[port]
	if s == nil || s.bytes+len(p.b) > socketRoom {
		return
	}
	i := len(s.queue)
	for i > 0 && s.queue[i-1].at.After(p.at) {
		i--
	}
	s.queue, s.bytes = slices.Insert(s.queue, i, p), s.bytes+len(p.b)
	s.come.Broadcast()
}

// ReadFrom is ReadFromUDPAddrPort with a *net.UDPAddr.
func (s *Socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.ReadFromUDPAddrPort(b)
	if err != nil {
		return n, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTo is WriteToUDPAddrPort with a *net.UDPAddr.
func (s *Socket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, s.failed("write", net.InvalidAddrError("not a UDP address"))
	}
	return s.WriteToUDPAddrPort(b, a.AddrPort())
}

func (s *Socket) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: s.LocalAddr(), Err: err}
}

// Close frees the port.
func (s *Socket) Close() error {
	s.h.n.mu.Lock()
	defer s.h.n.mu.Unlock()
	if s.closed {
		return s.failed("close", net.ErrClosed)
	}
	s.closed = true
	delete(s.h.sockets, s.port)
	s.come.Broadcast()
	return nil
}

// LocalAddr returns a *net.UDPAddr.
func (s *Socket) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.h.addr, s.port))
}

// SetDeadline is SetReadDeadline, because writes do not wait.
func (s *Socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline limits how long reads wait, as SetReadDeadline of a net.Conn does.
func (s *Socket) SetReadDeadline(t time.Time) error {
	s.h.n.mu.Lock()
	defer s.h.n.mu.Unlock()
	s.reading.set(t)
	return nil
}

// SetWriteDeadline does nothing.
func (s *Socket) SetWriteDeadline(time.Time) error { return nil }
