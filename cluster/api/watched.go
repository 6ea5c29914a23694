package api

import (
	"net"
	"slices"
	"sync"
)

// watched is a listener for monitoring with a limited number of connections. One more closes the oldest, so that silent
// connections keep nobody out.
type watched struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*watchedConn // oldest first
}

// watchedConn is a connection of a watched listener.
type watchedConn struct {
	net.Conn
	l *watched
}

// Accept returns the next connection, and closes the oldest one if there are too many.
func (l *watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &watchedConn{c, l}
	l.mu.Lock()
	var oldest *watchedConn
	if len(l.open) >= l.most {
		oldest = l.open[0]
	}
	l.open = append(l.open, one)
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return one, nil
}

// Close closes the connection, and makes room for another one.
func (c *watchedConn) Close() error {
	c.l.mu.Lock()
	c.l.open = slices.DeleteFunc(c.l.open, func(o *watchedConn) bool { return o == c })
	c.l.mu.Unlock()
	return c.Conn.Close()
}
