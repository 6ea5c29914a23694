package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/internal/must"
)

// The clocks of all nodes are wrong, each in its own way, within the limits that the nodes assume: most is the
// maximum offset, and parts the maximum drift in parts per million.
const (
	most  = 20 * time.Second
	parts = 80
)

// wrongClock returns the part of a configuration that makes a node's clock wrong.
func wrongClock(offset time.Duration, drift int) string {
	return fmt.Sprintf("lab: true\nskew:\n  offset: %v\n  drift: %d\n", offset.Round(time.Millisecond), drift)
}

// ownClock returns the clock error of a node without an injected clock fault.
func (d dice) ownClock() string {
	return wrongClock(time.Duration(d.Int64N(int64(2*most)))-most, d.IntN(2*parts)-parts)
}

// errClocks means that clocks differ by more than their nodes say.
var errClocks = errors.New("clocks differ")

// reading is a node's reading of the time. The cluster's time is ahead of this program's clock by a value from low to
// high.
type reading struct {
	in        bool
	low, high time.Duration
	bound     time.Duration
}

// readClock asks a node for its reading.
func (f *fleet) readClock(ctx context.Context, i int) (reading, error) {
	ctx, done := context.WithTimeout(ctx, try)
	defer done()
	asked := time.Now()
	now, err := f.clients[i].clock.Now(ctx, &parleyv1.NowRequest{})
	if err != nil {
		return reading{}, err
	}
	told := time.Now()
	at := now.GetTime().AsTime()
	return reading{now.GetSynchronized(), at.Sub(told), at.Sub(asked), now.GetBound().AsDuration()}, nil
}

// readClocks asks nodes for their readings concurrently. Nodes that do not answer count as not in step.
func (f *fleet) readClocks(ctx context.Context, which []int) []reading {
	out := make([]reading, len(which))
	var all sync.WaitGroup
	for k, i := range which {
		all.Go(func() { out[k], _ = f.readClock(ctx, i) })
	}
	all.Wait()
	return out
}

// apart returns the least possible difference of two clocks.
func apart(a, b reading) time.Duration { return max(a.low-b.high, b.low-a.high) }

// inStep waits until all the given nodes say that they are in step, and returns an error if their clocks differ by
// more than those nodes say. Two readings at different times prove that only if, in both, the nodes were in step and
// too far apart, and their clocks did not move in between: then they were too far apart at one time.
func (f *fleet) inStep(ctx context.Context, which []int) error {
	for {
		first := f.readClocks(ctx, which)
		again := f.readClocks(ctx, which)
		in := 0
		stays := func(k int) bool {
			return first[k].in && again[k].in && apart(first[k], again[k]) <= first[k].bound
		}
		for k := range which {
			if !stays(k) {
				continue
			}
			in++
			for l := range k {
				by, within := apart(again[k], again[l]), min(again[k].bound, again[l].bound)
				if stays(l) && min(by, apart(first[k], first[l])) > within {
					return fmt.Errorf("%w: %s and %s by at least %v, though they say %v", errClocks, nodeName(which[k]),
						nodeName(which[l]), by, within)
				}
			}
		}
		if in == len(which) {
			return nil
		}
		if hold(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%d of %d clocks are in step: %w", in, len(which), context.Cause(ctx))
		}
	}
}

// clockWrong makes the clock of one node run much too fast or slow, with a wrong hour: the node is faulty, within the
// model. The others must stay in step.
func clockWrong(ctx context.Context, r *run) string {
	i, d := r.some(), r.between(5, 8)
	offset, drift := time.Duration(r.dice.IntN(7200)-3600)*time.Second, 20_000
	if r.dice.IntN(2) == 0 {
		drift = -drift
	}
	r.restartWith(i, wrongClock(offset, drift))
	until := time.Now().Add(d)
	for time.Now().Before(until) && ctx.Err() == nil {
		must.Do(r.inStep(ctx, r.but(i)))
		hold(ctx, 200*time.Millisecond)
	}
	r.restartWith(i, r.ownClock())
	return fmt.Sprintf("%s off by %v and %d millionths, for %s", nodeName(i), offset, drift, brief(d))
}

// clockSkewed restarts a node with a clock that shows another time.
func clockSkewed(_ context.Context, r *run) string {
	i := r.some()
	r.restartWith(i, r.ownClock())
	return nodeName(i)
}
