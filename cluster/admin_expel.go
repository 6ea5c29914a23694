package cluster

import (
	"sync/atomic"

	"parley"
	"parley/broadcast/problem"
	"parley/cluster/link"
)

// adminChannel is the channel of what nodes say of each other.
const adminChannel = 2

// What nodes say on it.
const (
	// expelVote asks to shut a node out. Origin: the node. Value: its life, or an earlier one.
	expelVote parley.Kind = 1 + iota
	// expelTold tells a node that it is shut out. Value: its life. Seq: 1 if of what is to hold
	// in spite of liars, too.
	expelTold
	// diskTold tells where the sender's disk stands. Seq: the life of the sender. Value: the number of the last
	// record on its disk, 0 if it has none.
	diskTold
)

// What this node may be expelled from, beside nothing: what knows of crashes alone, or all.
const (
	expelledViews uint32 = 1 + iota
	expelledAll
)

// expulsions are those that a node knows of.
type expulsions struct {
	peers   []peer // by node
	closed  []shutter
	told    parley.Set // who has told this node that it is expelled
	toldAll parley.Set // and who that it is from all
}

// peer is what is known of another node.
type peer struct {
	life     uint64     // the newest that was connected
	expelled uint64     // the life that is shut out; 0: none
	votes    parley.Set // who asks for it
	mine     bool       // this node does
}

// shutter says what is not taken of a node, and counts it.
type shutter struct {
	what    atomic.Uint32
	dropped atomic.Uint64
}

// What is shut: what knows of crashes alone, and what holds in spite of liars.
const (
	shutCrash uint32 = 1 << iota
	shutLiars
)

func newExpulsions(n int) expulsions {
	return expulsions{peers: make([]peer, n), closed: make([]shutter, n)}
}

// readMembers reads the body of a view.
func readMembers(b []byte, n int) (parley.Set, error) {
	set, _, err := problem.ReadSet(b, n)
	return set, err
}

// refuses tells whether a frame of a node is not taken.
func (n *Node) refuses(from parley.ID, channel uint32) bool {
	c := &n.admin.closed[from]
	what := c.what.Load()
	if what == 0 {
		return false
	}
	against := shutCrash
	if n.holdsAgainstLiars(channel) {
		against = shutLiars
	}
	if what&against == 0 {
		return false
	}
	c.dropped.Add(1)
	return true
}

// holdsAgainstLiars tells whether what is on a channel is to hold in spite of liars.
func (n *Node) holdsAgainstLiars(channel uint32) bool {
	switch {
	case channel < firstGroup, channel >= firstStream && channel <= lastStream:
		return true
	case channel < firstTable:
		i := int(channel - firstGroup)
		return i < len(n.c.Groups) && n.c.Groups[i].Level == Byzantine
	}
	return channel >= commitChannel && n.c.Commit.Protocol == Agreed
}

// shut takes nothing more of a life of a node, of what knows of crashes or of all, and tells
// it so. The lock is held.
func (n *Node) shut(id parley.ID, life uint64, all bool) {
	if id == n.self {
		return
	}
	p, c := &n.admin.peers[id], &n.admin.closed[id]
	if life < p.life {
		return // it has come back since
	}
	before, what := c.what.Load(), shutCrash
	if all {
		what |= shutLiars
	}
	c.what.Store(before | what)
	p.expelled = life
	if before|what != before {
		n.c.Log.Warn("a member is expelled", "member", n.c.Members[id].Name, "life", life, "liars", all)
	}
	n.tell(id)
}

// tell tells a node what it is expelled from. The lock is held.
func (n *Node) tell(id parley.ID) {
	m := parley.Msg{Kind: expelTold, Value: n.admin.peers[id].expelled}
	if n.admin.closed[id].what.Load()&shutLiars != 0 {
		m.Seq = 1
	}
	n.say(id, m)
}

// say sends to another node's admin.
func (n *Node) say(to parley.ID, m parley.Msg) {
	if n.mesh.Send(to, link.Urgent, adminChannel, parley.Encode(nil, parley.Env{}, m), nil) {
		go n.mesh.Flush(to) // not within a step
	}
}

// voteAgainst asks all to shut a node out.
func (n *Node) voteAgainst(id parley.ID) {
	a := &n.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peers[id].mine = true
	n.vote(n.self, id, a.peers[id].life)
	for to := range parley.ID(len(n.c.Members)) {
		if to != n.self && to != id {
			n.say(to, parley.Msg{Kind: expelVote, Origin: id, Value: a.peers[id].life})
		}
	}
}

// vote counts what one node asks for: it takes one more than may lie. The lock is held.
func (n *Node) vote(from, id parley.ID, life uint64) {
	p := &n.admin.peers[id]
	if life < p.life {
		return // it has come back since
	}
	p.votes.Add(from)
	if p.votes.Len() > n.c.M {
		n.shut(id, p.life, true)
	}
}

// connected notes which life of a node there is now. One that is expelled is told, and another
// one is not: it is a later one, or those before it were forgotten.
func (n *Node) connected(id parley.ID, life uint64) {
	n.tellDisk(id)
	a := &n.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &a.peers[id]
	if life != p.life {
		*p = peer{life: life}
		a.closed[id].what.Store(0)
	} else if p.expelled != 0 {
		n.tell(id)
	}
	for other := range a.peers {
		if q := &a.peers[other]; q.mine && parley.ID(other) != id {
			n.say(id, parley.Msg{Kind: expelVote, Origin: parley.ID(other), Value: q.life})
		}
	}
}

// heard takes what another node's admin says.
func (n *Node) heard(from parley.ID, b []byte) error {
	_, m, err := parley.Decode(b)
	if err != nil {
		return err
	}
	a := &n.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case m.Kind == expelVote && int(m.Origin) < len(a.peers) && m.Origin != from && m.Origin != n.self &&
		a.closed[from].what.Load() == 0:
		n.vote(from, m.Origin, m.Value)
	case m.Kind == expelTold && m.Value == a.life:
		if a.told.Add(from); m.Seq == 1 {
			a.toldAll.Add(from)
		}
		n.expelled()
	case m.Kind == diskTold:
		n.lives.told(n.c.Members[from].Name, m.Seq, m.Value)
		n.links.tookUs(from)
	}
	return nil
}

// expelled counts who has told this node that it is expelled: it takes one more than may lie.
// It waits until all has begun that may have to end. The lock is held.
func (n *Node) expelled() {
	a := &n.admin
	from := uint32(0)
	switch {
	case !a.ready:
	case a.toldAll.Len() > n.c.M:
		from = expelledAll
	case a.told.Len() > n.c.M:
		from = expelledViews
	}
	if from > a.shut.Load() {
		a.shut.Store(from)
		go n.out(from == expelledAll)
	}
}

// begun is called when all is there that may have to end, and does what it was too early for.
func (n *Node) begun() error {
	n.admin.mu.Lock()
	defer n.admin.mu.Unlock()
	n.admin.ready = true
	n.expelled()
	return n.admin.broken
}

// out ends what this node is expelled from.
func (n *Node) out(all bool) {
	if n.admin.state() == Left {
		return
	}
	n.admin.became(Expelled)
	n.c.Log.Error("the others have expelled this node: it may come back when it is started again", "liars", all)
	for _, g := range n.groups {
		if all || g.c.Level != Byzantine {
			g.close(ErrExpelled)
			g.process.Close()
		}
	}
	for _, t := range n.tables {
		t.close(ErrExpelled)
		t.process.Close()
	}
	n.admin.mu.Lock()
	for _, v := range n.admin.views {
		v.in = false
	}
	close(n.admin.moved)
	n.admin.moved = make(chan struct{})
	n.admin.mu.Unlock()
}
