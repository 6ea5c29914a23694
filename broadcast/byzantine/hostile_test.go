package byzantine

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/agreement/tetra"
)

// attack is what a hostile process does to the three others. It owns the first slots if owner is set.
type attack struct {
	name  string
	owner bool
	why   string // of a refusal that it must cause; "": of none
	do    func(x *script, liar parley.ID, to []parley.ID)
}

// chained returns batches of a source, one after another.
func chained(source parley.ID, from tip, count, size int) (out []batch) {
	for k := range count {
		b := newBatch(source, 0, from, [][]byte{append(fmt.Append(nil, k), make([]byte, size)...)}, nil)
		out = append(out, b)
		from = b.tip
	}
	return out
}

func proposal(view uint64, c cut) parley.Msg {
	return parley.Msg{Kind: tetra.Proposal, Seq: 1, Value: view << viewShift, Body: c.encode()}
}

var attacks = []attack{
	{"equivocation by batches", false, notItsBatch, func(x *script, liar parley.ID, to []parley.ID) {
		for k, id := range to {
			for _, b := range []int{k, k + 1} { // a second one of the same number, too
				one := newBatch(liar, 0, tip{}, [][]byte{fmt.Append(nil, "fork ", b)}, nil)
				x.say(liar, id, parley.Msg{Kind: Batch, Body: one.body})
			}
		}
	}},
	{"equivocation by cuts", true, "", func(x *script, liar parley.ID, to []parley.ID) {
		for k, id := range to {
			b := newBatch(liar, 0, tip{}, [][]byte{fmt.Append(nil, "for ", k)}, nil)
			x.say(liar, id, parley.Msg{Kind: Batch, Body: b.body})
			c := make(cut, 4)
			c[liar] = b.tip
			x.say(liar, id, proposal(0, c))
		}
	}},
	{"wrong digests", true, notItsBatch, func(x *script, liar parley.ID, to []parley.ID) {
		for _, id := range to {
			b := newBatch(to[0], 0, tip{}, [][]byte{[]byte("in the name of another")}, nil)
			x.say(liar, id, parley.Msg{Kind: Batch, Body: b.body})
			x.say(liar, id, proposal(0, cut{{1, digest{1}}, {1, digest{2}}, {1, digest{3}}, {1, digest{4}}}))
			x.say(liar, id, parley.Msg{Kind: Cut, Seq: 1, Body: cut{{1, digest{5}}, {}, {}, {}}.encode()})
			x.say(liar, id, parley.Msg{Kind: tetra.Ready, Seq: 1, Body: make([]byte, 32)})
		}
	}},
	{"batches withheld", true, "", func(x *script, liar parley.ID, to []parley.ID) {
		list := chained(liar, tip{}, 3, 10)
		x.say(liar, to[0], parley.Msg{Kind: Batch, Body: list[0].body})
		c := make(cut, 4)
		c[liar] = list[2].tip
		for _, id := range to {
			x.say(liar, id, proposal(0, c))
			x.say(liar, id, parley.Msg{Kind: Tips, Body: c.encode()})
		}
	}},
	{"votes for the future", false, "", func(x *script, liar parley.ID, to []parley.ID) {
		for _, id := range to {
			for k := range uint64(2000) {
				view := (1 + k) << viewShift
				x.say(liar, id, parley.Msg{Kind: tetra.Wish, Seq: 1 + k%5, Value: view})
				x.say(liar, id, parley.Msg{Kind: tetra.Vote, Seq: 1 + k%5, Value: view | 4, Body: make([]byte, 32)})
				x.say(liar, id, parley.Msg{Kind: tetra.Vote, Seq: mostSlot - 1, Value: 1<<40 | 4, Body: make([]byte, 32)})
			}
		}
	}},
	{"a flood of batches", false, notItsBatch, func(x *script, liar parley.ID, to []parley.ID) {
		for _, id := range to {
			for _, b := range chained(liar, tip{}, 1000, 900) {
				x.say(liar, id, parley.Msg{Kind: Batch, Body: b.body})
			}
		}
	}},
	{"a flood of questions", false, "", func(x *script, liar parley.ID, to []parley.ID) {
		for _, id := range to {
			sent := len(x.flight)
			for k := range uint64(2000) {
				x.say(liar, id, parley.Msg{Kind: Ask, Seq: 1 + k%3})
				x.say(liar, id, parley.Msg{Kind: Fetch, Origin: id, Seq: k, Value: 1, Body: make([]byte, 32)})
				x.say(liar, id, parley.Msg{Kind: Knock, Value: 1})
				x.say(liar, id, parley.Msg{Kind: Tips, Body: make(cut, 4).encode()})
			}
			if len(x.flight) > sent+10_000 {
				x.t.Errorf("%d answers", len(x.flight)-sent)
			}
		}
		x.lose(liar)
	}},
	{"malformed messages", false, "malformed message", func(x *script, liar parley.ID, to []parley.ID) {
		for kind := range Knock + 2 {
			for _, body := range [][]byte{nil, {0xFF}, make([]byte, 4000)} {
				for _, id := range to {
					x.say(liar, id, parley.Msg{Kind: kind, Body: body})
					x.say(liar, id, parley.Msg{Kind: kind, Origin: 9, Seq: 1 << 50, Value: 1 << 63, Body: body})
				}
			}
		}
	}},
	{"replays", false, "", func(x *script, liar parley.ID, to []parley.ID) {
		old := slices.Clone(x.flight)
		x.deliver(to...)
		for range 5 {
			for _, l := range old {
				for _, id := range to {
					x.say(liar, id, l.m)
				}
			}
		}
	}},
	{"votes, and never sends", false, "", func(x *script, liar parley.ID, to []parley.ID) {
		x.procs[liar].queue = nil // it takes part, and its lane stays empty
		x.deliver(0, 1, 2, 3)
	}},
}

const notItsBatch = "batch of another process, a second one of its number, or too many"

// Whatever a hostile process does, it is refused and counted where it can be, memory stays bounded, and the three
// others deliver everything, before and after, in one order. Some hostile processes own the first slots.
func TestHostile(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			x := newScript(t, Config{Durable: true, Batch: 1000, Queue: 10_000, Flight: 4000})
			liar, to := parley.ID(3), []parley.ID{0, 1, 2}
			if a.owner {
				liar, to = 0, []parley.ID{1, 2, 3}
			}
			x.request(to[1], "before")
			a.do(x, liar, to)
			x.settle(to...)
			x.request(to[2], "after")
			x.settle(to...)
			for _, payload := range []string{"before", "after"} {
				x.demand(payload, to...)
			}
			for _, id := range to[1:] {
				if !slices.Equal(x.delivered[id], x.delivered[to[0]]) {
					t.Errorf("they deliver %q", x.delivered)
				}
			}
			if a.why != "" && x.refused[a.why] == 0 {
				t.Errorf("refused are %v", x.refused)
			}
			for _, id := range to {
				if size := len(parley.Save(x.procs[id], 0, nil)); size > 60_000 {
					t.Errorf("process %d keeps %d bytes", id, size)
				}
			}
		})
	}
}
