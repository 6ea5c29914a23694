package sim_test

import (
	"encoding/binary"
	"flag"
	"runtime"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/sim"
	"parley/trace"
)

var soakFor = flag.Int("soak", 10_000, "how many `broadcasts` TestSoak makes")

// soak is a long run of an ordered broadcast in a group of four, with one broadcast for each tick. After 1/5
// of it process 3 pauses and is excluded; after 4/5 it resumes and learns that. The test keeps nothing of the
// run but the latest deliveries.
type soak struct {
	t          *testing.T
	many       int // number of broadcasts to make
	made       int
	stop, wake parley.Tick
	latest     positions
	then       positions // soon after process 3 had paused
	top        uint64    // the latest position delivered anywhere
	at         [4]uint64 // by process: its position
	views, out int
	heap       []uint64 // bytes in use after each tenth of the run
	began      time.Time
}

const soaking = 4

// positions holds what was delivered at the latest positions.
type positions [1 << 12]uint64

// next returns the next broadcast, with a unique body, by one of the first three processes.
func (k *soak) next() (sim.Request, bool) {
	if k.made == k.many {
		return sim.Request{}, false
	}
	k.made++
	body := binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(k.made))
	return sim.Request{At: parley.ID(k.made % (soaking - 1)), When: parley.Tick(k.made), Msg: problem.Request(body)}, true
}

// observe checks that all processes deliver the same at each position, in order.
func (k *soak) observe(op trace.Op, h parley.ExternalEvent) {
	switch {
	case op == trace.Indicate && h.Msg.Kind == parley.View:
		k.views++
	case op == trace.Indicate && h.Msg.Kind == group.Excluded:
		k.out++
	case op == trace.Deliver:
		const all = uint64(len(k.latest))
		place := &k.latest[h.Msg.Seq%all]
		what := binary.BigEndian.Uint64(h.Msg.Body)
		switch {
		case h.Msg.Seq == k.top+1:
			k.top, *place = h.Msg.Seq, what
			if k.top == k.at[3]+all/2 {
				k.then = k.latest
			}
		case h.Msg.Seq+all <= k.top:
			place = &k.then[h.Msg.Seq%all]
		}
		if h.Msg.Seq != k.at[h.At]+1 || *place != what {
			k.t.Fatalf("at tick %d process %d delivers broadcast %d at position %d, after position %d; there is %d",
				h.When, h.At, what, h.Msg.Seq, k.at[h.At], *place)
		}
		k.at[h.At]++
		if h.At == 0 && int(h.Msg.Seq)%(k.many/10) == 0 {
			k.measure(h.When)
		}
	}
}

func (k *soak) measure(now parley.Tick) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	k.heap = append(k.heap, m.HeapAlloc)
	k.t.Logf("%9d broadcasts, tick %9d, %4.0f s: %8d bytes in use, %5d MiB from the system, views %d",
		k.at[0], now, time.Since(k.began).Seconds(), m.HeapAlloc, m.Sys>>20, k.views)
}

// A long run with a member that paused and was excluded takes no more memory at its end than in the middle,
// and all processes deliver the same throughout. make soak-sim makes it ten million broadcasts long.
func TestSoak(t *testing.T) {
	c := group.Config{N: soaking}
	durable := group.Config{N: soaking, Durable: true}
	for _, p := range []parley.Protocol{
		timestamp.New(timestamp.Config{Config: c}),
		named("timestamp, durable", timestamp.New(timestamp.Config{Config: durable})),
		named("timestamp, in batches", timestamp.New(timestamp.Config{Config: c, Hold: 20})),
		atomic.InViews(c),
	} {
		t.Run(p.Name, func(t *testing.T) { soakIn(t, p) })
	}
}

func named(name string, p parley.Protocol) parley.Protocol {
	p.Name = name
	return p
}

func soakIn(t *testing.T, p parley.Protocol) {
	k := &soak{t: t, many: *soakFor, began: time.Now()}
	k.stop, k.wake = parley.Tick(k.many/5), parley.Tick(k.many/5*4)
	s := sim.Run(sim.Options{
		Protocol: p, FIFO: true, Delay: sim.Delay{Least: 1, Most: 24}, More: k.next, Observe: k.observe,
		Pauses: []sim.Pause{{At: soaking - 1, From: k.stop, For: k.wake - k.stop}},
		Until:  parley.Tick(k.many + 20_000),
	})
	refused := uint64(0)
	for _, n := range s.Stats.Refused {
		refused += n
	}
	t.Logf("%d steps, %d messages received; positions %v, refused %v", s.Stats.Steps, s.Stats.Deliveries, k.at, s.Stats.Refused)
	if k.out != 1 || k.views < 2*3 || !slices.Equal(k.at[1:3], []uint64{k.at[0], k.at[0]}) || k.at[3] >= k.at[0]/2 {
		t.Errorf("%d processes were expelled, and %d views installed; positions %v", k.out, k.views, k.at)
	}
	if k.at[0]+refused < uint64(k.many) || int(k.at[0]) < k.many*9/10 {
		t.Errorf("%d of %d broadcasts were delivered, and %d refused", k.at[0], k.many, refused)
	}
	if len(k.heap) != 10 {
		t.Fatal(len(k.heap), "measurements")
	}
	if half, end := k.heap[4], k.heap[9]; end > half+half/4 {
		t.Errorf("%d bytes were in use after half of the run, and %d in the end", half, end)
	}
}
