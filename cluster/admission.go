package cluster

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/cluster/lives"
	"parley/cluster/mesh"
	"parley/membership/expel"
)

// admission is whether the others let this node in, which depends on its disk: it tells them where that stands, and
// remembers what they tell of theirs. More nodes that refuse it than may lie end it.
type admission struct {
	k       *kernel.Kernel
	mesh    *mesh.Mesh
	lives   *lives.Book
	refused func(error) // called when the node is refused after it has begun

	parted chan struct{} // gets something when a connection has ended
	end    chan struct{} // closed when it is to end; nil: it has not begun
	done   chan struct{} // closed when it has ended
}

// ErrStaleIncarnation is the error of a node that the others refuse because they know a later incarnation of it, or
// more of its records than its folder has. The folder is lost or an old copy, or another process has its name.
var ErrStaleIncarnation = errors.New("the other nodes know a later life of this one, or more of it than its folder " +
	"has, and refuse it: if its folder is lost or an old copy, start it with an empty one and say that it rejoins " +
	"(--rejoin)")

// patience is how long a node waits for the others when the cluster begins: a node that is not
// there when the first view begins would be excluded, and have to join.
const patience = 10 * time.Second

// gather waits until all others are connected, or for some time. A node that comes back finds others that do not wait
// for it: again is how long it waits.
func (a *admission) gather(ctx context.Context, again time.Duration) error {
	wait := patience
	if a.k.Again {
		wait = again
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for all := len(a.k.Members) - 1; ; {
		up, refusing := a.mesh.Others()
		switch {
		case refusing.Len() > a.k.M: // not all of them lie
			return ErrStaleIncarnation
		case up.Len() == all:
			return ctx.Err()
		}
		if why := a.k.Broken(); why != nil { // the disk has failed, perhaps
			return why
		}
		select {
		case <-look.C:
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		for id := range refusing.All() { // one that lies, perhaps
			a.k.Log.Warn("another node knows a later life of this one, or more of it than its folder has: "+
				"the folder may be lost, or an old copy", "peer", a.k.Name(id))
		}
		return ctx.Err()
	}
}

// diskEvery is how often a node tells the others where its disk stands, and rememberEvery how often it writes down
// what they told; it also does so when a connection has ended.
const (
	diskEvery     = time.Second
	rememberEvery = time.Minute
)

// begin begins to tell the others where this node's disk stands.
func (a *admission) begin() {
	a.end, a.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(a.done)
		a.run()
	}()
}

func (a *admission) run() {
	beat := time.NewTicker(diskEvery)
	defer beat.Stop()
	for beats := 1; ; beats++ {
		var remember bool
		select {
		case <-a.end:
			return
		case <-a.parted:
			remember = true
		case <-beat.C:
			for id := range parley.ID(len(a.k.Members)) {
				if id != a.k.Self {
					a.tell(id)
				}
			}
			if _, refusing := a.mesh.Others(); refusing.Len() > a.k.M { // by nodes that were not there when it began
				a.refused(ErrStaleIncarnation)
				return
			}
			remember = beats%int(rememberEvery/diskEvery) == 0
		}
		if remember {
			_ = a.lives.Keep() // a disk that fails stops the node by itself
		}
	}
}

// close ends what begin began.
func (a *admission) close() {
	if a.end != nil {
		close(a.end)
		<-a.done
	}
}

// part has what is known of disks written down, because a connection has ended.
func (a *admission) part() {
	select {
	case a.parted <- struct{}{}:
	default:
	}
}

// diskTold tells another node where the disk of the sender stands. Seq: the life of the sender. Value: the number of
// the last record on its disk, 0 if it has none.
const diskTold parley.Kind = expel.Told + 1

// tell tells another node where this one's disk stands: by it the other one also knows that it was let in.
func (a *admission) tell(to parley.ID) {
	m := parley.Msg{Kind: diskTold, Seq: a.k.Life}
	if a.k.Store != nil {
		m.Value = a.k.Store.Position()
	}
	if a.mesh.Send(to, link.Urgent, kernel.AdminChannel, parley.Encode(nil, parley.Env{}, m), nil) {
		a.mesh.Flush(to)
	}
}

// heard takes what another node says of its disk, or votes.
func (a *admission) heard(from parley.ID, b []byte) error {
	_, m, err := parley.Decode(b)
	if err != nil || m.Kind != diskTold {
		return a.k.Host.Frame(from, kernel.AdminChannel, b)
	}
	a.lives.Told(a.k.Name(from), m.Seq, m.Value)
	a.mesh.LetIn(from)
	return nil
}
