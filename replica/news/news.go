// Package news implements network news as a replicated state machine, an example of the lecture
// (docs/explanation/sources.md). It shows why replicas need causal order: a reader who gets the response to a
// posting before the posting misunderstands the response.
package news

import (
	"slices"
	"strings"
)

// Board is the state machine: the articles read so far, in order. Its commands are "article NAME" and "response NAME
// to NAME". The answer says whether a response was understood.
type Board struct{ read []string }

// New returns an empty board.
func New() *Board { return new(Board) }

// Apply reads an article or a response.
func (b *Board) Apply(command []byte) []byte {
	words := strings.Fields(string(command))
	switch {
	case len(words) == 2 && words[0] == "article":
		b.read = append(b.read, words[1])
		return []byte("read " + words[1])
	case len(words) == 4 && words[0] == "response" && words[2] == "to":
		known := slices.Contains(b.read, words[3])
		b.read = append(b.read, words[1])
		if known {
			return []byte("understood " + words[1])
		}
		return []byte("misread " + words[1] + ": there is no " + words[3] + " yet")
	}
	return []byte("no such command")
}

// String returns the articles read so far, in order.
func (b *Board) String() string { return strings.Join(b.read, ", ") }

// Snapshot returns the state.
func (b *Board) Snapshot() []byte { return []byte(strings.Join(b.read, " ")) }

// Restore replaces the state with a snapshot, and reports whether the bytes are a snapshot.
func (b *Board) Restore(snapshot []byte) bool {
	b.read = strings.Fields(string(snapshot))
	return strings.Join(b.read, " ") == string(snapshot)
}
