package threephase_test

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/threephase"
	"parley/internal/committest"
	"parley/parleytest"
	"parley/sim"
)

// long is the length of a run in which every process that can decide does.
const long = 40_000

// options returns the options of a run with the given votes.
func options(text string) sim.Options {
	p := threephase.New(threephase.Config{N: len(text)})
	return sim.Options{Protocol: p, Requests: committest.Votes(text), Until: long}
}

// AC3 and AC4: commit if and only if all vote yes in time. Every vote of four
// processes, the coordinator's too, or none.
func TestEveryVote(t *testing.T) {
	committest.EveryVote(t, options, func(votes string) string {
		switch {
		case votes == "yyyy":
			return "cccc"
		case votes[0] == '-': // a coordinator without a vote asks nobody
			return strings.NewReplacer("y", "a", "n", "a").Replace(votes)
		}
		return "aaaa"
	})
}

// Section 7.5, evaluation: 5n messages for n participants.
func TestMessages(t *testing.T) {
	for n := 2; n <= 8; n++ {
		opt := options(strings.Repeat("y", n))
		s := sim.Run(opt)
		if want := 5 * uint64(n-1); s.Stats.Sends != want || opt.Protocol.Cost(n, 0).Total().Messages != want {
			t.Errorf("%d participants: %d messages, want %d", n-1, s.Stats.Sends, want)
		}
	}
}

// Compare the termination rule, over all states of up to four processes that are up, with its derivation.
func TestRule(t *testing.T) {
	cases := 0
	parleytest.Every(func(choose func(n int) int) {
		text := make([]byte, choose(5))
		for i := range text {
			text[i] = "iupca"[choose(5)]
		}
		has := func(state string) bool { return strings.ContainsAny(string(text), state) }
		if has("pc") && has("ai") || has("c") && has("u") {
			return // occurs in no run: section 7.5, the states that occur together
		}
		cases++
		want := problem.Abort
		switch {
		case len(text) == 0:
			want = problem.Undecided
		case has("pc"): // a process that is down may have committed
			want = problem.Commit
		}
		if got := threephase.Terminate(committest.States(string(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	})
	if cases != 1+5+15+41+111 {
		t.Errorf("%d cases", cases)
	}
}

// backs are the delays of a restart after a crash: never, at once, while the others wait, and when they have
// finished.
var backs = []parley.Tick{0, 1, 1500, 9000}

// Atomicity holds whatever crashes, no process that is up is blocked, and all decide.
func TestEveryCrash(t *testing.T) {
	committest.EveryCrash(t, options, backs, map[string]int{"yyy": 736, "yyyy": 1040, "yyny": 720})
}

func TestEveryTwoCrashes(t *testing.T) {
	committest.EveryTwoCrashes(t, options("yyy"), backs, 13354, 6030)
}

// takeovers iterates over the runs in which the coordinator crashes at any point, and then the process that
// takes over, at any point. then derives the second run from the first.
func takeovers(opt sim.Options, then func(sim.Options) sim.Options) iter.Seq[sim.Options] {
	return func(yield func(sim.Options) bool) {
		for one := range committest.Crashes(opt, 0) {
			if one.Crashes[0].At != 0 {
				continue
			}
			for two := range committest.Crashes(then(one), 0) {
				if two.Crashes[1].At == 1 && !yield(two) {
					return
				}
			}
		}
	}
}

// Every pair of crashes of four processes: the coordinator at any point, and the process that takes over at
// any point, both for good. With three participants one is left that has messages of neither, or of both.
func TestTakeoverCrashes(t *testing.T) {
	runs := 0
	for two := range takeovers(options("yyyy"), func(one sim.Options) sim.Options { return one }) {
		runs++
		s := sim.Run(two)
		parleytest.Judge(t, two.Protocol, s, two.Crashes)
		if got := committest.Outcomes(&s.History); got[2] == '-' || got[3] == '-' {
			t.Fatalf("%v: %s", two.Crashes, got)
		}
	}
	if runs != 475 {
		t.Errorf("%d runs, want 475", runs)
	}
}

// Any number of crashes, many of them during takeovers: the processes that are up decide the same, and wait
// for nobody.
func TestManyCrashes(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 7))
		opt := options([]string{"yyyy", "yyyyy", "yyyyyy", "yyny"}[r.IntN(4)])
		opt.Seed = seed
		n := opt.Protocol.N
		for _, i := range r.Perm(n)[:1+r.IntN(n)] {
			c := sim.Crash{At: parley.ID(i), Step: 1 + r.IntN(10), Effects: r.IntN(n + 3)}
			if r.IntN(2) == 0 {
				c.Back = 1 + parley.Tick(r.IntN(9000))
			}
			opt.Crashes = append(opt.Crashes, c)
		}
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, opt.Crashes)
		for _, o := range committest.Outcomes(&s.History) {
			seen[string(o)]++
		}
	}
	if seen["c"] < 500 || seen["a"] < 500 || seen["b"] == 0 {
		t.Errorf("outcomes %v", seen)
	}
}

// Total failure: all have voted yes, crash, and restart, each with a yes in its log. When the last one has
// restarted they know that no process decided.
func TestTotalFailure(t *testing.T) {
	opt := options("yyy")
	opt.Crashes = []sim.Crash{
		{At: 0, Step: 4, Effects: 0, Back: 4000}, // when it gets the last yes
		{At: 1, Step: 3, Effects: 9, Back: 8000},
		{At: 2, Step: 3, Effects: 9, Back: 20_000},
	}
	s := sim.Run(opt)
	parleytest.Judge(t, opt.Protocol, s, opt.Crashes)
	if committest.Outcomes(&s.History) != "aaa" {
		t.Error(committest.Outcomes(&s.History))
	}
	for _, d := range s.History.Deliveries {
		if d.When < 20_000 {
			t.Errorf("process %d decides at %d, and 2 may know more", d.At, d.When)
		}
	}
	opt.Crashes[2].Back = 0
	s = sim.Run(opt)
	broken := parleytest.Judge(t, opt.Protocol, s, opt.Crashes)
	if committest.Outcomes(&s.History) != "bb-" || !slices.Equal(broken, []string{problem.Termination}) {
		t.Error(committest.Outcomes(&s.History), broken)
	}
}

func TestLateVote(t *testing.T) { committest.LateVote(t, options) }

// The suite of all protocols.
func TestSuite(t *testing.T) {
	parleytest.Suite(t, threephase.New(threephase.Config{N: 4}), parleytest.Options{
		Alphabet: []string{"yes", "yes", "yes", "no"}, Recovers: true,
	})
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, threephase.New(threephase.Config{N: 4}), parleytest.Options{Alphabet: []string{"yes", "no"}})
}
