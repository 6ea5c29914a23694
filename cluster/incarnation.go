package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
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
	if incarnation, n.again, err = begun(n.c.Dir, n.c.Rejoin); err != nil {
		return 0, err
	}
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

// intact tells that a node has lost its records and not the number of its life: the others
// would take it for one that knows what it knew.
func (c Config) intact() error {
	disk := c.hooks.disk
	if disk == nil {
		disk = vfs.Default
	}
	_, err := os.Stat(filepath.Join(c.Dir, "incarnation"))
	if records, _ := disk.List(filepath.Join(c.Dir, "records")); err == nil && len(records) == 0 {
		return fmt.Errorf("cluster: %s has the number of the node's life, and its records are lost: start it with an empty "+
			"folder, and say that it rejoins (--rejoin)", c.Dir)
	}
	return nil
}

// rejoined is greater than the number of any life that did not begin with Config.Rejoin.
const rejoined = 1 << 42

// begun counts the lives of a node in its folder, and returns the number of this one. It is
// on the disk before anybody hears of it: others refuse who comes with one of before. That
// of a first life is the smaller the later it begins, so that a node which has lost its
// folder unnoticed is refused, for it knows nothing of what it has promised; but if it says
// so and is to join anew, it is greater than all before.
func begun(dir string, rejoin bool) (incarnation uint64, again bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cluster: the number of the node's life: %w", err)
		}
	}()
	path := filepath.Join(dir, "incarnation")
	switch b, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		now := uint64(time.Now().UnixMilli())
		if incarnation = rejoined - now; rejoin {
			incarnation = rejoined + now
		}
	case err != nil:
		return 0, false, err
	default:
		again = true
		if incarnation, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 63); err != nil {
			return 0, false, fmt.Errorf("%s: %w", path, err)
		}
	}
	incarnation++
	return incarnation, again, replace(path, fmt.Sprintln(incarnation))
}

// replace writes a file anew: what a crash leaves is the old one or the new one.
func replace(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lives are the newest of each member that this node was ever connected with. They outlive
// it: else a member that has lost its folder would be taken for a new one by those who have
// been started again since, and together they would begin without what it had acknowledged.
type lives struct {
	path string

	mu   sync.Mutex
	seen map[string]uint64 // by name
}

// read takes them from a folder.
func (l *lives) read(dir string) (err error) {
	l.path, l.seen = filepath.Join(dir, "lives"), make(map[string]uint64)
	b, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		number, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if l.seen[name], err = strconv.ParseUint(number, 10, 64); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cluster: the lives of the members in %s: %w", l.path, err)
	}
	return nil
}

// saw is called before a member is let in with a newer life than all before.
func (l *lives) saw(name string, life uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.seen[name]
	l.seen[name] = life
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l.seen)) {
		fmt.Fprintln(&text, l.seen[name], name)
	}
	err := replace(l.path, text.String())
	if err != nil {
		l.seen[name] = before
	}
	return err
}
