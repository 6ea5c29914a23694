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

// admission handles whether the others admit this node, which depends on its disk: it sends them the position of
// this node's disk, and remembers theirs. If more than M nodes refuse this node, it fails with
// ErrStaleIncarnation.
type admission struct {
	k       *kernel.Kernel
	mesh    *mesh.Mesh
	lives   *lives.Book
	refused func(error) // called if the node is refused after begin

	parted chan struct{} // signaled when a connection has ended
	end    chan struct{} // closed to stop run; nil before begin
	done   chan struct{} // closed when run has returned
}

// ErrStaleIncarnation is the error of a node that the other nodes refuse. They know a later incarnation of the node,
// or more of its records than its folder holds. The folder was lost or is an old copy, or another process uses the
// node's name.
var ErrStaleIncarnation = errors.New("the other nodes have seen a newer incarnation of this node, or more records " +
	"than its data folder has, and refuse it: if the folder was lost or restored from a copy, empty it and start with " +
	"--rejoin")

// patience is how long a starting cluster waits for all nodes. A node that is missing when the first view begins
// would be excluded and have to join.
const patience = 10 * time.Second

// gather waits until all others are connected, but at most patience; a restarted node waits at most again,
// because the others do not wait for it.
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
		case refusing.Len() > a.k.M: // not all of them are faulty
			return ErrStaleIncarnation
		case up.Len() == all:
			return ctx.Err()
		}
		if why := a.k.Broken(); why != nil { // such as a failed disk
			return why
		}
		select {
		case <-look.C:
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		for id := range refusing.All() { // possibly faulty
			a.k.Log.Warn("a peer has seen a newer incarnation or more records of this node; its folder may be lost "+
				"or an old copy", "peer", a.k.Name(id))
		}
		return ctx.Err()
	}
}

// diskEvery is how often a node sends its disk position to the others. rememberEvery is how often it writes down
// theirs; it also does so when a connection ends.
const (
	diskEvery     = time.Second
	rememberEvery = time.Minute
)

// begin starts sending this node's disk position to the others.
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
			if _, refusing := a.mesh.Others(); refusing.Len() > a.k.M { // by nodes that were not connected at the start
				a.refused(ErrStaleIncarnation)
				return
			}
			remember = beats%int(rememberEvery/diskEvery) == 0
		}
		if remember {
			_ = a.lives.Keep() // a failing disk stops the node anyway
		}
	}
}

// close ends what begin started.
func (a *admission) close() {
	if a.end != nil {
		close(a.end)
		<-a.done
	}
}

// part has the known disk positions written down because a connection has ended.
func (a *admission) part() {
	select {
	case a.parted <- struct{}{}:
	default:
	}
}

// diskTold notifies a node of the sender's disk position. Seq: incarnation of the sender. Value: number of the
// last record on its disk, 0 if none.
const diskTold parley.Kind = expel.Told + 1

// tell sends this node's disk position to another node, which also learns from it that it was admitted.
func (a *admission) tell(to parley.ID) {
	m := parley.Msg{Kind: diskTold, Seq: a.k.Life}
	if a.k.Store != nil {
		m.Value = a.k.Store.Position()
	}
	if a.mesh.Send(to, link.Urgent, kernel.AdminChannel, parley.Encode(nil, parley.Env{}, m), nil) {
		a.mesh.Flush(to)
	}
}

// heard handles an administrative message: a disk position, or a vote to expel.
func (a *admission) heard(from parley.ID, b []byte) error {
	_, m, err := parley.Decode(b)
	if err != nil || m.Kind != diskTold {
		return a.k.Host.Frame(from, kernel.AdminChannel, b)
	}
	a.lives.Told(a.k.Name(from), m.Seq, m.Value)
	a.mesh.LetIn(from)
	return nil
}
