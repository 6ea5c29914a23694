package link

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
)

// Network is what links are made on. The system's is the default; cluster/link/memory has one
// within a process.
type Network interface {
	// Listen is as that of a net.ListenConfig, for "tcp".
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	// ListenPacket is the same for "udp". What it returns must be a Socket.
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
	// DialContext is as that of a net.Dialer, for "tcp".
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// sockets are the system's network.
type sockets struct {
	net.ListenConfig
	net.Dialer
}

// Socket is what datagrams go by: a *net.UDPConn, or a socket of another network.
type Socket interface {
	// ReadFromUDPAddrPort waits for a packet.
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	// WriteToUDPAddrPort sends a packet.
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	// Close ends the reading.
	Close() error
}

// open listens, unless the configuration has a listener.
func (m *Mesh) open() error {
	if m.listen != nil {
		return nil
	}
	l, err := m.c.Network.Listen(m.ctx, "tcp", m.c.Peers[m.c.Self])
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	m.listen = l
	return nil
}

// dial connects to an address, within the time for that.
func (m *Mesh) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.c.Limits.Dial)
	defer cancel()
	return m.c.Network.DialContext(ctx, "tcp", address)
}

// dialTLS connects and shakes hands, within the same time. The connection ends with the mesh, if
// nobody ends it before.
func (m *Mesh) dialTLS(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.c.Limits.Dial)
	defer cancel()
	nc, err := m.c.Network.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	ours := &owned{nc, context.AfterFunc(m.ctx, func() { _ = nc.Close() })}
	c := tls.Client(ours, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = ours.Close()
		return nil, err
	}
	return c, nil
}

// owned is a connection that somebody closes if nobody else does.
type owned struct {
	net.Conn
	disown func() bool
}

func (c *owned) Close() error {
	c.disown()
	return c.Conn.Close()
}
