package cluster

import (
	"bytes"
	"testing"

	"parley"
	"parley/agreement/interactive"
	"parley/lockstep"
	"parley/sim"
)

// A node that is cut off from the others decides nothing in the slots of that time, for they may
// have decided otherwise; and those who are not go on to decide alike.
func TestCycleOfOneCutOff(t *testing.T) {
	t.Parallel()
	one := stream{EIG, 1, everybody}
	when := lockstep.Schedule{Delta: 1000, Slack: 200, Early: true}
	p := lockstep.Of(one.rounds(4), when)
	p.New = func(self parley.ID) parley.Machine {
		return newCyclic(one, 4, self, 4000, when, func(h parley.Tick) (int64, bool) { return int64(h) + 100, true })
	}
	cut := parley.SetOf(3)
	opt := sim.Options{Protocol: p, Until: 40_000, Delay: sim.Delay{Least: 1, Most: 50}, Links: []sim.Link{
		{From: cut, Since: 10_000, Until: 30_000, Loss: 1}, {To: cut, Since: 10_000, Until: 30_000, Loss: 1},
	}}
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
	for slot, want := range []string{1: "abcd", 2: "abcd", 3: "abc-", 4: "abc-", 6: "abc-", 8: "abcd", 9: "abcd"} {
		if want == "" {
			continue
		}
		for id := range parley.ID(4) {
			switch one, ok := got[uint64(slot)][id]; {
			case id == 3 && want == "abc-" && ok:
				t.Errorf("slot %d: the node that is cut off decides on %q", slot, one)
			case (id < 3 || want == "abcd") && one != want:
				t.Errorf("slot %d: node %d decides on %q, and not on %q", slot, id, one, want)
			}
		}
	}
}
