package ordered

import (
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/commit/problem"
	"parley/commit/service"
)

// lies lets a liar begin another transaction than requested, vote differently, claim or not claim that it has
// waited too long, report another outcome than it knows, or send nothing.
func lies(c Config) func(*parley.Step, *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := t.Out[:0]
		for _, one := range t.Honest {
			if m, said := lie(s, c, one.Msg); said {
				one.Msg = m
				out = append(out, one)
			}
		}
		return out
	}
}

// lie returns what a liar sends in place of m, and whether it sends anything.
func lie(s *parley.Step, c Config, m parley.Msg) (parley.Msg, bool) {
	silent := 1
	switch m.Kind {
	case Begin, msgSays:
		silent = 2
	case Vote, Expire:
		silent = 3
	}
	k := s.Choose(silent + 1)
	switch {
	case k == 0 || k == silent:
	case m.Kind == msgSays:
		m.Seq = uint64(problem.Commit) + uint64(problem.Abort) - m.Seq
	case m.Kind == Begin:
		if t, ok := service.ReadSpec(m.Body, c.N); ok {
			t.Digest++
			m.Body = t.Encode()
		}
	default: // one of the other two of no, yes and Expire
		m = otherWord(m, k)
	}
	return m, k != silent
}

// otherWord returns what a liar sends in place of a Vote or an Expire.
func otherWord(m parley.Msg, k int) parley.Msg {
	b := slices.Clone(m.Body)
	switch {
	case m.Kind == Vote && k == 1:
		b[0] = 1 - b[0]
	case m.Kind == Vote:
		b[0], m.Kind = 0, Expire
	default:
		b[0], m.Kind = byte(k-1), Vote
	}
	m.Body = b
	return m
}

// explain shows what is broadcast, and the questions and answers about outcomes.
func explain(c Config) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			if row := explained(c, m, name); row != "" {
				yield(row)
			}
		}
	}
}

func explained(c Config, m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case Begin, msgAsk, msgSays:
		t, ok := service.ReadSpec(m.Body, c.N)
		switch of := parley.Printable([]byte(t.Name)); {
		case !ok:
			return "no transaction"
		case m.Kind == msgAsk:
			return fmt.Sprintf("what became of %s?", of)
		case m.Kind == msgSays:
			return fmt.Sprintf("%s: %s", of, problem.Outcome(min(m.Seq, uint64(problem.Abort))))
		default:
			row := "begins " + of + " of"
			for _, p := range t.Parts {
				row += " " + name(p.ID)
			}
			return row
		}
	case Vote, Expire:
		b, ok := readBallot(m.Body)
		switch of := parley.Printable([]byte(b.name)); {
		case !ok:
			return "no vote"
		case m.Kind == Expire:
			return of + ": has waited for long"
		case b.yes:
			return of + ": yes"
		default:
			return of + ": no"
		}
	}
	return ""
}
