package cluster

import (
	"runtime"
	"testing"

	"parley"
	"parley/lockstep"
)

// alone is a step of one process that has nobody to talk to.
func alone(self parley.ID, n int) (*parley.Step, *quiet) {
	h := &quiet{refused: make(map[string]int)}
	return &parley.Step{Self: self, N: n, Host: h}, h
}

// quiet is the host of such a step: it counts what is refused.
type quiet struct{ refused map[string]int }

func (*quiet) Choose(int) int                        { return 0 }
func (*quiet) Sign(parley.ID, []byte) []byte         { return make([]byte, 64) }
func (*quiet) Verify(parley.ID, []byte, []byte) bool { return true }
func (h *quiet) Refused(_, _ parley.ID, why string)  { h.refused[why]++ }

// What one liar can have a node hold in all its streams together, with the longest frames
// there are in every slot of every window, is bounded: by what a node has for all nodes.
func TestStreamsShareMemory(t *testing.T) {
	for _, n := range []int{4, 7} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := Config{Members: make([]Member, n), Round: 100e6}
		all := share{n: n, round: parley.Tick(c.Round), list: c.agreements()}.counted()
		var machines []parley.Machine
		for channel := uint32(firstStream); channel <= lastStream; channel++ {
			one := streamOf(channel)
			if all.allows(one) != nil {
				continue
			}
			window := all.window(one)
			var m parley.Machine
			if one.all() {
				m, _ = newNames(one, n, window, 0, c.onCall())
			} else {
				m, _ = newAsks(one, n, window, 0, c.onCall(), parley.ID.String)
			}
			machines = append(machines, m)
			s, h := alone(0, n)
			m.Start(s)
			for slot := 2 * window; slot > 0; slot-- { // those of the next window are kept
				s.Effects = nil
				value := make([]byte, one.frameLimit(n)-100)
				body := parley.AppendMsg(nil, 0, parley.Msg{Kind: 1, Body: value})
				m.Receive(s, parley.ID(n-1), parley.Msg{Kind: lockstep.Frame, Value: uint64(slot), Body: body})
			}
			if h.refused["frame of a slot past the window"] != window {
				t.Errorf("%s: %v", one.name(), h.refused)
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
