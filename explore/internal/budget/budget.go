// Package budget ends searches: when their time or their memory is used up, when their context ends, or
// when they have found enough.
package budget

import (
	"context"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// The limits that a budget keeps by itself. A search adds others.
const (
	Time      = "for"
	Memory    = "memory"
	Interrupt = "interrupt" // the context ended
)

// Budget is what a search may take. Its first three fields are set before it starts.
type Budget struct {
	Context context.Context
	Time    time.Duration // 0: no limit
	Memory  uint64        // bytes that the program may take; 0: no limit

	began time.Time
	over  atomic.Bool            // when the states at hand are done
	halt  atomic.Bool            // at once: there is no time or memory for more
	limit atomic.Pointer[string] // that ended the search
}

// Start begins the search, which calls done when it ends. Until then progress, if it is not nil, is
// called after half a second and then once a second.
func (b *Budget) Start(progress func()) (done func()) {
	b.began = time.Now()
	alarm := func() bool { return true }
	if b.Time > 0 {
		alarm = time.AfterFunc(b.Time, func() { b.End(Time) }).Stop
	}
	if progress == nil && b.Memory == 0 {
		return func() { alarm() }
	}
	tick, end := time.NewTicker(time.Second/8), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for k := 1; ; k++ {
			select {
			case <-tick.C:
				if b.Memory > 0 && taken() > b.Memory {
					b.End(Memory)
				}
				if k%8 == 4 && progress != nil {
					progress()
				}
			case <-end:
				return
			}
		}
	})
	return func() { alarm(); tick.Stop(); close(end); all.Wait() }
}

// taken is how many bytes the program has taken from the system.
func taken() uint64 {
	list := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(list)
	return list[0].Value.Uint64() - list[1].Value.Uint64()
}

// Took is how long the search has taken so far.
func (b *Budget) Took() time.Duration { return time.Since(b.began) }

// Stop ends the search: there is no need for more.
func (b *Budget) Stop() { b.over.Store(true) }

// End ends the search because a limit is reached. The first one counts.
func (b *Budget) End(limit string) {
	b.limit.CompareAndSwap(nil, &limit)
	if limit == Time || limit == Memory {
		b.halt.Store(true)
	}
	b.Stop()
}

// Over tells whether the search has ended: by what was found, a limit or its context.
func (b *Budget) Over() bool { return b.over.Load() || b.Interrupted() }

// Halted tells whether the search ends in the middle of a step, because time or memory is used up.
func (b *Budget) Halted() bool { return b.halt.Load() }

// Interrupted tells whether the context has ended.
func (b *Budget) Interrupted() bool { return b.Context.Err() != nil }

// Limit returns what ended the search early, "" if nothing did.
func (b *Budget) Limit() string {
	if limit := b.limit.Load(); limit != nil {
		return *limit
	}
	return ""
}
