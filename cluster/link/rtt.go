package link

import (
	"slices"
	"sync"
	"time"
)

// RTT is how long pings took to be answered, over the last of them.
type RTT struct {
	Min, P50, P999 time.Duration
	Samples        int // at most 1024
}

// window holds the last round-trip times.
type window struct {
	mu   sync.Mutex
	ring [1024]time.Duration
	n    int // all that there were
}

func (w *window) add(d time.Duration) {
	w.mu.Lock()
	w.ring[w.n%len(w.ring)] = d
	w.n++
	w.mu.Unlock()
}

func (w *window) sum() RTT {
	w.mu.Lock()
	v := slices.Clone(w.ring[:min(w.n, len(w.ring))])
	w.mu.Unlock()
	if len(v) == 0 {
		return RTT{}
	}
	slices.Sort(v)
	at := func(perMille int) time.Duration { return v[min(len(v)*perMille/1000, len(v)-1)] }
	return RTT{Min: v[0], P50: at(500), P999: at(999), Samples: len(v)}
}
