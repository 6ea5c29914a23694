package draw_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
)

func verdict(name, says string, promised bool, because string, broken error) parley.Verdict {
	return parley.Verdict{
		Property: parley.Property{Name: name, Says: says},
		Promise:  parley.Promise{Property: name, Holds: promised, Because: because}, Broken: broken,
	}
}

// The four outcomes of a property, and numbers from 0 to too large to count.
func TestCard(t *testing.T) {
	c := term.Card{
		Title: "Byzantine agreement by exponential information gathering, n = 7, m = 2",
		Verdicts: []parley.Verdict{
			verdict("agreement", "all correct lieutenants decide on the same value",
				true, "n > 3m: m+1 rounds of gathering suffice", nil),
			verdict("validity", "if the source is correct, every correct lieutenant decides on its value",
				true, "n > 3m", errors.New("P3 decided 0, and the correct source said 1")),
			verdict("termination", "every correct process decides",
				false, "3 processes are faulty, and m = 2", errors.New("P4 did not decide")),
			verdict("integrity", "no correct process decides twice", false, "no theorem covers it", nil),
		},
		Cost: parley.Cost{Rounds: 3, PerRound: []parley.Traffic{
			{Messages: 6, Bits: 24}, {Messages: 36, Bits: 252}, {Messages: 13366080, Bits: math.MaxUint64, Signatures: 5},
		}},
		Measured: []parley.Traffic{{Messages: 6, Bits: 24}, {Messages: 35, Bits: 245}},
		Counted:  "sent by all processes",
	}
	var out strings.Builder
	for _, width := range widths {
		c.Width = width
		text := c.Text()
		lines(t, "card", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	golden(t, "card.txt", out.String())
}

// Where the theorem gives bounds the card says so, and signatures are not counted if there are none.
func TestCardAtMost(t *testing.T) {
	c := term.Card{
		Cost:     parley.Cost{Rounds: 2, AtMost: true, PerRound: []parley.Traffic{{Messages: 3}, {Messages: 9}}},
		Measured: []parley.Traffic{{Messages: 3}, {Messages: 4}},
	}
	text := c.Text()
	if !strings.Contains(text, "at most") {
		t.Error(text)
	}
	for _, not := range []string{"theorem │", "signatures", "bits"} {
		if strings.Contains(text, not) {
			t.Errorf("%s in\n%s", not, text)
		}
	}
	c.Cost = parley.Cost{}
	if text = c.Text(); !strings.Contains(text, "7 │       – ") {
		t.Errorf("without a theorem:\n%s", text)
	}
	for _, width := range widths {
		most := parley.Traffic{Messages: math.MaxUint64 - 1, Bits: math.MaxUint64 - 1, Signatures: math.MaxUint64 - 1}
		c := term.Card{Style: reading.Style{Width: width}, Measured: []parley.Traffic{most}}
		lines(t, "large numbers", c.Text(), width)
	}
}

func TestDecisions(t *testing.T) {
	var out strings.Builder
	for _, width := range widths {
		p := liars()
		p.style.Width = width
		text := term.Decisions(p.outcomes(), p.style)
		lines(t, "decisions", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	many := make([]reading.Outcome, 256)
	s := reading.Style{Faulty: parley.SetOf(77, 200)}
	for i := range many {
		id := parley.ID(i)
		many[i] = reading.Outcome{Process: id, Starts: []byte(strings.Repeat("long ", 40)), Decides: []byte{}, Role: "correct"}
		if s.Faulty.Has(id) {
			many[i] = reading.Outcome{Process: id, Role: "faulty: a behavior with a name that goes on for long"}
		}
	}
	for _, width := range widths {
		s.Width = width
		text := term.Decisions(many, s)
		lines(t, "many decisions", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	golden(t, "decisions.txt", out.String())
}

// The decision of a faulty process means nothing. The first value that a process was given and the first that it
// decided count.
func TestOutcomes(t *testing.T) {
	say := func(at parley.ID, k parley.Kind, v string) parley.ExternalEvent {
		return parley.ExternalEvent{At: at, Msg: parley.Msg{Kind: k, Body: []byte(v)}}
	}
	h := &parley.History{
		N: 3, Faulty: parley.SetOf(2),
		Requests: []parley.ExternalEvent{say(0, parley.Propose, "1"), say(0, parley.Propose, "2")},
		Deliveries: []parley.ExternalEvent{
			{At: 1, Order: 7, Msg: parley.Msg{Kind: parley.Decide, Body: []byte("1")}}, say(1, parley.Decide, "0"),
			say(2, parley.Decide, "1"), say(0, parley.Carried, "x"),
		},
	}
	got := reading.Outcomes(h, parley.SetOf(0), func(parley.ID) string { return "flip" })
	want := "[{0 [49] [] 0 source, correct} {1 [] [49] 7 correct} {2 [] [] 0 faulty: flip}]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
