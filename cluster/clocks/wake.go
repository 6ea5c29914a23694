package clocks

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/kernel"
)

// wakeMonitor measures how late this process is scheduled after a timer: the delay that a busy computer, garbage
// collection, or a suspension adds to everything that is due.
type wakeMonitor struct {
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	ring   [4096]time.Duration
	n      int
	most   time.Duration
	pauses uint64 // how often a delay exceeded the slack of a round
}

// wakes is the time between two measurements.
const wakes = 10 * time.Millisecond

// start starts measuring.
func (w *wakeMonitor) start(s *Service) {
	w.stop = make(chan struct{})
	w.done.Go(func() { w.run(s) })
}

func (w *wakeMonitor) close() {
	if w.stop != nil {
		close(w.stop)
		w.done.Wait()
		w.stop = nil
	}
}

func (w *wakeMonitor) run(s *Service) {
	clock := s.k.Clock
	var told, unsynchronized time.Time
	var slept time.Duration
	begun := time.Now()
	timer := time.NewTimer(wakes)
	defer timer.Stop()
	for {
		due := clock.Now() + parley.Tick(wakes)
		timer.Reset(wakes)
		select {
		case <-w.stop:
			return
		case <-timer.C:
		}
		late := time.Duration(max(clock.Now()-due, 0))
		if w.note(late, kernel.Slack(s.k.Round)) && time.Since(told) >= time.Minute {
			told = time.Now()
			s.k.Log.Warn("process paused; it abstains from the rounds it missed", "pause", late)
		}
		if c, ok := clock.(*host.System); ok && c.Asleep() != slept {
			s.k.Log.Warn("computer was suspended", "duration", c.Asleep()-slept)
			slept = c.Asleep()
		}
		if time.Since(begun) > 10*time.Second && time.Since(unsynchronized) >= time.Minute &&
			s.kept() && !s.Now().Synchronized {
			unsynchronized = time.Now()
			s.k.Log.Warn("clock is not synchronized; too few others can be read in time or agree with it",
				"max_reading", time.Duration(s.plan.RoundTrip))
		}
	}
}

// Wakes measures how late the operating system schedules this process. It measures until ctx ends. A delay of more
// than 1/5 of a round counts as a pause.
func Wakes(ctx context.Context, round time.Duration) WakeLatency {
	w := new(wakeMonitor)
	timer := time.NewTimer(wakes)
	defer timer.Stop()
	for {
		due := time.Now().Add(wakes)
		timer.Reset(wakes)
		select {
		case <-ctx.Done():
			return w.lateness()
		case <-timer.C:
		}
		w.note(max(time.Since(due), 0), kernel.Slack(round))
	}
}

// note records a delay, and reports whether it was a pause.
func (w *wakeMonitor) note(late, slack time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ring[w.n%len(w.ring)] = late
	w.n++
	w.most = max(w.most, late)
	if late > slack {
		w.pauses++
	}
	return late > slack
}

// WakeLatency says how late the operating system scheduled a process.
type WakeLatency struct {
	Median  time.Duration `json:"median"`
	P999    time.Duration `json:"p999"` // 99.9th percentile
	Most    time.Duration `json:"most"` // maximum since the start
	Samples int           `json:"samples"`
	// Pauses is how often a delay exceeded 1/5 of a round.
	Pauses uint64 `json:"pauses"`
}

func (w *wakeMonitor) lateness() WakeLatency {
	w.mu.Lock()
	list := slices.Clone(w.ring[:min(w.n, len(w.ring))])
	l := WakeLatency{Most: w.most, Samples: len(list), Pauses: w.pauses}
	w.mu.Unlock()
	if len(list) > 0 {
		slices.Sort(list)
		l.Median, l.P999 = list[len(list)/2], list[min(len(list)*999/1000, len(list)-1)]
	}
	return l
}
