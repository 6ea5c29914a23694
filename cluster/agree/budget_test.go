package agree

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/agreement/stream"
	"parley/agreement/tetra"
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
			if !one.Timed() {
				fill(m, s, one, n, window)
				continue
			}
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
		if len(machines) != all.parts+all.views {
			t.Errorf("%d streams, not %d and %d", len(machines), all.parts, all.views)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := int(after.HeapAlloc-before.HeapAlloc) >> 20
		t.Logf("n=%d: %d MB", n, grown)
		if most := n * (slotMemory + viewMemory) >> 20; grown > most {
			t.Errorf("%d nodes: %d MB, and there are %d for it", n, grown, most)
		}
		runtime.KeepAlive(machines)
	}
}

// fill fills what a process keeps of a stream without rounds: the source begins a window of slots, and the last node
// says all that others keep of it, with values of the greatest length, in these slots and in the slots ahead.
func fill(m parley.Machine, s *parley.Step, one stream.Key, n, window int) {
	values := make([][]byte, n+1)
	for i := range values {
		values[i] = append([]byte{1, byte(i)}, make([]byte, one.Limit()-1)...)
	}
	report := parley.AppendBytes(nil, values[0])
	for range 4 {
		report = append(report, byte(len(values)))
		for _, v := range values {
			report = parley.AppendBytes(append(report, 1), v)
		}
	}
	for slot := range uint64(2 * window) {
		hears := func(from parley.ID, kind parley.Kind, view, phase uint64, body []byte, of parley.ID) {
			s.Effects = nil
			m.Receive(s, from, parley.Msg{Kind: kind, Origin: of, Seq: slot + 1, Value: view<<3 | phase, Body: slices.Clone(body)})
		}
		if slot < uint64(window) {
			m.Request(s, parley.Msg{Kind: parley.Propose, Value: slot, Body: values[0][1:]}) // others refuse it
			hears(one.Source, tetra.Proposal, 0, 0, values[0], 0)
		}
		liar := parley.ID(n - 1)
		for _, kind := range []parley.Kind{tetra.Echo, tetra.Ready, tetra.Decided} {
			hears(liar, kind, 0, 0, values[0], 0)
		}
		for phase := range uint64(4) {
			hears(liar, tetra.Vote, 5, phase+1, values[phase], 0)
		}
		hears(liar, tetra.Proposal, uint64(n-1+n)-uint64(one.Source), 0, values[0], 0)
		hears(liar, tetra.Enter, 2, 0, report, 0)
		for i, v := range values[:n] {
			hears(liar, tetra.Vouch, 0, 0, v, 0)
			hears(liar, tetra.Witness, 0, 0, v, parley.ID(i))
		}
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
		if one := protocols.StreamOf(channel); all.Allows(one) == nil && one.Timed() {
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
		// By algorithm: one stream for each source and one for vectors, for every m. Tetra has none for vectors.
		want := map[int]int{
			2: 3*(1+1+1+1) + 2, 3: 4*(1+1+1+1) + 3, 4: 5*(1+1+2+1) + 4, 7: 8*(2+2+4+2) + 7*2,
			13: 14*(4+4+4+4) - 2*2 + 13*4, // eig and om of all for m = 3 and 4
		}[n]
		if count != want {
			t.Errorf("%d streams among %d nodes, not %d", count, n, want)
		}
	}
}

// Streams without rounds leave the windows of the others as they are: nodes of an earlier version do not know them.
func TestWindowsStay(t *testing.T) {
	const round = 100 * time.Millisecond
	timed := func(a Config) bool { return (stream.Key{Algorithm: a.Algorithm}).Timed() }
	for _, n := range []int{2, 4, 7, 13} {
		list := all(n)
		before := NewBudget(n, round, slices.DeleteFunc(slices.Clone(list), func(a Config) bool { return !timed(a) }))
		for one := range NewBudget(n, round, nil).Streams() {
			if got := NewBudget(n, round, list).Window(one); one.Timed() && got != before.Window(one) {
				t.Errorf("%d nodes: %v has a window of %d, and had one of %d", n, one, got, before.Window(one))
			} else if !one.Timed() && got < 2 {
				t.Errorf("%d nodes: %v has a window of %d", n, one, got)
			}
		}
	}
}
