package cluster

import (
	"bytes"
	"testing"

	"parley"
	"parley/agreement/interactive"
	"parley/lockstep"
	"parley/sim"
)

// cycled is what four nodes decide in the slots of a cycle, by slot and node, if links lose what
// is sent in those from 3 to 7: each sets its letter.
func cycled(t *testing.T, links ...sim.Link) map[uint64]map[parley.ID]string {
	t.Helper()
	one := stream{EIG, 1, everybody}
	when := lockstep.Schedule{Delta: 1000, Slack: 200, Early: true}
	p := lockstep.Of(one.rounds(4), when)
	p.New = func(self parley.ID) parley.Machine {
		return newCyclic(one, 4, self, 4000, when, func(h parley.Tick) (int64, bool) { return int64(h) + 100, true })
	}
	opt := sim.Options{Protocol: p, Until: 40_000, Delay: sim.Delay{Least: 1, Most: 50}}
	for _, l := range links {
		l.Since, l.Until, l.Loss = 10_000, 30_000, 1
		opt.Links = append(opt.Links, l)
	}
	for id := range parley.ID(4) {
		value := parley.Msg{Kind: parley.Propose, Body: []byte{'a' + byte(id)}}
		opt.Requests = append(opt.Requests, sim.Request{At: id, When: 1, Msg: value})
	}
	got := make(map[uint64]map[parley.ID]string)
	for _, d := range sim.Run(opt).History.Deliveries {
		values, err := interactive.DecodeVector(d.Msg.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got[d.Msg.Seq] == nil {
			got[d.Msg.Seq] = make(map[parley.ID]string)
		}
		got[d.Msg.Seq][d.At] = string(bytes.ReplaceAll(bytes.Join(values, nil), nothing, []byte("-")))
	}
	return got
}

// A node that is cut off from the others decides nothing in the slots of that time, for they may
// have decided otherwise; and those who are not go on to decide alike. So it is with one that one
// other does not hear in time, and that does not hear another one.
func TestCycleOfOneCutOff(t *testing.T) {
	t.Parallel()
	cut := parley.SetOf(3)
	for _, c := range []struct {
		links     []sim.Link
		meanwhile string // what the others decide
	}{
		{[]sim.Link{{From: cut}, {To: cut}}, "abc-"},
		{[]sim.Link{{From: cut, To: parley.SetOf(2)}, {From: parley.SetOf(1), To: cut}}, "abcd"},
	} {
		got := cycled(t, c.links...)
		for _, slot := range []uint64{1, 2, 3, 4, 6, 8, 9} {
			away, want := slot >= 3 && slot < 8, "abcd"
			if away {
				want = c.meanwhile
			}
			for id := range parley.ID(4) {
				switch one, ok := got[slot][id]; {
				case id == 3 && away && ok:
					t.Errorf("slot %d: the node that is cut off decides on %q", slot, one)
				case (id < 3 || !away) && one != want:
					t.Errorf("slot %d: node %d decides on %q, and not on %q", slot, id, one, want)
				}
			}
		}
	}
}
