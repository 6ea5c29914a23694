package cluster

import (
	"errors"
	"fmt"
	"time"

	"parley/cluster/disk"
)

// broken has the node stop, because its disk failed or a machine broke.
func (n *Node) broken(err error) {
	n.c.Log.Error("the node stops", "why", err)
	n.k.Break(fmt.Errorf("%w: %w", ErrClosed, err))
	n.admin.mu.Lock()
	if n.admin.broken == nil {
		n.admin.broken = err
	}
	ready := n.admin.ready
	if ready && !n.admin.ending {
		n.admin.work.Go(func() { // not within a step
			n.failAll(n.k.Closed())
			n.commits.Fail(n.k.Closed())
		})
	}
	n.admin.mu.Unlock()
	n.flight()
	if n.c.Broken != nil {
		n.c.Broken(err)
	} else if ready {
		go func() { _ = n.Close() }()
	}
}

// failAll ends all waiting for groups, tables and agreements.
func (n *Node) failAll(why error) {
	n.once.Do(func() { close(n.ended) })
	n.groups.Close(why)
	n.tables.Close(why)
}

// closeTraces ends the traces. One that is on a disk which does not answer is left.
func (n *Node) closeTraces() {
	limit := n.c.DiskLimit
	if n.k.Broken() != nil {
		limit = diskPatience
	}
	_, err := diskAnswers(limit, "end the traces", func() (none struct{}, err error) {
		if n.tracer != nil {
			n.tracer.Close()
		}
		return none, nil
	})
	if err != nil {
		n.c.Log.Warn("traces are not complete", "why", err)
	}
}

// diskPatience is how long one waits for a disk that has failed.
const diskPatience = 400 * time.Millisecond

// disk returns the file system that holds the node's folder.
func (n *Node) disk() disk.Disk {
	if d := n.c.Disk; d != nil {
		return d
	}
	return disk.System{}
}

// errNoAnswer is the error of a disk that has not answered in time.
var errNoAnswer = errors.New("the disk does not answer")

// diskAnswers makes calls of the disk, and returns when they have ended or the limit is over.
func diskAnswers[T any](limit time.Duration, what string, do func() (T, error)) (T, error) {
	type result struct {
		of  T
		err error
	}
	done := make(chan result, 1)
	go func() {
		of, err := do()
		done <- result{of, err}
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case r := <-done:
		return r.of, r.err
	case <-t.C:
		var none T
		return none, fmt.Errorf("%w: %v have passed since it was to %s: goroutine cluster.diskAnswers is left in the kernel",
			errNoAnswer, limit, what)
	}
}

// begun is called when all is there that may have to end, and tells why the node can not go on, if it can not.
func (n *Node) begun() error {
	n.members.Begun()
	n.admin.mu.Lock()
	defer n.admin.mu.Unlock()
	n.admin.ready = true
	return n.admin.broken
}
