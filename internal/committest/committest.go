// Package committest is what the tests of the protocols of atomic commitment have in common: votes and outcomes as
// letters, one a process.
package committest

import (
	"strings"
	"testing"

	"parley"
	"parley/parleytest"
	"parley/sim"
)

// Votes gives each process its vote at the beginning: y, n, or - for none.
func Votes(text string) (list []sim.Request) {
	for i, v := range text {
		if v != '-' {
			body := map[rune]string{'y': "yes", 'n': "no"}[v]
			list = append(list, sim.Request{At: parley.ID(i), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(body)}})
		}
	}
	return list
}

// Outcomes writes what each process decided last: c, a, or - for nothing; b for nothing although it is blocked.
func Outcomes(h *parley.History) string {
	out := []byte(strings.Repeat("-", h.N))
	for _, i := range h.Indications {
		out[i.At] = 'b'
	}
	for _, d := range h.Deliveries {
		out[d.At] = d.Msg.Body[0]
	}
	return string(out)
}

// EveryVote tries each vote of four processes, or none, with five seeds, and demands what want says of them, and that
// all properties hold. options describes a run with such votes.
func EveryVote(t *testing.T, options func(votes string) sim.Options, want func(votes string) string) {
	t.Helper()
	runs := 0
	parleytest.Every(func(choose func(n int) int) {
		text := make([]byte, 4)
		for i := range text {
			text[i] = "yn-"[choose(3)]
		}
		for seed := range uint64(5) {
			opt := options(string(text))
			opt.Seed = seed
			s := sim.Run(opt)
			runs++
			if got, want := Outcomes(&s.History), want(string(text)); got != want {
				t.Fatalf("votes %s, seed %d: %s, want %s", text, seed, got, want)
			}
			if broken := parleytest.Judge(t, opt.Protocol, s, string(text)); broken != nil {
				t.Fatalf("votes %s: %s", text, broken)
			}
		}
	})
	if runs != 81*5 {
		t.Errorf("%d runs", runs)
	}
}
