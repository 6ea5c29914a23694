package live

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// relay carries the connections from one node to another one, and can be cut like a cable. A cut relay carries
// nothing, and the nodes do not learn it: a connection stays open, and its data wait until the relay is mended.
type relay struct {
	listener net.Listener
	to       string // the address of the other node, once it is known

	mu     sync.Mutex
	mended chan struct{} // nil: not cut; otherwise closed when it is mended
	conns  map[net.Conn]bool
	work   sync.WaitGroup
	closed bool
}

// mostConns is the maximum number of connections of a relay. Two nodes have one connection, and one more while they
// replace it.
const mostConns = 16

// newRelay listens on this computer. The relay carries nothing before serve.
func newRelay(ctx context.Context) (*relay, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &relay{listener: l, conns: make(map[net.Conn]bool)}, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// serve carries connections to an address until close.
func (r *relay) serve(to string) {
	r.to = to
	r.work.Go(func() {
		for {
			c, err := r.listener.Accept()
			if err != nil {
				return
			}
			if !r.keep(c) {
				_ = c.Close()
				continue
			}
			r.work.Go(func() { r.carry(c) })
		}
	})
}

// keep remembers a connection until forget, unless there are too many or the relay is closed.
func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.conns) >= mostConns {
		return false
	}
	r.conns[c] = true
	return true
}

func (r *relay) forget(c net.Conn) {
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	_ = c.Close()
}

// carry carries a connection until one end closes it. The relay may be cut when the connection begins: then the
// connection ends when the relay is mended, because the node that made it has given up.
func (r *relay) carry(near net.Conn) {
	defer r.forget(near)
	if mended := r.isCut(); mended != nil {
		gone := make(chan struct{})
		r.work.Go(func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, near)
		})
		select {
		case <-mended:
		case <-gone:
		}
		return
	}
	far, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), "tcp", r.to)
	if err != nil {
		return
	}
	if !r.keep(far) {
		_ = far.Close()
		return
	}
	defer r.forget(far)
	back := make(chan struct{})
	r.work.Go(func() {
		defer close(back)
		r.pass(near, far)
	})
	r.pass(far, near)
	<-back
}

// pass copies what a connection receives to another one, and then closes both. While the relay is cut, it copies
// nothing.
func (r *relay) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		for mended := r.isCut(); mended != nil; mended = r.isCut() {
			<-mended
		}
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// isCut returns a channel that is closed when the relay is mended, or nil if it is not cut.
func (r *relay) isCut() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mended
}

// cut cuts the relay, or mends it.
func (r *relay) cut(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case on && r.mended == nil && !r.closed:
		r.mended = make(chan struct{})
	case !on && r.mended != nil:
		close(r.mended)
		r.mended = nil
	}
}

// close ends the relay and all its connections.
func (r *relay) close() error {
	r.mu.Lock()
	r.closed = true
	err := r.listener.Close()
	for c := range r.conns { // order: all are closed
		err = errors.Join(err, ignoreClosed(c.Close()))
	}
	r.mu.Unlock()
	r.cut(false)
	r.work.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
