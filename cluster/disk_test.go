package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/cluster"
)

// brittle is the system's disk, of which no log can be synced when it has failed, and before
// that takes its time.
type brittle struct {
	vfs.FS
	failed atomic.Bool
	slow   time.Duration
}

func (d *brittle) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return brittleFile{f, d, name}, err
}

func (d *brittle) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return brittleFile{f, d, to}, err
}

type brittleFile struct {
	vfs.File
	d    *brittle
	name string
}

var errBrittle = errors.New("input/output error")

func (f brittleFile) sync(otherwise func() error) error {
	if strings.HasSuffix(f.name, ".log") {
		if time.Sleep(f.d.slow); f.d.failed.Load() {
			return errBrittle
		}
	}
	return otherwise()
}

func (f brittleFile) Sync() error     { return f.sync(f.File.Sync) }
func (f brittleFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f brittleFile) SyncTo(n int64) (full bool, err error) {
	err = f.sync(func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

// What is asked for first is agreed on in time, though every node has to note on its disk in which
// slots it may speak, and disks take longer than rounds; also by a node that has been started again.
func TestFirstOnSlowDisks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *cluster.Config) {
			c.Dir, c.Round = t.TempDir(), roomy
			c.Agreements = []cluster.Agreement{{Algorithm: cluster.EIG, M: 1}}
			c.TestDisk(&brittle{FS: vfs.Default, slow: 3 * roomy})
		})
		r.stop(0)
		r.start(0)
		within(t, 30*time.Second, "node 0 takes part", func() bool {
			streams := r.nodes[0].Load().Status().Streams
			return len(streams) == 5 && !slices.ContainsFunc(streams, func(s cluster.StreamStatus) bool { return s.Mute })
		})
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		var asked sync.WaitGroup
		for i := range r.nodes {
			node, own := r.nodes[i].Load(), []byte(fmt.Sprint("of ", i))
			for k := range 24 {
				asked.Go(func() {
					if _, err := node.Agree(ctx, cluster.Question{Value: own}); err != nil {
						t.Errorf("question %d of node %d: %v", k, i, err)
					}
				})
			}
			asked.Go(func() {
				v, err := node.Propose(ctx, cluster.Proposal{Name: "first", Value: own, Gather: roomy})
				missing := 0 // of those whose disk takes a round longer than the others'
				for id, value := range v.Values {
					if value == nil {
						missing++
					} else if string(value) != fmt.Sprint("of ", id) {
						t.Errorf("node %d is told that node %d said %q", i, id, value)
					}
				}
				if err != nil || missing > 1 {
					t.Errorf("node %d is told %q: %v", i, v.Values, err)
				}
			})
		}
		asked.Wait()
	})
}
