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

	raw   syscall.RawConn
	free  bool // set before there is a second goroutine
	tries func(fd uintptr) bool

	mu     sync.Mutex
	b      []byte // the arguments and results of tries
	n      int
	err    error
	spill  []byte // not yet written
	spare  []byte // to fill while spill is written
	spills atomic.Uint64
	behind atomic.Bool // there is something spilled, or being drained
}

func newConn(c net.Conn) *conn {
	w := &conn{Conn: c}
	if s, ok := c.(syscall.Conn); ok && canTry {
		if raw, err := s.SyscallConn(); err == nil {
			w.raw = raw
		}
	}
	// Kept, because a function made for each call would be an allocation for each.
	w.tries = func(fd uintptr) bool {
		w.n, w.err = tryWrite(fd, w.b)
		return true
	}
	return w
}

// setFree has Write wait no longer. It is false if that cannot be.
func (c *conn) setFree() bool {
	c.free = c.raw != nil
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
		c.b = b
		err := c.raw.Write(c.tries)
		c.b = nil
		if err == nil {
			err = c.err
		}
		if err != nil {
			return 0, err
		}
		if n = c.n; n == len(b) {
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
