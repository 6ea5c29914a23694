package engine_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"parley/internal/lab/engine"
	"parley/internal/lab/traitor"
)

// The claim of every level is true: what can be won is won by the run that the level names, and by a search where
// there is one; what cannot be won survives every adversary.
func TestLevels(t *testing.T) {
	e := newEngine()
	for _, l := range answers[engine.LevelsAnswer](t, e, map[string]any{"ask": "levels"}).Levels {
		t.Run(l.ID, func(t *testing.T) {
			of := func(more map[string]string) map[string]any {
				flags := maps.Clone(l.Flags)
				var seats []string
				for _, name := range l.Seats {
					seats = append(seats, strings.TrimPrefix(name, "P")+"=moves:")
				}
				if len(seats) > 0 {
					flags["faulty"] = strings.Join(seats, ",")
				}
				maps.Copy(flags, more)
				return map[string]any{"protocol": l.Protocol, "flags": flags}
			}
			broken := func(run map[string]any) bool {
				for _, v := range answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": run}).Report.Verdicts {
					if v.Property == l.Property {
						return v.Broken != ""
					}
				}
				t.Fatalf("there is no property %q", l.Property)
				return false
			}
			if broken(of(nil)) {
				t.Error("the level is won before it begins")
			}
			if l.Can != (l.Wins != nil) || l.Can && !broken(of(l.Wins)) {
				t.Errorf("can be won: %t, and %v does not", l.Can, l.Wins)
			}
			for _, name := range l.Seats {
				seat := answers[traitor.Menu](t, e, map[string]any{"ask": "seat", "of": name, "run": of(nil)})
				if len(seat.Turns) == 0 {
					t.Errorf("%s has no turn", name)
				}
			}
			for _, d := range l.Dials {
				named, safe := 0, 0
				for _, choice := range d.Choices {
					flag := strings.ReplaceAll(d.Form, "%", choice.Value)
					if choice.Says == "" {
						t.Errorf("%+v", choice)
					}
					if !broken(of(map[string]string{d.Flag: flag})) {
						safe++
					}
					if flag == l.Wins[d.Flag] {
						named++
					}
				}
				if l.Can && (named != 1 || safe == 0) || !l.Can && safe < len(d.Choices) {
					t.Errorf("dial %s: %d choices are the run that wins, %d break nothing", d.Name, named, safe)
				}
			}
			if (l.Proof == traitor.Sampled) != (l.Seeds > 0) {
				t.Errorf("%d seeds", l.Seeds)
			}
			if l.Proof == traitor.Sampled {
				got := answers[traitor.Sampling](t, e, map[string]any{"ask": "trials", "level": l.ID, "seconds": 120})
				if l.Can || got.Outcome != traitor.NotFound || got.Runs != l.Seeds {
					t.Errorf("%+v", got)
				}
			}
			if l.Proof != traitor.Searched {
				return
			}
			found := answers[traitor.Verdict](t, e, map[string]any{
				"ask": "search", "run": of(nil), "free": l.Seats, "property": l.Property, "seconds": 120, "split": l.Split,
			})
			switch {
			case !l.Can && (found.Outcome != "exhausted" || found.States == 0):
				t.Errorf("%+v", found)
			case l.Can && (found.Property != l.Property || !broken(of(map[string]string{"faulty": found.Flag}))):
				t.Errorf("%+v", found)
			}
		})
	}
}

// Beyond the bound there are runs that look the same to a process, and within it there are none.
func TestLevelPairs(t *testing.T) {
	e := newEngine()
	for _, l := range answers[engine.LevelsAnswer](t, e, map[string]any{"ask": "levels"}).Levels {
		if l.Pairs == nil {
			if len(l.Seats) > 0 {
				t.Errorf("level %s has seats, and no pairs", l.ID)
			}
			continue
		}
		found := answers[engine.PairsAnswer](t, e, map[string]any{
			"ask": "pairs", "model": engine.Model{Protocol: l.Protocol, Flags: l.Pairs},
		})
		want := "exhausted"
		if l.Pairs["beyond-bound"] == "true" {
			want = "found"
		}
		if found.Outcome != want || (found.SVG != "") != (want == "found") {
			t.Errorf("level %s: %s, want %s", l.ID, found.Outcome, want)
		}
	}
}

// A search from a round on cannot keep what a behavior without moves does.
func TestSearchFromKeepsMovesOnly(t *testing.T) {
	run := map[string]any{"protocol": "om", "flags": map[string]string{
		"n": "3", "m": "1", "beyond-bound": "true", "faulty": "2=silent"}}
	b, err := json.Marshal(map[string]any{"ask": "search", "run": run, "free": []string{"P2"}, "from": 1, "seconds": 60})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(newEngine().Answer(t.Context(), b, nil)); !strings.Contains(got, "makes no moves that could be kept") {
		t.Error(got)
	}
}

// A search from a round on keeps what was sent before it.
func TestSearchFrom(t *testing.T) {
	e := newEngine()
	const wins = "2=moves:1-3-0-1" // P2 lies to P3 in round 1, which is its only one
	for _, c := range []struct {
		faulty string
		from   int
		found  bool
	}{{"2=moves:", 0, true}, {"2=moves:", 1, true}, {"2=moves:", 2, false}, {wins, 2, true}} {
		run := map[string]any{"protocol": "om", "flags": map[string]string{
			"n": "3", "m": "1", "beyond-bound": "true", "faulty": c.faulty}}
		found := answers[traitor.Verdict](t, e, map[string]any{
			"ask": "search", "run": run, "free": []string{"P2"}, "from": c.from, "property": "validity", "seconds": 60,
		})
		if (found.Outcome == "found") != c.found || c.found && found.Flag != wins || !c.found && found.Outcome != "exhausted" {
			t.Errorf("%s from round %d: %+v", c.faulty, c.from, found)
		}
	}
}
