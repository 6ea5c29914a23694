package agree

import (
	"runtime"
	"testing"
	"time"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/kernel"
	"parley/cluster/protocols"
	"parley/lockstep"
)

// quiet is the host of a step that counts refused messages.
type quiet struct{ refused map[string]int }

func (*quiet) Choose(int) int                        { return 0 }
func (*quiet) Sign(parley.ID, []byte) []byte         { return make([]byte, 64) }
func (*quiet) Verify(parley.ID, []byte, []byte) bool { return true }
func (h *quiet) Refused(_, _ parley.ID, why string)  { h.refused[why]++ }

// The memory that one faulty node can occupy in all streams together, with frames of the longest size in every
// slot of every window, is bounded by what a node reserves for all nodes.
func TestStreamsShareMemory(t *testing.T) {
	for _, n := range []int{4, 7} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const round = 100 * time.Millisecond
		all := NewBudget(n, round, nil)
		var machines []parley.Machine
		for channel := uint32(kernel.FirstStream); channel <= kernel.LastStream; channel++ {
			one := protocols.StreamOf(channel)
			if all.Allows(one) != nil {
				continue
			}
			window := all.Window(one)
			m := stream.New(stream.Config{Key: one, N: n, Window: window}, protocols.Schedule(round)).New(0)
			machines = append(machines, m)
			h := &quiet{refused: make(map[string]int)}
			s := &parley.Step{N: n, Host: h}
			m.Start(s)
			for slot := 2 * window; slot > 0; slot-- { // frames of the next window are kept
				s.Effects = nil
				value := make([]byte, one.FrameLimit(n)-100)
				body := parley.AppendMsg(nil, 0, parley.Msg{Kind: 1, Body: value})
				m.Receive(s, parley.ID(n-1), parley.Msg{Kind: lockstep.Frame, Value: uint64(slot), Body: body})
			}
			if h.refused["frame of a slot past the window"] != window {
				t.Errorf("%s: %v", protocols.StreamName(one), h.refused)
			}
		}
		if len(machines) != all.parts {
			t.Errorf("%d streams, not %d", len(machines), all.parts)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := int(after.HeapAlloc-before.HeapAlloc) >> 20
		t.Logf("n=%d: %d MB", n, grown)
		if most := n * slotMemory >> 20; grown > most {
			t.Errorf("%d nodes: %d MB, and there are %d for it", n, grown, most)
		}
		runtime.KeepAlive(machines)
	}
}

// The streams of the first kind get as much as those of all others together. The streams of a single kind get
// everything.
func TestTheFirstHasHalf(t *testing.T) {
	all := NewBudget(4, 100*time.Millisecond, nil)
	if all.list[0] != (Config{stream.EIG, 1}) {
		t.Errorf("the first is %v", all.list[0])
	}
	sum := [2]float64{}
	for channel := uint32(kernel.FirstStream); channel <= kernel.LastStream; channel++ {
		if one := protocols.StreamOf(channel); all.Allows(one) == nil {
			i := 1
			if one.Algorithm == stream.EIG {
				i = 0
			}
			sum[i] += 1 / float64(all.part(one))
		}
	}
	if max(sum[0], sum[1]) > 0.5001 || min(sum[0], sum[1]) < 0.4999 {
		t.Errorf("the parts are %v", sum)
	}
	one := stream.Key{Algorithm: stream.EIG, M: 1}
	few, only := all.Window(one), NewBudget(4, 100*time.Millisecond, []Config{{stream.EIG, 1}}).Window(one)
	if t.Logf("windows of %d and %d", few, only); only < 2*few-1 || only > 2*few+1 {
		t.Errorf("windows of %d, and of %d if it is the only one", few, only)
	}
}

// The channel of a stream identifies it, and no other channel is valid.
func TestStreamChannels(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 13, 14} {
		count := 0
		for channel := uint32(kernel.FirstStream); channel <= kernel.LastStream; channel++ {
			one := protocols.StreamOf(channel)
			if one.Check(n) == nil {
				count++
				if protocols.Channel(one) != channel {
					t.Errorf("%+v has channel %d, not %d", one, protocols.Channel(one), channel)
				}
			}
		}
		// By algorithm: one stream for each source and one for vectors, for every m.
		want := map[int]int{
			2: 3 * (1 + 1 + 1 + 1), 3: 4 * (1 + 1 + 1 + 1), 4: 5 * (1 + 1 + 2 + 1), 7: 8 * (2 + 2 + 4 + 2),
			13: 14*(4+4+4+4) - 2*2, // eig and om of all for m = 3 and 4
		}[n]
		if count != want {
			t.Errorf("%d streams among %d nodes, not %d", count, n, want)
		}
	}
}
