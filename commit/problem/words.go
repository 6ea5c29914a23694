package problem

import (
	"iter"

	"parley"
)

// Words are the messages of a protocol that carry nothing but a Kind and a Value: by Kind, the
// text for each Value.
type Words [][]string

// of returns the texts for a kind. A kind without words has the Value 0 alone.
func (w Words) of(k parley.Kind) []string {
	if int(k) < len(w) && w[k] != nil {
		return w[k]
	}
	return []string{"?"}
}

// Fits tells whether a message has no other field than Value, and a Value of its kind.
func (w Words) Fits(m parley.Msg) bool {
	return m.Origin == 0 && m.Seq == 0 && len(m.Body) == 0 && m.Value < uint64(len(w.of(m.Kind)))
}

// Explain is [parley.Protocol.Explain] of such a protocol.
func (w Words) Explain(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
	text := "?"
	if of := w.of(m.Kind); m.Value < uint64(len(of)) {
		text = of[m.Value]
	}
	return func(yield func(string) bool) { yield(text) }
}
