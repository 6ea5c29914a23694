package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"parley"
	"parley/broadcast/byzantine"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/membership/group"
)

// Delivery is one payload that a group has delivered.
type Delivery struct {
	// Position grows with every delivery, and is the same at all members for the same
	// payload: a pack's place in the order, and the payload's place in the pack.
	Position uint64
	From     parley.ID // the node that broadcast it, as a place in Config.Members
	Payload  []byte    // which nobody may change
}

// packBits is how many bits of a position say which payload of a pack it is: a pack has
// no more payloads than bytes.
const packBits = 16

// Level is what a group promises, and against whom.
type Level uint8

// The levels.
const (
	// Total is one order at all members, uniform, while members may crash: what any of
	// them has delivered, those that crash too, all that stay deliver in the same place.
	Total Level = iota
	// Byzantine is one order at all correct members, while at most M may do anything.
	Byzantine
)

var levelNames = []string{"total", "byzantine"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel reads what String writes.
func ParseLevel(text string) (Level, error) {
	if i := slices.Index(levelNames, text); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("%q: allowed are %s", text, strings.Join(levelNames, ", "))
}

// GroupConfig is that of one group, the same at all nodes.
type GroupConfig struct {
	Name  string
	Level Level
	// Deliver is called for each delivery, in order, on the goroutine that brought the
	// last message that it took. It must not block, and may not call the group.
	Deliver func(Delivery)
}

// Group is this node's member of one group.
type Group struct {
	c       GroupConfig
	process *host.Process
	packer  *packer
	mine    parley.ID
	packs   uint64       // delivered
	ours    atomic.Int32 // own packs delivered, of which the packer does not know yet
}

// ErrOut is the error of a member that the group has excluded, for good or until it has
// joined again.
var ErrOut = errors.New("this node is not a member of the group now")

// newGroup opens a group's machine on a channel.
func (n *Node) newGroup(c GroupConfig, channel uint32) (*Group, error) {
	g := &Group{c: c, mine: n.self}
	views := n.c.views()
	g.packer = newPacker(views.Payload, func(pack []byte) error {
		return g.process.Request(problem.Request(pack))
	})
	p := timestamp.New(timestamp.Config{Config: views, Window: 2 * packs})
	if c.Level == Byzantine {
		p = byzantine.New(byzantine.Config{N: views.N, M: n.c.M, Window: n.c.slots(), Batch: 2 * views.Payload}, n.c.onCall())
	}
	var err error
	g.process, err = n.host.Open(host.Options{
		Channel: channel, Name: "group/" + c.Name, Machine: p.New(n.self), Upper: g, After: g.after,
		Again: n.again, Class: link.Bulk,
	})
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", c.Name, err)
	}
	return g, nil
}

// Broadcast asks the group to deliver a payload at all members in one order. It returns
// when the payload is on its way, and waits while too much is.
func (g *Group) Broadcast(payload []byte) error { return g.packer.add(payload) }

// Deliver takes a pack. It is part of a step of the machine.
func (g *Group) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	g.packs++
	position := m.Seq << packBits
	if g.c.Level == Byzantine {
		position = g.packs << packBits
	}
	unpack(m.Body, func(i int, payload []byte) {
		g.c.Deliver(Delivery{position + uint64(i), from, payload})
	})
	if from == g.mine {
		g.ours.Add(1)
	}
}

// Indicate takes what the machine says of views.
func (g *Group) Indicate(_ parley.Path, m parley.Msg) {
	if m.Kind == group.Out {
		g.packer.close(ErrOut)
	}
}

// after is called when a step is over that delivered something.
func (g *Group) after() {
	if n := g.ours.Swap(0); n > 0 {
		g.packer.back(int(n))
	}
}
