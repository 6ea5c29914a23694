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
	if incarnation, n.again, err = begun(n.c.Dir); err != nil {
		return 0, err
	}
	if n.again && !n.c.Durable {
		n.c.Log.Warn("in memory mode a node that comes back has nothing, and waits until a member lets it in; "+
			"if all nodes have ended, all must begin anew with empty folders", "life", incarnation)
	}
	return incarnation, nil
}

// begun counts the lives of a node in its folder, and returns the number of this one. It is
// on the disk before anybody hears of it: others refuse who comes with one of before. The
// first one in an empty folder is the time in milliseconds, so that a node that has lost its
// disk comes later than all its lives before: it has nothing to go on from, so that the
// others exclude who it was, and let it join.
func begun(dir string) (incarnation uint64, again bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cluster: the number of the node's life: %w", err)
		}
	}()
	path := filepath.Join(dir, "incarnation")
	switch b, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		incarnation = uint64(time.Now().UnixMilli())
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
