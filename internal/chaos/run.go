package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/replica/keyvalue"
)

// run is one run: nodes in a world, what is asked of them, and what befalls them.
type run struct {
	out     io.Writer
	dir     string
	seed    uint64
	w       world
	fabric  fabric
	disks   []storage
	members members
	nodes   []*node
	clients []*client
	load    *load
	dice    *rand.Rand
	events  []event
	struck  []int         // by the harm under way
	others  wellness      // of those that the harm under way has spared
	rested  time.Duration // how long nothing judged was asked
	liar    string        // the program that lies
	heal    time.Duration // the longest that it may take until all is well
	again   error         // what nodes could not read again in the end
}

// event is one fault of a run.
type event struct {
	fault              string
	said               string
	struck             []int         // nodes that it harmed
	began, over, whole time.Duration // whole: when all was well again
	others             wellness      // of those that were spared, where the harm looks at them by themselves
	well               wellness
	answered           int           // commands of the table, meanwhile
	outage             time.Duration // the longest time without an answer meanwhile
}

// count is the number of nodes.
const count = 5

// setUp makes everything in a folder, and starts the nodes.
func setUp(ctx context.Context, out io.Writer, dir, binary string, bare bool, seed uint64) (r *run, err error) {
	r = &run{out: out, dir: dir, seed: seed, dice: rand.New(rand.NewPCG(seed, 0))}
	if bare {
		r.w, err = newLoopback(ctx, dir, count)
	} else {
		r.w, r.fabric, r.disks, err = newWorld(ctx, dir, count, seed)
	}
	if err != nil {
		return nil, err
	}
	if r.members, err = certify(dir, r.w, count); err != nil {
		return nil, err
	}
	for i := range count {
		if err := configure(dir, r.w, i, r.members, r.ownClock()); err != nil {
			return nil, err
		}
		r.nodes = append(r.nodes, newNode(i, dir, binary, r.w))
	}
	if r.clients, err = newClients(dir, r.w, count); err != nil {
		return nil, err
	}
	if err := r.back(r.all()...); err != nil {
		return r, err
	}
	ctx, done := within(ctx, time.Minute)
	defer done()
	for _, n := range r.nodes {
		if err := n.await(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}

// tearDown ends all nodes.
func (r *run) tearDown() error {
	if r == nil {
		return nil
	}
	if r.fabric != nil {
		r.fabric.clear()
	}
	for _, n := range r.nodes {
		if n.now() != nil {
			_ = n.kill()
		}
	}
	return r.w.close()
}

func (r *run) printf(form string, args ...any) {
	at := time.Duration(0)
	if r.load != nil {
		at = r.load.now()
	}
	fmt.Fprintf(r.out, "%7.1f s  %s\n", at.Seconds(), fmt.Sprintf(form, args...))
}

func (r *run) all() []int {
	out := make([]int, len(r.nodes))
	for i := range out {
		out[i] = i
	}
	return out
}

func (r *run) but(one int) (out []int) {
	for i := range r.nodes {
		if i != one {
			out = append(out, i)
		}
	}
	return out
}

func (r *run) shuffled() []int { return r.dice.Perm(len(r.nodes)) }

func (r *run) some() int { return r.dice.IntN(len(r.nodes)) }

// between is a time from one number of seconds to another.
func (r *run) between(low, high int) time.Duration {
	return time.Duration(low)*time.Second + time.Duration(r.dice.Int64N(int64(high-low)*int64(time.Second)))
}

// first is the first member of the view of the group, as most nodes would say.
func (r *run) first(ctx context.Context) int {
	ctx, done := context.WithTimeout(ctx, 2*time.Second)
	defer done()
	for _, c := range r.clients {
		s, err := c.admin.Status(ctx, &parleyv1.StatusRequest{})
		if err != nil || len(s.GetGroups()) == 0 || len(s.GetGroups()[0].GetView().GetMembers()) == 0 {
			continue
		}
		for i := range r.nodes {
			if nodeName(i) == s.GetGroups()[0].GetView().GetMembers()[0] {
				return i
			}
		}
	}
	return 0
}

// serves waits until a node carries out commands.
func (r *run) serves(ctx context.Context, i int) error {
	for {
		one, done := context.WithTimeout(ctx, try)
		_, _, err := r.clients[i].query(one, keyvalue.Get([]byte("probe")))
		done()
		if err == nil {
			return nil
		}
		if dead := r.nodes[i].dead(); dead != nil {
			return dead
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w: %w", nodeName(i), context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// carries waits until what a node casts is delivered by some.
func (r *run) carries(ctx context.Context, i int, name string, which []int) error {
	for k := 0; ; k++ {
		payload := fmt.Sprintf("%s.%s.%d", name, nodeName(i), k)
		_ = r.load.cast(ctx, i, payload) // it is noted
		again := time.After(250 * time.Millisecond)
		for tried := false; !tried; {
			is, moved := r.load.orders.Everywhere(payload, which)
			if is {
				return nil
			}
			select {
			case <-moved:
			case <-again:
				tried = true
			case <-ctx.Done():
				return fmt.Errorf("not all of %s deliver what %s casts: %w", nodeNames(which), nodeName(i), context.Cause(ctx))
			}
		}
	}
}

// wellness is how long it took until all nodes carried out commands, until all delivered
// what each of them cast, and until all clocks were in step.
type wellness struct{ tables, groups, clocks time.Duration }

func (w wellness) whole() time.Duration { return max(w.tables, w.groups, w.clocks) }

func (w wellness) String() string {
	return fmt.Sprintf("%s (tables %.1f, groups %.1f, clocks %.1f)", brief(w.whole()), w.tables.Seconds(),
		w.groups.Seconds(), w.clocks.Seconds())
}

// well waits until all that is so.
func (r *run) well(ctx context.Context, name string) (wellness, error) {
	return r.wellAmong(ctx, name, r.all())
}

// wellAmong waits until it is so of some nodes, among each other.
func (r *run) wellAmong(ctx context.Context, name string, which []int) (w wellness, err error) {
	since := r.load.now()
	var mu sync.Mutex
	var all sync.WaitGroup
	wait := func(took *time.Duration, f func() error) {
		all.Go(func() {
			failed := f()
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failed)
			*took = max(*took, r.load.now()-since)
		})
	}
	wait(&w.clocks, func() error { return r.inStep(ctx, which) })
	for _, i := range which {
		wait(&w.tables, func() error { return r.serves(ctx, i) })
		wait(&w.groups, func() error { return r.carries(ctx, i, name, which) })
	}
	all.Wait()
	return w, err
}

// quiet waits until all copies of the table are alike, when nothing is asked for.
func (r *run) quiet(ctx context.Context) error {
	type state struct{ position, hash uint64 }
	for {
		var said []string
		states := make(map[state]bool)
		for i, c := range r.clients {
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("the copies of the table differ: %v", said)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
