package tetra

import (
	"slices"

	"parley"
)

// lies: in place of a message, a liar may say the same of another value, of nothing, both, or stay silent. On entering
// a view it may claim anything about view 0, forget its votes, or report votes that it never cast. It may vote and be
// ready for what it says, without waiting for others.
func lies(n int) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := t.Out[:0]
		for _, honest := range t.Honest {
			out = append(out, answers(s, t, n, honest)...)
		}
		return out
	}
}

func answers(s *parley.Step, t *parley.Turn, n int, honest parley.Outgoing) []parley.Outgoing {
	m := honest.Msg
	say := func(list ...parley.Msg) (out []parley.Outgoing) {
		for _, m := range list {
			said := honest
			said.Msg = m
			out = append(out, said)
		}
		return out
	}
	with := func(body []byte) parley.Msg { x := m; x.Body = body; return x }
	var lies []func() []parley.Outgoing
	lie := func(what ...func() parley.Msg) {
		lies = append(lies, func() []parley.Outgoing {
			var list []parley.Msg
			for _, f := range what {
				list = append(list, f())
			}
			return say(list...)
		})
	}
	same := func() parley.Msg { return m }
	other := func() parley.Msg { return with(another(s, t, m.Body)) }
	switch m.Kind {
	case Proposal, Vote, Decided, Witness:
		lie(other)
		if m.Kind != Proposal || m.Seq > 0 {
			lie(func() parley.Msg { return with(nil) })
		}
	case Enter:
		claim, votes, _ := readReport(m.Body, m.Seq, n, len(m.Body))
		none := [phases][]vote{}
		lie(func() parley.Msg { return with(appendReport(nil, another(s, t, claim), none)) }) // forgets its votes
		lie(func() parley.Msg { v := another(s, t, claim); return with(appendReport(nil, v, forged(m.Seq, v))) })
		lie(func() parley.Msg {
			var v []byte
			if len(votes[0]) > 0 {
				v = votes[0][0].value
			}
			return with(appendReport(nil, nil, forged(m.Seq, another(s, t, v))))
		})
	case Echo, Ready, Vouch:
		lie(other)
		lie(same, func() parley.Msg { return parley.Msg{Kind: Ready, Body: another(s, t, m.Body)} })
	}
	switch k := s.Choose(len(lies) + 2); k {
	case 0:
		return say(m)
	case len(lies) + 1:
		return nil
	default:
		return lies[k-1]()
	}
}

// forged are votes for a value in all phases of the view before.
func forged(view uint64, value []byte) (votes [phases][]vote) {
	if view > 1 {
		for k := range votes {
			votes[k] = []vote{{view - 1, value}}
		}
	}
	return votes
}

// another returns the other value: the lie of the layer above if there is one, otherwise the value with a mark
// appended, or removed if it is already there.
func another(s *parley.Step, t *parley.Turn, value []byte) []byte {
	if t.Body != nil {
		if told := t.Body(s, value); told != nil {
			return told
		}
	}
	const mark = '\''
	if last := len(value) - 1; last >= 0 && value[last] == mark {
		return slices.Clip(value[:last])
	}
	return append(slices.Clip(value), mark)
}
