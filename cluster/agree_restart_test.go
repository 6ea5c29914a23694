package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/cluster"
)

// restarted makes every node agree on a value, and all agree on a vector.
func restarted(t *testing.T, r *rig, what string, limit time.Duration) {
	t.Helper()
	ctx := soon(t, limit)
	var asked sync.WaitGroup
	vectors := make([]cluster.Vector, len(r.nodes))
	began := time.Now()
	for i := range r.nodes {
		asked.Go(func() {
			value := fmt.Sprint(what, i)
			// A node that is paused on a busy computer must retry.
			for {
				d, err := r.nodes[i].Load().Agree(ctx, cluster.AgreeRequest{Value: []byte(value)})
				if err == nil && string(d.Value) == value {
					break
				}
				if ctx.Err() != nil {
					t.Errorf("%s: node %d: %q, %v: %+v", what, i, d.Value, err, r.nodes[i].Load().Status().Streams)
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			v, err := r.nodes[i].Load().AgreeVector(ctx, cluster.VectorRequest{Name: what, Value: []byte(value)})
			for ; err != nil && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
				v, err = r.nodes[i].Load().AgreeVector(ctx, cluster.VectorRequest{Name: what, Value: []byte(value)})
			}
			if vectors[i] = v; err != nil {
				t.Errorf("%s: node %d: no vector: %v: %+v", what, i, err, r.nodes[i].Load().Status().Streams)
			}
		})
	}
	asked.Wait()
	t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
	for i, v := range vectors {
		if fmt.Sprintf("%q", v.Values) != fmt.Sprintf("%q", vectors[0].Values) {
			t.Errorf("%s: node %d has %q, and the first %q", what, i, v.Values, vectors[0].Values)
		}
	}
}

// takesPart waits until a node participates in all streams, without a request. Only if the computer is so busy
// that another node has lost contact, too, too few nodes are left: they continue with a request.
func takesPart(t *testing.T, r *rig, i int) {
	t.Helper()
	mute := func(id int) bool {
		streams := r.nodes[id].Load().Status().Streams
		return len(streams) != 10 || slices.ContainsFunc(streams, func(s cluster.StreamStatus) bool { return s.Mute })
	}
	for k := range 3 {
		if waited(30*time.Second, func() bool { return !mute(i) }) {
			return
		}
		others := false
		for id := range r.nodes {
			t.Logf("node %d: %+v", id, r.nodes[id].Load().Status().Streams)
			others = others || id != i && mute(id)
		}
		if !others {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		var asked sync.WaitGroup
		for id := range r.nodes {
			asked.Go(func() {
				node := r.nodes[id].Load()
				for _, a := range []cluster.Algorithm{cluster.EIG, cluster.PhaseKing} {
					_, _ = node.Agree(ctx, cluster.AgreeRequest{Value: []byte("wake"), Algorithm: a})
					_, _ = node.AgreeVector(ctx, cluster.VectorRequest{Name: fmt.Sprint("wake", a, i, k), Value: []byte("wake"), Algorithm: a})
				}
			})
		}
		asked.Wait()
		cancel()
	}
	t.Fatalf("node %d does not take part in time", i)
}

// Restarted nodes agree again: after a restart of one after another, in memory mode and in durable mode, and of
// all at once.
func TestAgreeAfterRestarts(t *testing.T) {
	each(t, func(t *testing.T, durable bool) {
		r := newRig(t, 4, func(c *cluster.Config) {
			onDisk(c, durable)
			c.Round = 200 * time.Millisecond
			c.Agreements = []cluster.AgreementConfig{{Algorithm: cluster.EIG, M: 1}, {Algorithm: cluster.PhaseKing, M: 1}}
		})
		restarted(t, r, "before", 40*time.Second)
		for i := range r.nodes {
			r.stop(i)
			r.start(i)
			takesPart(t, r, i)
		}
		restarted(t, r, "one by one", 40*time.Second)
		r.stop(all(4)...)
		r.start(all(4)...)
		restarted(t, r, "at once", 60*time.Second)
	}, false, true)
}
