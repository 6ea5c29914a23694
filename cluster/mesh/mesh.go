// Package mesh connects a node with its peers. It chooses the kind of the links, authenticates the peers, and
// tracks the state of each link.
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

// Links says how nodes are connected.
type Links uint8

// The kinds of links.
const (
	// Streams are connections with mutual TLS: messages arrive once and in order, or the connection goes down.
	Streams Links = iota
	// Datagrams are packets over UDP, with one message in each. Packets may be lost, duplicated, or reordered.
	// Agreements tolerate this: a lost message counts as not sent, and a node that loses messages counts as faulty.
	// Nothing is encrypted or authenticated, so use Datagrams only on loopback, or on a network to which nobody else
	// has access. Values must fit into a packet of 1200 bytes. Groups, tables, and transactions, which need ordered
	// links, are refused.
	Datagrams
	// Calls are remote procedure calls over HTTP/2, with the same mutual TLS and the same promises as Streams. They
	// are for a network that lets nothing else through. A message takes many times as long as with Streams.
	Calls
)

var linkNames = [...]string{"streams", "datagrams", "calls"}

func (l Links) String() string {
	if int(l) < len(linkNames) {
		return linkNames[l]
	}
	return fmt.Sprintf("links %d", uint8(l))
}

// Check returns an error if the kind does not exist.
func (l Links) Check() error {
	if int(l) < len(linkNames) {
		return nil
	}
	return fmt.Errorf("there are no %v: there are %s", l, strings.Join(linkNames[:], ", "))
}

// Parse parses the result of String.
func Parse(text string) (Links, error) {
	if i := slices.Index(linkNames[:], text); i >= 0 {
		return Links(i), nil
	}
	return 0, fmt.Errorf("links %q: allowed are %s", text, strings.Join(linkNames[:], ", "))
}

// Config configures the links of a node.
type Config struct {
	Links     Links
	Addresses []string // of the members
	Listener  net.Listener
	Network   link.Network
	Self      *cert.Self
	Trust     *cert.Trust
	Digest    [sha256.Size]byte // of the configuration that all nodes share
	Judge     func(id parley.ID, h link.Hello, leaf *x509.Certificate) *link.Down
	Handler   link.Handler
	Hooks
}

// Hooks are settings for tests: wire versions, limits of links, and changes to sent messages.
type Hooks struct {
	WireMin, WireMax uint16
	Limits           link.Limits
	Meddle           func(to parley.ID, packet []byte, send func([]byte))
	Wrap             func(link.Transport) link.Transport
}

// Mesh is a node's links. It tracks the connected nodes, and when a node was last logged.
type Mesh struct {
	link.Transport
	k        *kernel.Kernel
	c        Config
	mu       sync.Mutex
	up       parley.Set
	admitted parley.Set // the connected nodes that have admitted this one
	logged   map[parley.ID]time.Time
}

// New creates the links of a node, which begin with Start.
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

// linking returns the configuration of authenticated links.
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

// datagrams creates links without authentication.
func datagrams(k *kernel.Kernel, c Config) (link.Transport, error) {
	k.Log.Warn("links are datagrams without encryption; anybody on the network can send as any node")
	var addresses []string
	for i, address := range c.Addresses { // a packet shows a numeric address, not a name
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

// handler records which nodes are connected, before the node handles the event.
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

// Due reports whether a node may be logged again: once a minute.
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
		m.admitted.Remove(id)
	}
}

// Up returns the connected nodes.
func (m *Mesh) Up() parley.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// LetIn records that another node has admitted this node.
func (m *Mesh) LetIn(id parley.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.admitted.Add(id)
}

// Others returns the nodes that have admitted this node. It also returns the nodes that refuse this node because they
// know a later incarnation or more of its records. A connection with a node that refuses this node may be up for a
// moment.
func (m *Mesh) Others() (up, refusing parley.Set) {
	peers := m.Stats().Peers
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range peers {
		if p.Told == link.OldLife || p.Told == link.Behind {
			refusing.Add(p.ID)
		}
		// A node of an earlier version, or one connected by datagrams, sends nothing on this channel.
		if m.admitted.Has(p.ID) || p.Version < link.DiskSince && m.up.Has(p.ID) {
			up.Add(p.ID)
		}
	}
	return up, refusing
}
