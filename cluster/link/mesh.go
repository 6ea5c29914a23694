package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/cluster/cert"
)

// Identity authenticates nodes: see [Members].
type Identity interface {
	// Dial returns a new TLS configuration to connect to a peer. It accepts only this peer, and requires TLS 1.3
	// without resumption. The mesh completes the configuration.
	Dial(id parley.ID) *tls.Config
	// Accept returns a new configuration to accept connections of any peer.
	Accept() *tls.Config
	// Who returns the peer of a connection.
	Who(state tls.ConnectionState) (parley.ID, error)
	// Watch calls end when the peer of a connection is no longer trusted, until stop.
	Watch(state tls.ConnectionState, end func(why error)) (stop func())
	// Explain makes an error of a handshake readable. The returned error may have a method Subject() string, which
	// returns the peer's name. Then errors of each subject are logged separately.
	Explain(err error) error
}

// Members is the Identity of a node in a cluster whose nodes have certificates.
type Members struct {
	Self  *cert.Self
	Trust *cert.Trust
	Names []string // of the nodes, by ID
}

// Accept accepts any node.
func (m Members) Accept() *tls.Config { return m.Trust.Accept(m.Self, cert.Node) }

// Dial accepts only the node with the ID.
func (m Members) Dial(id parley.ID) *tls.Config {
	return m.Trust.Dial(m.Self, cert.Identity{Cluster: m.Trust.Cluster(), Kind: cert.Node, Name: m.Names[id]})
}

// Who returns the ID of a connection's node.
func (m Members) Who(state tls.ConnectionState) (parley.ID, error) {
	who, err := m.Trust.Check(state)
	if err != nil {
		return 0, err
	}
	id := slices.Index(m.Names, who.Name)
	if id < 0 {
		return 0, fmt.Errorf("%s is none of the members", who)
	}
	return parley.ID(id), nil
}

// Watch calls end when the certificate of the connection is no longer trusted.
func (m Members) Watch(state tls.ConnectionState, end func(why error)) (stop func()) {
	return m.Trust.Watch(state, end)
}

// Explain explains an error of crypto/tls.
func (m Members) Explain(err error) error { return cert.Explain(err) }

// Config configures a mesh.
type Config struct {
	Self     parley.ID
	Peers    []string     // addresses (host:port) by ID; the address of Self is the address to listen on
	Names    []string     // of peers by ID, for the log; or nil
	Listener net.Listener // used instead of listening, or nil
	Network  Network      // nil: the system's
	Identity Identity
	Hello    Hello
	Limits   Limits
	Handler  Handler
	Log      *slog.Logger // or nil
	// Judge, if set, decides by a peer's hello and certificate (leaf) whether to admit the peer. To admit it, Judge
	// returns nil. Judge is called for one connection of a peer at a time. Without Judge, the mesh refuses
	// incarnations before the last admitted one.
	Judge func(id parley.ID, h Hello, leaf *x509.Certificate) *Down
	// Position, if set, returns the current disk position for hellos.
	Position func() uint64
}

// Mesh keeps one connection to every peer. The process with the smaller ID dials.
type Mesh struct {
	c       Config
	peers   []*peer // for accepting
	gate    *gate
	tls     *tls.Config // to accept with
	begin   time.Time
	coarse  atomic.Int64 // current time, as of the last tick
	held    atomic.Int64 // when this process was last paused, as of the tick after it
	notes   notes
	refused counts

	ctx    context.Context
	cancel context.CancelFunc
	listen net.Listener
	wg     sync.WaitGroup
}

// New validates the configuration and returns a mesh. It starts with Start.
func New(c Config) (*Mesh, error) {
	if c.Hello.Max == 0 {
		c.Hello.Min, c.Hello.Max = WireMin, WireMax
	}
	c.Log, c.Network = cmp.Or(c.Log, slog.New(slog.DiscardHandler)), cmp.Or[Network](c.Network, new(sockets))
	switch n := len(c.Peers); {
	case n > parley.MaxProcesses:
		return nil, fmt.Errorf("link: %d nodes: at most %d", n, parley.MaxProcesses)
	case c.Names != nil && len(c.Names) != n:
		return nil, fmt.Errorf("link: names of %d nodes, of %d", len(c.Names), n)
	case int(c.Self) >= n:
		return nil, fmt.Errorf("link: node %d of %d nodes", c.Self, n)
	case len(c.Hello.Cluster) > 255:
		return nil, fmt.Errorf("link: the cluster's name has %d bytes: at most 255", len(c.Hello.Cluster))
	case c.Hello.Min > c.Hello.Max:
		return nil, fmt.Errorf("link: wire versions %d to %d", c.Hello.Min, c.Hello.Max)
	case c.Handler == nil || c.Identity == nil:
		return nil, errors.New("link: no handler, or no identity")
	}
	if err := c.Limits.fill(); err != nil {
		return nil, err
	}
	m := &Mesh{c: c, gate: newGate(c.Limits), begin: time.Now(), listen: c.Listener}
	m.coarse.Store(1)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	for i, addr := range c.Peers {
		p := &peer{m: m, id: parley.ID(i), addr: addr, judging: make(chan struct{}, 1)}
		if p.id == c.Self {
			p = nil
		}
		m.peers = append(m.peers, p)
	}
	return m, nil
}

// Start listens and starts connecting.
func (m *Mesh) Start() error {
	m.tls = m.c.Identity.Accept()
	m.tls.DynamicRecordSizingDisabled = true
	if err := m.open(); err != nil {
		return err
	}
	m.wg.Go(m.accept)
	m.wg.Go(m.keep)
	for _, p := range m.peers[m.c.Self+1:] {
		m.wg.Go(p.dial)
	}
	return nil
}

// hello returns the current hello of this process.
func (m *Mesh) hello() Hello {
	h := m.c.Hello
	if at := m.c.Position; at != nil {
		h.Disk.Position = at()
	}
	return h
}

// Close sends a bye to all peers and ends all connections. It writes queued frames first if that takes at most
// 100 ms.
func (m *Mesh) Close() error {
	m.cancel()
	var err error
	if m.listen != nil {
		err = m.listen.Close()
	}
	moment := time.Now().Add(100 * time.Millisecond)
	for _, p := range m.peers {
		if p == nil {
			continue
		}
		if s := p.live.Load(); s != nil {
			s.settle(moment)
			s.fail(&Down{Reason: Closed})
		}
	}
	m.wg.Wait()
	return err
}

// Send queues a frame for a peer. See Transport.
func (m *Mesh) Send(to parley.ID, class Class, channel uint32, head, body []byte) bool {
	return m.peers[to].send(class, channel, head, body)
}

// Flush writes what is queued for a peer.
func (m *Mesh) Flush(to parley.ID) {
	if s := m.peers[to].live.Load(); s != nil {
		s.flush()
	}
}

// Stats returns the counters.
func (m *Mesh) Stats() Stats {
	out := Stats{Refused: m.refused.seen()}
	for _, p := range m.peers {
		if p != nil {
			out.Peers = append(out.Peers, p.stats())
		}
	}
	return out
}

func (m *Mesh) now() time.Duration { return time.Since(m.begin) }

// keep checks every connection once a tick.
func (m *Mesh) keep() {
	l := &m.c.Limits
	tick := time.NewTicker(l.tick())
	defer tick.Stop()
	for last := m.now(); ; {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		now := m.now()
		m.look(now)
		paused := now-last > l.Silence/2
		last = now
		for _, p := range m.peers {
			if p == nil {
				continue
			}
			if s := p.live.Load(); s != nil {
				s.keep(now, paused)
			}
		}
	}
}

// heldUp is the least pause of this process, or delay of its tick, for which round-trip times of pings are
// ignored.
const heldUp = 100 * time.Millisecond

// look records the time, and whether this process was paused since the last call.
func (m *Mesh) look(now time.Duration) {
	if m.late(now) {
		m.held.Store(int64(now))
	}
	m.coarse.Store(int64(now))
}

// late reports whether this process is late now, or was until now.
func (m *Mesh) late(now time.Duration) bool {
	return now-time.Duration(m.coarse.Load()) >= m.c.Limits.tick()+heldUp
}

// jitter returns a random duration between d/2 and d, so that nodes that failed together do not reconnect
// together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
