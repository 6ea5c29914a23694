// Package budget ends a search when its time or its memory is used up, when its context ends, or when it has found
// enough.
package budget

import (
	"context"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// The limits that every budget keeps. A search adds others.
const (
	Time      = "for"
	Memory    = "memory"
	Interrupt = "interrupt" // the context ended
)

// Budget bounds the resources of a search. Its first three fields are set before Start. Its methods are
// safe for concurrent use.
type Budget struct {
	Context context.Context
	Time    time.Duration // 0: no limit
	Memory  uint64        // bytes that the program may use; 0: no limit

	began time.Time
	over  atomic.Bool            // stop after the current states
	halt  atomic.Bool            // stop at once: time or memory is used up
	limit atomic.Pointer[string] // the limit that ended the search
}

// Start begins the search. The search must call done when it ends. Until then progress, if not nil, is called after
// half a second and then once a second.
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

// taken returns the number of bytes that the program has taken from the system.
func taken() uint64 {
	list := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(list)
	return list[0].Value.Uint64() - list[1].Value.Uint64()
}

// Took returns the duration of the search so far.
func (b *Budget) Took() time.Duration { return time.Since(b.began) }

// Stop ends the search because it needs no more.
func (b *Budget) Stop() { b.over.Store(true) }

// End ends the search because a limit is reached. Later limits are ignored.
func (b *Budget) End(limit string) {
	b.limit.CompareAndSwap(nil, &limit)
	if limit == Time || limit == Memory {
		b.halt.Store(true)
	}
	b.Stop()
}

// Over returns whether the search has ended: by a finding, a limit or its context.
func (b *Budget) Over() bool { return b.over.Load() || b.Interrupted() }

// Halted returns whether the search must stop within a step because time or memory is used up.
func (b *Budget) Halted() bool { return b.halt.Load() }

// Interrupted returns whether the context has ended.
func (b *Budget) Interrupted() bool { return b.Context.Err() != nil }

// Limit returns what ended the search early, "" if nothing did.
func (b *Budget) Limit() string {
	if limit := b.limit.Load(); limit != nil {
		return *limit
	}
	return ""
}
