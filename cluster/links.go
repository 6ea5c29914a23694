package cluster

import (
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/membership/detector"
	"parley/membership/expel"
)

// carrier takes what comes on the links.
type carrier struct{ n *Node }

func (c carrier) Frame(from parley.ID, channel uint32, b []byte) {
	if c.n.c.hooks.hear != nil {
		c.n.c.hooks.hear(from, channel, b)
	}
	if channel == kernel.AdminChannel {
		if err := c.n.heard(from, b); err != nil && c.n.mesh.Due(from) {
			c.n.c.Log.Warn("what a node says of others is no message", "from", c.n.k.Name(from), "why", err)
		}
		return
	}
	if c.n.members.Refuses(from, c.n.holdsAgainstLiars(channel)) {
		return
	}
	if err := c.n.k.Host.Frame(from, channel, b); err != nil && c.n.mesh.Due(from) {
		c.n.c.Log.Warn("frames that are no messages", "from", c.n.k.Name(from), "channel", channel,
			"why", err, "so far", c.n.k.Host.Malformed(from))
	}
}

func (c carrier) Burst(parley.ID) { c.n.k.Host.Flush() }

func (c carrier) Up(id parley.ID, life uint64) {
	c.n.members.Tell(parley.Msg{Kind: detector.Mended, Origin: id})
	c.n.tellDisk(id)
	c.n.members.Linked(id, life)
}

func (c carrier) Down(id parley.ID, _ error) {
	select {
	case c.n.stood.parted <- struct{}{}:
	default:
	}
	c.n.members.Tell(parley.Msg{Kind: detector.Broke, Origin: id})
}

// linkGrace is how long a link must be broken before the other nodes hear of it: who lives is
// connected again sooner, for a link that held is dialed at once.
const linkGrace = 4 * time.Millisecond

// diskTold tells another node where the disk of the sender stands. Seq: the life of the sender. Value: the number of
// the last record on its disk, 0 if it has none.
const diskTold parley.Kind = expel.Told + 1

// holdsAgainstLiars tells whether what is on a channel is to hold in spite of liars.
func (n *Node) holdsAgainstLiars(channel uint32) bool {
	switch {
	case channel < kernel.FirstGroup, channel >= kernel.FirstStream && channel <= kernel.LastStream:
		return true
	case channel < kernel.FirstTable:
		return n.groups.AgainstLiars(channel)
	}
	return channel >= kernel.CommitChannel && n.c.Commit.Protocol == Agreed
}

// say sends to another node's admin.
func (n *Node) say(to parley.ID, m parley.Msg) {
	if n.mesh.Send(to, link.Urgent, kernel.AdminChannel, parley.Encode(nil, parley.Env{}, m), nil) {
		n.mesh.Flush(to)
	}
}

// heard takes what another node's admin says.
func (n *Node) heard(from parley.ID, b []byte) error {
	_, m, err := parley.Decode(b)
	if err != nil || m.Kind != diskTold {
		return n.k.Host.Frame(from, kernel.AdminChannel, b)
	}
	n.lives.Told(n.k.Name(from), m.Seq, m.Value)
	n.mesh.LetIn(from)
	return nil
}

// diskEvery is how often a node tells the others where its disk stands, and rememberEvery how often it writes down
// what they told; it also does so when a connection has ended.
const (
	diskEvery     = time.Second
	rememberEvery = time.Minute
)

// stand tells the others where this node's disk stands, and has what they tell remembered, until the node ends. A node
// that is refused now stops.
func (n *Node) stand() {
	beat := time.NewTicker(diskEvery)
	defer beat.Stop()
	for beats := 1; ; beats++ {
		var remember bool
		select {
		case <-n.stood.end:
			return
		case <-n.stood.parted:
			remember = true
		case <-beat.C:
			for id := range parley.ID(len(n.c.Members)) {
				if id != n.k.Self {
					n.tellDisk(id)
				}
			}
			if _, refusing := n.mesh.Others(); refusing.Len() > n.c.M { // who was not there when this node began
				n.broken(ErrForgotten)
				return
			}
			remember = beats%int(rememberEvery/diskEvery) == 0
		}
		if remember {
			_ = n.lives.Keep() // a disk that fails stops the node by itself
		}
	}
}

// tellDisk tells another node where this one's disk stands: by it the other one also knows that it was let in.
func (n *Node) tellDisk(to parley.ID) {
	var position uint64
	if n.k.Store != nil {
		position = n.k.Store.Position()
	}
	n.say(to, parley.Msg{Kind: diskTold, Seq: n.lives.Own(), Value: position})
}
