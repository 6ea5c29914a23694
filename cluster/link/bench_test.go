//go:build unix

package link_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/cluster/link"
)

// cpu is the time that this process has spent computing.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchPair(b *testing.B) *system {
	return pair(b, func(c *link.Config) { c.Limits = link.Limits{} })
}

// One frame of 100 bytes goes there and comes back.
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

// Frames go one way, as fast as they are taken. each: flushed one by one, as by a caller
// who has only one; else 64 at a time, as by a burst.
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
