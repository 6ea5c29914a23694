package bracha

import (
	"parley"
	agree "parley/agreement/problem"
)

// lies: in place of a value a liar may send another one, or both, or another one twice; it may vouch at once
// for what it sends, without waiting for others; or it stays silent. It may lie differently to each receiver.
// All liars know one common other value for each value, so that they can support each other.
func lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := t.Out[:0]
	for _, honest := range t.Honest {
		m := honest.Msg
		say := func(kind parley.Kind, value []byte) {
			said := honest
			said.Msg.Kind, said.Msg.Body = kind, value
			out = append(out, said)
		}
		lie := func() []byte { return agree.Another(s, t, m.Body) }
		var choice int
		if m.Kind == Ready {
			choice = [...]int{0, 1, 4, 5, 6}[s.Choose(5)]
		} else {
			choice = s.Choose(7)
		}
		switch choice {
		case 0:
			out = append(out, honest)
		case 1:
			say(m.Kind, lie())
		case 2:
			say(m.Kind, m.Body)
			say(Ready, m.Body)
		case 3:
			value := lie()
			say(m.Kind, value)
			say(Ready, value)
		case 4:
			say(m.Kind, lie())
			say(m.Kind, m.Body)
		case 5:
			value := lie()
			say(m.Kind, value)
			say(m.Kind, value)
		}
	}
	return out
}
