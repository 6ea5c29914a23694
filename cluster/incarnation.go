package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/disk"
	"parley/cluster/link"
	"parley/cluster/lives"
	"parley/cluster/store"
)

// begin returns the number of this life of the node, which grows with each.
func (n *Node) begin() (incarnation uint64, err error) {
	switch {
	case n.c.Dir == "" && n.c.Durable:
		return 0, errors.New("cluster: to be durable a node needs a folder (Dir)")
	case n.c.Dir == "":
		n.c.Log.Warn(inMemory)
		n.lives = lives.InMemory(n.c.Trust.Revoked)
		return n.lives.Own(), nil
	}
	if n.lives, n.k.Again, err = lives.Open(n.k.Store, n.c.Rejoin, n.c.Trust.Revoked); err != nil {
		return 0, fmt.Errorf("cluster: %s: %w", n.c.Dir, err)
	}
	incarnation = n.lives.Own()
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

// judge tells why a life of another node is not let in.
func (n *Node) judge(id parley.ID, h link.Hello, leaf *x509.Certificate) *link.Down {
	return n.lives.Judge(n.k.Name(id), h, cert.Serial(leaf), lives.Latest(n.c.Durable))
}

// patience is how long a node waits for the others when the cluster begins: who is not
// there when the first view does would be excluded, and have to join.
const patience = 10 * time.Second

// ErrForgotten is the error of a node of which the others know a later life, or more than it has on its disk: they do
// not let it in. Its folder is lost, or an old copy, or another process runs under its name.
var ErrForgotten = errors.New("the other nodes know a later life of this one, or more of it than its folder has, and " +
	"refuse it: if its folder is lost or an old copy, start it with an empty one and say that it rejoins (--rejoin)")

// gather waits until all others are connected, or for some time: one who comes back finds
// others who do not wait for it.
func (n *Node) gather(ctx context.Context) error {
	wait := patience
	if n.k.Again {
		wait = n.c.Times.WithDefaults().Suspect
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for all := len(n.c.Members) - 1; ; {
		up, refusing := n.mesh.Others()
		switch {
		case refusing.Len() > n.c.M: // not all of them lie
			return ErrForgotten
		case up.Len() == all:
			return ctx.Err()
		}
		if why := n.k.Broken(); why != nil { // the disk has failed, perhaps
			return why
		}
		select {
		case <-look.C:
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		for id := range refusing.All() { // one that lies, perhaps
			n.c.Log.Warn("another node knows a later life of this one, or more of it than its folder has: "+
				"the folder may be lost, or an old copy", "peer", n.k.Name(id))
		}
		return ctx.Err()
	}
}
