// Package kerneltest makes a kernel for the test of one service. It is the kernel of a node without connections to
// its peers.
package kerneltest

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/membership/group"
)

type nowhere struct{}

func (nowhere) Send(parley.ID, link.Class, uint32, []byte, []byte) bool { return false }
func (nowhere) Flush(parley.ID)                                         {}

// New returns the kernel of the first of n nodes. The nodes are named node1 and so on, and m of them may be faulty.
// All peers count as near, and none of them sends anything. The host is closed at the end of the test.
func New(tb testing.TB, n, m int) *kernel.Kernel {
	tb.Helper()
	clock := host.NewElapsed()
	h := host.New(host.Config{N: n, Life: 7, Transport: nowhere{}, Clock: clock})
	tb.Cleanup(h.Close)
	k := &kernel.Kernel{
		M: m, Round: 100 * time.Millisecond, Clock: clock, Log: slog.New(slog.DiscardHandler), Host: h, Compact: 64,
		Intact: true, Ended: make(chan struct{}), Views: views(n),
		Up:      func() (none parley.Set) { return none },
		Drift:   func() float64 { return 0 },
		Watched: func(o host.Options, _ bool) (*host.Process, error) { return h.Open(o) },
	}
	for id := range parley.ID(n) {
		k.Members = append(k.Members, fmt.Sprintf("node%d", id+1))
	}
	k.Peers = func() (list []link.PeerStats) {
		for id := range parley.ID(n - 1) {
			list = append(list, link.PeerStats{ID: id + 1, Connected: true, RTT: link.RTT{P50: time.Millisecond}})
		}
		return list
	}
	return k
}

// views returns the configuration of views of n nodes with timeouts of a second.
func views(n int) group.Config {
	const second = parley.Tick(time.Second)
	v := group.Config{N: n, Return: true, Flush: second / 2, Wait: second, Stagger: second, Admit: second}
	v.First, v.Become = second, second
	v.Detector.Period, v.Detector.Timeout, v.Detector.Late = second/10, second, second/4
	return v.WithDefaults()
}
