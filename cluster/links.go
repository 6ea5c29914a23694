package cluster

import (
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/membership/detector"
)

// frameHandler takes what comes on the links.
type frameHandler struct{ n *Node }

// Frame gives a frame to the machine that it is for, unless its sender is expelled.
func (c frameHandler) Frame(from parley.ID, channel uint32, b []byte) {
	n := c.n
	if n.c.hooks.Hear != nil {
		n.c.hooks.Hear(from, channel, b)
	}
	if channel == kernel.AdminChannel {
		if err := n.admission.heard(from, b); err != nil && n.mesh.Due(from) {
			n.k.Log.Warn("what a node says of others is no message", "from", n.k.Name(from), "why", err)
		}
		return
	}
	if n.members.Refuses(from, c.againstLiars(channel)) {
		return
	}
	if err := n.k.Host.Frame(from, channel, b); err != nil && n.mesh.Due(from) {
		n.k.Log.Warn("frames that are no messages", "from", n.k.Name(from), "channel", channel,
			"why", err, "so far", n.k.Host.Malformed(from))
	}
}

// againstLiars tells whether what is on a channel holds although some members lie.
func (c frameHandler) againstLiars(channel uint32) bool {
	switch {
	case channel < kernel.FirstGroup, channel >= kernel.FirstStream && channel <= kernel.LastStream:
		return true
	case channel < kernel.FirstTable:
		return c.n.groups.AgainstLiars(channel)
	}
	return channel >= kernel.CommitChannel && c.n.c.Commit.Protocol == Agreed
}

// Burst sends what the frames have made machines say.
func (c frameHandler) Burst(parley.ID) { c.n.k.Host.Flush() }

// Up tells a node that is connected again where this one's disk stands, and machines that it is there.
func (c frameHandler) Up(id parley.ID, life uint64) {
	c.n.members.Tell(parley.Msg{Kind: detector.Mended, Origin: id})
	c.n.admission.tell(id)
	c.n.members.Linked(id, life)
}

// Down tells machines that a link has broken.
func (c frameHandler) Down(id parley.ID, _ error) {
	c.n.admission.part()
	c.n.members.Tell(parley.Msg{Kind: detector.Broke, Origin: id})
}

// linkGrace is how long a link must be broken before machines hear of it: a node that lives is
// connected again sooner, because a link that held is dialed at once.
const linkGrace = 4 * time.Millisecond
