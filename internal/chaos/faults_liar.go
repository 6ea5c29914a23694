package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/internal/must"
)

// liarName is the name of the fault of a node that lies.
const liarName = "liar"

// The environment variables that turn the test binary of package cluster into a liar.
const (
	liarFile = "PARLEY_LIAR"
	liarSeed = "PARLEY_LIAR_SEED"
)

// errNumbers means that no majority of nodes numbers deliveries in the same way, or that nodes still differ after
// rejoining.
var errNumbers = errors.New("nodes number their deliveries differently")

// lies reports whether nodes may send anything during the fault: then the load rests, and all nodes must agree again
// afterward.
func (f fault) lies() bool { return f.name == liarName }

// lied replaces a node by a process that lies, kills that process, and restarts the node with an empty folder.
// Meanwhile clients make no judged requests.
func lied(ctx context.Context, r *run) string {
	i, d := r.some(), r.between(10, 20)
	n := r.nodes[i]
	before, done := within(ctx, 4*r.heal)
	defer done()
	_, err := r.well(before, fmt.Sprintf("before.%d", len(r.events)))
	must.Do(err)
	must.Do(r.quiet(before))
	r.load.orders.Unhear()
	r.kill(i)
	must.Do(n.beginLiar(r.liar, r.seed+uint64(len(r.events))))
	must.Do(n.await(before))
	busy, over := context.WithTimeout(ctx, d)
	defer over()
	r.load.unjudgedLoad(busy, r.but(i))
	if !n.runs() {
		must.Failf("%s lies no more: %v: see %s", nodeName(i), n.now().cmd.ProcessState, n.log)
	}
	told := n.now().last()
	if !strings.Contains(told, "lies of") {
		must.Failf("%s has not lied, but says %q: see %s", nodeName(i), told, n.log)
	}
	must.Do(n.kill())
	late, end := within(ctx, 4*r.heal)
	defer end()
	if r.others, err = r.wellAmong(late, fmt.Sprintf("without.%d", len(r.events)), r.but(i)); err != nil {
		must.Failf("without %s: %w", nodeName(i), err)
	}
	r.rejoin(i)
	return fmt.Sprintf("%s: %s; the others are well after %s", lasted(nodeName(i), d), told, r.others)
}

// unjudgedLoad makes requests to some nodes that are not judged, until the context ends, so that there is something
// to lie about. Its keys and payloads differ so much from the others that no lie in a few fields turns one into a
// judged one.
func (l *load) unjudgedLoad(ctx context.Context, nodes []int) {
	var all sync.WaitGroup
	for _, i := range nodes {
		all.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				one, done := context.WithTimeout(ctx, 200*time.Millisecond)
				_ = l.clients[i].put(one, fmt.Sprintf("~~~~~~~~ %d", k%8), fmt.Append(nil, k))
				done()
				one, done = context.WithTimeout(ctx, 200*time.Millisecond)
				_ = l.clients[i].cast(one, fmt.Appendf(nil, "~~~~~~~~ %d.%d", i, k))
				done()
				hold(ctx, 10*time.Millisecond)
			}
		})
	}
	all.Wait()
}
