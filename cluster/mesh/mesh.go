// Package mesh links a node with the others: by what, who may be at the other end, and who is.
package mesh

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/kernel"
	"parley/cluster/link"
)

// Links is how nodes are linked.
type Links uint8

// The forms of links.
const (
	// Streams are connections with mutual TLS: what is sent arrives once and in order, or
	// the connection goes down.
	Streams Links = iota
	// Datagrams are packets over UDP, each message in one. They may be lost, come twice or
	// out of order, and nothing is encrypted or authenticated: on loopback, or on a network
	// to which nobody else has access. Agreements stand that: what is lost was not said, and
	// a node of which something is lost counts among those that may lie. Values must leave
	// room in a packet of 1200 bytes. Groups, tables and transactions, which need links that
	// keep order, are refused.
	Datagrams
	// Calls are remote procedure calls over HTTP/2, with the same mutual TLS, and promise what
	// streams do: for a network that lets nothing else through. A message takes many times
	// as long.
	Calls
)

var linkNames = [...]string{"streams", "datagrams", "calls"}

func (l Links) String() string {
	if int(l) < len(linkNames) {
		return linkNames[l]
	}
	return fmt.Sprintf("links %d", uint8(l))
}

// Check tells whether there is such a form.
func (l Links) Check() error {
	if int(l) < len(linkNames) {
		return nil
	}
	return fmt.Errorf("there are no %v: there are %s", l, strings.Join(linkNames[:], ", "))
}

// Parse reads what String writes.
func Parse(text string) (Links, error) {
	if i := slices.Index(linkNames[:], text); i >= 0 {
		return Links(i), nil
	}
	return 0, fmt.Errorf("links %q: allowed are %s", text, strings.Join(linkNames[:], ", "))
}

// Config says how a node is linked.
type Config struct {
	Links     Links
	Addresses []string // of the members
	Listener  net.Listener
	Network   link.Network
	Self      *cert.Self
	Trust     *cert.Trust
	Digest    [sha256.Size]byte // of what all nodes are configured with alike
	Judge     func(id parley.ID, h link.Hello, leaf *x509.Certificate) *link.Down
	Handler   link.Handler
	Hooks
}

// Hooks are what tests change: the versions of the wire, the limits of links, what a node sends.
type Hooks struct {
	WireMin, WireMax uint16
	Limits           link.Limits
	Meddle           func(to parley.ID, packet []byte, send func([]byte))
	Wrap             func(link.Transport) link.Transport
}

// Mesh is a node's links. It knows who can be sent to, and of whom something was logged when.
type Mesh struct {
	link.Transport
	k      *kernel.Kernel
	c      Config
	mu     sync.Mutex
	up     parley.Set
	took   parley.Set // of them, those that have said something: they have let this node in
	logged map[parley.ID]time.Time
}

// New makes the links of a node, which begin with Start.
func New(k *kernel.Kernel, c Config) (*Mesh, error) {
	m := &Mesh{k: k, c: c, logged: make(map[parley.ID]time.Time)}
	c.Handler = handler{c.Handler, m}
	var err error
	switch c.Links {
	case Datagrams:
		m.Transport, err = datagrams(k, c)
		return m, err
	case Calls:
		m.Transport, err = link.NewCalls(linking(k, c))
	default:
		m.Transport, err = link.New(linking(k, c))
	}
	if err == nil && c.Wrap != nil {
		m.Transport = c.Wrap(m.Transport)
	}
	return m, err
}

// linking is what links are made of that know who is at their other end.
func linking(k *kernel.Kernel, c Config) link.Config {
	of := link.Config{
		Self: k.Self, Peers: c.Addresses, Names: k.Members, Listener: c.Listener, Network: c.Network, Log: k.Log,
		Identity: link.Members{Self: c.Self, Trust: c.Trust, Names: k.Members}, Handler: c.Handler, Judge: c.Judge,
		Hello: link.Hello{
			Cluster: k.Cluster, Config: c.Digest, Incarnation: k.Life, Min: c.WireMin, Max: c.WireMax,
		},
		Limits: c.Limits,
	}
	if k.Store != nil {
		of.Hello.Disk.Store, of.Hello.Disk.Began = k.Store.ID(), k.Store.Began()
		of.Position = k.Store.Position
	}
	return of
}

// datagrams are links that do not know who is at their other end.
func datagrams(k *kernel.Kernel, c Config) (link.Transport, error) {
	k.Log.Warn("links are datagrams: nothing is encrypted, and who can put packets on the network speaks for any node")
	var addresses []string
	for i, address := range c.Addresses { // a packet shows the number of an address, not its name
		a, err := net.ResolveUDPAddr("udp", address)
		if err != nil {
			return nil, fmt.Errorf("cluster: %s: %w", k.Name(parley.ID(i)), err)
		}
		addresses = append(addresses, a.AddrPort().String())
	}
	return link.NewDatagrams(link.DatagramConfig{
		Self: k.Self, Peers: addresses, Network: c.Network, Handler: c.Handler, Meddle: c.Meddle,
	})
}

// handler notes who is connected, before the node hears of it.
type handler struct {
	link.Handler
	m *Mesh
}

func (h handler) Up(id parley.ID, life uint64) {
	h.m.set(id, true)
	h.Handler.Up(id, life)
}

func (h handler) Down(id parley.ID, why error) {
	h.m.set(id, false)
	h.Handler.Down(id, why)
}

// Due tells whether a node is to be named in the log again: once a minute, whatever it sends.
func (m *Mesh) Due(id parley.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if at, before := m.logged[id]; before && now.Sub(at) < time.Minute {
		return false
	}
	m.logged[id] = now
	return true
}

func (m *Mesh) set(id parley.ID, up bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if up {
		m.up.Add(id)
	} else {
		m.up.Remove(id)
		m.took.Remove(id)
	}
}

// Up returns the nodes that can be sent to.
func (m *Mesh) Up() parley.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// LetIn notes that a node has let this one in.
func (m *Mesh) LetIn(id parley.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took.Add(id)
}

// Others are the nodes that have let this one in, and those who refuse it because they know a later life of it, or more
// of its folder. A connection with one of these may be up for a moment.
func (m *Mesh) Others() (up, refusing parley.Set) {
	peers := m.Stats().Peers
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range peers {
		if p.Told == link.OldLife || p.Told == link.Behind {
			refusing.Add(p.ID)
		}
		// A node of an earlier version, or one linked by datagrams, says nothing on this channel.
		if m.took.Has(p.ID) || p.Version < link.DiskSince && m.up.Has(p.ID) {
			up.Add(p.ID)
		}
	}
	return up, refusing
}
