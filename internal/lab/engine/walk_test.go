package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/internal/exploration"
	"parley/internal/lab/engine"
)

// walked returns where a walk is after some moves.
func walked(t *testing.T, e *engine.Engine, model map[string]any, moves []string) engine.WalkAnswer {
	t.Helper()
	return answers[engine.WalkAnswer](t, e, map[string]any{"ask": "walk", "model": model, "moves": moves})
}

// models are systems whose runs begin in different ways.
func models() []map[string]any {
	of := func(protocol string, flags ...string) map[string]any {
		m := make(map[string]string)
		for pair := range slices.Chunk(flags, 2) {
			m[pair[0]] = pair[1]
		}
		return map[string]any{"protocol": protocol, "flags": m}
	}
	return []map[string]any{
		of("om", "n", "3", "m", "1", "beyond-bound", "true", "faulty", "2"),
		of("om", "n", "3", "m", "1", "beyond-bound", "true", "step", "round"),
		of("twophase", "n", "3", "crashes", "1"),
		of("fifo", "n", "2"),
		of("fifo", "n", "2", "losses", "1", "doubles", "1"),
		of("ballot", "n", "3", "crashes", "1", "restarts", "1", "timeouts", "2"),
		of("detector", "n", "2"),
	}
}

// A walk takes the moves that it offers, to the end of a run, and the run so far can be opened at any time. No two moves
// have the same name.
func TestWalk(t *testing.T) {
	e := newEngine()
	for _, model := range models() {
		moves := []string{}
		for {
			at := walked(t, e, model, moves)
			names := make(map[string]bool)
			for _, m := range at.Next {
				if m.Name == "" || m.Says == "" || names[m.Name] || strings.ContainsAny(m.Name, ", ") {
					t.Fatalf("%v after %v: move %+v", model, moves, m)
				}
				names[m.Name] = true
			}
			if at.Stage == exploration.ChoosesMove {
				run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"trace": at.Trace}})
				if run.Report.Events != at.Taken[len(at.Taken)-1].Events {
					t.Fatalf("%v after %v: %d events, taken %+v", model, moves, run.Report.Events, at.Taken)
				}
			}
			if at.Over || len(moves) > 25 {
				break
			}
			if len(at.Next) == 0 {
				t.Fatalf("%v after %v: nothing is possible: %+v", model, moves, at)
			}
			moves = append(moves, at.Next[len(moves)%len(at.Next)].Name)
		}
		if len(moves) < 3 {
			t.Errorf("%v: %d moves", model, len(moves))
		}
	}
}

// The names of moves are in links, which are kept for years: each still means what it meant.
func TestWalkNames(t *testing.T) {
	e := newEngine()
	for _, c := range []struct {
		model map[string]any
		moves string
		says  map[int]string // what was taken, by its index
		last  string
	}{
		{
			models()[1], "P2-faulty;P1:1 P2-timer0 P1-timer0 P3-timer0 e7-P2 e9-P2 e9-P1 e7-P3 P2-timer65535 e15-P3 e15-P1 " +
				"P2-timer0 P1-timer0 P3-timer0 e23-P2 e20-P2 e20-P3 e22-P1 P2-timer65535:1 e29-P1 e30-P3 P2-timer0 P1-timer0",
			map[int]string{
				0: "P2 is faulty, P1 proposes 1", 1: "the processes start", 5: "P2 receives {1,1} from P1",
				19: "P2 has a timeout, the time at which faulty processes send, sends an empty message to P1, sends {0,12} to P3",
			},
			"P3-timer0",
		},
		{
			models()[5], "P1:1;P2:1;P3:1 P3-request!1 P1-request P2-request P1-timer1 P2-timer1 P3-restart e17-P3 e25-P1 e28-P2",
			map[int]string{2: "P3 proposes 1, makes 2 bytes durable, crashes", 7: "P3 restarts"}, "e29-P3",
		},
		{
			models()[4], "P2-request e8-P1 e12-P2 P1-request e16-P2 P1-request e23-P2-twice e23-P2-lost e20-P1",
			map[int]string{8: "P2 misses 1#2 #2 m3 from P1, which was lost"}, "e27-P1",
		},
	} {
		at := walked(t, e, c.model, strings.Fields(c.moves))
		for i, want := range c.says {
			if at.Taken[i].Says != want {
				t.Errorf("%v: move %d says %q, want %q", c.model, i, at.Taken[i].Says, want)
			}
		}
		if !slices.ContainsFunc(at.Next, func(m exploration.Possible) bool { return m.Name == c.last }) {
			t.Errorf("%v: %s is not among %+v", c.model, c.last, at.Next)
		}
	}
	// The move that breaks a property says so before it is taken.
	c := walked(t, e, models()[1], strings.Fields("P2-faulty;P1:1 P2-timer0 P1-timer0 P3-timer0 e7-P2 e9-P2 e9-P1 e7-P3 "+
		"P2-timer65535 e15-P3 e15-P1 P2-timer0 P1-timer0 P3-timer0 e23-P2 e20-P2 e20-P3 e22-P1 P2-timer65535:1 e29-P1 e30-P3 "+
		"P2-timer0 P1-timer0"))
	if len(c.Next) != 1 || !slices.Equal(c.Next[0].Breaks, []string{"validity"}) {
		t.Errorf("%+v", c.Next)
	}
}

// Moves without an alternative are taken at one press.
func TestWalkOn(t *testing.T) {
	e := newEngine()
	at := answers[engine.WalkAnswer](t, e, map[string]any{
		"ask": "walk", "model": models()[0], "moves": []string{"P2-faulty;P1:1"}, "on": true,
	})
	if len(at.Next) < 2 || len(at.Taken) < 5 {
		t.Errorf("%d moves taken, and %+v", len(at.Taken), at.Next)
	}
	var names []string
	for _, m := range at.Taken {
		if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	if again := walked(t, e, models()[0], names); again.Trace != at.Trace {
		t.Error("the names of the moves lead elsewhere")
	}
}

// hashOf returns the hash of the events of a trace.
func hashOf(text string) string {
	_, end, _ := strings.Cut(text, `"hash":"`)
	hash, _, _ := strings.Cut(end, `"`)
	return hash
}

// The finding of a search can be walked from its start: the last move breaks the property, and none before it does.
func TestFindingIsWalked(t *testing.T) {
	e := newEngine()
	for _, c := range []struct {
		property string
		flags    map[string]string
	}{
		{"twophase non-blocking", map[string]string{"n": "3", "crashes": "1", "beyond-bound": "true"}},
		{"om validity", map[string]string{"n": "3", "m": "1", "beyond-bound": "true", "step": "round"}},
		{"om validity", map[string]string{"n": "3", "m": "1", "beyond-bound": "true"}},
	} {
		protocol, property, _ := strings.Cut(c.property, " ")
		c.flags["property"] = property
		model := map[string]any{"protocol": protocol, "flags": c.flags}
		found := answers[engine.ExploreAnswer](t, e, map[string]any{"ask": "explore", "model": model})
		if found.Outcome != "found" || len(found.Trail) == 0 {
			t.Errorf("%v: %s, trail %q", model, found.Outcome, found.Trail)
			continue
		}
		at := walked(t, e, model, found.Trail)
		i := slices.IndexFunc(at.Properties, func(f exploration.Followed) bool { return f.Property == property })
		if hashOf(at.Trace) != hashOf(found.Trace) || at.Properties[i].Breaks != len(at.Taken)-1 {
			t.Errorf("%v: the walk is not the run that was found, or another move breaks it: %+v", model, at.Properties)
		}
		before := walked(t, e, model, found.Trail[:len(found.Trail)-1])
		last := before.Next[slices.IndexFunc(before.Next, func(m exploration.Possible) bool {
			return m.Name == found.Trail[len(found.Trail)-1]
		})]
		if before.Properties[i].Breaks >= 0 || !before.Properties[i].AtEnd && !slices.Contains(last.Breaks, property) {
			t.Errorf("%v: before the last move: %+v, %+v", model, before.Properties[i], last)
		}
	}
}

// Random runs continue the walk, can be walked themselves, and are the same for the same seed.
func TestSample(t *testing.T) {
	e := newEngine()
	varied := false
	for _, model := range models() {
		moves := []string{}
		for range 3 {
			if at := walked(t, e, model, moves); len(at.Next) > 0 {
				moves = append(moves, at.Next[len(at.Next)-1].Name)
			}
		}
		q := map[string]any{"ask": "samples", "model": model, "moves": moves, "count": 3, "seed": 7}
		a := answers[engine.SampleAnswer](t, e, q)
		different := false
		for _, r := range a.Runs {
			if !slices.Equal(r.Moves[:len(moves)], moves) {
				t.Errorf("%v: %q does not continue %q", model, r.Moves, moves)
			}
			at := walked(t, e, model, r.Moves)
			if at.Trace != r.Trace || at.Over != r.Over {
				t.Errorf("%v: the walk %q is another run", model, r.Moves)
			}
			different = different || !slices.Equal(r.Moves, a.Runs[0].Moves)
		}
		if again := answers[engine.SampleAnswer](t, e, q); again.Runs[2].Trace != a.Runs[2].Trace {
			t.Errorf("%v: the same question has another answer", model)
		}
		varied = varied || different
	}
	if !varied {
		t.Error("all runs of a sample are the same")
	}
}

// A walk ends before a move that is not possible, and says which it is.
func TestWalkRefused(t *testing.T) {
	e := newEngine()
	for _, c := range []struct {
		model map[string]any
		moves []string
		stage string
		taken int
		says  string
	}{
		{models()[3], []string{"P1-request", "e99-P1", "e9-P2"}, exploration.ChoosesMove, 2, `move 2 of 3, "e99-P1",`},
		{models()[2], []string{"nonsense", "P1-request"}, exploration.ChoosesRoot, 0, `move 1 of 2, "nonsense",`},
	} {
		at := walked(t, e, c.model, c.moves)
		if at.Stage != c.stage || len(at.Taken) != c.taken || !strings.HasPrefix(at.Refused, c.says) || len(at.Next) == 0 {
			t.Errorf("%q: %+v", c.moves, at)
		}
	}
	for _, c := range []struct{ question, says string }{
		{`{"ask":"samples","model":{"protocol":"fifo","flags":{"n":"2"}},"moves":["e99-P1"],"count":1}`, "move 1 of 1"},
		{`{"ask":"samples","model":{"protocol":"fifo","flags":{"n":"2"}},"count":1000}`, "1 to 20"},
	} {
		var a struct{ Error engine.Failure }
		b := e.Answer(t.Context(), []byte(c.question), nil)
		if err := json.Unmarshal(b, &a); err != nil || !strings.Contains(a.Error.Message, c.says) {
			t.Errorf("%s: %s, %v", c.question, b, err)
		}
	}
}

// A walk in which a message is lost says what is not promised because of it.
func TestWalkConditions(t *testing.T) {
	e := newEngine()
	model := models()[4]
	at := walked(t, e, model, strings.Fields("P1-request P1-request e8-P2-lost"))
	i := slices.IndexFunc(at.Properties, func(f exploration.Followed) bool { return f.Property == "agreement" })
	if !at.Properties[i].AtEnd || !strings.HasPrefix(at.Properties[i].Outcome, "not promised") {
		t.Errorf("%+v", at.Properties[i])
	}
	before := walked(t, e, model, strings.Fields("P1-request P1-request"))
	if strings.HasPrefix(before.Properties[i].Outcome, "not promised") {
		t.Errorf("nothing is lost yet: %+v", before.Properties[i])
	}
}

// The pictures of a run that a search found have a line for each step, because its times say little.
func TestFoundRunHasSteps(t *testing.T) {
	e := newEngine()
	at := walked(t, e, models()[2], strings.Fields("P1:1;P2:1;P3:1 P1-request P2-request"))
	run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"trace": at.Trace}})
	if last := run.Times[len(run.Times)-1]; !run.Stepped || last.Time != 2 {
		t.Errorf("stepped: %t, times %+v", run.Stepped, run.Times)
	}
	if simulated := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": runBy("twophase")}); simulated.Stepped {
		t.Error("a simulated run has steps instead of times")
	}
}
