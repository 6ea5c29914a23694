package problem_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/internal/committest"
)

// history turns a text into a run of three processes, one event after another. 1y, 1n: 1 gets its vote, at
// time 0; 1Y: later; 1c, 1a: 1 decides; 1?: 1 decides something else; 1b: 1 is blocked; 1r: 1 restarts; 1x: 1
// crashes for good; 1l: 1 lies; end: the run is over.
func history(text string) *parley.History {
	h := &parley.History{N: 3}
	for i, word := range strings.Fields(text) {
		if word == "end" {
			h.Over = true
			continue
		}
		at := parley.ID(word[0] - '0')
		do := parley.ExternalEvent{At: at, From: at, When: parley.Tick(10 * i), Order: uint64(i + 1)}
		say := func(kind parley.Kind, body string) parley.ExternalEvent {
			do.Msg = parley.Msg{Kind: kind, Body: []byte(body)}
			return do
		}
		switch word[1] {
		case 'y', 'Y':
			if word[1] == 'y' {
				do.When = 0
			}
			h.Requests = append(h.Requests, say(parley.Propose, "yes"))
		case 'n':
			do.When = 0
			h.Requests = append(h.Requests, say(parley.Propose, "0"))
		case 'c':
			h.Deliveries = append(h.Deliveries, say(parley.Decide, "commit"))
		case 'a':
			h.Deliveries = append(h.Deliveries, say(parley.Decide, "abort"))
		case '?':
			h.Deliveries = append(h.Deliveries, say(parley.Decide, "perhaps"))
		case 'b':
			h.Indications = append(h.Indications, say(problem.Blocked, ""))
		case 'r':
			h.Restarts = append(h.Restarts, do)
		case 'x', 'l':
			h.Faulty.Add(at)
		}
	}
	return h
}

// broken returns the names of the properties that do not hold.
func broken(list []parley.Property, h *parley.History) string {
	var out []string
	for _, p := range list {
		if p.Check(h) != nil {
			out = append(out, p.Name)
		}
	}
	return strings.Join(out, ", ")
}

// What each property forbids and allows, uniform and among the correct.
func TestProperties(t *testing.T) {
	everyone := parley.Everyone(3)
	for _, c := range []struct{ run, uniform, correct string }{
		{"0y 1y 2y 0c 1c 2c end", "", ""},
		{"0y 1n 2y 0a 1a 2a end", "", ""},
		{"", "", ""},
		// AC1. A crashed process counts unless processes may lie.
		{"0y 1y 2y 0c 1a", "atomicity, non-triviality", "atomicity, non-triviality"},
		{"0y 1y 2y 1x 1a 0c 2c end", "atomicity", ""},
		{"0y 1y 2y 0r 0c 1a 2a end", "atomicity", "atomicity"},
		{"0y 1y 2y 0?", "atomicity", "atomicity"},
		// AC3.
		{"0y 1n 2y 0c 1c 2c end", "commit validity", "commit validity"},
		{"0y 1y 0c 1c 2c end", "commit validity", "commit validity"},
		{"0y 1n 2y 1l 0c 2c end", "commit validity", ""},
		{"0y 1y 2n 2y 0c", "commit validity", "commit validity"}, // the first vote counts
		{"0y 1l 2y 1c 0a 2a end", "atomicity, commit validity", ""},
		{"0y 1y 0c 2y 1c 2c end", "commit validity", "commit validity"}, // 2 would have voted yes
		// AC4. A vote may come too late.
		{"0y 1y 2Y 0a 1a 2a end", "", ""},
		{"0y 1y 2y 0a 1a 2a end", "non-triviality", "non-triviality"},
		{"0y 1y 2y 2x 0a 1a end", "", ""},
		{"0y 1y 2y 2r 0a 1a 2a end", "", ""},
		{"0y 1y 0a 1a end", "", ""},
		// AC2.
		{"0y 1y 2n 0a 0a", "stability", "stability"},
		{"0y 1y 2n 0a 0r 0a", "", ""},
		{"0y 1y 2n 0r 0a 0a", "stability", "stability"},
		{"0y 1y 2n 0a 1r 0a", "stability", "stability"},
		{"0y 1y 2y 0c 0r 0a", "atomicity, stability", "atomicity, stability"},
		{"0y 1y 2y 0x 0c 0r 0a 1c", "atomicity, stability", ""},
		// AC5. Nobody waits for a process that does not vote, nor for one that has crashed.
		{"0y 1y 2n 0a 2a end", "termination", "termination"},
		{"0y 1y 2n 0a 2a", "", ""},
		{"0y 1y 2n 1x 0a 2a end", "", ""},
		{"0y 2n 0a 2a end", "", ""},
		// Non-blocking. A crashed process may wait.
		{"0y 1y 2y 1x 0b 0c 2c end", "non-blocking", "non-blocking"},
		{"0y 1y 2y 0r 0b 0c 1c 2c end", "", ""},
		{"0y 1y 2y 0b 0r 0c 1c 2c end", "non-blocking", "non-blocking"},
		{"0y 1y 2y 0x 0b 1c 2c end", "", ""},
	} {
		if got := broken(problem.Uniform(everyone), history(c.run)); got != c.uniform {
			t.Errorf("%s: uniform: broken %q, want %q", c.run, got, c.uniform)
		}
		if got := broken(problem.AmongCorrect(everyone), history(c.run)); got != c.correct {
			t.Errorf("%s: among correct: broken %q, want %q", c.run, got, c.correct)
		}
	}
}

// With fewer voters the other processes need neither vote nor decide.
func TestVoters(t *testing.T) {
	two := parley.SetOf(1, 2)
	for run, want := range map[string]string{
		"1y 2y 0c 1c 2c end": "", "1y 2y 0y 1c 2c end": "", "1y 2n 0c": "commit validity", "1y 2y 1a": "non-triviality",
	} {
		if got := broken(problem.Uniform(two), history(run)); got != want {
			t.Errorf("%s: %q, want %q", run, got, want)
		}
	}
}

// Violations are reported in words.
func TestWords(t *testing.T) {
	for run, want := range map[string]string{
		"0y 1y 2y 0c 2a": "process 0 committed and process 2 aborted",
		"0y 1n 2y 0c":    "process 0 committed, but process 1 voted no",
		"0y 1y 0c":       "process 0 committed, but process 2 did not vote",
		"0y 1y 0c 2y":    "process 0 committed, but process 2 had not voted yet",
		"0n 0a 0a":       "process 0 decided twice",
		"0n 0a 0r 0c":    "process 0 decided abort and then commit",
		"0y end":         "process 0 did not decide",
		"0y 0r 0b end":   "process 0 is blocked",
		"0y 0b":          "process 0 has not crashed and was blocked at tick 10",
		"0?":             "process 0 decided perhaps, which is no outcome",
		"0y 1y 2y 1a":    "process 1 aborted, although all voted yes and nothing failed",
	} {
		h, found := history(run), false
		for _, p := range problem.Uniform(parley.Everyone(3)) {
			if err := p.Check(h); err != nil {
				found = found || err.Error() == want
			}
		}
		if !found {
			t.Errorf("%s: nothing says %q", run, want)
		}
	}
}

func TestVote(t *testing.T) {
	for body, want := range map[string][2]bool{
		"yes": {true, true}, "1": {true, true}, "no": {false, true}, "0": {false, true},
		"": {}, "YES": {}, "perhaps": {}, "yes ": {}, " no": {},
	} {
		if yes, ok := problem.Vote([]byte(body)); yes != want[0] || ok != want[1] {
			t.Errorf("%q: %t, %t", body, yes, ok)
		}
	}
}

// States and outcomes have names that can be read back, and belong together.
func TestNames(t *testing.T) {
	var names []string
	for s := problem.Initial; s <= problem.Aborted; s++ {
		names = append(names, s.String())
		if back, err := problem.ParseState(s.String()); err != nil || back != s {
			t.Errorf("%s is read as %s, %v", s, back, err)
		}
		if o := s.Outcome(); o != problem.Undecided && o.Reached() != s {
			t.Errorf("%s is the outcome of %s, and does not lead there", o, s)
		}
	}
	if want := []string{"initial", "uncertain", "precommitted", "committed", "aborted"}; !slices.Equal(names, want) {
		t.Errorf("states %s", names)
	}
	_, err := problem.ParseState("lost")
	if err == nil || err.Error() != `state "lost": allowed are initial, uncertain, precommitted, committed and aborted` {
		t.Error(err)
	}
	if got := fmt.Sprint(problem.Undecided, problem.Commit, problem.Abort, problem.State(9)); got != "blocked commit abort state 9" {
		t.Error(got)
	}
	m := problem.Commit.Decided(2)
	if m.Kind != parley.Decide || m.Origin != 2 || string(m.Body) != "commit" {
		t.Error(m)
	}
	committest.Panics(t, "blocked", func() { problem.Undecided.Decided(0) })
	committest.Panics(t, "blocked", func() { problem.Undecided.Reached() })
}

// A message of words has a Kind and one of its Values, and nothing else. A message without a text is shown as
// a question mark.
func TestWordsFit(t *testing.T) {
	w := problem.Words{1: {"no", "yes"}, 2: problem.StateNames()}
	for _, c := range []struct {
		m    parley.Msg
		text string
		fits bool
	}{
		{parley.Msg{Kind: 1}, "no", true}, {parley.Msg{Kind: 1, Value: 1}, "yes", true}, {parley.Msg{Kind: 1, Value: 2}, "?", false},
		{parley.Msg{Kind: 2, Value: 4}, "aborted", true}, {parley.Msg{}, "?", true}, {parley.Msg{Kind: 9, Value: 1}, "?", false},
		{parley.Msg{Kind: 1, Seq: 1}, "no", false}, {parley.Msg{Kind: 1, Origin: 1}, "no", false},
		{parley.Msg{Kind: 1, Body: []byte("x")}, "no", false},
	} {
		for text := range w.Explain(parley.Env{}, c.m, nil) {
			if text != c.text || w.Fits(c.m) != c.fits {
				t.Errorf("%+v: %q, fits %t", c.m, text, w.Fits(c.m))
			}
		}
	}
}

// The flag of delays refuses negative values and 0.
func TestDeltaFlag(t *testing.T) {
	for text, want := range map[string]string{
		"7": "", "0": "--delta: 0 ticks: allowed is at least 1", "9": "--delta: 9 ticks: allowed are 1 to 8",
	} {
		fs, delta := flag.NewFlagSet("", flag.ContinueOnError), parley.Tick(5)
		check := problem.DeltaFlag(fs, &delta)
		if err := fs.Parse([]string{"-delta", text}); err != nil {
			t.Fatal(err)
		}
		if err := check(delta, problem.CheckDelta(delta, 8)); want == "" != (err == nil) || err != nil && err.Error() != want {
			t.Errorf("--delta %s: got %v, want %q", text, err, want)
		}
	}
}

// Faults that make timeouts expire are reported.
func TestPromises(t *testing.T) {
	for want, a := range map[string]parley.RunConditions{
		"": {}, "a process crashed": {Faulty: 1}, "messages were lost": {Network: parley.NetworkFaults{Cut: true}},
		"a message was late, or a clock was wrong": {Processes: parley.ProcessFaults{Paused: true}},
	} {
		if p := parley.Promised(problem.Stability, "of logs", problem.Failed(a)); p.Holds != (want == "") || !p.Holds && p.Because != want {
			t.Errorf("%+v: %+v", a, p)
		}
	}
	if c := problem.Phases(3, 4); c.Rounds != 3 || c.Total().Messages != 9 || problem.OfBit(problem.Commit.Bit()) != problem.Commit {
		t.Errorf("%+v", c)
	}
}
