package cluster

import (
	"fmt"
	"sync/atomic"

	"parley"
	"parley/broadcast/problem"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/membership/expel"
)

// diskTold tells another node where the disk of the sender stands. Seq: the life of the sender. Value: the number of
// the last record on its disk, 0 if it has none.
const diskTold parley.Kind = expel.Told + 1

// expulsions are what the machine of package expel has decided.
type expulsions struct {
	votes  *host.Process
	closed []shutter // by node
}

// shutter says what is not taken of a node, and counts it.
type shutter struct {
	what    atomic.Uint64 // expel.Views or expel.All; 0: all is taken
	dropped atomic.Uint64
}

// openExpulsions opens the machine, before links can come up.
func (n *Node) openExpulsions() (err error) {
	n.admin.closed = make([]shutter, len(n.c.Members))
	p := expel.New(expel.Config{N: len(n.c.Members), M: n.c.M})
	n.admin.votes, err = n.k.Host.Open(host.Options{
		Channel: kernel.AdminChannel, Name: p.Name, Machine: p.New(n.k.Self), Upper: ejector{n}, Class: link.Urgent,
	})
	if err != nil {
		err = fmt.Errorf("cluster: %w", err)
	}
	return err
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
	if what == 0 || what == expel.Views && n.holdsAgainstLiars(channel) {
		return false
	}
	c.dropped.Add(1)
	return true
}

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
	n.lives.told(n.c.Members[from].Name, m.Seq, m.Value)
	n.links.tookUs(from)
	return nil
}

// ejector stands above the machine of package expel.
type ejector struct{ n *Node }

// Deliver takes nothing: the machine delivers nothing.
func (e ejector) Deliver(parley.ID, parley.Path, parley.Msg) {}

// Indicate takes who is shut out.
func (e ejector) Indicate(_ parley.Path, m parley.Msg) {
	n := e.n
	switch m.Kind {
	case expel.Shut:
		n.admin.closed[m.Origin].what.Store(m.Seq)
		n.c.Log.Warn("a member is expelled", "member", n.c.Members[m.Origin].Name, "life", m.Value,
			"liars", m.Seq == expel.All)
	case expel.Opened:
		n.admin.closed[m.Origin].what.Store(0)
	case expel.Expelled:
		n.admin.mu.Lock()
		defer n.admin.mu.Unlock()
		n.k.Shut(m.Seq)
		n.expelled()
	}
}

// expelled ends what this node is expelled from, when all has begun that may have to end. The
// lock is held.
func (n *Node) expelled() {
	if from := n.k.ShutFrom(); n.admin.ready && from != 0 {
		go n.out(from == expel.All) // not within a step
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
	if n.k.State() == Left {
		return
	}
	n.k.Became(Expelled)
	n.c.Log.Error("the others have expelled this node: it may come back when it is started again", "liars", all)
	n.groups.Expel(all)
	n.tables.Expel()
	n.admin.mu.Lock()
	for _, v := range n.admin.views {
		v.in = false
	}
	close(n.admin.moved)
	n.admin.moved = make(chan struct{})
	n.admin.mu.Unlock()
}
