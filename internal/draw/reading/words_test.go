package reading_test

import (
	"testing"

	"parley"
	"parley/internal/draw/reading"
)

// A process may decide on nothing, and a decision on a value names it.
func TestWordsOfDecisions(t *testing.T) {
	w := reading.Words{Style: reading.Style{Width: 80, Name: parley.ID.String}}
	for body, want := range map[string]string{"": "decides nothing", "a": "decides a"} {
		if got := w.Delivered(0, 0, parley.Msg{Kind: parley.Decide, Body: []byte(body)}); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}
