//go:build !race

// The race detector makes pools drop entries, so that there is an allocation now and then.

package link_test

import (
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/cluster/link"
)

// Neither sending nor receiving a frame allocates: what remains is due to crypto/tls, a little for each read.
func TestNoAllocationPerFrame(t *testing.T) {
	got, n := atomic.Int64{}, int64(0)
	all := make(chan struct{}, 1)
	var last atomic.Int64 // of the expected ones
	s := onThisMachine(t, func(c *link.Config) {
		c.Limits = link.Limits{Ping: time.Hour, Silence: 10 * time.Hour} // nothing else is written
		c.Handler.(*host).frame = func(parley.ID, uint32, []byte) {
			if got.Add(1) == last.Load() {
				all <- struct{}{}
			}
		}
	})
	head, body := []byte{1, 2, 3}, make([]byte, 100)
	send := func() {
		n += 200
		last.Store(n)
		for range 100 {
			s.mesh[0].Send(1, link.Bulk, 7, head, body)
			s.mesh[0].Send(1, link.Urgent, 7, head, body)
		}
		s.mesh[0].Flush(1)
		<-all
	}
	send()
	if a := testing.AllocsPerRun(200, send); a > 20 { // of 200 frames
		t.Errorf("%v allocations for 200 frames", a)
	}
	if a := testing.AllocsPerRun(1000, func() { s.mesh[0].Send(1, link.Bulk, 7, head, body) }); a != 0 {
		t.Errorf("%v allocations to send a frame", a)
	}
	if a := testing.AllocsPerRun(1000, func() {
		s.mesh[0].Send(1, link.Bulk, 7, head, body)
		s.mesh[0].Flush(1)
	}); a > 2 { // two of crypto/tls in the reader's read, if each frame is read by itself
		t.Errorf("%v allocations to send, flush and take a frame", a)
	}
}
