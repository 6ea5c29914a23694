package cluster

import (
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/membership/detector"
)

// frameHandler handles frames and events of the links.
type frameHandler struct{ n *Node }

// Frame passes a frame to its machine, unless the sender is expelled.
func (c frameHandler) Frame(from parley.ID, channel uint32, b []byte) {
	n := c.n
	if n.c.hooks.Hear != nil {
		n.c.hooks.Hear(from, channel, b)
	}
	if channel == kernel.AdminChannel {
		if err := n.admission.heard(from, b); err != nil && n.mesh.Due(from) {
			n.k.Log.Warn("report of a node is malformed; dropped", "from", n.k.Name(from), "err", err)
		}
		return
	}
	if n.members.Refuses(from, c.againstLiars(channel)) {
		return
	}
	if err := n.k.Host.Frame(from, channel, b); err != nil && n.mesh.Due(from) {
		n.k.Log.Warn("frame is malformed; dropped", "from", n.k.Name(from), "channel", channel,
			"err", err, "count", n.k.Host.Malformed(from))
	}
}

// againstLiars reports whether the service on a channel tolerates Byzantine faults.
func (c frameHandler) againstLiars(channel uint32) bool {
	switch {
	case channel < kernel.FirstGroup, channel >= kernel.FirstStream && channel <= kernel.LastStream:
		return true
	case channel < kernel.FirstTable:
		return c.n.groups.AgainstLiars(channel)
	case channel < kernel.FirstStream || channel >= kernel.FirstTableOrder:
		return c.n.tables.AgainstLiars(channel)
	}
	return channel >= kernel.CommitChannel && c.n.c.Commit.Protocol == Agreed
}

// Burst sends the messages that machines produced while handling the frames.
func (c frameHandler) Burst(parley.ID) { c.n.k.Host.Flush() }

// Up sends this node's disk position to a reconnected node, and notifies machines of the connection.
func (c frameHandler) Up(id parley.ID, life uint64) {
	c.n.members.Tell(parley.Msg{Kind: detector.Mended, Origin: id})
	c.n.admission.tell(id)
	c.n.members.Linked(id, life)
}

// Down notifies machines that a link has broken.
func (c frameHandler) Down(id parley.ID, _ error) {
	c.n.admission.part()
	c.n.members.Tell(parley.Msg{Kind: detector.Broke, Origin: id})
}

// linkGrace is how long a link must be broken before machines are notified. A running node is reconnected sooner,
// because a link that worked is dialed again at once.
const linkGrace = 4 * time.Millisecond
