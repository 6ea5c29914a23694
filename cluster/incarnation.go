// Package cluster joins real processes into a cluster that agrees: over mutual TLS, with
// what must outlive a crash on the disk. It runs the machines that the simulator and the
// explorer run.
//
// A process calls [Join] with the configuration that all nodes have alike and its own
// certificate, and has groups to broadcast in.
//
// # Decisions
//
// A node's incarnation is a record like others. So is what it has seen of each peer. Motive: one format
// to damage, and to check. Cost: folders of earlier versions are refused, and a cluster of them begins
// anew.
//
// A node tells where its disk stands, and is believed by certificate. Hellos (version 2 of the wire)
// carry the number of the folder, the position at which this life began and the present one; the present
// one is told every second. Peers keep the greatest beside the newest life, each by the certificate that
// it came with, and refuse a folder that has less, for good. Motive: an old copy of a folder looks like
// the node that it was, and forgets what it promised; and who held a key for a while must not shut out
// its owner for ever, so what it said goes when its certificate is revoked. Cost: a record a minute and
// member; a node whose only certificate is revoked is believed once as it comes; and what is told in the
// last second before a crash of all who heard it is forgotten.
//
// A node remembers the newest life of every other one on its disk. That is written before the peer is
// let in. Motive: from memory alone a node that lost its folder and one that was restarted could form a
// first view, without what was acknowledged. Cost: one sync a life and peer; a node that has never been
// up cannot know.
//
// Nodes run in virtual time. cluster.Config.Network carries what nodes send; on cluster/link/memory, in
// a bubble of testing/synctest, real nodes with their TLS, timers and disks go by the bubble's time, and
// a test cuts, delays and stalls what it likes. Motive: a test that waits for real time fails on a busy
// machine, or demands less than is promised. Cost: a node on a network of its own has neither the
// system's clock of suspensions nor its punctual alarms: those are tested by themselves.
package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"parley/cluster/disk"
	"parley/cluster/store"
)

// begin returns the number of this life of the node, which grows with each.
func (n *Node) begin() (incarnation uint64, err error) {
	switch {
	case n.c.Dir == "" && n.c.Durable:
		return 0, errors.New("cluster: to be durable a node needs a folder (Dir)")
	case n.c.Dir == "":
		n.c.Log.Warn(inMemory)
		n.lives = livesInMemory(n.c.Trust.Revoked)
		return n.lives.own, nil
	}
	if n.lives, n.k.Again, err = newLives(n.k.Store, n.c.Rejoin, n.c.Trust.Revoked); err != nil {
		return 0, fmt.Errorf("cluster: %s: %w", n.c.Dir, err)
	}
	incarnation = n.lives.own
	n.c.Rejoin = n.c.Rejoin && !n.k.Again
	switch {
	case n.k.Again && !n.c.Durable:
		n.c.Log.Warn("in memory mode a node that comes back has nothing, and waits until a member lets it in; "+
			"if all nodes have ended, all must begin anew with empty folders", "life", incarnation)
	case !n.c.Durable:
		n.c.Log.Warn(inMemory)
	}
	return incarnation, nil
}

// inMemory is what a node says that is not durable.
const inMemory = "in memory mode: what is acknowledged is on no disk, and lost if a majority of the nodes ends"

// MarkName is a file in a node's data folder, for people who find it, and for a node whose records were removed from
// beside it.
const MarkName = "README.txt"

const markText = `This folder belongs to one node of a cluster, and is written while that node runs.
Do not restore it from a copy: the other nodes know more of this node than an old copy does.
If it is lost or damaged, start the node with an empty folder and with --rejoin.
`

// marked opens the node's store, and refuses a folder from which it was removed: the others would take this node
// for one that knows what it knew.
func (n *Node) marked() (err error) {
	dir, mark := filepath.Join(n.c.Dir, "records"), filepath.Join(n.c.Dir, MarkName)
	list := func(dir string) ([]string, error) {
		return diskAnswers(n.c.DiskLimit, "list "+dir, func() ([]string, error) { return n.disk().List(dir) })
	}
	names, err := list(n.c.Dir)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	held, err := list(dir)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	held = slices.DeleteFunc(held, func(name string) bool { return name == store.LockName })
	known := slices.Contains(names, MarkName)
	if known && len(held) == 0 {
		return fmt.Errorf("cluster: %s: the folder records is missing, and what the node acknowledged is lost here: "+
			"while a majority of the other nodes is intact, start this node with an empty folder and --rejoin", n.c.Dir)
	}
	n.k.Store, err = store.Open(dir, store.Options{
		Durable: n.durable, Failed: n.broken, Log: n.c.Log, Disk: n.c.Disk, LogSize: n.c.hooks.logSize,
		Limit: n.c.DiskLimit,
	})
	if err != nil || known {
		return err
	}
	_, err = diskAnswers(n.c.DiskLimit, "write "+mark, func() (none struct{}, err error) {
		return none, writeMark(n.disk(), n.c.Dir, mark)
	})
	if err != nil {
		err = fmt.Errorf("cluster: %s: %w", mark, err)
		n.k.Store.Fail(err) // otherwise Close would wait for the disk again
	}
	return err
}

func writeMark(d disk.Disk, dir, mark string) error {
	f, err := d.Create(mark)
	if err == nil {
		_, err = f.WriteAt([]byte(markText), 0)
		err = errors.Join(err, f.Sync(), f.Close(), d.SyncDir(dir))
	}
	return err
}

// durable is called by the store, which is opened before there is a host.
func (n *Node) durable(upto uint64) {
	if h := n.waits.Load(); h != nil {
		h.Durable(upto)
	}
}
