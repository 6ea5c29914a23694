package byzantine

import (
	"slices"
	"strconv"

	"parley"
	"parley/agreement/tetra"
)

// lies: a liar may send different batches of one number to different processes; propose or tell a cut that leaves out
// its last lane, or a cut of batches that nobody has; speak for another cut, or for nothing; claim and tell decisions
// that are wrong; or stay silent.
func lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := t.Out[:0]
	for _, honest := range t.Honest {
		m := honest.Msg
		var lies []func() []byte
		switch {
		case m.Kind == Batch:
			lies = append(lies, func() []byte { return forked(s, t, m.Body) })
		case m.Kind == tetra.Proposal || m.Kind == Cut || m.Kind == Tips:
			lies = append(lies,
				func() []byte { return shorter(s.N, m.Body) }, func() []byte { return madeUp(s.N, m.Body) },
				func() []byte { return nil })
		case m.Kind <= tetra.Decided && m.Kind != tetra.Wish && m.Kind != tetra.Enter:
			lies = append(lies, func() []byte { return flipped(m.Body) })
			if m.Kind == tetra.Vote || m.Kind == tetra.Witness || m.Kind == tetra.Decided {
				lies = append(lies, func() []byte { return nil })
			}
		case m.Kind == tetra.Enter:
			lies = append(lies, func() []byte { return []byte{0, 0, 0, 0, 0} }) // no claim, no votes
		case m.Kind == Answer:
			lies = append(lies, func() []byte { return parley.AppendBytes(nil, madeUp(s.N, nil)) })
		}
		frames := m.Kind == tetra.Proposal && len(m.Body) > 0
		choices := len(lies) + 2
		if frames {
			choices++
		}
		switch k := s.Choose(choices); {
		case k == 0:
			out = append(out, honest)
		case k == choices-1:
		case k > len(lies):
			batch := honest
			batch.Msg = parley.Msg{Kind: Batch}
			batch.Msg.Body, honest.Msg.Body = framed(s, m.Body)
			out = append(out, honest, batch)
		default:
			honest.Msg.Body = lies[k-1]()
			out = append(out, honest)
		}
	}
	return out
}

// forked is a batch of the same number with another last request.
func forked(s *parley.Step, t *parley.Turn, body []byte) []byte {
	source, b, ok := readBatch(body, s.N)
	if !ok {
		return body
	}
	var list [][]byte
	var welcomes []welcome
	b.visit(s.N, func(r []byte) { list = append(list, r) }, func(w welcome) { welcomes = append(welcomes, w) })
	if len(list) > 0 {
		last := &list[len(list)-1]
		*last = another(s, t, *last, b.number)
	}
	return newBatch(source, b.life, tip{b.number - 1, b.before}, list, welcomes).body
}

// another is the lie of the layer above, or the request with a mark and the number of the batch, so that a liar never
// broadcasts the same request twice.
func another(s *parley.Step, t *parley.Turn, request []byte, number uint64) []byte {
	if t.Body != nil {
		if told := t.Body(s, request); told != nil {
			return told
		}
	}
	return strconv.AppendUint(append(slices.Clip(request), '\''), number, 10)
}

// shorter is a cut without its last batch.
func shorter(n int, body []byte) []byte {
	c, ok := readCut(body, n)
	if !ok {
		return body
	}
	for i := range c {
		if t := &c[n-1-i]; t.number > 0 {
			*t = tip{}
			break
		}
	}
	return c.encode()
}

// madeUp is a cut with one more batch in each lane, which nobody has.
func madeUp(n int, body []byte) []byte {
	c, ok := readCut(body, n)
	if !ok {
		c = make(cut, n)
	}
	for i := range c {
		c[i].number++
		c[i].digest[0]++
	}
	return c.encode()
}

// framed is a batch in the name of a correct process that did not send it, and a cut with this batch.
func framed(s *parley.Step, body []byte) (forged, with []byte) {
	c, ok := readCut(body, s.N)
	victim := parley.ID(0)
	for s.Members.Has(victim) {
		victim++
	}
	if !ok || int(victim) >= s.N {
		return nil, body
	}
	b := newBatch(victim, 0, tip{c[victim].number, c[victim].digest}, [][]byte{[]byte("forged")}, nil)
	c[victim] = b.tip
	return b.body, c.encode()
}

// flipped is another digest.
func flipped(id []byte) []byte {
	id = slices.Clone(id)
	if len(id) > 0 {
		id[0] ^= 1
	}
	return id
}
