package byzantine

import (
	"slices"
	"testing"

	"parley"
	"parley/agreement/tetra"
)

// readmit has process 2, which was faulty, restart without its state, and be admitted.
func (x *script) readmit() {
	x.t.Helper()
	x.restart(2, 77)
	x.settle(all...)
	if !x.procs[2].member {
		x.t.Fatal("it is not admitted")
	}
	x.flight = nil
}

// What a faulty process said does not count any more when it is repaired and admitted, and another one is faulty: the
// two together would seem to include a correct one.
func TestOldLifeIsForgotten(t *testing.T) {
	forged := newBatch(1, 0, tip{5, digest{9}}, [][]byte{[]byte("forged")}, nil)
	claim := make(cut, 4)
	claim[1] = forged.tip
	for what, lie := range map[string]parley.Msg{
		"claims":      {Kind: Tips, Body: claim.encode()},
		"checkpoints": {Kind: Snapshot, Seq: 1 << 30, Body: newScript(t, Config{}).procs[0].encode()},
		"slots":       {Kind: tetra.Wish, Seq: 1 << 39, Value: 1 << viewShift},
	} {
		x := newScript(t, Config{Durable: true})
		x.logs[2], x.saved[2] = nil, nil
		x.request(0, "m")
		x.deliver(all...)
		x.say(2, 0, lie)
		x.logs[2], x.saved[2] = nil, nil
		x.readmit()
		slot := x.procs[0].cur.number
		x.say(3, 0, lie)
		x.say(3, 0, parley.Msg{Kind: Batch, Body: forged.body})
		behind := x.procs[0].isBehind()
		for range 2 * skipAfter {
			x.fire(0, lookTimer)
		}
		if p := x.procs[0]; p.lanes[1].at(forged.tip) != nil || p.cur.number != slot || behind {
			t.Errorf("%s: it holds the batch: %v; it is in slot %d after %d; it is behind: %v", what,
				p.lanes[1].at(forged.tip) != nil, p.cur.number, slot, behind)
		}
	}
}

// A process was admitted twice, with deliveries in between. After a restart, another process delivers all of them again.
func TestRepeatsTwoLives(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	for n := uint64(1); n <= 2; n++ {
		for _, id := range []parley.ID{0, 1, 3} {
			x.say(2, id, parley.Msg{Kind: Knock, Seq: n, Value: 10 + n})
		}
		x.deliver(0, 1, 3)
		b := newBatch(2, n, x.procs[0].lanes[2].done, [][]byte{{'l', 'i', 'f', 'e', '0' + byte(n)}}, nil)
		for _, id := range []parley.ID{0, 1, 3} {
			x.say(2, id, parley.Msg{Kind: Batch, Body: b.body})
		}
		x.deliver(0, 1, 3)
	}
	x.request(0, "last")
	x.deliver(0, 1, 3)
	live := slices.Clone(x.delivered[1])
	x.delivered[1] = nil
	x.do(1, func(_ *process, s *parley.Step) { s.Compact() })
	x.restart(1, 1)
	if !slices.Equal(x.delivered[1], live) || len(live) != 3 {
		t.Errorf("it delivers %q again, and delivered %q", x.delivered[1], live)
	}
}
