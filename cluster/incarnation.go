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
