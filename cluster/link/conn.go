package link

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxSpill bounds what conn keeps: the TLS records of a block, and some alerts. There is no spill when the
// writing of a block begins.
const maxSpill = blockSize + 8<<10

var errSpill = errors.New("link: the peer reads nothing, and more was written")

// conn is the connection beneath TLS. During the handshake it is an ordinary net.Conn. After setFree, Write does
// not wait: it writes what the socket accepts and keeps the rest, which drain writes with waiting. Where the
// system has no such write, setFree fails.
type conn struct {
	net.Conn
	before func() // called by the reader before it reads from the socket

	socket trier // nil: all writes wait
	free   bool  // set before there is a second goroutine

	mu     sync.Mutex
	spill  []byte // not yet written
	spare  []byte // to be filled while spill is written
	spills atomic.Uint64
	behind atomic.Bool // there is a spill, or it is being drained
}

// trier is a connection with writes that do not wait.
type trier interface {
	// TryWrite writes what the connection accepts now. A short write is not an error. One goroutine calls it at a
	// time.
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

// socket is a connection of the system.
type socket struct {
	raw   syscall.RawConn
	tries func(fd uintptr) bool
	b     []byte // arguments and results of tries
	n     int
	err   error
}

func newSocket(raw syscall.RawConn) *socket {
	s := &socket{raw: raw}
	// Stored, because a closure for each call would be an allocation for each.
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

// setFree makes Write not wait any more. It returns false if that is not possible.
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

// drain writes the spill, with a time limit for each write. One goroutine may drain at a time.
func (c *conn) drain(patience time.Duration) error {
	for {
		c.mu.Lock()
		b := c.spill
		if len(b) == 0 {
			// Reset the deadline before others write: their writes would fail with it.
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
