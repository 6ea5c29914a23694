// Command jobs is a queue of jobs without a server. Three nodes share the queue, and one of them does each job. If
// this node crashes, another node does the job.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"parley/cluster"
	"parley/examples/nodes"
)

func main() {
	if err := share(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func configure(c *cluster.Config) {
	c.Groups = []cluster.GroupConfig{{Name: "jobs", Level: cluster.Total}}
}

func share(ctx context.Context, out io.Writer) error {
	all, end, err := nodes.Start(ctx, 3, configure)
	if err != nil {
		return err
	}
	defer end()
	jobs := []string{"bake", "brew", "clean", "fetch", "pack", "sell"}
	for _, job := range jobs {
		if err := add(ctx, all[0], job); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	var did []string
	var workers sync.WaitGroup
	for i, node := range all {
		workers.Go(func() {
			_ = work(ctx, node, fmt.Sprintf("node%d", i+1), func(job string) {
				mu.Lock()
				defer mu.Unlock()
				if did = append(did, job); len(did) == len(jobs) {
					stop()
				}
			})
		})
	}
	workers.Wait()
	stop()
	slices.Sort(did)
	fmt.Fprintln(out, "done once each:", did)
	return nil
}

// add adds a job to the queue.
func add(ctx context.Context, node *cluster.Node, job string) error {
	_, err := node.Group("jobs").Broadcast(ctx, []byte("add "+job))
	return err
}

// work takes jobs and does them, one at a time, until ctx ends or the node stops.
func work(ctx context.Context, node *cluster.Node, self string, do func(job string)) error {
	group, q := node.Group("jobs"), newQueue()
	deliveries, err := group.Subscribe(1) // from the beginning
	if err != nil {
		return err
	}
	defer func() { _ = deliveries.Close() }()
	told, asked := "", false // the last job reported done, and whether a take is in flight
	for {
		mine := q.of(self)
		switch {
		case len(mine) > 0 && mine[0] != told:
			do(mine[0])
			told = mine[0]
			err = group.BroadcastAsync([]byte("done " + told))
		case len(mine) == 0 && len(q.waiting) > 0 && !asked:
			asked = true
			err = group.BroadcastAsync([]byte("take"))
		}
		if err != nil {
			return err
		}
		d, err := deliveries.Next(ctx)
		if err != nil {
			return err
		}
		from := fmt.Sprintf("node%d", d.From+1)
		q.apply(from, string(d.Payload))
		asked = asked && (from != self || string(d.Payload) != "take")
	}
}

// watch reports each member that has left the group, so that other members do its jobs. watch returns when
// ctx ends. If a node did a job and left before it could report that, another node does the job again.
func watch(ctx context.Context, node *cluster.Node) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	before := node.Status().Groups[0].Members
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		now := node.Status().Groups[0].Members
		for _, name := range before {
			if !slices.Contains(now, name) {
				_ = node.Group("jobs").BroadcastAsync([]byte("lost " + name)) // by every member; one is enough
			}
		}
		before = now
	}
}
