package explore

import "time"

// interrupt is the limit of a search whose context ended.
const interrupt = "interrupt"

// limited begins the search, and ends it when its time is over, until the function that it
// returns is called.
func (x *search) limited() (release func()) {
	x.began = time.Now()
	if x.o.For == 0 {
		return func() {}
	}
	alarm := time.AfterFunc(x.o.For, func() { x.end("for") })
	return func() { alarm.Stop() }
}

// over tells whether the search has ended: by what was found, a budget or its context.
func (x *search) over() bool { return x.stop.Load() || x.ctx.Err() != nil }

// halted tells whether a worker stops in the middle of a step, which may have a million
// outcomes. Runs are made again after a search, unless its context has ended.
func (w *worker) halted() bool { return w.x.ctx.Err() != nil || !w.again && w.x.halt.Load() }

// fail ends a search that cannot be made.
func (x *search) fail(err error) {
	x.failure.CompareAndSwap(nil, &err)
	x.stop.Store(true)
}

// end ends the search because a budget is used up. The first one counts.
func (x *search) end(budget string) {
	x.limit.CompareAndSwap(nil, &budget)
	if budget == "for" || budget == "memory" {
		x.halt.Store(true)
	}
	x.stop.Store(true)
}
