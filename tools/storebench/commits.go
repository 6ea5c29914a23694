package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"parley/internal/must"
)

// loads are the measured loads: the number of callers, each with one record of size bytes in flight.
var loads = []struct{ callers, size int }{{1, 128}, {64, 128}, {64, 1024}}

// figures are the measurements of one log under one load. Each list has one number for each repetition.
type figures struct{ rate, took, cpu []float64 } // records per second; microseconds per record; processor us per record

// commitTables measures all candidates in turn, and prints medians, minima and maxima.
func commitTables(dir string, chosen []candidate, reps int, dur time.Duration) {
	all := make([][]figures, len(loads))
	for i := range loads {
		all[i] = make([]figures, len(chosen))
	}
	for range reps {
		for i, load := range loads {
			for k, c := range chosen {
				if err := all[i][k].measure(dir, c, load.callers, load.size, dur); err != nil {
					must.Failf("%s: %w", c.name, err)
				}
			}
		}
	}
	for i, load := range loads {
		heading(fmt.Sprintf("%d callers, %d bytes", load.callers, load.size),
			"durable records/s", "us a record takes (median)", "CPU us a record")
		for k, c := range chosen {
			row(c.name, spread(all[i][k].rate, 0), spread(all[i][k].took, 0), spread(all[i][k].cpu, 1))
		}
		fmt.Println()
	}
}

// spread formats the median of numbers, with the minimum and maximum.
func spread(all []float64, digits int) string {
	slices.Sort(all)
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, all[len(all)/2], digits, all[0], digits, all[len(all)-1])
}

// measure makes callers append to a new log for a time.
func (f *figures) measure(dir string, c candidate, callers, size int, dur time.Duration) error {
	dir = filepath.Join(dir, "log")
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := c.open(dir, options{})
	if err != nil {
		return err
	}
	g := &group{next: new(round{done: make(chan struct{})})}
	g.some.L = &g.mu
	committed := make(chan error, 1)
	go func() { committed <- g.commit(l) }()
	took := make([][]time.Duration, callers)
	var wg sync.WaitGroup
	cpu, began := processorTime(), time.Now()
	for i := range took {
		wg.Go(func() {
			b := record(i, size)
			for at := time.Now(); at.Sub(began) < dur && g.append(b); {
				now := time.Now()
				took[i], at = append(took[i], now.Sub(at)), now
			}
		})
	}
	wg.Wait()
	cpu, passed := processorTime()-cpu, time.Since(began)
	g.close()
	if err := <-committed; err != nil {
		return err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	f.rate = append(f.rate, float64(len(all))/passed.Seconds())
	f.took = append(f.took, float64(all[len(all)/2])/1e3)
	f.cpu = append(f.cpu, float64(cpu)/1e3/float64(len(all)))
	return l.close()
}

// group commits the records that callers have submitted during the previous commit, as a node does.
type group struct {
	mu     sync.Mutex
	some   sync.Cond
	next   *round
	closed bool
}

// round is the records committed together.
type round struct {
	records [][]byte
	failed  bool
	done    chan struct{} // closed when the records are durable, or have failed
}

// append returns true when a record is durable, and false if it will not be.
func (g *group) append(b []byte) bool {
	g.mu.Lock()
	r := g.next
	r.records = append(r.records, b)
	g.some.Signal()
	g.mu.Unlock()
	<-r.done
	return !r.failed
}

// commit commits until the group is closed.
func (g *group) commit(l *journal) error {
	for at := 0; ; {
		g.mu.Lock()
		for len(g.next.records) == 0 && !g.closed {
			g.some.Wait()
		}
		r := g.next
		g.next = &round{done: make(chan struct{})}
		g.mu.Unlock()
		if len(r.records) == 0 {
			return nil
		}
		err := l.append(at, r.records)
		at += len(r.records)
		r.failed = err != nil
		close(r.done)
		if err != nil {
			return err
		}
	}
}

func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.some.Signal()
	g.mu.Unlock()
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
