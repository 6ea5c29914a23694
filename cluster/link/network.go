package link

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
)

// Network is the network that links use. The default is the system's; cluster/link/memory has one within a
// process.
type Network interface {
	// Listen is like that of a net.ListenConfig, for "tcp".
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	// ListenPacket is like that of a net.ListenConfig, for "udp". Its result must be a Socket.
	ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error)
	// DialContext is like that of a net.Dialer, for "tcp".
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// sockets is the system's network.
type sockets struct {
	net.ListenConfig
	net.Dialer
}

// Socket sends and receives datagrams: a *net.UDPConn, or a socket of another network.
type Socket interface {
	// ReadFromUDPAddrPort waits for a packet.
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	// WriteToUDPAddrPort sends a packet.
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	// Close ends a waiting read.
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

// dial connects to an address, within Limits.Dial.
func (m *Mesh) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.c.Limits.Dial)
	defer cancel()
	return m.c.Network.DialContext(ctx, "tcp", address)
}

// dialTLS connects and performs the handshake, within Limits.Dial. The mesh closes the connection at its end at
// the latest.
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

// owned is a connection that the mesh closes at its end.
type owned struct {
	net.Conn
	disown func() bool
}

func (c *owned) Close() error {
	c.disown()
	return c.Conn.Close()
}
