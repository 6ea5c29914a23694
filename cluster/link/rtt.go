package link

import (
	"slices"
	"sync"
	"time"
)

// RTT summarizes the latest round-trip times of pings. Pings whose answers arrived while this process was paused do
// not count, because they say nothing about the link.
type RTT struct {
	Min, P50, P999 time.Duration
	Samples        int // at most 1024
}

// RecentRTT summarizes the round-trip times of pings over the last 10 s: the current state of a link, which a
// single pause of a node affects only briefly.
type RecentRTT struct {
	P50, P90 time.Duration
	Samples  int
}

const recently = 10 * time.Second

// window holds the last round-trip times.
type window struct {
	mu   sync.Mutex
	ring [1024]roundTrip
	n    int // number of all samples ever
}

type roundTrip struct{ at, took time.Duration }

func (w *window) add(at, took time.Duration) {
	w.mu.Lock()
	w.ring[w.n%len(w.ring)] = roundTrip{at, took}
	w.n++
	w.mu.Unlock()
}

// since returns the sorted round-trip times of pings answered at a time or later.
func (w *window) since(at time.Duration) (v []time.Duration) {
	w.mu.Lock()
	for _, one := range w.ring[:min(w.n, len(w.ring))] {
		if one.at >= at {
			v = append(v, one.took)
		}
	}
	w.mu.Unlock()
	slices.Sort(v)
	return v
}

// perMille returns the given per-mille quantile.
func perMille(v []time.Duration, of int) time.Duration { return v[min(len(v)*of/1000, len(v)-1)] }

func (w *window) sum() RTT {
	v := w.since(0)
	if len(v) == 0 {
		return RTT{}
	}
	return RTT{Min: v[0], P50: perMille(v, 500), P999: perMille(v, 999), Samples: len(v)}
}

func (w *window) recent(now time.Duration) RecentRTT {
	v := w.since(now - recently)
	if len(v) == 0 {
		return RecentRTT{}
	}
	return RecentRTT{P50: perMille(v, 500), P90: perMille(v, 900), Samples: len(v)}
}
