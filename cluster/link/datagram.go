package link

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"parley"
)

// DatagramConfig configures datagrams.
type DatagramConfig struct {
	Self    parley.ID
	Peers   []string // addresses (IP:port) by ID
	Network Network  // nil: the system's
	Handler Handler
	// Meddle, if set, gets every packet instead of the network. It is for tests, and may lose, duplicate, delay, or
	// replace the packet.
	Meddle func(to parley.ID, packet []byte, send func([]byte))
}

// Datagrams is the form of the link without connections: each frame is a UDP packet, sent by Send. A packet
// contains the sender's ID (2 bytes), the channel, and the frame.
//
// Packets may be lost, duplicated, or reordered, and machines must tolerate this. Up is called once for every peer at
// the start, with incarnation 0, and Down at the end. A detector must find out whether a peer is running.
//
// Nothing is encrypted or authenticated. A packet counts as a packet of a peer if it comes from the peer's address
// and contains the peer's ID. Anybody who can put packets on the network can forge both, or replay an old packet.
// Names, configurations, and versions are not compared. Therefore use Datagrams only on loopback, or on a network to
// which nobody else has access.
type Datagrams struct {
	c       DatagramConfig
	peers   []datagramPeer
	sock    Socket
	refused counts
	closed  atomic.Bool
	wg      sync.WaitGroup
}

type datagramPeer struct {
	addr netip.AddrPort
	mu   sync.Mutex
	buf  []byte
	tally
}

// datagramSize is the maximum size of a packet, in bytes.
const datagramSize = 1200

// NewDatagrams validates the configuration.
func NewDatagrams(c DatagramConfig) (*Datagrams, error) {
	c.Network = cmp.Or[Network](c.Network, new(sockets))
	switch n := len(c.Peers); {
	case n > parley.MaxProcesses || int(c.Self) >= n:
		return nil, fmt.Errorf("link: node %d of %d nodes, and at most %d", c.Self, n, parley.MaxProcesses)
	case c.Handler == nil:
		return nil, errors.New("link: no handler")
	}
	d := &Datagrams{c: c, peers: make([]datagramPeer, len(c.Peers))}
	for i := range d.peers {
		a, err := netip.ParseAddrPort(c.Peers[i])
		if err != nil {
			return nil, fmt.Errorf("link: node %d: %w", i, err)
		}
		d.peers[i].addr = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		d.peers[i].buf = make([]byte, 0, datagramSize)
	}
	return d, nil
}

// Start opens the socket.
func (d *Datagrams) Start() error {
	c, err := d.c.Network.ListenPacket(context.Background(), "udp", d.peers[d.c.Self].addr.String())
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	sock, ok := c.(Socket)
	if !ok {
		return errors.Join(fmt.Errorf("link: the network's packets are a %T, which is no link.Socket", c), c.Close())
	}
	d.sock = sock
	for i := range d.peers {
		if parley.ID(i) != d.c.Self {
			d.c.Handler.Up(parley.ID(i), 0)
		}
	}
	d.wg.Go(d.read)
	return nil
}

// Close closes the socket.
func (d *Datagrams) Close() error {
	if d.closed.Swap(true) || d.sock == nil {
		return nil
	}
	err := d.sock.Close()
	d.wg.Wait()
	for i := range d.peers {
		if parley.ID(i) != d.c.Self {
			d.c.Handler.Down(parley.ID(i), &Down{Reason: Closed})
		}
	}
	return err
}

// Send sends a packet, whatever its class. It may wait for this computer's network, but not for the peer: the peer's
// system drops unread packets.
func (d *Datagrams) Send(to parley.ID, _ Class, channel uint32, head, body []byte) bool {
	p := &d.peers[to]
	p.mu.Lock()
	defer p.mu.Unlock()
	b := binary.BigEndian.AppendUint16(p.buf, uint16(d.c.Self))
	b = binary.AppendUvarint(b, uint64(channel))
	if len(b)+len(head)+len(body) > datagramSize {
		p.refused.add(Oversize)
		return false
	}
	b = append(append(b, head...), body...)
	if d.c.Meddle != nil {
		d.c.Meddle(to, bytes.Clone(b), func(b []byte) { _, _ = d.sock.WriteToUDPAddrPort(b, p.addr) })
	} else if _, err := d.sock.WriteToUDPAddrPort(b, p.addr); err != nil {
		p.refused.add(Unsendable)
		return false
	}
	p.framesOut.Add(1)
	p.bytesOut.Add(uint64(len(b)))
	return true
}

// Flush does nothing.
func (d *Datagrams) Flush(parley.ID) {}

// Stats returns the counters.
func (d *Datagrams) Stats() Stats {
	out := Stats{Refused: d.refused.seen()}
	for i := range d.peers {
		if parley.ID(i) != d.c.Self {
			s := d.peers[i].stats(parley.ID(i))
			s.Connected = true
			out.Peers = append(out.Peers, s)
		}
	}
	return out
}

func (d *Datagrams) read() {
	buf := make([]byte, datagramSize+1)
	for {
		n, from, err := d.sock.ReadFromUDPAddrPort(buf)
		if d.closed.Load() {
			return
		}
		if err != nil {
			d.refused.add(Broken)
			time.Sleep(time.Millisecond) // so that a persistent error does not keep us busy
			continue
		}
		d.packet(buf[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
	}
}

// packet handles one packet.
func (d *Datagrams) packet(b []byte, from netip.AddrPort) {
	if len(b) < 2 {
		d.refused.add(Truncated)
		return
	}
	id := parley.ID(binary.BigEndian.Uint16(b))
	switch {
	case int(id) >= len(d.peers) || id == d.c.Self:
		d.refused.add(OtherPeer)
		return
	case from != d.peers[id].addr:
		d.refused.add(OtherAddress)
		return
	}
	p := &d.peers[id]
	channel, rest, err := parley.ReadUvarint(b[2:], 1<<32-1)
	switch {
	case len(b) > datagramSize:
		p.refused.add(LongFrame)
		return
	case err != nil:
		p.refused.add(Malformed)
		return
	}
	p.framesIn.Add(1)
	p.bytesIn.Add(uint64(len(b)))
	d.c.Handler.Frame(id, uint32(channel), rest)
	d.c.Handler.Burst(id)
}
