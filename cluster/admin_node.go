package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/membership/expel"
	"parley/membership/group"
)

// admin is how the node stands.
type admin struct {
	started time.Time
	life    uint64

	mu     sync.Mutex
	moved  chan struct{}    // closed when a view changes
	views  map[string]*view // by machine
	once   sync.Once        // of Close
	err    error            // of it
	ready  bool             // all has begun that may have to end
	broken error            // why the node can not go on
	expulsions
}

// view is what this node knows of the views of one machine.
type view struct {
	process   *host.Process // when it has been opened
	suspects  bool          // that machine, who crashes: it is told of links that break
	in        bool
	number    uint64
	members   parley.Set
	suspected parley.Set
}

// watched is what stands above a machine with views.
type watched struct {
	host.Upper
	n *Node
	v *view
}

// watched opens a machine with views, with the node above it, beneath what stands above it already.
func (n *Node) watched(o host.Options, suspects bool) (*host.Process, error) {
	v := new(view)
	n.admin.mu.Lock()
	n.admin.views[o.Name] = v
	n.admin.mu.Unlock()
	o.Upper = watched{o.Upper, n, v}
	p, err := n.k.Host.Open(o)
	if err == nil {
		n.admin.mu.Lock()
		v.process, v.suspects = p, suspects
		n.admin.mu.Unlock()
	}
	return p, err
}

// Indicate takes what the machine says of views, before what is above it hears of it.
func (w watched) Indicate(path parley.Path, m parley.Msg) {
	a := &w.n.admin
	a.mu.Lock()
	switch m.Kind {
	case parley.View:
		members, err := readMembers(m.Body, len(w.n.c.Members))
		if err != nil {
			panic(err) // the machine of this node wrote it
		}
		w.v.number, w.v.members, w.v.suspected = m.Seq, members, parley.Set{}
		w.v.in = members.Has(w.n.k.Self)
	case group.Out:
		w.v.in = false
	case parley.Suspect:
		w.v.suspected.Add(m.Origin)
	}
	if m.Kind == parley.View || m.Kind == group.Out {
		close(a.moved)
		a.moved = make(chan struct{})
	}
	a.mu.Unlock()
	if m.Kind == group.Excluded {
		a.votes.Beside(parley.Msg{Kind: expel.Excluded, Origin: m.Origin})
	}
	w.Upper.Indicate(path, m)
}

// until waits for something to become true of the views, and returns those of which it is not when the context or
// the node ends, and why that is.
func (n *Node) until(ctx context.Context, f func(v *view) bool) (missing []string, why error) {
	a := &n.admin
	for {
		a.mu.Lock()
		missing = nil
		for name, v := range a.views {
			if !f(v) {
				missing = append(missing, name)
			}
		}
		moved := a.moved
		a.mu.Unlock()
		if len(missing) == 0 {
			return nil, nil
		}
		select {
		case <-moved:
			continue
		case <-ctx.Done():
			why = context.Cause(ctx)
		case <-n.ended:
			why = n.k.Closed()
		}
		slices.Sort(missing)
		return missing, why
	}
}

// ask asks something of all machines with views.
func (n *Node) ask(m parley.Msg, which func(v *view) bool) error {
	n.admin.mu.Lock()
	var all []*host.Process
	for _, v := range n.admin.views {
		if which(v) && v.process != nil {
			all = append(all, v.process)
		}
	}
	n.admin.mu.Unlock()
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Request(m))
	}
	return errors.Join(errs...)
}

// Leave leaves all groups and tables in order, and then closes the node: the others go on
// without it at once, and do not have to suspect it first. Where there are no views, in
// Byzantine groups and in agreements, it counts as silent from then on. It comes back by
// Join. If the context ends before, the node is closed all the same, and the error tells
// in what it was still a member; so it is if others leave at the same time, and too few stay.
// A majority of all nodes must stay: if only that is left, Leave does nothing and fails with
// ErrRefused. Close stops a node that need not leave.
func (n *Node) Leave(ctx context.Context) error {
	if err := n.mayLeave(); err != nil {
		return err
	}
	n.k.Became(Leaving)
	in := func(v *view) bool { return v.in }
	err := n.ask(parley.Msg{Kind: group.Leave}, in)
	majority := len(n.c.Members)/2 + 1 // that others who leave may leave behind: this one then ends as a member
	still, why := n.until(ctx, func(v *view) bool { return !v.in || v.members.Len() == majority && majority > 1 })
	if still != nil {
		err = errors.Join(err, fmt.Errorf("cluster: still a member of %v: %w", still, why))
	} else {
		err = errors.Join(err, n.mayLeave())
	}
	n.k.Became(Left)
	return errors.Join(err, n.Close())
}

// mayLeave tells whether a majority of all nodes stays in each view without this one.
func (n *Node) mayLeave() error {
	if n.k.Broken() != nil || n.k.State() == Left {
		return n.k.Closed()
	}
	n.admin.mu.Lock()
	defer n.admin.mu.Unlock()
	all := len(n.c.Members)
	for name, v := range n.admin.views {
		if rest := v.members.Len() - 1; v.in && all > 1 && rest < all/2+1 {
			return fmt.Errorf("%w: %s has %d members, and %d of %d nodes must stay: stop this node instead",
				ErrRefused, name, rest+1, all/2+1, all)
		}
	}
	return nil
}

// Drain takes no new requests, waits for what is under way, and leaves. It is refused where
// Leave is. If the context ends before, it leaves all the same, for as long as a leave may take, and the error tells.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.mayLeave(); err != nil {
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
	if up, _ := n.others(); up.Has(id) {
		return fmt.Errorf("%w: %s is connected and believed: stop it, or revoke its certificate, before it is forgotten",
			ErrRefused, name)
	}
	n.c.Log.Warn("what was known of a node is forgotten, because an administrator asked for it", "member", name)
	return n.lives.forget(name)
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
	n.c.Log.Info("a member is to be expelled", "member", name)
	if err := n.admin.votes.Request(parley.Msg{Kind: parley.Propose, Body: fmt.Append(nil, id+1)}); err != nil {
		return err
	}
	with := func(v *view) bool { return v.in && v.members.Has(id) }
	if err := n.ask(parley.Msg{Kind: group.Exclude, Origin: id}, with); err != nil {
		return err
	}
	if still, why := n.until(ctx, func(v *view) bool { return !with(v) }); still != nil {
		return fmt.Errorf("cluster: %s is still a member of %v: %w", name, still, why)
	}
	return nil
}
