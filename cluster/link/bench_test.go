//go:build unix

package link_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/cluster/link"
)

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchPair(b *testing.B) *system {
	return onThisMachine(b, func(c *link.Config) { c.Limits = link.Limits{} })
}

// One frame of 100 bytes goes to the peer and back.
func BenchmarkRoundTrip(b *testing.B) {
	s := benchPair(b)
	back := make(chan struct{})
	body := make([]byte, 100)
	var left int
	s.host[1].frame = func(from parley.ID, channel uint32, b []byte) {
		s.mesh[1].Send(0, link.Bulk, channel, nil, b)
	}
	s.host[1].burst = func(parley.ID) { s.mesh[1].Flush(0) }
	s.host[0].frame = func(from parley.ID, channel uint32, b []byte) {
		if left--; left > 0 {
			s.mesh[0].Send(1, link.Bulk, channel, nil, b)
		} else {
			back <- struct{}{}
		}
	}
	s.host[0].burst = func(parley.ID) { s.mesh[0].Flush(1) }
	b.ReportAllocs()
	left = b.N
	before := cpu()
	b.ResetTimer()
	s.mesh[0].Send(1, link.Bulk, 7, nil, body)
	s.mesh[0].Flush(1)
	<-back
	b.StopTimer()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

// rounds is the state of one node in an exchange in rounds.
type rounds struct {
	mu     sync.Mutex
	number uint64 // of the current exchange
	sent   int    // rounds
	got    []int  // frames, by round
}

// BenchmarkRounds measures a lower bound for an agreement among n nodes on one computer: one node begins, every
// node that receives a frame begins, too, and in each round every node sends a frame to all others when it has
// theirs of the previous round. The exchange ends when the first node has all frames.
func BenchmarkRounds(b *testing.B) {
	for _, size := range []struct{ n, rounds int }{{4, 2}, {7, 3}} {
		b.Run(fmt.Sprintf("n=%d/rounds=%d", size.n, size.rounds), func(b *testing.B) { inRounds(b, size.n, size.rounds) })
	}
}

func inRounds(b *testing.B, n, last int) {
	s := newSystem(b, n, func(c *link.Config) { c.Limits = link.Limits{} })
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	s.start(all...)
	for i := range n {
		for j := range i {
			s.connected(i, j)
		}
	}
	nodes := make([]rounds, n)
	done := make(chan struct{}, 1)
	// next sends what node i may send now. Its lock is held.
	next := func(i int) {
		r := &nodes[i]
		for r.sent < last && (r.sent == 0 || r.got[r.sent-1] == n-1) {
			body := make([]byte, 100)
			binary.BigEndian.PutUint64(body, r.number)
			body[8] = byte(r.sent)
			for _, to := range all {
				if to != i {
					s.mesh[i].Send(parley.ID(to), link.Bulk, 7, nil, body)
				}
			}
			r.sent++
		}
		if i == 0 && r.got[last-1] == n-1 {
			r.got[last-1] = 0
			done <- struct{}{}
		}
	}
	begin := func(r *rounds, number uint64) { r.number, r.sent, r.got = number, 0, make([]int, last) }
	flush := func(i int) {
		for _, to := range all {
			if to != i {
				s.mesh[i].Flush(parley.ID(to))
			}
		}
	}
	for i := range n {
		s.host[i].frame = func(_ parley.ID, _ uint32, body []byte) {
			r, number := &nodes[i], binary.BigEndian.Uint64(body)
			r.mu.Lock()
			defer r.mu.Unlock()
			if number > r.number {
				begin(r, number)
			}
			if number == r.number {
				r.got[body[8]]++
				next(i)
			}
		}
		s.host[i].burst = func(parley.ID) { flush(i) }
	}
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	before := cpu()
	for k := range took {
		since := time.Now()
		nodes[0].mu.Lock()
		begin(&nodes[0], uint64(k+1))
		next(0)
		nodes[0].mu.Unlock()
		flush(0)
		<-done
		took[k] = time.Since(since)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(cpu()-before)/float64(b.N)/1e3, "cpu-us/op")
}

// Frames go one way, as fast as they are received. each is how many are flushed together: 1 is a caller with a
// single frame, 64 a burst.
func BenchmarkOneWay(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		for _, each := range []int{1, 64} {
			b.Run(fmt.Sprintf("%d-bytes/flush-%d", size, each), func(b *testing.B) { oneWay(b, size, each) })
		}
	}
}

func oneWay(b *testing.B, size, each int) {
	s := benchPair(b)
	var got atomic.Int64
	var n int64
	s.host[1].frame = func(_ parley.ID, _ uint32, b []byte) { n++ }
	s.host[1].burst = func(parley.ID) { got.Store(n) }
	body := make([]byte, size)
	binary.BigEndian.PutUint64(body, 1)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := cpu()
	b.ResetTimer()
	for i := range b.N {
		if i%64 == 0 {
			for i-int(got.Load()) > 4<<20/size { // long before the queue is full
				s.mesh[0].Flush(1)
				time.Sleep(20 * time.Microsecond)
			}
		}
		if !s.mesh[0].Send(1, link.Bulk, 7, nil, body) {
			b.Fatal(s.host[0].all())
		}
		if i%each == each-1 {
			s.mesh[0].Flush(1)
		}
	}
	s.mesh[0].Flush(1)
	for got.Load() < int64(b.N) {
		runtime.Gosched()
	}
	b.StopTimer()
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
}
