package svg

import (
	"encoding/xml"
	"math/rand/v2"
	"strings"
	"testing"
)

// Text is escaped as by encoding/xml, which a program for pages does not need for anything else.
func TestEscaped(t *testing.T) {
	special := []rune("&<>\"'\t\n\r\x00\x1b\x7f\ud7ff\ue000\ufffc\ufffd\ufffe\uffff\U00010000\U0010ffffaé漢")
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		text := ""
		for range r.IntN(12) {
			text += string(special[r.IntN(len(special))])
			if r.IntN(8) == 0 {
				text += "\xff\xc3"
			}
		}
		var want strings.Builder
		if err := xml.EscapeText(&want, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := escaped(text); got != strings.ReplaceAll(want.String(), "\uFFFD", "?") {
			t.Fatalf("seed %d: %q: %q, want %q", seed, text, got, want.String())
		}
	}
}
