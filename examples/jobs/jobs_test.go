package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/cluster/clustertest"
)

// Each job is done once, although all nodes take jobs at the same time.
func TestOnce(t *testing.T) {
	clustertest.Run(t, 3, configure, func(t *testing.T, c *clustertest.Cluster) {
		done := run(t, c, 12, nil)
		for job, times := range done {
			if times != 1 {
				t.Errorf("%s was done %d times", job, times)
			}
		}
	})
}

// Another node does the job of a node that crashes.
func TestNodeDies(t *testing.T) {
	clustertest.Run(t, 3, configure, func(t *testing.T, c *clustertest.Cluster) {
		run(t, c, 12, func() { c.Kill(2) })
	})
}

// run shares jobs among the nodes until all are done, and returns how often each job was done. If die
// is not nil, the last node blocks in its first job, and run calls die.
func run(t *testing.T, c *clustertest.Cluster, jobs int, die func()) map[string]int {
	ctx, stop := context.WithCancel(t.Context())
	stuck, once := make(chan struct{}), sync.OnceFunc(func() {})
	if die != nil {
		once = sync.OnceFunc(func() { close(stuck) })
	}
	var mu sync.Mutex
	done := make(map[string]int)
	var all sync.WaitGroup
	for i, node := range c.Nodes() {
		all.Go(func() { watch(ctx, node) })
		all.Go(func() {
			_ = work(ctx, node, fmt.Sprintf("node%d", i+1), func(job string) {
				if i == 2 && die != nil {
					once()
					<-ctx.Done()
					return
				}
				mu.Lock()
				defer mu.Unlock()
				done[job]++
			})
		})
	}
	var names []string
	for k := range jobs {
		names = append(names, fmt.Sprintf("job %d", k))
		if err := add(ctx, c.Node(0), names[k]); err != nil {
			t.Fatal(err)
		}
	}
	if die != nil {
		<-stuck
		die()
	}
	c.Wait("all jobs to be done", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(names, func(name string) bool { return done[name] == 0 })
	})
	stop()
	all.Wait()
	return done
}
