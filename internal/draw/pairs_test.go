package draw_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/explore"
	"parley/explore/split"
	"parley/faulty"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/lockstep"
)

// argued is an argument that was found, for drawing.
type argued struct {
	p     parley.Protocol
	drawn reading.Pairs
}

// argue searches for the argument against a protocol with the given number of liars.
func argue(t *testing.T, p parley.Protocol, liars int) argued {
	t.Helper()
	var roots []explore.Root
	for set := range 1 << p.N {
		how := make(map[parley.ID]faulty.Behavior)
		for id := range p.N {
			if set>>id&1 == 1 {
				how[parley.ID(id)] = faulty.Any
			}
		}
		for i, v := range []string{"0", "1"} {
			if _, lies := how[0]; len(how) == liars && (!lies || i == 0) {
				roots = append(roots, explore.Root{Faulty: how, Requests: []explore.Request{
					{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}},
				}})
			}
		}
	}
	found, err := split.Indistinguishable(context.Background(), explore.Options{Protocol: p, Roots: roots})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s with %d liars: %d pairs, %v", p.Name, liars, len(found), err)
	}
	a := argued{p, reading.Pairs{Title: p.Title, Subtitle: fmt.Sprintf("n = %d, m = %d\nliars: %d", p.N, p.M, liars), End: "So it is."}}
	for i, pair := range found {
		one := reading.Pair{Same: pair.Same, Must: [2]string{"It must decide so.", "It cannot tell them apart."}}
		for k, c := range []*split.Case{pair.One, pair.Other} {
			one.Cases[k] = reading.Case{Title: fmt.Sprintf("Case %d", i+k+1), Faulty: c.Faulty, Events: c.Run.Log(true).Events}
			for _, lie := range c.Lies {
				one.Cases[k].Lies = append(one.Cases[k].Lies,
					reading.Lie{Round: lie.Round, From: lie.From, To: lie.To, Instead: lie.Honest})
			}
		}
		a.drawn.Pairs = append(a.drawn.Pairs, one)
	}
	return a
}

func oral(n, m int) parley.Protocol {
	return om.New(problem.Instance{N: n, M: m, Default: []byte("0")}, lockstep.Simulated)
}

func signed(n, m int) parley.Protocol {
	return sm.New(sm.Config{Instance: problem.Instance{N: n, M: m, Default: []byte("0")}}, lockstep.Simulated)
}

// The lecture's cases one and two side by side at three widths, and two of the cases with signatures.
func TestPairsText(t *testing.T) {
	a := argue(t, oral(3, 1), 1)
	var out strings.Builder
	for _, width := range widths {
		a.drawn.Width = width
		text := term.Pairs(a.p, a.drawn)
		lines(t, "pairs", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	a.drawn.Color = true
	if plain := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(term.Pairs(a.p, a.drawn), ""); !strings.Contains(out.String(), plain) {
		t.Errorf("in colours it is another text: %s", plain)
	}
	s := argue(t, signed(4, 1), 2)
	s.drawn.Width, s.drawn.Pairs = 100, s.drawn.Pairs[:1]
	fmt.Fprintf(&out, "--- signed\n%s", term.Pairs(s.p, s.drawn))
	golden(t, "pairs.txt", out.String())
}

// The columns of a pair are equal below the line that says so, and differ above.
func TestPairsColumns(t *testing.T) {
	for _, a := range []argued{argue(t, oral(3, 1), 1), argue(t, signed(4, 1), 2), argue(t, oral(5, 0), 1)} {
		same := 0
		for line := range strings.Lines(term.Pairs(a.p, a.drawn)) {
			left, right, both := strings.Cut(strings.TrimSuffix(line, "\n"), "│")
			if both && strings.Contains(left, ", from ") {
				same++
				if strings.TrimSpace(left) != strings.TrimSpace(right) {
					t.Errorf("%s: side by side stand %q and %q", a.p.Name, left, right)
				}
			}
		}
		for i := range a.drawn.Pairs {
			words := a.drawn.Words(a.p, i)
			if !slices.Equal(words[0].Sees, words[1].Sees) {
				t.Errorf("%s, pair %d: %q is not the same as %q", a.p.Name, i, words[0].Sees, words[1].Sees)
			}
			if slices.Equal(words[0].Messages, words[1].Messages) && words[0].About == words[1].About {
				t.Errorf("%s, pair %d: both runs are alike: %q", a.p.Name, i, words[0].Messages)
			}
			same -= len(words[0].Sees)
		}
		if same != 0 {
			t.Errorf("%s: of what is seen %d lines too many stand side by side", a.p.Name, same)
		}
	}
}

// The pictures equal those that were reviewed: a triangle as in the lecture, four processes, and more processes round
// by round. Each message is an arrow.
func TestPairsPictures(t *testing.T) {
	for name, a := range map[string]argued{
		"pairs.svg": argue(t, oral(3, 1), 1), "pairs4.svg": argue(t, signed(4, 1), 2), "pairs5.svg": argue(t, oral(5, 0), 1),
	} {
		picture := pairsSVG(a.p, a.drawn)
		said := 0
		for i := range a.drawn.Pairs {
			for _, c := range a.drawn.Words(a.p, i) {
				for _, line := range c.Messages {
					_, text, _ := strings.Cut(line, " to ")
					if to, what, _ := strings.Cut(text, ":"); what != " (silent)" {
						said += receivers(to)
					}
				}
			}
		}
		if got := arrows(well(t, picture)); got != said {
			t.Errorf("%s: %d arrows, and %d messages are said", name, got, said)
		}
		golden(t, name, picture)
	}
}

// receivers returns the number of processes in lists such as P2 P3 and P2 … P5.
func receivers(list string) (n int) {
	names := strings.Fields(list)
	for i, name := range names {
		if n++; name == "…" {
			n += int(names[i+1][1]-names[i-1][1]) - 2
		}
	}
	return n
}
