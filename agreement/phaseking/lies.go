package phaseking

import (
	"iter"
	"slices"

	"parley"
)

// lies: instead of each message a faulty process may send any other value of the alphabet,
// or nothing. Where an honest process has nothing to propose, it may propose any value.
// Only the king has a choice in the last round of a phase: a king's message from another
// process is refused.
func lies(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	values := c.Values()
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := c.Lies(s, t)
		if len(t.Honest) == 0 && phases[c.Form][t.Round%len(phases[c.Form])] == Proposal {
			// Silence is honest here, and is also the last choice as everywhere.
			if k := s.Choose(len(values) + 2); 0 < k && k <= len(values) {
				m := parley.Msg{Kind: Proposal, Seq: uint64(t.Round), Body: values[k-1]}
				out = append(out, parley.Outgoing{Msg: m})
			}
		}
		return out
	}
}

// explain writes a message as "1", "propose 1" or "king: 1".
func explain(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
	before := map[parley.Kind]string{Proposal: "propose ", King: "king: "}[m.Kind]
	return slices.Values([]string{before + parley.Printable(m.Body)})
}
