package quorum_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
	"parley/commit/quorum"
	"parley/internal/committest"
	"parley/parleytest"
	"parley/sim"
)

// options returns the options of a run with the given votes.
func options(text string) sim.Options {
	p := quorum.New(quorum.Config{N: len(text), M: (len(text) - 1) / 2})
	return sim.Options{Protocol: p, Requests: committest.Votes(text), Until: p.Span}
}

// AC3 and AC4: commit if and only if all vote yes in time. A process without a vote has a short time to get
// one when it is asked; after that the vote is a no.
func TestEveryVote(t *testing.T) {
	committest.EveryVote(t, options, func(votes string) string {
		switch votes {
		case "yyyy":
			return "cccc"
		case "----":
			return "----"
		}
		return "aaaa"
	})
	for when, want := range map[parley.Tick]string{1300: "cccc", 5000: "aaaa"} {
		opt := options("yyyy")
		opt.Delay = sim.Delay{Least: 500, Most: 500}
		opt.Requests[3].When = when
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, when)
		if got := committest.Outcomes(&s.History); got != want {
			t.Errorf("with a vote at %d: %s", when, got)
		}
	}
}

// If nothing fails, the messages cost as much as three phases.
func TestMessages(t *testing.T) {
	for n := 2; n <= 8; n++ {
		opt := options(strings.Repeat("y", n))
		s := sim.Run(opt)
		if want := 5 * uint64(n-1); s.Stats.Sends != want || opt.Protocol.Cost(n, 0).Total().Messages != want {
			t.Errorf("%d processes: %d messages, want %d", n, s.Stats.Sends, want)
		}
		for _, d := range s.History.Deliveries {
			if d.When > 4500 { // five consecutive messages
				t.Errorf("%d processes: process %d decides at %d", n, d.At, d.When)
			}
		}
	}
}

// The network is partitioned at any time, between any two groups of five processes: the majority decides, the
// minority decides the same or is blocked, and after the partition heals all have decided the same. These are
// the partitions that break three-phase commit.
func TestPartition(t *testing.T) {
	runs, both, waited := 0, 0, 0
	for mask := 1; mask < 31; mask++ {
		var one, two parley.Set
		for id := range parley.ID(5) {
			if mask>>id&1 == 1 {
				one.Add(id)
			} else {
				two.Add(id)
			}
		}
		if one.Len() < two.Len() {
			one, two = two, one
		}
		for since := parley.Tick(0); since < 5000; since += 250 {
			runs++
			opt := options("yyyyy")
			opt.Seed = uint64(mask)
			opt.Links = committest.Apart(one, two, since, 0)
			s := sim.Run(opt)
			parleytest.Judge(t, opt.Protocol, s, fmt.Sprint(one, since))
			majority, minority := committest.Decisions(&s.History, one), committest.Decisions(&s.History, two)
			switch {
			case majority != "c" && majority != "a":
				t.Fatalf("%v apart from tick %d: the majority has %s", two, since, majority)
			case minority == majority:
				both++
			case minority == "b" || minority == "b"+majority || minority == majority+"b":
				waited++
			default:
				t.Fatalf("%v apart from tick %d: the majority has %s, the others %s", two, since, majority, minority)
			}
			opt.Links = committest.Apart(one, two, since, 40_000)
			s = sim.Run(opt)
			parleytest.Judge(t, opt.Protocol, s, fmt.Sprint(one, since))
			if got := committest.Decisions(&s.History, parley.Everyone(5)); got != "c" && got != "a" {
				t.Fatalf("%v apart from tick %d to 40000: %s", two, since, committest.Outcomes(&s.History))
			}
		}
	}
	if runs != 600 || both == 0 || waited == 0 {
		t.Errorf("%d runs, all decided in %d, the minority waited in %d", runs, both, waited)
	}
}

// Neither of two equal halves is a majority, so both are blocked.
func TestEvenSplit(t *testing.T) {
	opt := options("yyyy")
	opt.Links = committest.Apart(parley.SetOf(0, 1), parley.SetOf(2, 3), 500, 0)
	s := sim.Run(opt)
	broken := parleytest.Judge(t, opt.Protocol, s, "")
	if got := committest.Outcomes(&s.History); got != "bbbb" || !slices.Equal(broken, []string{problem.Termination, problem.NonBlocking}) {
		t.Error(got, broken)
	}
	for _, i := range s.History.Indications {
		if i.Msg.Kind != problem.Blocked {
			t.Errorf("indication %#x", i.Msg.Kind)
		}
	}
	if len(s.History.Indications) != 4 {
		t.Errorf("%d indications, one each is enough", len(s.History.Indications))
	}
}

// The run that breaks three-phase commit: the coordinator crashes when it has sent PRECOMMIT to two of five,
// and the network cuts those two off from the others. Here the three wait for nobody, and the two wait for
// them.
func TestWhereThreePhasesDiffer(t *testing.T) {
	for effects := range 12 {
		opt := options("yyyyy")
		opt.Crashes = []sim.Crash{{At: 0, Step: 6, Effects: effects}} // with the last vote
		opt.Links = committest.Apart(parley.SetOf(1), parley.SetOf(2, 3, 4), 1900, 0)
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, effects)
		if got := committest.Outcomes(&s.History)[2:]; got != "ccc" && got != "aaa" {
			t.Errorf("after %d effects: %s", effects, committest.Outcomes(&s.History))
		}
	}
}

// backs are the delays of a restart after a crash: never, at once, while the others wait, and when they have
// finished.
var backs = []parley.Tick{0, 1, 1500, 15_000}

// All processes that are up decide the same, whatever crashes.
func TestEveryCrash(t *testing.T) {
	committest.EveryCrash(t, options, backs, map[string]int{"yyy": 912, "yyyy": 1264, "yyny": 1248})
}

func TestEveryTwoCrashes(t *testing.T) {
	opt := options("yyy")
	opt.Until = 40_000
	committest.EveryTwoCrashes(t, opt, backs[:3], 16880, 8400)
}

// A process stands by what it has sent after a restart. It votes yes again, and keeps what it accepted: 0
// learns that 1 has accepted commit, so commit is decided, but no process gets it from 0; 2 has to get it from
// 1, in whatever step 1 crashes.
func TestRestartRemembers(t *testing.T) {
	for effects, want := range []string{"aaa", "ccc"} {
		opt := options("yyy")
		opt.Delay = sim.Delay{Least: 500, Most: 500}
		opt.Crashes = []sim.Crash{{At: 1, Step: 2, Effects: effects, Back: 1}} // step 2 is the vote
		if got := committest.Outcomes(&sim.Run(opt).History); got != want {
			t.Errorf("back after %d effects of its vote: %s, want %s", effects, got, want)
		}
	}
	opt := options("yyy")
	opt.Delay = sim.Delay{Least: 100, Most: 100}
	opt.Links = []sim.Link{
		{From: parley.SetOf(0), To: parley.SetOf(2), Since: 150, Loss: 1}, // votes are in at 200
		{From: parley.SetOf(0), To: parley.SetOf(1), Since: 300, Loss: 1}, // and the acceptance of 1 arrives at 400
	}
	runs, committed := 0, 0
	for _, crash := range parleytest.CrashPoints(opt) {
		if crash.At != 1 {
			continue
		}
		crash.Back = 1
		opt.Crashes = []sim.Crash{crash}
		s := sim.Run(opt)
		runs++
		parleytest.Judge(t, opt.Protocol, s, crash)
		if committest.Outcomes(&s.History) == "ccc" {
			committed++
		}
	}
	if runs != 34 || committed != 29 {
		t.Errorf("%d runs, %d commit, want 34 and 29", runs, committed)
	}
}

// Everything at once: loss, duplication, slowness, partitions, crashes with restarts, wrong suspicions. The
// promises hold, and when all heals and a majority is up, all decide.
func TestBadWorld(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		opt := options([]string{"yyyy", "yyyyy", "yyy", "yyny"}[r.IntN(4)])
		n := opt.Protocol.N
		opt.Seed, opt.Heal, opt.Until = seed, 30_000, 400_000
		opt.Loss, opt.Twice = 0.3*r.Float64(), 0.3*r.Float64()
		opt.Delay = sim.Delay{Least: 1, Most: 1 + parley.Tick(r.IntN(2000))}
		for range r.IntN(3) {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: parley.ID(r.IntN(n)), Step: 1 + r.IntN(12), Effects: r.IntN(n + 2), Back: 1 + parley.Tick(r.IntN(10_000)),
			})
		}
		for range r.IntN(4) {
			opt.Suspicions = append(opt.Suspicions, sim.Suspicion{
				At: parley.ID(r.IntN(n)), Of: parley.ID(r.IntN(n)), When: parley.Tick(r.IntN(20_000)),
			})
		}
		if r.IntN(2) == 0 {
			one := parley.SetOf(parley.ID(r.IntN(n)), parley.ID(r.IntN(n)))
			opt.Links = committest.Apart(one, parley.Everyone(n).Minus(one), parley.Tick(r.IntN(8000)), 0)
		}
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, seed)
		all := committest.Decisions(&s.History, parley.Everyone(n))
		if all != "c" && all != "a" {
			t.Fatalf("seed %d: %s", seed, committest.Outcomes(&s.History))
		}
		seen[all]++
	}
	if seen["c"] < 50 || seen["a"] < 50 {
		t.Errorf("outcomes %v", seen)
	}
}

// A process that forgets its promises is worse than one that crashes for good.
func TestLostDisk(t *testing.T) {
	broken := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 8))
		opt := options("yyy")
		opt.Seed = seed
		opt.Suspicions = []sim.Suspicion{{At: 2, Of: 0, When: 1000 + parley.Tick(r.IntN(2500))}}
		opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: 2, Of: 1, When: opt.Suspicions[0].When})
		opt.Crashes = []sim.Crash{{At: 1, Step: 4, Effects: 9, Back: 1, LostDisk: true}}
		if slices.Contains(parleytest.Judge(t, opt.Protocol, sim.Run(opt), seed), problem.Atomicity) {
			broken++
		}
	}
	if broken == 0 {
		t.Error("atomicity never broke")
	}
}

// Beyond the bound, with half of the processes crashed, no process decides, and none is wrong.
func TestBeyondTheBound(t *testing.T) {
	opt := options("yyyy")
	opt.Crashes = []sim.Crash{{At: 2, Step: 1}, {At: 3, Step: 1}}
	s := sim.Run(opt)
	parleytest.Judge(t, opt.Protocol, s, "")
	if got := committest.Outcomes(&s.History); got != "bb--" {
		t.Error(got)
	}
	if opt.Protocol.Bound(4, 2) == nil {
		t.Error("four processes are said to do with two")
	}
}

// A damaged log is not ignored.
func TestDamagedLog(t *testing.T) {
	committest.DamagedLogs(t, quorum.New(quorum.Config{N: 3, M: 1}), 1, map[string]bool{
		"yes": true, string([]byte{byte(ballot.Prepare), 3}): true, "yez": false, "": false, "\x7f": false,
	})
}

// A durable decision that is no outcome is refused, not taken for an abort.
func TestDamagedDecision(t *testing.T) {
	s := sim.Run(options("yyy"))
	state, _ := s.Durable(1)
	for value, taken := range map[string]bool{"commit": true, "cOmmit": false} {
		m := quorum.New(quorum.Config{N: 3, M: 1}).New(1)
		damaged := bytes.Replace(state, []byte("commit"), []byte(value), 1)
		if parley.LoadDurable(m, s.Now(), damaged) != taken {
			t.Errorf("%s: taken %t", value, !taken)
		}
	}
}

// A value that is no outcome is refused, wherever in a message it is, and changes nothing. A report that is no
// vote is a no.
func TestRefused(t *testing.T) {
	promise := func(body string, accepted uint64) parley.Msg {
		return parley.Msg{Kind: ballot.Promise, Seq: 3, Value: accepted, Body: []byte(body)}
	}
	var h committest.Host
	m := quorum.New(quorum.Config{N: 3, M: 1}).New(0)
	step := parley.Step{N: 3, Host: &h}
	m.Start(&step)
	m.Request(&step, parley.Msg{Kind: parley.Propose, Body: []byte("yes")}) // it asks for votes, in ballot 3
	before := string(parley.Save(m, 0, nil))
	stray := []parley.Msg{
		{Kind: ballot.Decision}, {Kind: ballot.Decision, Body: []byte("yes")}, {Kind: ballot.Accept, Seq: 4, Body: []byte("x")},
		promise("", 3), promise("\x00yes", 3), promise("\x04xxxxyes", 3), promise("\x07commityes", 3),
	}
	step.Effects = nil
	for _, q := range stray {
		m.Receive(&step, 1, q)
	}
	if len(h.Why) != len(stray) || len(step.Effects) != 0 || string(parley.Save(m, 0, nil)) != before {
		t.Errorf("%d of %d refused, %d effects: %q", len(h.Why), len(stray), len(step.Effects), h.Why)
	}
	m.Receive(&step, 1, promise("\x00yes", 0))
	m.Receive(&step, 2, promise("\x00perhaps", 0))
	for _, e := range step.Effects {
		if e.Op == parley.OpSend && string(e.Msg.Body) != "abort" {
			t.Errorf("a report that is no vote: %q", e.Msg.Body)
		}
	}
	if len(h.Why) != len(stray) || len(step.Effects) == 0 {
		t.Errorf("what fits is refused too: %q", h.Why)
	}
}

// A promise shows its vote.
func TestExplain(t *testing.T) {
	p := quorum.New(quorum.Config{N: 3, M: 1})
	for want, m := range map[string]parley.Msg{
		"ballot 1 of 0?": {Kind: ballot.Prepare, Seq: 3},
		"ballot 1 of 0: promised, nothing accepted, votes yes": {Kind: ballot.Promise, Seq: 3, Body: []byte("\x00yes")},
		"ballot 1 of 0: promised, accepted commit in ballot 1 of 1": {
			Kind: ballot.Promise, Seq: 3, Value: 4, Body: []byte("\x06commityes"),
		},
		"decided commit": {Kind: ballot.Decision, Body: []byte("commit")},
	} {
		for row := range p.Explain(parley.Env{}, m, parley.ID.String) {
			if row != want {
				t.Errorf("%q, want %q", row, want)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []quorum.Config{{N: 1}, {N: 3, M: 3}, {N: 3, M: -1}, {N: 3, Delta: -1}, {N: 3, Delta: 1 << 41}} {
		committest.Panics(t, c, func() { quorum.New(c) })
	}
}

// The suite of all protocols.
func TestSuite(t *testing.T) {
	for _, c := range []quorum.Config{{N: 3, M: 1}, {N: 5, M: 2}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, quorum.New(c), parleytest.Options{
				Alphabet: []string{"yes", "yes", "yes", "no"}, Recovers: true,
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, quorum.New(quorum.Config{N: 3, M: 1}), parleytest.Options{Alphabet: []string{"yes", "no"}})
}
