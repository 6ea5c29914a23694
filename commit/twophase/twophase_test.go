package twophase_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/twophase"
	"parley/internal/committest"
	"parley/parleytest"
	"parley/sim"
)

// long is the length of a run in which every process that can decide does.
const long = 40_000

// options returns the options of a run with the given votes.
func options(text string) sim.Options {
	p := twophase.New(twophase.Config{N: len(text)})
	return sim.Options{Protocol: p, Requests: committest.Votes(text), Until: long}
}

// AC3 and AC4, and the reference case 2pc-all-yes: commit if and only if all vote yes
// in time. Every vote of four processes, the coordinator's too, or none.
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

// Section 7.4, evaluation: 3n messages for n participants, not counting acknowledgements.
func TestMessages(t *testing.T) {
	for n := 2; n <= 8; n++ {
		opt := options(strings.Repeat("y", n))
		opt.Measure = true
		s := sim.Run(opt)
		participants := uint64(n - 1)
		got, acks := s.Stats.Sent[0].Messages, s.Stats.Sends-s.Stats.Sent[0].Messages
		if got != 3*participants || acks != participants || opt.Protocol.Cost(n, 0).Total().Messages != got {
			t.Errorf("%d participants: %d messages and %d acknowledgements", participants, got, acks)
		}
	}
}

// There are not more if some vote no and votes cross with the abort.
func TestMessagesOfAborts(t *testing.T) {
	for seed := range uint64(200) {
		opt := options([]string{"ynyy", "ynny", "ynnnn", "yyyyn"}[seed%4])
		opt.Seed, opt.Measure = seed, true
		n := uint64(opt.Protocol.N)
		if s := sim.Run(opt); s.Stats.Sent[0].Messages > 3*(n-1) || s.Stats.Sent[0].Messages != s.Stats.Sends {
			t.Fatalf("seed %d: %d of %d messages, want at most %d", seed, s.Stats.Sent[0].Messages, s.Stats.Sends, 3*(n-1))
		}
	}
}

// Compare the termination rule, over all states of up to four processes, with its derivation: an outcome is
// safe if no absent process can know the other one.
func TestRule(t *testing.T) {
	cases := 0
	parleytest.Every(func(choose func(n int) int) {
		text := make([]byte, choose(5))
		for i := range text {
			text[i] = "iuca"[choose(4)]
		}
		has := func(state string) bool { return strings.Contains(string(text), state) }
		if has("c") && (has("a") || has("i")) {
			return // occurs in no run
		}
		cases++
		// The absent coordinator may have decided either way, or may still do so.
		mayBeCommitted := !has("i") && !has("a")
		mayBeAborted := !has("c")
		want := problem.Undecided
		switch {
		case !mayBeCommitted:
			want = problem.Abort
		case !mayBeAborted:
			want = problem.Commit
		}
		if got := twophase.Terminate(committest.States(string(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	})
	if cases != 1+4+12+34+96 {
		t.Errorf("%d cases", cases)
	}
}

// Section 7.4: an uncertain participant is blocked if the coordinator crashes and all others are uncertain
// too. When the coordinator restarts, all follow its log.
func TestBlocking(t *testing.T) {
	for _, c := range []struct {
		effects int // of the step in which the coordinator gets the last yes
		back    parley.Tick
		want    string
	}{
		{0, 0, "-bbb"},      // before the commit record is durable
		{1, 0, "-bbb"},      // the record is durable, and nobody knows it
		{0, 20_000, "aaaa"}, // nothing in the log: presumed abort
		{1, 20_000, "cccc"}, // a commit record
	} {
		opt := options("yyyy")
		// Step 1 is Start, 2 the request; 3 to 5 are votes.
		opt.Crashes = []sim.Crash{{At: 0, Step: 5, Effects: c.effects, Back: c.back}}
		s := sim.Run(opt)
		if got := committest.Outcomes(&s.History); got != c.want {
			t.Errorf("after %d effects, back after %d: %s, want %s", c.effects, c.back, got, c.want)
		}
		var said []parley.ID
		for _, i := range s.History.Indications {
			if i.Msg.Kind != problem.Blocked {
				t.Errorf("indication %#x", i.Msg.Kind)
			}
			said = append(said, i.At)
		}
		slices.Sort(said)
		if !slices.Equal(said, []parley.ID{1, 2, 3}) {
			t.Errorf("blocked: %v, and each participant says so once", said)
		}
		broken := parleytest.Judge(t, opt.Protocol, s, c)
		want := []string{problem.NonBlocking}
		if c.back == 0 {
			want = []string{problem.Termination, problem.NonBlocking}
		}
		if !slices.Equal(broken, want) {
			t.Errorf("after %d effects, back after %d: broken %s, want %s", c.effects, c.back, broken, want)
		}
	}
}

// Section 7.4, the cooperative termination protocol: one reachable process that knows, or has not voted,
// suffices.
func TestCooperativeTermination(t *testing.T) {
	opt := options("yyyy")
	// The record, its own timeout, the delivery, and COMMIT to one participant.
	opt.Crashes = []sim.Crash{{At: 0, Step: 5, Effects: 4}}
	if s := sim.Run(opt); committest.Outcomes(&s.History) != "cccc" {
		t.Errorf("one knows: %s", committest.Outcomes(&s.History))
	}
	opt = options("yyyy")
	// VOTE-REQ only to 1 and 2; 3 has not voted when it is asked.
	opt.Crashes = []sim.Crash{{At: 0, Step: 2, Effects: 2}}
	opt.Requests[3].When = 20_000
	s := sim.Run(opt)
	if committest.Outcomes(&s.History) != "-aaa" {
		t.Errorf("one has not voted: %s", committest.Outcomes(&s.History))
	}
	if s.Stats.Refused["second vote, or one too late"] != 1 {
		t.Errorf("its vote is too late then: %v", s.Stats.Refused)
	}
	for _, d := range s.History.Deliveries {
		if d.When > 10_000 {
			t.Errorf("process %d decides at %d", d.At, d.When)
		}
	}
}

// backs are the delays of a restart after a crash: never, at once, while the others wait, and when they have
// finished.
var backs = []parley.Tick{0, 1, 1500, 9000}

// Atomicity, validity and stability hold whatever crashes. If the process restarts, all decide.
func TestEveryCrash(t *testing.T) {
	committest.EveryCrash(t, options, backs, map[string]int{"yyy": 672, "yyyy": 928, "yny": 432, "yyny": 656})
}

func TestEveryTwoCrashes(t *testing.T) {
	committest.EveryTwoCrashes(t, options("yyy"), backs, 13580, 5692)
}

// Messages are lost, duplicated, late and out of order, and processes crash and restart: the promises hold,
// and when links heal all decide.
func TestBadLinks(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		opt := options([]string{"yyyy", "yyyyy", "yyny"}[r.IntN(3)])
		opt.Seed, opt.Heal, opt.Until = seed, 30_000, 60_000
		opt.Loss, opt.Twice = 0.3*r.Float64(), 0.3*r.Float64()
		opt.Delay = sim.Delay{Least: 1, Most: 1 + parley.Tick(r.IntN(3000))}
		for range r.IntN(3) {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: parley.ID(r.IntN(opt.Protocol.N)), Step: 1 + r.IntN(12), Effects: r.IntN(5),
				Back: 1 + parley.Tick(r.IntN(10_000)),
			})
		}
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, seed)
		all := committest.Outcomes(&s.History)
		if strings.Trim(all, all[:1]) != "" || all[0] == '-' || all[0] == 'b' {
			t.Fatalf("seed %d: %s", seed, all)
		}
		seen[all[:1]]++
	}
	if seen["c"] < 20 || seen["a"] < 20 {
		t.Errorf("outcomes %v", seen)
	}
}

// A process that forgets its yes breaks the properties: without a disk nothing is promised.
func TestLostDisk(t *testing.T) {
	opt := options("yyyy")
	broken := make(map[string]bool)
	for one := range committest.Crashes(opt, 700) {
		one.Crashes[0].LostDisk = true
		for _, name := range parleytest.Judge(t, opt.Protocol, sim.Run(one), one.Crashes) {
			broken[name] = true
		}
	}
	if !broken[problem.Atomicity] || !broken[problem.Stability] {
		t.Errorf("broken are %v", broken)
	}
}

func TestLateVote(t *testing.T) { committest.LateVote(t, options) }

// The suite of all protocols.
func TestSuite(t *testing.T) {
	parleytest.Suite(t, twophase.New(twophase.Config{N: 4}), parleytest.Options{
		Alphabet: []string{"yes", "yes", "yes", "no"}, Recovers: true,
	})
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, twophase.New(twophase.Config{N: 4}), parleytest.Options{Alphabet: []string{"yes", "no"}})
}
