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
	address netip.Addr // of the client

	mu    sync.Mutex
	known bool          // a client is authenticated
	who   cert.Identity // of the client, if known
	over  bool
	watch func() // stops watching its certificate
}

// Write sets the deadline for the client to read. A client that does not read is disconnected, with any protocol
// above.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.s.c.Limits.Write)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline does nothing, because Write sets the deadline.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the read deadline.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// end releases the connection's place.
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

// meet assigns the connection to the client that the handshake has authenticated, and closes it when the client
// is no longer trusted.
func (c *conn) meet(state tls.ConnectionState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known || c.over || len(state.PeerCertificates) == 0 {
		return
	}
	who, err := cert.Parse(state.PeerCertificates[0])
	if err != nil || !c.s.clients.know(who.Name, c) {
		if c.s.counts.refused("connections", who.Name) {
			c.s.log.Warn("client has too many connections; the new one is closed", "client", who.Name)
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

// client returns the client of the connection; false if it is not authenticated or the connection has ended.
func (c *conn) client() (cert.Identity, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who, c.known && !c.over
}

// listener accepts connections within the limits, and starts TLS on them.
type listener struct {
	net.Listener
	s      *Server
	config *tls.Config
}

// Accept returns the next connection. Above the limit of strangers it closes one of them. It refuses addresses
// that connect too often.
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

// beneath returns the TLS connection and our connection below it.
func beneath(c net.Conn) (*tls.Conn, *conn) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	own, _ := t.NetConn().(*conn)
	return t, own
}

// connState handles state changes of a connection.
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

// tls returns the configuration for accepting clients. Refused clients are counted, and logged at most once a
// minute.
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

// refused counts a refused client.
func (s *Server) refused(err error) {
	reason, who := cert.Invalid, ""
	if r, ok := errors.AsType[*cert.Refusal](err); ok {
		reason, who = r.Reason, r.Subject()
	}
	if s.counts.refused(string(reason), who) {
		s.log.Warn("client is refused", "err", err)
	}
}

// connKey is the key of the connection in a request's context.
type connKey struct{}

// withConn adds a connection to the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	_, own := beneath(c)
	return context.WithValue(ctx, connKey{}, own)
}
