package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
)

// admin is how the node stands.
type admin struct {
	started time.Time
	life    uint64

	mu     sync.Mutex
	once   sync.Once // of Close
	err    error     // of it
	ready  bool      // all has begun that may have to end
	broken error     // why the node can not go on
	ending bool      // it is being closed, and begins nothing more
	work   sync.WaitGroup
}

// Leave leaves all groups and tables in order, and then closes the node: the others go on
// without it at once, and do not have to suspect it first. Where there are no views, in
// Byzantine groups and in agreements, it counts as silent from then on. It comes back by
// Join. If the context ends before, the node is closed all the same, and the error tells
// in what it was still a member; so it is if others leave at the same time, and too few stay.
// A majority of all nodes must stay: if only that is left, Leave does nothing and fails with
// ErrRefused. Close stops a node that need not leave.
func (n *Node) Leave(ctx context.Context) error {
	if err := n.members.MayLeave(); err != nil {
		return err
	}
	n.k.Became(Leaving)
	err := n.members.Leave(ctx)
	n.k.Became(Left)
	return errors.Join(err, n.Close())
}

// Drain takes no new requests, waits for what is under way, and leaves. It is refused where
// Leave is. If the context ends before, it leaves all the same, for as long as a leave may take, and the error tells.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.members.MayLeave(); err != nil {
		return err
	}
	n.k.Became(Draining)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n.busy() {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		t := n.c.Times.WithDefaults()
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Suspect+t.Flush+2*t.Retry)
		err := n.Leave(short)
		cancel()
		return errors.Join(fmt.Errorf("cluster: not all that was under way is done: %w", context.Cause(ctx)), err)
	}
	return n.Leave(ctx)
}

// busy tells whether anything is under way that this node was asked for.
func (n *Node) busy() bool {
	return n.groups.Busy() || n.tables.Busy() || n.agree.Busy() || n.commits.Busy()
}

// Forget has this node forget what it knows of another one's lives and of its disk, and let in whoever comes next with
// a certificate of that name. It is for a node that is refused though it is the right one, such as after somebody else
// held its key. It fails with [ErrRefused] while the other node is connected, for then it is believed.
func (n *Node) Forget(name string) error {
	id, err := n.other(name, "forget")
	if err != nil {
		return err
	}
	if up, _ := n.mesh.Others(); up.Has(id) {
		return fmt.Errorf("%w: %s is connected and believed: stop it, or revoke its certificate, before it is forgotten",
			ErrRefused, name)
	}
	n.c.Log.Warn("what was known of a node is forgotten, because an administrator asked for it", "member", name)
	return n.lives.Forget(name)
}

// other is another member of a name.
func (n *Node) other(name, verb string) (parley.ID, error) {
	i := slices.IndexFunc(n.c.Members, func(m Member) bool { return m.Name == name })
	switch {
	case i < 0:
		return 0, fmt.Errorf("%w: %q is none of the %d members", ErrRefused, name, len(n.c.Members))
	case parley.ID(i) == n.k.Self:
		return 0, fmt.Errorf("%w: a node does not %s itself", ErrRefused, verb)
	}
	return parley.ID(i), nil
}

// Expel excludes a member from all groups and tables, by agreement of their members. It
// returns when it is out of all those in which this node is. The member learns it, and all
// that it is asked for there is [ErrExpelled]. It comes back only as another life, by Join.
//
// What is to hold in spite of liars takes no single node's word: from Byzantine groups,
// agreements and transactions by these a member is shut out when m+1 nodes have been asked
// to expel it, and until then it goes on in them. It learns of either from m+1 nodes.
func (n *Node) Expel(ctx context.Context, name string) error {
	id, err := n.other(name, "expel")
	if err != nil {
		return err
	}
	if err := n.k.Takes(false); err != nil {
		return err
	}
	return n.members.Expel(ctx, id)
}
