package tetra

import (
	"parley"
	"parley/agreement/problem"
)

// lies: in place of a message, a liar may say the same of another value, of nothing, both, or stay silent. On entering
// a view it may claim anything about view 0, forget its votes, or report votes that it never cast. It may vote and be
// ready for what it says, without waiting for others.
func lies(n int) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := t.Out[:0]
		for _, honest := range t.Honest {
			m := honest.Msg
			say := func(kind parley.Kind, body []byte) {
				said := honest
				said.Msg.Kind, said.Msg.Body = kind, body
				out = append(out, said)
			}
			lies := 2
			switch {
			case m.Kind == Wish:
				lies = 0
			case m.Kind == Proposal && m.Seq == 0:
				lies = 1
			case m.Kind == Enter:
				lies = 3
			}
			switch lie := s.Choose(lies + 2); {
			case lie == 0:
				out = append(out, honest)
			case lie > lies: // it stays silent
			case m.Kind == Enter:
				say(Enter, falseReport(s, t, n, m, lie))
			case lie == 1:
				say(m.Kind, problem.Another(s, t, m.Body))
			case m.Kind == Echo || m.Kind == Ready || m.Kind == Vouch:
				say(m.Kind, m.Body)
				say(Ready, problem.Another(s, t, m.Body))
			default:
				say(m.Kind, nil)
			}
		}
		return out
	}
}

// falseReport returns the body of an ENTER that makes one of three lies.
func falseReport(s *parley.Step, t *parley.Turn, n int, m parley.Msg, lie int) []byte {
	claim, cast, _ := readReport(m.Body, m.Seq, n, len(m.Body))
	switch lie {
	case 1: // no votes
		return appendReport(nil, problem.Another(s, t, claim), votes{})
	case 2: // votes for what it claims
		v := problem.Another(s, t, claim)
		return appendReport(nil, v, forged(m.Seq, v))
	}
	var v []byte
	if len(cast[0]) > 0 {
		v = cast[0][0].value
	}
	return appendReport(nil, nil, forged(m.Seq, problem.Another(s, t, v)))
}

// forged are votes for a value in all phases of the view before.
func forged(view uint64, value []byte) votes {
	if view <= 1 {
		return votes{}
	}
	list := []vote{{view - 1, value}}
	return votes{list, list, list, list}
}
