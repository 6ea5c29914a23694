package link

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxSpill bounds what conn keeps: what crypto/tls makes of a block, and some alerts. There
// is no spill when the writing of a block begins.
const maxSpill = blockSize + 8<<10

var errSpill = errors.New("link: the peer reads nothing, and more was written")

// conn lies beneath a TLS connection. In the beginning it is an ordinary net.Conn, for the
// handshake. Once it is set free, Write does not wait: it gives the socket what that takes
// and keeps the rest, which drain writes and waits for. Where the system has no such write,
// a conn cannot be set free.
type conn struct {
	net.Conn
	before func() // called by the reader before it asks the socket for more

	socket trier // nil: all writing waits
	free   bool  // set before there is a second goroutine

	mu     sync.Mutex
	spill  []byte // not yet written
	spare  []byte // to fill while spill is written
	spills atomic.Uint64
	behind atomic.Bool // there is something spilled, or being drained
}

// trier is a connection that can be written to without waiting.
type trier interface {
	// TryWrite writes what the connection takes now. That it takes no more is no error: n tells.
	// It is called by one goroutine at a time.
	TryWrite(b []byte) (n int, err error)
}

func newConn(c net.Conn) *conn {
	w := &conn{Conn: c}
	switch s := c.(type) {
	case trier:
		w.socket = s
	case syscall.Conn:
		if raw, err := s.SyscallConn(); err == nil && canTry {
			w.socket = newSocket(raw)
		}
	}
	return w
}

// socket is a connection of the system's.
type socket struct {
	raw   syscall.RawConn
	tries func(fd uintptr) bool
	b     []byte // the arguments and results of tries
	n     int
	err   error
}

func newSocket(raw syscall.RawConn) *socket {
	s := &socket{raw: raw}
	// Kept, because a function made for each call would be an allocation for each.
	s.tries = func(fd uintptr) bool {
		s.n, s.err = tryWrite(fd, s.b)
		return true
	}
	return s
}

func (s *socket) TryWrite(b []byte) (int, error) {
	s.b = b
	err := s.raw.Write(s.tries)
	if s.b = nil; err != nil {
		return 0, err
	}
	return s.n, s.err
}

// setFree has Write wait no longer. It is false if that cannot be.
func (c *conn) setFree() bool {
	c.free = c.socket != nil
	return c.free
}

func (c *conn) Read(b []byte) (int, error) {
	if c.before != nil {
		c.before()
	}
	return c.Conn.Read(b)
}

func (c *conn) Write(b []byte) (int, error) {
	if !c.free {
		return c.Conn.Write(b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	if !c.behind.Load() {
		var err error
		if n, err = c.socket.TryWrite(b); err != nil {
			return 0, err
		}
		if n == len(b) {
			return n, nil
		}
		c.spills.Add(1)
		c.behind.Store(true)
	}
	if len(c.spill)+len(b)-n > maxSpill {
		return n, errSpill
	}
	c.spill = append(c.spill, b[n:]...)
	return len(b), nil
}

// drain writes what was spilled and waits for it, each time at most so long. One goroutine
// may drain at a time.
func (c *conn) drain(patience time.Duration) error {
	for {
		c.mu.Lock()
		b := c.spill
		if len(b) == 0 {
			// The deadline goes before others write: they would fail by it.
			err := c.Conn.SetWriteDeadline(time.Time{})
			c.behind.Store(false)
			c.mu.Unlock()
			return err
		}
		c.spill = c.spare[:0]
		c.mu.Unlock()
		if err := c.Conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := c.Conn.Write(b); err != nil {
			return err
		}
		c.spare = b[:0]
	}
}
