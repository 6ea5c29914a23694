package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// begin returns the number of this life of the node, which grows with each.
func (n *Node) begin() (incarnation uint64, err error) {
	switch {
	case n.c.Dir == "" && n.c.Durable:
		return 0, errors.New("cluster: to be durable a node needs a folder (Dir)")
	case n.c.Dir == "":
		return uint64(time.Now().UnixNano()), nil
	}
	if incarnation, n.again, err = begun(n.c.Dir, n.c.Rejoin); err != nil {
		return 0, err
	}
	n.c.Rejoin = n.c.Rejoin && !n.again
	if n.again && !n.c.Durable {
		n.c.Log.Warn("in memory mode a node that comes back has nothing, and waits until a member lets it in; "+
			"if all nodes have ended, all must begin anew with empty folders", "life", incarnation)
	}
	return incarnation, nil
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
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, again, err
	}
	_, err = fmt.Fprintln(f, incarnation)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, again, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return 0, again, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return 0, again, err
	}
	return incarnation, again, errors.Join(d.Sync(), d.Close())
}
