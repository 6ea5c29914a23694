package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"parley/cluster/cert"
	"parley/cluster/link"
)

// conn is a client's connection, beneath TLS.
type conn struct {
	net.Conn
	s       *Server
	address netip.Addr // of the other end

	mu    sync.Mutex
	known bool          // it is no stranger's any more
	who   cert.Identity // then
	over  bool
	watch func() // ends the watch over its certificate
}

// Write gives the client its time to read. Whoever does not is cut off, whatever the
// protocol above.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.s.c.Limits.Write)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline does nothing: Write does.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets that of reading.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// end counts the connection out.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	if c.watch != nil {
		c.watch()
	}
	if c.known {
		c.s.clients.leave(c.who.Name)
	} else {
		c.s.clients.part(c)
	}
}

// meet makes the connection that of a client, as the handshake has proved it, and has it
// closed when the client is not trusted any more.
func (c *conn) meet(state tls.ConnectionState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known || c.over || len(state.PeerCertificates) == 0 {
		return
	}
	who, err := cert.Parse(state.PeerCertificates[0])
	if err != nil || !c.s.clients.know(who.Name, c) {
		if c.s.counts.refused("connections", who.Name) {
			c.s.log.Warn("a client has too many connections", "client", who.Name)
		}
		_ = c.Close()
		return
	}
	c.known, c.who = true, who
	c.watch = c.s.c.Cluster.Trust.Watch(state, func(why error) {
		c.s.refused(why)
		_ = c.Close()
	})
}

// client is who is at the other end.
func (c *conn) client() (cert.Identity, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who, c.known && !c.over
}

// listener accepts connections, as many as may be, and begins TLS on them.
type listener struct {
	net.Listener
	s      *Server
	config *tls.Config
}

// Accept returns the next connection. Beyond the limit of strangers one of them has to go, and
// addresses that connect too often are turned away.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		one := &conn{Conn: raw, s: l.s, address: link.Customer(link.AddressOf(raw.RemoteAddr()))}
		leaves, ok := l.s.clients.meet(one)
		if !ok {
			l.s.counts.refused("rate", "")
			_ = raw.Close()
			continue
		}
		if leaves != nil {
			l.s.counts.refused("crowd", "")
			_ = leaves.Close()
		}
		return tls.Server(one, l.config), nil
	}
}

// beneath is our connection below one of TLS.
func beneath(c net.Conn) (*tls.Conn, *conn) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	own, _ := t.NetConn().(*conn)
	return t, own
}

// connState follows what becomes of a connection.
func connState(c net.Conn, state http.ConnState) {
	t, own := beneath(c)
	if own == nil {
		return
	}
	switch state {
	case http.StateActive:
		own.meet(t.ConnectionState())
	case http.StateClosed, http.StateHijacked:
		own.end()
	}
}

// tls is the configuration to accept clients with. Who is refused is counted, and named in
// the log once a minute.
func (s *Server) tls() *tls.Config {
	config := s.c.Cluster.Trust.Accept(s.c.Cluster.Self, cert.Client)
	verify := config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		err := verify(state)
		if err != nil {
			s.refused(err)
		}
		return err
	}
	return config
}

// refused counts who is refused.
func (s *Server) refused(err error) {
	reason, who := cert.Invalid, ""
	if r, ok := errors.AsType[*cert.Refusal](err); ok {
		reason, who = r.Reason, r.Subject()
	}
	if s.counts.refused(string(reason), who) {
		s.log.Warn("a client is refused", "why", err)
	}
}

// connKey is under what a request's context has its connection.
type connKey struct{}

// withConn puts a connection into the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	_, own := beneath(c)
	return context.WithValue(ctx, connKey{}, own)
}
