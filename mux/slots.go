package mux

import (
	"fmt"
	"iter"

	"parley"
	"parley/lockstep"
)

// InSlots adapts a protocol made by [lockstep.Of] to the slots of a [Pipeline]. The explanation of a frame starts
// with the number of its slot. Faulty processes lie in each slot separately, depending on what they have received in
// this slot. The result has no functions that describe a run with one instance.
func InSlots(p parley.Protocol) parley.Protocol {
	f := framed{p}
	p.Cost, p.Memory, p.Tree, p.Flags = nil, nil, nil, nil
	p.Explain = f.explain
	if p.Lies != nil {
		p.Lies = f.lies
	}
	return p
}

// framed reads the frames of slots: p is the protocol of one slot.
type framed struct{ p parley.Protocol }

func (f framed) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for row := range f.p.Explain(e, m, name) {
			if e.From != e.To { // a copy that a process keeps is in no frame
				row = fmt.Sprintf("#%d: %s", m.Value, row)
			}
			if !yield(row) {
				return
			}
		}
	}
}

// lies calls the protocol's Lies for each slot separately, frame by frame.
func (f framed) lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for i := range t.Honest {
		turn, k := *t, t.Honest[i].Msg.Value
		turn.Memo, turn.Out, turn.Honest = nil, nil, t.Honest[i:i+1]
		turn.Seen = func(yield func(parley.Received) bool) {
			for got := range t.Seen {
				if got.Msg.Kind == lockstep.Frame && got.Msg.Value == k && !yield(got) {
					return
				}
			}
		}
		out = append(out, f.p.Lies(s, &turn)...)
	}
	return out
}
