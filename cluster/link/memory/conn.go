package memory

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// listener is a listening port of a host.
type listener struct {
	h      *Host
	port   uint16
	queue  []*Conn
	come   *sync.Cond
	closed bool
}

// take creates a connection with a dialing host. The lock is held.
func (l *listener) take(from *Host, there *route) *Conn {
	n := l.h.n
	out, in := newPipe(n, there), newPipe(n, there.back)
	port := from.ephemeral(func(uint16) bool { return false })
	local, remote := tcpAddr(from, port), tcpAddr(l.h, l.port)
	l.queue = append(l.queue, &Conn{n: n, in: out, out: in, local: remote, remote: local})
	l.come.Signal()
	return &Conn{n: n, in: in, out: out, local: local, remote: remote}
}

func tcpAddr(h *Host, port uint16) *net.TCPAddr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.addr, port))
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	l.h.n.mu.Lock()
	defer l.h.n.mu.Unlock()
	for len(l.queue) == 0 {
		if l.closed {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
		}
		l.come.Wait()
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

// Close frees the port. Connections that were not accepted are reset.
func (l *listener) Close() error {
	l.h.n.mu.Lock()
	defer l.h.n.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.closed = true
	delete(l.h.listeners, l.port)
	for _, c := range l.queue {
		c.in.reset, c.out.reset = true, true
		c.close()
	}
	l.queue = nil
	l.come.Broadcast()
	return nil
}

// Addr returns a *net.TCPAddr.
func (l *listener) Addr() net.Addr { return tcpAddr(l.h, l.port) }

// Conn is one end of a connection.
type Conn struct {
	n             *Network
	in, out       *pipe
	local, remote *net.TCPAddr
}

// pipe is one direction of a connection. The network's lock guards it.
type pipe struct {
	n     *Network
	route *route
	buf   []byte // sent and not yet read
	marks []mark // arrival times, in order

	ended   bool // no more writes
	endAt   time.Time
	gone    bool // the reading end is closed
	goneAt  time.Time
	reset   bool
	arrival *time.Timer

	readable, writable *sync.Cond
	reading, writing   deadline
}

// mark is the arrival time of some bytes.
type mark struct {
	bytes int
	at    time.Time
}

func newPipe(n *Network, r *route) *pipe {
	p := &pipe{n: n, route: r, readable: sync.NewCond(&n.mu), writable: sync.NewCond(&n.mu)}
	p.reading.wake, p.writing.wake = p.readable, p.writable
	r.pipes[p] = true
	return p
}

// wake makes waiting goroutines check again.
func (p *pipe) wake() {
	p.readable.Broadcast()
	p.writable.Broadcast()
}

// after makes waiting goroutines check again after d.
func (p *pipe) after(d time.Duration) {
	if p.arrival == nil {
		p.arrival = time.AfterFunc(d, func() {
			p.n.mu.Lock()
			defer p.n.mu.Unlock()
			p.wake()
		})
		return
	}
	p.arrival.Reset(d)
}

// arrived returns how many bytes can be read.
func (p *pipe) arrived(now time.Time) (n int) {
	if p.route.held {
		return 0
	}
	for _, m := range p.marks {
		if m.at.After(now) {
			break
		}
		n += m.bytes
	}
	return n
}

// due returns when bytes sent now arrive: not before earlier ones.
func (p *pipe) due(now time.Time) time.Time {
	at := now.Add(p.route.latency)
	if last := len(p.marks) - 1; last >= 0 && p.marks[last].at.After(at) {
		at = p.marks[last].at
	}
	return at
}

func (p *pipe) put(b []byte, now time.Time) {
	p.buf = append(p.buf, b...)
	at := p.due(now)
	if last := len(p.marks) - 1; last >= 0 && p.marks[last].at.Equal(at) {
		p.marks[last].bytes += len(b)
	} else {
		p.marks = append(p.marks, mark{len(b), at})
	}
	p.readable.Broadcast()
}

func (p *pipe) take(b []byte) int {
	n := copy(b, p.buf)
	if p.buf = p.buf[n:]; len(p.buf) == 0 {
		p.buf = nil
	}
	for left := n; left > 0; {
		k := min(left, p.marks[0].bytes)
		if left, p.marks[0].bytes = left-k, p.marks[0].bytes-k; p.marks[0].bytes == 0 {
			p.marks = p.marks[1:]
		}
	}
	p.writable.Broadcast()
	return n
}

// read waits for bytes.
func (p *pipe) read(b []byte) (int, error) {
	for {
		now := time.Now()
		switch {
		case p.gone:
			return 0, net.ErrClosed
		case p.reading.passed(now):
			return 0, os.ErrDeadlineExceeded
		case p.reset:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case len(b) == 0:
			return 0, nil
		}
		if n := p.arrived(now); n > 0 {
			return p.take(b[:min(n, len(b))]), nil
		}
		switch {
		case p.route.held:
		case len(p.marks) > 0:
			p.after(p.marks[0].at.Sub(now))
		case p.ended && !p.endAt.After(now):
			return 0, io.EOF
		case p.ended:
			p.after(p.endAt.Sub(now))
		}
		p.readable.Wait()
	}
}

// write adds bytes to the pipe. With wait, it waits for room for all of them.
func (p *pipe) write(b []byte, wait bool) (n int, err error) {
	for {
		now := time.Now()
		switch {
		case p.ended:
			return n, net.ErrClosed
		case wait && p.writing.passed(now):
			return n, os.ErrDeadlineExceeded
		case p.reset:
			return n, os.NewSyscallError("write", syscall.ECONNRESET)
		case p.gone && !p.route.back.held && !p.goneAt.After(now):
			return n, os.NewSyscallError("write", syscall.EPIPE)
		}
		room := p.n.options.Window - len(p.buf)
		if k := min(room, len(b)-n); k > 0 {
			p.put(b[n:n+k], now)
			n += k
		}
		if n == len(b) || !wait {
			return n, nil
		}
		if p.gone && p.goneAt.After(now) {
			p.after(p.goneAt.Sub(now))
		}
		p.writable.Wait()
	}
}

// deadline is the deadline of waits at one end of a pipe.
type deadline struct {
	at    time.Time
	timer *time.Timer
	wake  *sync.Cond
}

func (d *deadline) passed(now time.Time) bool { return !d.at.IsZero() && !now.Before(d.at) }

// set is called with the network's lock held.
func (d *deadline) set(at time.Time) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	d.wake.Broadcast()
	if wait := time.Until(at); !at.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, func() {
			d.wake.L.Lock()
			defer d.wake.L.Unlock()
			d.wake.Broadcast()
		})
	}
}

// Read waits for bytes that have arrived.
func (c *Conn) Read(b []byte) (int, error) {
	return c.locked("read", func() (int, error) { return c.in.read(b) })
}

// Write returns when all bytes are in the window.
func (c *Conn) Write(b []byte) (int, error) {
	return c.locked("write", func() (int, error) { return c.out.write(b, true) })
}

// TryWrite writes what the window has room for. It does not wait, and a short write is not an error.
func (c *Conn) TryWrite(b []byte) (int, error) {
	return c.locked("write", func() (int, error) { return c.out.write(b, false) })
}

func (c *Conn) locked(op string, do func() (int, error)) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	n, err := do()
	return n, c.failed(op, err)
}

func (c *Conn) failed(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends the connection: at this end at once, and at the other end when everything that was sent has been read.
func (c *Conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.out.ended {
		return c.failed("close", net.ErrClosed)
	}
	c.close()
	return nil
}

func (c *Conn) close() {
	now := time.Now()
	c.out.ended, c.out.endAt = true, c.out.due(now)
	c.in.gone, c.in.goneAt = true, now.Add(c.out.route.latency)
	c.in.buf, c.in.marks = nil, nil
	c.in.reading.set(time.Time{})
	c.out.writing.set(time.Time{})
	for _, p := range []*pipe{c.in, c.out} {
		p.wake()
		if p.gone && p.ended { // both ends are closed
			delete(p.route.pipes, p)
		}
	}
}

// LocalAddr returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.in.reading, &c.out.writing)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.in.reading) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.out.writing) }

func (c *Conn) setDeadlines(t time.Time, which ...*deadline) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.out.ended {
		return c.failed("set", net.ErrClosed)
	}
	for _, d := range which {
		d.set(t)
	}
	return nil
}
