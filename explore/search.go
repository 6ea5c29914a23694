package explore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"parley"
	"parley/explore/internal/budget"
	"parley/sim"
)

// search is one search.
type search struct {
	budget.Budget
	space
	signer sim.Signer

	visited visited
	checker propertyChecker

	depth   atomic.Int64
	waiting atomic.Int64 // states
	states  atomic.Uint64
	moves   atomic.Uint64
	results atomic.Uint64 // outcomes of steps
	ends    atomic.Uint64
	runs    atomic.Uint64
	failure atomic.Pointer[error]
	workers []*worker
}

func newSearch(ctx context.Context, o Options) *search {
	x := &search{signer: sim.Ideal(1)}
	x.Context, x.Time, x.Memory = ctx, o.For, o.Memory
	x.o, x.p, x.timed = o, o.Protocol, o.Protocol.Timing == parley.Synchronous
	x.relative = o.Model.InTime && !x.timed
	x.timed = x.timed || x.relative
	for k := range x.limits {
		x.limits[k] = uint8(o.Model.limit(k))
	}
	x.requestsAnytime = !x.timed || x.relative || x.p.OnDemand && o.Step == Messages
	m := &o.Model
	x.reliable = m.Crashes+m.Losses+m.Doubles == 0
	x.onlyMessages = !x.requestsAnytime && !m.Detect && x.reliable && m.FalseSuspicions == 0
	x.delay = messageDelay(x.p)
	for _, r := range o.Roots {
		x.roots = append(x.roots, newRoot(x.p, r))
	}
	x.checker.x, x.visited.alone = x, o.Workers == 1
	for range o.Workers {
		x.workers = append(x.workers, x.worker())
	}
	return x
}

// worker returns a worker for one more thread, with machines of its own.
func (x *search) worker() *worker {
	w := &worker{search: x}
	w.Signer, w.x, w.budget, w.counted = x.signer, &x.space, &x.Budget, &x.results
	w.calls, w.coverage = newMemo[clauseInput, []outcome](clauseInput.hash), newCoverage()
	w.queues, w.histories = newMemo[pair, uint32](pair.hash), newMemo[pair, uint32](pair.hash)
	w.onPanic, w.visit = w.recordPanic, w.arriveAt
	for _, r := range x.roots {
		var list []parley.Machine
		for i := range r.seats {
			list = append(list, x.fresh(r, &r.seats[i]))
		}
		w.machines = append(w.machines, list)
		w.symmetries = append(w.symmetries, newSymmetry(&w.runner, x.o.Alike.Minus(r.faulty)))
	}
	return w
}

// frontier is the packed states of one level that wait to be visited.
type frontier struct {
	blocks [][]uint32
}

func (x *search) run() Report {
	done := x.Start(x.progressFunc())
	if x.o.Order == RandomOrder {
		x.walks()
		x.End("walks")
	} else if x.all() {
		x.End("depth")
	}
	done()
	return x.report()
}

// all visits every state, and returns whether some were left.
func (x *search) all() (more bool) {
	w := x.workers[0]
	defer x.recoverTooLarge()
	for number := range x.roots {
		if x.Over() {
			return true
		}
		for i, b := range w.begin(number) {
			w.arriveAt(&state{runs: 1}, &b.state, number<<variantBits|i)
		}
	}
	level := frontier{w.flush(nil)}
	for len(level.blocks) > 0 && !x.Over() && (x.o.Depth == 0 || int(x.depth.Load()) < x.o.Depth) {
		level = x.level(level)
		x.depth.Add(1)
	}
	return len(level.blocks) > 0
}

// level visits all states of a frontier and returns the next one.
func (x *search) level(level frontier) frontier {
	var next frontier
	var mu sync.Mutex
	var taken atomic.Int64
	var all sync.WaitGroup
	for _, w := range x.workers {
		all.Go(func() {
			for !x.Over() {
				k := int(taken.Add(1)) - 1
				if k >= len(level.blocks) {
					break
				}
				for rest := level.blocks[k]; len(rest) > 0 && !x.Over(); {
					rest = w.here.unpack(rest, x.p.N)
					w.expand(&w.here)
				}
				w.spare, level.blocks[k] = append(w.spare, level.blocks[k]), nil
				if x.o.Order == DepthFirst {
					w.expandNewest()
				}
			}
			mu.Lock()
			next.blocks = w.flush(next.blocks)
			mu.Unlock()
		})
	}
	all.Wait()
	return next
}

// counted returns whether runs are counted: all runs to a state must reach it before it is visited.
func (x *search) counted() bool { return x.o.Step == Rounds && x.o.Order == BreadthFirst }

func (x *search) addRuns(runs uint64) {
	for old := x.runs.Load(); !x.runs.CompareAndSwap(old, plus(old, runs)); {
		old = x.runs.Load()
	}
}

// fail ends a search that cannot be made.
func (x *search) fail(err error) {
	x.failure.CompareAndSwap(nil, &err)
	x.Stop()
}

// recoverTooLarge ends the search if something cannot be explored. It must be deferred.
func (x *search) recoverTooLarge() {
	switch why := recover().(type) {
	case nil:
	case tooLarge:
		x.fail(errors.New(string(why)))
	default:
		panic(why)
	}
}
