package om

import (
	"parley"
)

// Say is an adversary. For each message, it returns what the last process of the path sends to one receiver. This
// process is faulty. The path begins with the source. The argument held is the value that the process would send
// honestly. A nil result means that nothing is sent.
type Say = func(path []parley.ID, to parley.ID, held []byte) []byte

// Tell makes a faulty process send what an adversary says: a Lies at the level of
// rounds without a Choose.
func Tell(c Config, say Say) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		return tell(t, func(path, held []byte) ([]byte, bool) {
			v := say(fullPath(c, path), t.To, held)
			return v, v != nil
		})
	}
}

// lies: along each path a faulty process may send the value it holds, any other of the
// alphabet, or nothing.
func lies(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		return tell(t, func(_, held []byte) ([]byte, bool) { return c.Lie(s, held) })
	}
}

// tell replaces the values of the honest messages, and drops those for which
// nothing is sent.
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
