package problem

import (
	"iter"

	"parley"
)

// Words explains messages that use only Kind and Value. It holds, for each Kind, the text for each Value.
type Words [][]string

// of returns the texts of a kind. A kind without texts has only the Value 0.
func (w Words) of(k parley.Kind) []string {
	if int(k) < len(w) && w[k] != nil {
		return w[k]
	}
	return []string{"?"}
}

// Fits reports whether a message sets no field but Value, to a Value of its Kind.
func (w Words) Fits(m parley.Msg) bool {
	return m.Origin == 0 && m.Seq == 0 && len(m.Body) == 0 && m.Value < uint64(len(w.of(m.Kind)))
}

// Explain implements [parley.Protocol.Explain].
func (w Words) Explain(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
	text := "?"
	if of := w.of(m.Kind); m.Value < uint64(len(of)) {
		text = of[m.Value]
	}
	return func(yield func(string) bool) { yield(text) }
}
