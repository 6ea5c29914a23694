package cluster_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/disk"
)

// brittle is a slow disk. When failed is set, syncs of logs fail.
type brittle struct {
	disk.Disk
	failed atomic.Bool
	slow   time.Duration
}

var errBrittle = errors.New("input/output error")

func (d *brittle) disk() disk.Disk {
	return disk.Hooked{Disk: d.Disk, Around: func(op disk.Op, do func() error) error {
		if op.Call == "sync" && strings.HasPrefix(filepath.Base(op.Name), "log-") {
			if time.Sleep(d.slow); d.failed.Load() {
				return errBrittle
			}
		}
		return do()
	}}
}

// The first requests are decided in time, although every node must record on its disk in which slots it may send,
// and disks are slower than rounds; also at a restarted node.
func TestFirstOnSlowDisks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *cluster.Config) {
			onDisk(c, false)
			c.Round, c.Disk = roomy, (&brittle{Disk: c.Disk, slow: 3 * roomy}).disk()
			c.Agreements = []cluster.AgreementConfig{{Algorithm: cluster.EIG, M: 1}}
		})
		r.stop(0)
		r.start(0)
		within(t, 30*time.Second, "node 0 takes part", func() bool {
			streams := r.nodes[0].Load().Status().Streams
			return len(streams) == 5 && !slices.ContainsFunc(streams, func(s cluster.StreamStatus) bool { return s.Mute })
		})
		ctx := soon(t, 60*time.Second)
		var asked sync.WaitGroup
		for i := range r.nodes {
			node, own := r.nodes[i].Load(), []byte(fmt.Sprint("of ", i))
			for k := range 24 {
				asked.Go(func() {
					if _, err := node.Agree(ctx, cluster.AgreeRequest{Value: own}); err != nil {
						t.Errorf("question %d of node %d: %v", k, i, err)
					}
				})
			}
			asked.Go(func() {
				v, err := node.AgreeVector(ctx, cluster.VectorRequest{Name: "first", Value: own, Gather: roomy})
				missing := 0 // of nodes whose disk takes a round longer than the others'
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
