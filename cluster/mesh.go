package cluster

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/membership/detector"
	"parley/membership/expel"
)

// linking is what links are made of that know who is at their other end.
func (n *Node) linking(incarnation uint64, addresses []string) link.Config {
	c := link.Config{
		Self: n.k.Self, Peers: addresses, Listener: n.c.Listen, Network: n.c.Network, Log: n.c.Log,
		Identity: identities{n}, Handler: carrier{n},
		Hello: link.Hello{
			Cluster: n.c.Trust.Cluster(), Config: n.c.digest(), Incarnation: incarnation,
			Min: n.c.hooks.wireMin, Max: n.c.hooks.wireMax,
		},
		Limits: n.c.hooks.limits,
	}
	for _, m := range n.c.Members {
		c.Names = append(c.Names, m.Name)
	}
	c.Judge = n.judge
	if n.k.Store != nil {
		c.Hello.Disk.Store, c.Hello.Disk.Began = n.k.Store.ID(), n.k.Store.Began()
		c.Position = n.k.Store.Position
	}
	return c
}

// digest is a hash of all that nodes must be configured with alike.
func (c Config) digest() [sha256.Size]byte {
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s)))
		h.Write([]byte(s))
	}
	for _, m := range c.Members {
		text(m.Name)
		text(string(m.Signer))
	}
	text("groups, by majorities of all") // nodes that decide on views otherwise are refused
	for _, g := range c.Groups {
		text(g.Name)
		text(fmt.Sprint(g.Level))
	}
	if c.views().Liars > 0 && len(c.Tables) > 0 { // nodes that do not tell what they have are refused
		text("tables whose copies are compared in each view")
	}
	text("tables")
	for _, t := range c.Tables {
		t = t.WithDefaults()
		text(t.Name)
		text(strings.TrimSpace(fmt.Sprint(t.Level, t.Sessions) + " " + t.State))
	}
	text(fmt.Sprint(c.Durable, c.M, c.Round, c.Times.WithDefaults(), c.Clocks, c.Commit.Protocol))
	if k, usual := c.Commit.WithDefaults(), (CommitConfig{}).WithDefaults(); k.Protocol == Agreed &&
		(k.Open != usual.Open || k.Remember != usual.Remember) { // they decide what is taken
		text(fmt.Sprint(k.Open, k.Remember))
	}
	if c.Links != Streams {
		text(c.Links.String())
	}
	if len(c.Agreements) > 0 {
		text(fmt.Sprint(c.Agreements))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// identities are who may be at the other end of a link.
type identities struct{ n *Node }

func (i identities) Accept() *tls.Config { return i.n.c.Trust.Accept(i.n.c.Self, cert.Node) }

func (i identities) Dial(id parley.ID) *tls.Config {
	return i.n.c.Trust.Dial(i.n.c.Self, cert.Identity{
		Cluster: i.n.c.Trust.Cluster(), Kind: cert.Node, Name: i.n.c.Members[id].Name,
	})
}

func (i identities) Who(state tls.ConnectionState) (parley.ID, error) {
	who, err := i.n.c.Trust.Check(state)
	if err != nil {
		return 0, err
	}
	for id, m := range i.n.c.Members {
		if m.Name == who.Name {
			return parley.ID(id), nil
		}
	}
	return 0, fmt.Errorf("%s is none of the members", who)
}

func (i identities) Watch(state tls.ConnectionState, end func(error)) (stop func()) {
	return i.n.c.Trust.Watch(state, end)
}

func (identities) Explain(err error) error { return cert.Explain(err) }

// carrier takes what comes on the links.
type carrier struct{ n *Node }

func (c carrier) Frame(from parley.ID, channel uint32, b []byte) {
	if c.n.c.hooks.hear != nil {
		c.n.c.hooks.hear(from, channel, b)
	}
	if channel == kernel.AdminChannel {
		if err := c.n.heard(from, b); err != nil && c.n.links.due(from) {
			c.n.c.Log.Warn("what a node says of others is no message", "from", c.n.c.Members[from].Name, "why", err)
		}
		return
	}
	if c.n.refuses(from, channel) {
		return
	}
	if err := c.n.k.Host.Frame(from, channel, b); err != nil && c.n.links.due(from) {
		c.n.c.Log.Warn("frames that are no messages", "from", c.n.c.Members[from].Name, "channel", channel,
			"why", err, "so far", c.n.k.Host.Malformed(from))
	}
}

func (c carrier) Burst(parley.ID) { c.n.k.Host.Flush() }

func (c carrier) Up(id parley.ID, life uint64) {
	c.n.links.set(id, true)
	c.n.linked(parley.Msg{Kind: detector.Mended, Origin: id})
	c.n.tellDisk(id)
	c.n.admin.votes.Tell(parley.Msg{Kind: expel.Linked, Origin: id, Value: life})
}

func (c carrier) Down(id parley.ID, _ error) {
	c.n.links.set(id, false)
	select {
	case c.n.stood.parted <- struct{}{}:
	default:
	}
	c.n.linked(parley.Msg{Kind: detector.Broke, Origin: id})
}

// linkGrace is how long a link must be broken before the other nodes hear of it: who lives is
// connected again sooner, for a link that held is dialed at once.
const linkGrace = 4 * time.Millisecond

// linked tells the machines of all views what has become of a link.
func (n *Node) linked(m parley.Msg) {
	n.admin.mu.Lock()
	var with []*host.Process
	for _, v := range n.admin.views {
		if v.suspects {
			with = append(with, v.process)
		}
	}
	n.admin.mu.Unlock()
	for _, p := range with {
		p.Tell(m) // one that has stopped suspects nobody
	}
}

// connections knows who can be sent to, and of whom something was logged when.
type connections struct {
	mu     sync.Mutex
	up     parley.Set
	took   parley.Set // of them, those that have said something: they have let this node in
	logged map[parley.ID]time.Time
}

// due tells whether a node is to be named in the log again: once a minute, whatever it sends.
func (c *connections) due(id parley.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if at, before := c.logged[id]; before && now.Sub(at) < time.Minute {
		return false
	}
	if c.logged == nil {
		c.logged = make(map[parley.ID]time.Time)
	}
	c.logged[id] = now
	return true
}

func (c *connections) set(id parley.ID, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if up {
		c.up.Add(id)
	} else {
		c.up.Remove(id)
		c.took.Remove(id)
	}
}

// connected returns the nodes that can be sent to.
func (c *connections) connected() parley.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

// tookUs notes that a node has let this one in.
func (c *connections) tookUs(id parley.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took.Add(id)
}

// patience is how long a node waits for the others when the cluster begins: who is not
// there when the first view does would be excluded, and have to join.
const patience = 10 * time.Second

// ErrForgotten is the error of a node of which the others know a later life, or more than it has on its disk: they do
// not let it in. Its folder is lost, or an old copy, or another process runs under its name.
var ErrForgotten = errors.New("the other nodes know a later life of this one, or more of it than its folder has, and " +
	"refuse it: if its folder is lost or an old copy, start it with an empty one and say that it rejoins (--rejoin)")

// gather waits until all others are connected, or for some time: one who comes back finds
// others who do not wait for it.
func (n *Node) gather(ctx context.Context) error {
	wait := patience
	if n.k.Again {
		wait = n.c.Times.WithDefaults().Suspect
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for all := len(n.c.Members) - 1; ; {
		up, refusing := n.others()
		switch {
		case refusing.Len() > n.c.M: // not all of them lie
			return ErrForgotten
		case up.Len() == all:
			return ctx.Err()
		}
		if why := n.k.Broken(); why != nil { // the disk has failed, perhaps
			return why
		}
		select {
		case <-look.C:
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		for id := range refusing.All() { // one that lies, perhaps
			n.c.Log.Warn("another node knows a later life of this one, or more of it than its folder has: "+
				"the folder may be lost, or an old copy", "peer", n.k.Name(id))
		}
		return ctx.Err()
	}
}

// others are the nodes that have let this one in, and those who refuse it because they know a later life of it, or more
// of its folder. A connection with one of these may be up for a moment.
func (n *Node) others() (up, refusing parley.Set) {
	peers := n.mesh.Stats().Peers
	n.links.mu.Lock()
	defer n.links.mu.Unlock()
	for _, p := range peers {
		if p.Told == link.OldLife || p.Told == link.Behind {
			refusing.Add(p.ID)
		}
		// A node of an earlier version, or one linked by datagrams, says nothing on this channel.
		if n.links.took.Has(p.ID) || p.Version < link.DiskSince && n.links.up.Has(p.ID) {
			up.Add(p.ID)
		}
	}
	return up, refusing
}
