package cluster

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
		return uint64(time.Now().UnixNano()), nil
	}
	if n.lives, n.again, err = newLives(n.store, n.c.Rejoin); err != nil {
		return 0, fmt.Errorf("cluster: %s: %w", n.c.Dir, err)
	}
	incarnation = n.lives.own
	n.c.Rejoin = n.c.Rejoin && !n.again
	switch {
	case n.again && !n.c.Durable:
		n.c.Log.Warn("in memory mode a node that comes back has nothing, and waits until a member lets it in; "+
			"if all nodes have ended, all must begin anew with empty folders", "life", incarnation)
	case !n.c.Durable:
		n.c.Log.Warn(inMemory)
	}
	return incarnation, nil
}

// inMemory is what a node says that is not durable.
const inMemory = "in memory mode: what is acknowledged is on no disk, and lost if a majority of the nodes ends"

// markName is a file in a node's folder, for people who find it, and for a node whose records were removed from
// beside it.
const (
	markName = "README.txt"
	markText = `This folder belongs to one node of a cluster, and is written while that node runs.
Do not restore it from a copy: the other nodes know more of this node than an old copy does.
If it is lost or damaged, start the node with an empty folder and with --rejoin.
`
)

// marked opens the node's store, and refuses a folder from which it was removed: the others would take this node
// for one that knows what it knew.
func (n *Node) marked() (err error) {
	d := n.c.hooks.disk
	if d == nil {
		d = disk.System{}
	}
	dir, mark := filepath.Join(n.c.Dir, "records"), filepath.Join(n.c.Dir, markName)
	names, err := d.List(n.c.Dir)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	held, err := d.List(dir)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	known := slices.Contains(names, markName)
	if known && len(held) == 0 {
		return fmt.Errorf("cluster: %s: the folder records is missing, and what the node acknowledged is lost here: "+
			"while a majority of the other nodes is intact, start this node with an empty folder and --rejoin", n.c.Dir)
	}
	n.store, err = store.Open(dir, store.Options{
		Durable: n.durable, Failed: n.broken, Log: n.c.Log, Disk: n.c.hooks.disk, LogSize: n.c.hooks.logSize,
	})
	if err != nil || known {
		return err
	}
	return writeMark(d, n.c.Dir, mark)
}

func writeMark(d disk.Disk, dir, mark string) error {
	f, err := d.Create(mark)
	if err == nil {
		_, err = f.WriteAt([]byte(markText), 0)
		err = errors.Join(err, f.Sync(), f.Close(), d.SyncDir(dir))
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// durable is called by the store, which is opened before there is a host.
func (n *Node) durable(upto uint64) {
	if h := n.waits.Load(); h != nil {
		h.Durable(upto)
	}
}

// rejoined is greater than the number of any life that did not begin with Config.Rejoin.
const rejoined = 1 << 42

// lives are the number of this life of the node and the newest of each member that this node was ever connected
// with. They are in the node's store: otherwise a member that has lost its folder would be taken for a new one by
// those that have been started again since, and together they would begin without what it had acknowledged.
type lives struct {
	store *store.Store
	book  *store.Book

	held chan struct{} // a lock, held while the disk is written: a channel, so that time passes for tests meanwhile
	own  uint64
	seen map[string]uint64 // by name
}

// livesBook is the name of their book.
const livesBook = "node"

// newLives counts a life of the node in its store. Its number is on the disk before anybody hears of it: others refuse
// a node that comes with an earlier one. That of a first life is the smaller the later it begins, so that a node
// that has lost its folder unnoticed is refused, because it knows nothing of what it has promised; but if the node says
// so and is to join as a new one, its number is greater than all before.
func newLives(s *store.Store, rejoin bool) (l *lives, again bool, err error) {
	l = &lives{store: s, held: make(chan struct{}, 1), seen: make(map[string]uint64)}
	var state []byte
	if l.book, state, _, err = s.Open(livesBook); err != nil {
		return nil, false, err
	}
	again = state != nil
	now := uint64(time.Now().UnixMilli())
	switch {
	case again:
		err = l.parse(string(state))
	case rejoin:
		l.own = rejoined + now
	default:
		l.own = rejoined - now
	}
	if err != nil {
		return nil, false, err
	}
	l.own++
	return l, again, l.save()
}

// parse reads them: a line of the own number, and one for each member.
func (l *lives) parse(text string) error {
	for line := range strings.Lines(text) {
		var number uint64
		var name string
		if _, err := fmt.Sscanf(line, "own %d\n", &number); err == nil {
			l.own = number
		} else if _, err := fmt.Sscanf(line, "seen %d %q\n", &number, &name); err == nil {
			l.seen[name] = number
		} else {
			return fmt.Errorf("%q is no line of the book of incarnations", line)
		}
	}
	return nil
}

// save returns when they are on the disk. The lock is held, or nobody else has them.
func (l *lives) save() error {
	var text strings.Builder
	fmt.Fprintf(&text, "own %d\n", l.own)
	for _, name := range slices.Sorted(maps.Keys(l.seen)) {
		fmt.Fprintf(&text, "seen %d %q\n", l.seen[name], name)
	}
	return l.store.Wait(l.book.Replace([]byte(text.String())))
}

// newest returns that of a member, 0 if it was never seen.
func (l *lives) newest(name string) uint64 {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	return l.seen[name]
}

// saw is called before a member is let in with a newer life than all before.
func (l *lives) saw(name string, life uint64) error {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	before := l.seen[name]
	if life <= before {
		return nil
	}
	l.seen[name] = life
	err := l.save()
	if err != nil {
		l.seen[name] = before
	}
	return err
}
