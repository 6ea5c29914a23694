package bracha

import "parley"

// lies: in the place of a value a liar may tell another one, or both, or another one
// twice; it may vouch at once for what it tells, without waiting for anybody; or it
// says nothing. Each
// receiver may be told another tale. All liars know of one other value for each,
// so that they can support each other's.
func lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := t.Out[:0]
	for _, honest := range t.Honest {
		m := honest.Msg
		say := func(kind parley.Kind, value []byte) {
			said := honest
			said.Msg.Kind, said.Msg.Body = kind, value
			out = append(out, said)
		}
		lie := func() []byte { return another(s, t, m.Body) }
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

// another is the other value: what the layer above would lie in this place, or else
// the value with a mark, which is taken off where there is one.
func another(s *parley.Step, t *parley.Turn, value []byte) []byte {
	if t.Body != nil {
		if told := t.Body(s, value); told != nil {
			return told
		}
	}
	const mark = '\''
	if last := len(value) - 1; last >= 0 && value[last] == mark {
		return value[:last:last]
	}
	return append(value[:len(value):len(value)], mark)
}
