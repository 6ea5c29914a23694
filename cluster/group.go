package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"

	"parley"
	"parley/broadcast/byzantine"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/membership/group"
)

// Delivery is one payload that a group has delivered.
type Delivery struct {
	// Position grows with every delivery. With the levels Total, Atomic and Byzantine it
	// is the same at all members for the same payload, with the others it is this member's
	// own. It is a pack's place in the order, and the payload's place in the pack, and
	// never 0.
	Position uint64
	From     parley.ID // the node that broadcast it, as a place in Config.Members
	Payload  []byte    // which nobody may change
}

// packBits is how many bits of a position say which payload of a pack it is.
const packBits = 16

// GroupConfig is that of one group: Name and Level are the same at all nodes.
type GroupConfig struct {
	Name  string
	Level Level
	// Keep is how many deliveries are kept for who subscribes, by default 65536, and
	// KeepBytes how many bytes of them, by default 64 MiB; what is older is gone first.
	Keep, KeepBytes int
	// Deliver, if it is given, is called for each delivery, in order, on the goroutine that
	// brought the last message that it took. It must not block, and may not call the group.
	Deliver func(Delivery)

	final bool // of a Byzantine group: who has missed anything is out for good
}

func (c GroupConfig) withDefaults() GroupConfig {
	if c.Keep == 0 {
		c.Keep = 1 << 16
	}
	if c.KeepBytes == 0 {
		c.KeepBytes = 64 << 20
	}
	return c
}

func (c GroupConfig) check() error {
	if c.Keep < 0 || c.KeepBytes < 0 {
		return fmt.Errorf("keeping %d deliveries and %d bytes: at least 1 is needed, 0 stands for the default",
			c.Keep, c.KeepBytes)
	}
	return nil
}

// Group is this node's member of one group.
type Group struct {
	c       GroupConfig
	process *host.Process
	packer  *packer
	kept    history
	mine    parley.ID
	takes   func() error // why the node takes nothing new, if it does not
	ours    atomic.Int32 // own packs delivered, of which the packer does not know yet
}

// ErrOut is the error of a member that the group has excluded, for good or until it has
// joined again.
var ErrOut = errors.New("this node is not a member of the group now")

// newGroup opens a group's machine on a channel.
func (n *Node) newGroup(c GroupConfig, channel uint32) (*Group, error) {
	wrong := func(err error) error { return fmt.Errorf("group %s: %w", c.Name, err) }
	if err := c.check(); err != nil {
		return nil, wrong(err)
	}
	g := &Group{c: c.withDefaults(), mine: n.self, takes: n.takes}
	g.kept.init(g.c.Keep, g.c.KeepBytes)
	g.packer = newPacker(n.c.views().Payload, func(pack []byte, level Level) error {
		return g.process.Request(parley.Msg{Kind: parley.Carried, Value: uint64(vectorLevels[level]), Body: pack})
	})
	p, err := n.leveled(c.Level, c.final)
	if err != nil {
		return nil, wrong(err)
	}
	g.process, err = n.host.Open(host.Options{
		Channel: channel, Name: "group/" + c.Name, Machine: n.played(p, c.Level),
		Upper: n.watched("group/"+c.Name, g), After: g.after,
		Again: n.again, Class: link.Bulk,
	})
	if err != nil {
		return nil, wrong(err)
	}
	n.opened("group/"+c.Name, g.process)
	return g, nil
}

// Level is what the group promises.
func (g *Group) Level() Level { return g.c.Level }

// Broadcast asks the group to deliver a payload at all members, at the group's level. It
// returns when the payload is on its way, and waits while too much is. A member that is
// excluded then does not learn whether others deliver it.
func (g *Group) Broadcast(payload []byte) error { return g.BroadcastAt(g.c.Level, payload) }

// BroadcastAt is Broadcast at another level. A group whose level is Reliable, Uniform, FIFO
// or Causal takes payloads of these four: what a payload is promised of order is of those
// before it of at least its own kind, so that a FIFO payload comes after all that its
// sender broadcast before, and a Reliable one when it comes.
func (g *Group) BroadcastAt(level Level, payload []byte) error {
	if !g.c.Level.Carries(level) {
		return fmt.Errorf("a group of level %s has no payloads of level %s", g.c.Level, level)
	}
	if err := g.takes(); err != nil {
		return err
	}
	return g.packer.add(payload, level)
}

// Deliver takes a pack. It is part of a step of the machine.
func (g *Group) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	place := m.Seq
	if g.c.Level == Byzantine { // whose numbers are each sender's own
		place = m.Value
	}
	k := kept{first: place << packBits, from: from, pack: m.Body}
	unpack(m.Body, func(i int, payload []byte) {
		k.count = i + 1
		if g.c.Deliver != nil {
			g.c.Deliver(Delivery{k.first + uint64(i), from, payload})
		}
	})
	g.kept.add(k)
	if from == g.mine {
		g.ours.Add(1)
	}
}

// Indicate takes what the machine says of views, or of its eras.
func (g *Group) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case group.Out, byzantine.Out:
		g.packer.close(ErrOut)
		g.kept.leave()
	case group.Restored:
		g.kept.begin(m.Seq << packBits)
	case byzantine.Restored:
		g.kept.begin(m.Value << packBits)
		g.packer.open()
	case parley.View:
		g.packer.open()
	}
}

// after is called when a step is over that delivered or indicated something.
func (g *Group) after() {
	if n := g.ours.Swap(0); n > 0 {
		g.packer.back(int(n))
	}
	g.kept.wake()
}

// close ends what waits on the group.
func (g *Group) close(err error) {
	g.packer.end(err)
	g.kept.close(err)
}
