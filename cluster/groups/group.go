// Package groups implements a node's service for groups, in which members broadcast. The level of a group
// determines what is promised about its deliveries, such as total order.
//
// # Decisions
//
// Payloads are sent in batches. In each group, a node has at most four batches in flight. (In a Byzantine order it
// may have more, if the batches are nearly full.) Meanwhile the node collects further payloads in the next batch.
// Motive: a node sends a single payload at once, and many payloads share the cost of one message. Cost: a position
// consists of the number of a batch and an index in the batch.
//
// A subscription is a cursor into the history of deliveries; it has no buffer of its own. A group retains its latest
// batches, whether or not a subscriber reads them. If the group drops a batch before a subscription has read it, the
// subscription fails. Motive: a slow reader costs nothing, and a resumed subscription works like a new one. Cost: the
// group may use memory for deliveries that no subscriber reads.
//
// If a caller waits for the delivery of a batch, the node appends a tag to the batch. By this tag, the node
// recognizes the batch when it is delivered. Motive: the order of deliveries does not identify a batch, because a
// group may mix levels, and because batches of an earlier incarnation may arrive, too. Cost: a tag takes 13 bytes.
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
	"parley/cluster/protocols"
	"parley/membership/group"
)

// Delivery is one payload that a group has delivered.
type Delivery struct {
	// Position grows with every delivery and is never 0. With the levels Total, Atomic, and Byzantine, a
	// payload has the same position at all members. With the other levels positions are local to this member.
	// A position consists of a batch's place in the order and the payload's index in the batch.
	Position uint64
	From     parley.ID // the node that broadcast the payload, as an index of the members
	Payload  []byte    // must not be modified
}

// batchBits is how many bits of a position are the payload's index in its batch.
const batchBits = 16

// Config configures one group. Name and Level must be identical on all nodes.
type Config struct {
	Name  string
	Level kernel.Level
	// Keep and KeepBytes limit the number and the bytes of the deliveries that are retained for subscriptions. The
	// oldest deliveries are dropped first. By default Keep is 65536. By default KeepBytes is the group's share of 256
	// MiB, but at least 1 MiB and at most 16 MiB. In a durable group at most the newest 8 MiB survive a restart or
	// exclusion of a member. In a durable group of level Byzantine, 8 to 16 MiB survive, if as many were delivered.
	Keep, KeepBytes int
	// Deliver, if set, is called for each delivery, in order, on the goroutine of the machine's step. It must
	// not block, and must not call the group. After a restart or an exclusion, a durable node calls Deliver
	// again for the retained deliveries, with their original positions.
	Deliver func(Delivery)

	// from and live, if set, are called within a step of a Byzantine group: see kernel.Orderly.
	from func(position uint64)
	live func()
}

// withDefaults fills in the defaults of one of the given number of groups.
func (c Config) withDefaults(groups int) Config {
	c.Keep = cmp.Or(c.Keep, 1<<16)
	if c.KeepBytes == 0 { // more would touch fresh memory, which costs more than the rest of a batch
		c.KeepBytes = max(1<<20, min(16<<20, (256<<20)/max(1, groups)))
	}
	return c
}

// mostByzantine is how many members a Byzantine order may have.
const mostByzantine = 13

// Check returns an error if n nodes cannot have the listed groups.
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
			return fmt.Errorf("group %s: keep is %d deliveries and %d bytes: at least 1 is needed, 0 means the default",
				g.Name, g.Keep, g.KeepBytes)
		}
	}
	return nil
}

// Group is this node's membership in one group. Its methods are safe for concurrent use.
type Group struct {
	c            Config
	k            *kernel.Kernel
	process      *host.Process
	batcher      *batcher
	kept         history
	absent       error        // error of all calls, for a group that is not configured
	ownDelivered atomic.Int32 // own batches delivered, not yet reported to the batcher
	reopened     atomic.Bool  // opened again, not yet reported to it
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
		deep = protocols.DeepBatches
	}
	g.batcher = newBatcher(views.Payload, deep, func(pack []byte, level kernel.Level) error {
		err := g.process.Request(parley.Msg{Kind: parley.Carried, Value: uint64(protocols.VectorLevels[level]), Body: pack})
		if errors.Is(err, host.ErrStopped) {
			err = fmt.Errorf("%w: %w", s.k.Closed(), err)
		}
		return err
	})
	p, err := s.protocol(g.c)
	if err == nil && c.Level == kernel.Byzantine && s.durable(c) {
		err = s.sameMembers(c)
	}
	if err == nil {
		o := host.Options{
			Channel: channel, Name: machine(c.Name), Upper: g, After: g.after, Again: s.k.Again, Class: link.Bulk,
		}
		if o.Machine = p.New(s.k.Self); c.Level == kernel.Byzantine {
			o.Machine, o.Again = s.k.Play(p), s.forgot(c)
		}
		g.process, err = s.k.Watched(o, c.Level != kernel.Byzantine)
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", c.Name, err)
	}
	return g, nil
}

// forgot reports whether a Byzantine group that has no records on this node may have run here before.
func (s *Service) forgot(c Config) bool {
	if s.durable(c) {
		return !s.k.Intact
	}
	return s.k.Again || s.k.Rejoin
}

// machine returns the name of a group's machine.
func machine(group string) string { return "group/" + group }

// noGroup returns a group that is not configured: all calls fail with err.
func noGroup(err error) *Group {
	g := &Group{absent: err}
	g.kept.init(1, 1)
	g.kept.close(err)
	return g
}

// takes returns an error if the group accepts no new payloads.
func (g *Group) takes() error {
	if g.absent != nil {
		return g.absent
	}
	err := g.k.Takes(g.c.Level == kernel.Byzantine)
	if err != nil || !g.k.Views.Durable {
		return err
	}
	return g.k.HasRoom()
}

// Level returns the level of the group.
func (g *Group) Level() kernel.Level { return g.c.Level }

// Broadcast broadcasts payload to all members at the group's level. It returns the payload's position when this
// node has delivered it. On a durable node the payload is then on disk.
//
// The level determines what the other members do after Broadcast has returned without an error. With Total, Atomic,
// and Uniform, all remaining members deliver the payload, even if this node crashes now. With Byzantine, all correct
// members deliver it, and in a durable group even if all members lose power now. With Reliable, FIFO, and Causal, this
// node delivers its own payload at once. If the node remains a member, the others also deliver it. If the node crashes
// now, possibly no other member delivers it.
//
// If the error matches [kernel.ErrUnknown], the payload may have been delivered, or may still be delivered: ctx ended
// while it was in flight, or this node was excluded or closed. With every other error the payload is never delivered.
// The error matches [kernel.ErrRefused] if ctx ended before there was room.
func (g *Group) Broadcast(ctx context.Context, payload []byte) (position uint64, err error) {
	return g.BroadcastAt(ctx, g.c.Level, payload)
}

// BroadcastAt is like Broadcast, but with a level for this payload. A group of level Reliable, Uniform, FIFO,
// or Causal accepts payloads of these four levels. For example, a FIFO payload is delivered after all
// payloads that its sender broadcast before, and a Reliable payload when it arrives.
func (g *Group) BroadcastAt(ctx context.Context, level kernel.Level, payload []byte) (position uint64, err error) {
	if err := g.takes(); err != nil {
		return 0, err
	}
	if !g.c.Level.Carries(level) {
		return 0, fmt.Errorf("%w: a group of level %s does not promise level %s", kernel.ErrRefused, g.c.Level, level)
	}
	return g.batcher.add(ctx, payload, level)
}

// BroadcastAsync submits payload and returns without waiting for its delivery. It blocks only while too many
// payloads are in flight. Delivery is never acknowledged: if this node is excluded or ends, it does not learn
// whether the others deliver the payload.
func (g *Group) BroadcastAsync(payload []byte) error {
	if err := g.takes(); err != nil {
		return err
	}
	return g.batcher.post(payload, g.c.Level)
}

// Deliver handles a delivered batch. It is part of a step of the machine.
func (g *Group) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	place := m.Seq
	if g.c.Level == kernel.Byzantine { // whose sequence numbers are each sender's own
		place = m.Value
	}
	k := deliveredBatch{first: place << batchBits, from: from, body: m.Body}
	if g.c.Level == kernel.Byzantine && len(k.body) < pinning {
		k.body = slices.Clone(k.body)
	}
	rest := unpack(k.body, func(i int, payload []byte) {
		k.count = i + 1
		if g.c.Deliver != nil {
			g.c.Deliver(Delivery{k.first + uint64(i), from, payload})
		}
	})
	k.body = k.body[:len(k.body)-len(rest)]
	tag, tagged := readTag(rest)
	if g.c.from != nil && (k.count == 0 || len(rest) > 0 && !tagged && k.count < mostPayloads) {
		g.c.Deliver(Delivery{k.first + uint64(k.count), from, rest}) // of a traitor: the order keeps it, so it counts
	}
	if k.count > 0 { // of others a traitor can send any number, which have no bytes
		g.kept.add(k)
	}
	if from == g.k.Self {
		g.ownDelivered.Add(1)
		if tagged {
			g.batcher.delivered(tag, k.first)
		}
	}
}

// pinning is the size in bytes below which a batch of a Byzantine order is copied: it aliases a message with many
// batches, which would be retained with it.
const pinning = 32 << 10

// Indicate handles the machine's indications: of views, or that it is out, admitted, or has missed deliveries.
func (g *Group) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case group.Excluded:
		g.batcher.close(kernel.ErrNotMember)
		g.kept.leave()
	case byzantine.Out: // it delivers what the others tell, and has no part in the order
		g.batcher.close(kernel.ErrNotMember)
	case group.SnapshotInstalled, group.ReplayStarted:
		g.kept.begin(m.Seq << batchBits)
	case byzantine.Skipped, byzantine.Repeats:
		g.batcher.close(kernel.ErrNotMember) // own payloads may be among those that this node has missed
		g.kept.begin(m.Seq << batchBits)
		if g.c.from != nil {
			g.c.from(m.Seq << batchBits)
		}
	case byzantine.Admitted:
		g.open()
		if g.c.live != nil {
			g.c.live()
		}
	case parley.View:
		g.open()
	}
}

// open accepts payloads again. Payloads that gathered meanwhile are sent when the step ends.
func (g *Group) open() {
	g.batcher.open()
	g.reopened.Store(true)
}

// after is called at the end of a step that delivered or indicated something.
func (g *Group) after() {
	if n := g.ownDelivered.Swap(0); n > 0 || g.reopened.CompareAndSwap(true, false) {
		g.batcher.back(int(n))
	}
	g.kept.wake()
}

// close ends all waiting calls with an error.
func (g *Group) close(err error) {
	g.batcher.end(err)
	g.kept.close(err)
}
