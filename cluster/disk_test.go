package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
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

// Rounds wait for no disk, though a node notes on its own in which slots it may have spoken: what
// is asked for first is agreed on in time, and so it is after a node has come back.
func TestAgreeOnSlowDisks(t *testing.T) {
	const slow = 500 * time.Millisecond
	r := newRig(t, 4, func(c *cluster.Config) {
		c.Dir, c.Round = t.TempDir(), 300*time.Millisecond
		c.Agreements = []cluster.Agreement{{Algorithm: cluster.EIG, M: 1}}
		c.TestDisk(&brittle{FS: vfs.Default, slow: slow})
	})
	agrees := func(i int, value string) {
		if _, err := r.nodes[i].Load().Agree(t.Context(), cluster.Question{Value: []byte(value)}); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
	for i := range r.nodes {
		agrees(i, fmt.Sprint("the first of ", i))
	}
	r.stop(3)
	r.start(3)
	within(t, 30*time.Second, "node 3 takes part again", func() bool {
		for _, s := range r.nodes[3].Load().Status().Streams {
			if s.Mute {
				return false
			}
		}
		return true
	})
	time.Sleep(3 * slow)
	for i := range r.nodes {
		agrees(i, fmt.Sprint("another of ", i))
	}
}
