package om

import (
	"parley"
)

// Say is an adversary, message by message: it returns what the last process of
// the path, which is faulty, tells one receiver. The path begins with the
// source. held is the value that it honestly would tell; nil stands for nothing
// said.
type Say = func(path []parley.ID, to parley.ID, held []byte) []byte

// Tell lets a faulty process say what an adversary says: a Lies at the level of
// rounds that asks no Choose.
func Tell(c Config, say Say) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		return tell(t, func(path, held []byte) ([]byte, bool) {
			v := say(full(c, path), t.To, held)
			return v, v != nil
		})
	}
}

// lies: along each path a liar may tell the value it holds, any other of the
// alphabet, or nothing.
func lies(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		return tell(t, func(_, held []byte) ([]byte, bool) { return c.Lie(s, held) })
	}
}

// tell replaces the values of the honest messages, and drops those of which
// nothing is said.
func tell(t *parley.Turn, said func(path, held []byte) ([]byte, bool)) []parley.Outgoing {
	var out []parley.Outgoing
	for _, honest := range t.Honest {
		path, held, ok := split(honest.Msg)
		if !ok {
			continue
		}
		if v, any := said(path, held); any {
			out = append(out, parley.Outgoing{Path: honest.Path, Msg: message(path, v)})
		}
	}
	return out
}
