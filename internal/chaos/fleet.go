package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/internal/chaos/judge"
	"parley/replica/keyvalue"
)

// fleet is the nodes in their environment, with their load and the checks of their health.
type fleet struct {
	w       environment
	nodes   []*node
	clients []*client
	load    *load
	heal    time.Duration // the maximum recovery time of all nodes
	faulty  *node         // a node that lies for long; nil: none
}

// all returns the nodes of which anything can be demanded.
func (f *fleet) all() []int { return f.but(-1) }

func (f *fleet) but(one int) (out []int) {
	for i, n := range f.nodes {
		if i != one && n != f.faulty {
			out = append(out, i)
		}
	}
	return out
}

// back starts nodes.
func (f *fleet) back(which ...int) error {
	for _, i := range which {
		if err := f.nodes[i].begin(); err != nil {
			return err
		}
	}
	return nil
}

// newLoad returns a load that begins now. If keys is nil, there is no table, and clocks do not matter.
func (f *fleet) newLoad(pace time.Duration, keys func(time.Duration) []string) *load {
	var names []string
	for i := range f.nodes {
		names = append(names, nodeName(i))
	}
	return &load{
		clients: f.clients, history: new(judge.History), orders: judge.NewOrders(names...),
		began: time.Now(), pace: pace, keys: keys, last: make(map[string]uint64),
	}
}

// first returns the first member of the group's view, according to the first node that answers.
func (f *fleet) first(ctx context.Context) int {
	ctx, done := context.WithTimeout(ctx, 2*time.Second)
	defer done()
	for _, c := range f.clients {
		s, err := c.admin.Status(ctx, &parleyv1.StatusRequest{})
		if err != nil || len(s.GetGroups()) == 0 || len(s.GetGroups()[0].GetView().GetMembers()) == 0 {
			continue
		}
		for i := range f.nodes {
			if nodeName(i) == s.GetGroups()[0].GetView().GetMembers()[0] {
				return i
			}
		}
	}
	return 0
}

// serves waits until a node executes commands or, without a table, delivers its own broadcasts.
func (f *fleet) serves(ctx context.Context, i int) error {
	for k := 0; ; k++ {
		one, done := context.WithTimeout(ctx, try)
		var err error
		if f.load.keys != nil {
			_, _, err = f.clients[i].query(one, keyvalue.Get([]byte("probe")))
		} else {
			err = f.load.cast(one, i, fmt.Sprintf("serves.%s.%d.%d", nodeName(i), f.load.now(), k))
		}
		done()
		if err == nil {
			return nil
		}
		if dead := f.nodes[i].dead(); dead != nil {
			return dead
		}
		if hold(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%s does not serve: %w: %w", nodeName(i), context.Cause(ctx), err)
		}
	}
}

// carries waits until some nodes deliver a broadcast of a node.
func (f *fleet) carries(ctx context.Context, i int, name string, which []int) error {
	for k := 0; ; k++ {
		payload := fmt.Sprintf("%s.%s.%d", name, nodeName(i), k)
		_ = f.load.cast(ctx, i, payload) // the load records the outcome
		soon, done := context.WithTimeout(ctx, 250*time.Millisecond)
		err := f.everywhere(soon, payload, which)
		done()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("not all of %s deliver what %s casts: %w", nodeNames(which), nodeName(i), context.Cause(ctx))
		}
	}
}

// everywhere waits until some nodes have all delivered a payload.
func (f *fleet) everywhere(ctx context.Context, payload string, which []int) error {
	for {
		is, moved := f.load.orders.Everywhere(payload, which)
		if is {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// recoveryTimes has the times until all nodes executed commands, until all delivered a broadcast of each, and until
// all clocks were in step. Without a table, it has only the second.
type recoveryTimes struct{ tables, groups, clocks time.Duration }

func (w recoveryTimes) whole() time.Duration { return max(w.tables, w.groups, w.clocks) }

func (w recoveryTimes) String() string {
	if w.tables == 0 {
		return brief(w.whole())
	}
	return fmt.Sprintf("%s (tables %.1f, groups %.1f, clocks %.1f)", brief(w.whole()), w.tables.Seconds(),
		w.groups.Seconds(), w.clocks.Seconds())
}

// well waits until all nodes have recovered.
func (f *fleet) well(ctx context.Context, name string) (recoveryTimes, error) {
	return f.wellAmong(ctx, name, f.all())
}

// wellAmong waits until some nodes have recovered, among each other.
func (f *fleet) wellAmong(ctx context.Context, name string, which []int) (w recoveryTimes, err error) {
	since := f.load.now()
	var mu sync.Mutex
	var all sync.WaitGroup
	wait := func(took *time.Duration, do func() error) {
		all.Go(func() {
			failed := do()
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failed)
			*took = max(*took, f.load.now()-since)
		})
	}
	if f.load.keys != nil {
		wait(&w.clocks, func() error { return f.inStep(ctx, which) })
	}
	for _, i := range which {
		if f.load.keys != nil {
			wait(&w.tables, func() error { return f.serves(ctx, i) })
		}
		wait(&w.groups, func() error { return f.carries(ctx, i, name, which) })
	}
	all.Wait()
	return w, err
}

// heals waits until all nodes have recovered, for four times as long as that may take, because the caller reports the
// time.
func (f *fleet) heals(ctx context.Context, name string) (recoveryTimes, error) {
	ctx, done := within(ctx, 4*f.heal)
	defer done()
	return f.well(ctx, name)
}

// quiet waits until all replicas of the table are equal, while there are no requests.
func (f *fleet) quiet(ctx context.Context) error {
	type state struct{ position, hash uint64 }
	for {
		var said []string
		states := make(map[state]bool)
		for i, c := range f.clients {
			position, hash, err := c.inspect(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", nodeName(i), err)
			}
			states[state{position, hash}] = true
			said = append(said, fmt.Sprintf("%s: %d %x", nodeName(i), position, hash))
		}
		if len(states) == 1 {
			return nil
		}
		if hold(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("the copies of the table differ: %v", said)
		}
	}
}

// fence waits until all replicas of the table are equal, and then has a node broadcast the payload from which on all
// are judged, and waits until all have delivered it.
func (f *fleet) fence(ctx context.Context, name string) error {
	ctx, done := within(ctx, 4*f.heal)
	defer done()
	if err := f.quiet(ctx); err != nil {
		return err
	}
	f.load.orders.Build(name)
	if err := f.load.cast(ctx, 0, name); err != nil && outcomeOf(err) == nothing {
		return fmt.Errorf("all is well, and %s refuses a payload: %w", nodeName(0), err)
	}
	if err := f.everywhere(ctx, name, f.all()); err != nil {
		return fmt.Errorf("not all deliver %s: %w", name, err)
	}
	return nil
}
