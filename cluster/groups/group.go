// Package groups is a node's part in groups: who is in one broadcasts there, at a level of its choice.
//
// # Decisions
//
// Payloads travel in packs. A group has four packs of a node under way, and more of a Byzantine order if
// they are well filled; what is asked for meanwhile gathers in the next one. Motive: a payload alone
// goes at once, and many share the cost of a message. Cost: a position is the number of a pack and a
// place in it, and what a group's machine counts are packs.
//
// A subscriber has no buffer. A group keeps the packs that it has delivered lately, whoever reads
// them, and a subscription is a place in there; one that is overtaken by the end of it is cut off.
// Motive: a slow reader costs nothing but itself, and resuming is the same as reading. Cost: memory for
// what nobody may read.
//
// A pack that is awaited carries a tag behind its payloads. Motive: the order does not name packs:
// levels mix, and packs of a former life come too. Cost: 13 bytes a pack where somebody waits.
package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"parley"
	"parley/broadcast/byzantine"
	"parley/cluster/host"
	"parley/cluster/kernel"
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
	From     parley.ID // the node that broadcast it, as a place among the members
	Payload  []byte    // which nobody may change
}

// packBits is how many bits of a position say which payload of a pack it is.
const packBits = 16

// Config configures one group. Name and Level are the same at all nodes.
type Config struct {
	Name  string
	Level kernel.Level
	// Keep is how many deliveries are kept for who subscribes, by default 65536, and
	// KeepBytes how many bytes of them, by default the group's share of 256 MiB, of 16 MiB
	// at most and 1 MiB at least; what is older is gone first. Of a durable group the newest 8 MiB
	// at most outlive its members' ends and exclusions, wherever they are read; of a Byzantine
	// group nothing does.
	Keep, KeepBytes int
	// Deliver, if it is given, is called for each delivery, in order, on the goroutine that
	// brought the last message that it took. It must not block, and may not call the group.
	// A durable node that comes back, or was excluded, calls it again for what is kept, with the
	// positions of then.
	Deliver func(Delivery)

	final bool // of a Byzantine group: who has missed anything is out for good
}

// withDefaults fills in what is 0, of one of so many groups.
func (c Config) withDefaults(groups int) Config {
	c.Keep = cmp.Or(c.Keep, 1<<16)
	if c.KeepBytes == 0 { // more is fresh memory for long, which costs more than all else that a pack does
		c.KeepBytes = max(1<<20, min(16<<20, (256<<20)/max(1, groups)))
	}
	return c
}

// mostByzantine is how many members a Byzantine order may have: messages grow with the power
// of m.
const mostByzantine = 13

// Check tells what is wrong with the groups of n nodes.
func Check(list []Config, n int) error {
	for i, g := range list {
		switch {
		case slices.ContainsFunc(list[:i], func(o Config) bool { return o.Name == g.Name }):
			return fmt.Errorf("two groups are named %q", g.Name)
		case !g.Level.Known():
			return fmt.Errorf("group %s: there is no level %d", g.Name, uint8(g.Level))
		case g.Level == kernel.Byzantine && (n < 4 || n > mostByzantine):
			return fmt.Errorf("group %s: level byzantine among %d members: allowed are 4 to %d", g.Name, n, mostByzantine)
		case g.Keep < 0 || g.KeepBytes < 0:
			return fmt.Errorf("group %s: keeping %d deliveries and %d bytes: at least 1 is needed, 0 stands for the default",
				g.Name, g.Keep, g.KeepBytes)
		}
	}
	return nil
}

// Group is this node's member of one group.
type Group struct {
	c       Config
	k       *kernel.Kernel
	process *host.Process
	packer  *batcher
	kept    history
	absent  error        // of a group that is not configured: whatever it is asked fails
	ours    atomic.Int32 // own packs delivered, of which the packer does not know yet
	opened  atomic.Bool  // nor that it is open again
}

// open opens a group's machine on a channel.
func (s *Service) open(c Config, channel uint32) (*Group, error) {
	g, views := &Group{c: c.withDefaults(len(s.list)), k: s.k}, s.k.Views
	g.kept.init(g.c.Keep, g.c.KeepBytes)
	deep := kernel.Packs
	switch c.Level {
	case kernel.Total: // as many as its window: a sender of long payloads need not wait for acknowledgements
		deep = kernel.Window(views.N, views.Payload)
	case kernel.Byzantine:
		deep = deepPacks
	}
	g.packer = newBatcher(views.Payload, deep, func(pack []byte, level kernel.Level) error {
		err := g.process.Request(parley.Msg{Kind: parley.Carried, Value: uint64(vectorLevels[level]), Body: pack})
		if errors.Is(err, host.ErrStopped) {
			err = fmt.Errorf("%w: %w", s.k.Closed(), err)
		}
		return err
	})
	p, err := s.protocol(g.c)
	if err == nil {
		o := host.Options{
			Channel: channel, Name: machine(c.Name), Upper: g, After: g.after, Again: s.k.Again, Class: link.Bulk,
		}
		if o.Machine = p.New(s.k.Self); c.Level == kernel.Byzantine {
			o.Machine = s.k.Play(p)
		}
		g.process, err = s.k.Watched(o, c.Level != kernel.Byzantine)
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", c.Name, err)
	}
	return g, nil
}

// machine names the machine of a group.
func machine(group string) string { return "group/" + group }

// noGroup is a group that is not configured: whatever it is asked fails with an error.
func noGroup(err error) *Group {
	g := &Group{absent: err}
	g.kept.init(1, 1)
	g.kept.close(err)
	return g
}

// takes tells why the group takes no new payload of a level, if it does not.
func (g *Group) takes() error {
	if g.absent != nil {
		return g.absent
	}
	err := g.k.Takes(g.c.Level == kernel.Byzantine)
	if err != nil || g.c.Level == kernel.Byzantine || !g.k.Views.Durable {
		return err
	}
	return g.k.HasRoom()
}

// Level is what the group promises.
func (g *Group) Level() kernel.Level { return g.c.Level }

// Broadcast asks the group to deliver a payload at all members, at the group's level, and
// returns its position when this node has delivered it. If the node is durable it is on the disk
// then, but in a group of level Byzantine, which is in the nodes' memory alone.
//
// What the return says of others is what the level does of a delivery. With Total, Atomic and
// Uniform all members that stay deliver the payload, even if this node crashes now, and with
// Byzantine all correct ones. With Reliable, FIFO and Causal this node delivers its own
// payload at once, and the others do if it stays: if it crashes now, perhaps none of them does.
//
// With [kernel.ErrUnknown] the payload may have been delivered, or may be yet: the context ended when
// it was under way, or this node was excluded or closed. With every other error it is not
// delivered and never will be; it is [kernel.ErrRefused] if the context ended before there was room.
func (g *Group) Broadcast(ctx context.Context, payload []byte) (position uint64, err error) {
	return g.BroadcastAt(ctx, g.c.Level, payload)
}

// BroadcastAt is Broadcast at another level. A group whose level is Reliable, Uniform, FIFO
// or Causal takes payloads of these four: what a payload is promised of order is of those
// before it of at least its own kind, so that a FIFO payload comes after all that its
// sender broadcast before, and a Reliable one when it comes.
func (g *Group) BroadcastAt(ctx context.Context, level kernel.Level, payload []byte) (position uint64, err error) {
	if err := g.takes(); err != nil {
		return 0, err
	}
	if !g.c.Level.Carries(level) {
		return 0, fmt.Errorf("%w: a group of level %s has no payloads of level %s", kernel.ErrRefused, g.c.Level, level)
	}
	return g.packer.add(ctx, payload, level)
}

// BroadcastAsync is Broadcast for who does not wait: it returns when the payload is on its way, and
// waits only while too much is. Nothing acknowledges the payload: if this node is excluded or
// ends then, nobody learns here whether others deliver it.
func (g *Group) BroadcastAsync(payload []byte) error {
	if err := g.takes(); err != nil {
		return err
	}
	return g.packer.post(payload, g.c.Level)
}

// Deliver takes a pack. It is part of a step of the machine.
func (g *Group) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	place := m.Seq
	if g.c.Level == kernel.Byzantine { // whose numbers are each sender's own
		place = m.Value
	}
	k := deliveredBatch{first: place << packBits, from: from, pack: m.Body}
	if g.c.Level == kernel.Byzantine && len(k.pack) < pinning {
		k.pack = slices.Clone(k.pack)
	}
	rest := unpack(k.pack, func(i int, payload []byte) {
		k.count = i + 1
		if g.c.Deliver != nil {
			g.c.Deliver(Delivery{k.first + uint64(i), from, payload})
		}
	})
	k.pack = k.pack[:len(k.pack)-len(rest)]
	if k.count > 0 { // of others a traitor can send any number, which have no bytes
		g.kept.add(k)
	}
	if from == g.k.Self {
		g.ours.Add(1)
		if tag, tagged := readTag(rest); tagged {
			g.packer.delivered(tag, k.first)
		}
	}
}

// pinning is below how many bytes a pack of a Byzantine order is copied: it has come in a
// batch of many, all of which would be held with it.
const pinning = 32 << 10

// Indicate takes what the machine says of views, or of its eras.
func (g *Group) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case group.Excluded, byzantine.Out:
		g.packer.close(kernel.ErrNotMember)
		g.kept.leave()
	case group.SnapshotInstalled, group.ReplayStarted:
		g.kept.begin(m.Seq << packBits)
	case byzantine.Restored:
		g.kept.begin(m.Value << packBits)
		g.open(int(m.Seq))
	case parley.View:
		g.open(0)
	}
}

// open takes payloads again, with so many packs under way. What gathered while it was closed
// goes when the step is over.
func (g *Group) open(away int) {
	g.packer.open(away)
	g.opened.Store(true)
}

// after is called when a step is over that delivered or indicated something.
func (g *Group) after() {
	if n := g.ours.Swap(0); n > 0 || g.opened.CompareAndSwap(true, false) {
		g.packer.back(int(n))
	}
	g.kept.wake()
}

// close ends what waits on the group.
func (g *Group) close(err error) {
	g.packer.end(err)
	g.kept.close(err)
}
