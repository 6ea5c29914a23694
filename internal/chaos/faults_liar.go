package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"parley/cluster/api/parleyv1"
)

// liarName is the harm of a node that lies.
const liarName = "liar"

// What makes a process of the test of package cluster a liar.
const (
	liarFile = "PARLEY_LIAR"
	liarSeed = "PARLEY_LIAR_SEED"
)

// errNumbers is the error of nodes of which no majority numbers deliveries in the same way, or that still differ when
// they have rejoined.
var errNumbers = errors.New("nodes number their deliveries differently")

// lies tells whether nodes may say anything while a harm lasts: the load rests, and all agree again afterwards.
func (f fault) lies() bool { return f.name == liarName }

// lied has a process that lies take the place of a node, kills it, and has the node come back with an empty folder.
// Nobody asks for anything that is judged meanwhile.
func lied(ctx context.Context, r *run) (string, error) {
	i, d := r.some(), r.between(10, 20)
	n := r.nodes[i]
	r.strikes(i)
	before, done := within(ctx, 4*r.heal)
	defer done()
	if _, err := r.well(before, fmt.Sprintf("before.%d", len(r.events))); err != nil {
		return "", err
	}
	if err := r.quiet(before); err != nil {
		return "", err
	}
	r.load.orders.Unhear()
	if err := errors.Join(n.kill(), n.beginLiar(r.liar, r.seed+uint64(len(r.events)))); err != nil {
		return "", err
	}
	if err := n.await(before); err != nil {
		return "", err
	}
	busy, over := context.WithTimeout(ctx, d)
	defer over()
	r.load.murmur(busy, r.but(i))
	if !n.runs() {
		return "", fmt.Errorf("%s lies no more: %v: see %s", nodeName(i), n.now().cmd.ProcessState, n.log)
	}
	told := n.now().last()
	if !strings.Contains(told, "lies of") {
		return "", fmt.Errorf("%s has told no lie, but says %q: see %s", nodeName(i), told, n.log)
	}
	said := fmt.Sprintf("%s for %s: %s", nodeName(i), brief(d), told)
	if err := n.kill(); err != nil {
		return "", err
	}
	late, end := within(ctx, 4*r.heal)
	defer end()
	var err error
	if r.others, err = r.wellAmong(late, fmt.Sprintf("without.%d", len(r.events)), r.but(i)); err != nil {
		return "", fmt.Errorf("without %s: %w", nodeName(i), err)
	}
	said += fmt.Sprintf("; the others are well after %s", r.others)
	return said, errors.Join(os.RemoveAll(r.w.data(i)), n.begin("--rejoin"))
}

// murmur asks some nodes for what nobody judges, until the context ends, so that there is something to lie about. No
// lie that is wrong in a few places makes something of it that is judged: keys and payloads are far from the others.
func (l *load) murmur(ctx context.Context, nodes []int) {
	var all sync.WaitGroup
	for _, i := range nodes {
		all.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				one, done := context.WithTimeout(ctx, 200*time.Millisecond)
				_, _ = l.clients[i].table.Put(one, &parleyv1.PutRequest{
					Table: tableName, Key: fmt.Appendf(nil, "~~~~~~~~ %d", k%8), Value: fmt.Appendf(nil, "%d", k),
				})
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
