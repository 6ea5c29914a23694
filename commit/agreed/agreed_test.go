package agreed_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/interactive"
	"parley/commit/agreed"
	"parley/commit/problem"
	"parley/faulty"
	"parley/internal/committest"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// over returns the protocol over the named agreement.
func over(t testing.TB, name string, n, m int) parley.Protocol {
	t.Helper()
	agreement, err := interactive.Over(name)
	if err != nil {
		t.Fatal(err)
	}
	return agreed.New(agreed.Config{N: n, M: m, Over: agreement}, lockstep.Simulated)
}

// The processes commit if and only if all vote yes, over every agreement. A missing vote is a no.
func TestEveryVote(t *testing.T) {
	for _, name := range interactive.Names() {
		p := over(t, name, 4, 1)
		committest.EveryVote(t, func(votes string) sim.Options {
			return sim.Options{Protocol: p, Requests: committest.Votes(votes)}
		}, func(votes string) string {
			if votes == "yyyy" {
				return "cccc"
			}
			return "aaaa"
		})
	}
}

// liar returns the behavior of a process that sends what choose picks among everything that it can send.
func liar(id parley.ID, choose func(n int) int) map[parley.ID]faulty.Behavior {
	return map[parley.ID]faulty.Behavior{id: {
		Name: "any", Model: parley.OralByzantineFaults,
		Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int { return choose(n) },
	}}
}

// No liar can make correct processes differ: try everything that one of four processes can send in two rounds,
// with another lie to each receiver. It can make them abort.
func TestEveryLie(t *testing.T) {
	p := over(t, "om", 4, 1)
	aborted := 0
	s := sim.New(sim.Options{Protocol: p})
	runs := parleytest.Every(func(choose func(n int) int) {
		s.Reset(sim.Options{Protocol: p, Requests: committest.Votes("yyyy"), Faulty: liar(3, choose)})
		s.Run()
		parleytest.Judge(t, p, s, "yyyy")
		if strings.Contains(committest.Outcomes(&s.History), "a") {
			aborted++
		}
	})
	if want := 27 * 729; runs != want { // three choices to 3 receivers; of 3 votes, to 2 each
		t.Errorf("%d runs, want %d", runs, want)
	}
	if aborted == 0 || aborted == runs {
		t.Errorf("aborted in %d of %d runs", aborted, runs)
	}
}

// Seven processes, two of which lie in every way that the module knows.
func TestTwoLiars(t *testing.T) {
	seen := make(map[string]int)
	for _, name := range []string{"eig", "phaseking", "sm"} {
		p := over(t, name, 7, 2)
		for seed := range uint64(60) {
			all := faulty.Named()
			of := map[parley.ID]faulty.Behavior{
				parley.ID(seed % 7):         all[seed%uint64(len(all))],
				parley.ID((seed/7 + 3) % 7): all[(seed/3)%uint64(len(all))],
			}
			text := []string{"yyyyyyy", "yyyynyy"}[seed%2]
			s := sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: committest.Votes(text), Faulty: of})
			parleytest.Judge(t, p, s, fmt.Sprint(name, seed))
			for id := range s.Correct().All() {
				seen[committest.Outcomes(&s.History)[id:id+1]]++
			}
		}
	}
	if seen["c"] == 0 || seen["a"] == 0 || seen["-"] != 0 {
		t.Errorf("outcomes %v", seen)
	}
}

// A process that crashes blocks nobody: the others decide when the last round ends, whatever it has sent. Try
// every crash of a run of four, with and without a restart.
func TestEveryCrash(t *testing.T) {
	p := over(t, "eig", 4, 1)
	opt := sim.Options{Protocol: p, Requests: committest.Votes("yyyy")}
	runs, committed := 0, 0
	for one := range committest.Crashes(opt, 0, 700) {
		runs++
		s := sim.Run(one)
		s.History.Faulty.Add(one.Crashes[0].At)
		parleytest.Judge(t, p, s, one.Crashes)
		rest := strings.ReplaceAll(committest.Outcomes(&s.History), "-", "")
		if len(rest) < 3 || strings.Trim(rest, "c") != "" && strings.Trim(rest, "a") != "" {
			t.Fatalf("%v: %s", one.Crashes, rest)
		}
		if rest[0] == 'c' {
			committed++
		}
	}
	if runs != 200 || committed != 160 {
		t.Errorf("%d runs, committed in %d, want 200 and 160", runs, committed)
	}
}

// Beyond the bound, one liar among three processes makes two correct ones differ.
func TestBeyondTheBound(t *testing.T) {
	p := over(t, "om", 3, 1)
	if p.Bound(3, 1) == nil {
		t.Error("3 processes are said to tolerate a liar")
	}
	broken := make(map[string]int)
	runs := parleytest.Every(func(choose func(n int) int) {
		s := sim.Run(sim.Options{Protocol: p, Requests: committest.Votes("yyy"), Faulty: liar(2, choose)})
		for _, name := range parleytest.Judge(t, p, s, "beyond") {
			broken[name]++
		}
	})
	if runs == 0 || broken[problem.Atomicity] == 0 {
		t.Errorf("of %d runs broken: %v", runs, broken)
	}
}

// Nothing is promised if messages are late: a process that misses one counts as faulty, and then there are
// two. The promise says so, and the property does break.
func TestLate(t *testing.T) {
	p := over(t, "eig", 4, 1)
	broke := 0
	for seed := range uint64(100) {
		opt := sim.Options{Protocol: p, Seed: seed, Requests: committest.Votes("yyyy"), Delay: sim.Delay{Least: 1, Most: 1100}}
		opt.Promised.Delay = 900
		if slices.Contains(parleytest.Judge(t, p, sim.Run(opt), seed), problem.Atomicity) {
			broke++
		}
	}
	if broke == 0 {
		t.Error("atomicity never broke")
	}
}

// The rule and its limits.
func TestOutcome(t *testing.T) {
	for text, want := range map[string]problem.Outcome{
		"1 1 1": problem.Commit, "1 0 1": problem.Abort, "1 yes 1": problem.Abort, "0": problem.Abort,
	} {
		var vector [][]byte
		for _, v := range strings.Fields(text) {
			vector = append(vector, []byte(v))
		}
		if got := agreed.Outcome(vector); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	p := agreed.New(agreed.Config{N: 4, M: 1}, lockstep.Simulated)
	requests := committest.Votes("yyy-")
	requests = append(requests,
		sim.Request{At: 3, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("perhaps")}},
		sim.Request{At: 3, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}},
		sim.Request{At: 3, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("no")}})
	s := sim.Run(sim.Options{Protocol: p, Requests: requests})
	if committest.Outcomes(&s.History) != "cccc" || s.Stats.Refused["not a vote"] != 1 {
		t.Error(committest.Outcomes(&s.History), s.Stats.Refused)
	}
}

// The flags select the agreement, and m follows from its bound.
func TestFlags(t *testing.T) {
	p := agreed.New(agreed.Config{N: 4, M: 1}, lockstep.Simulated)
	for _, test := range []struct{ args, want string }{
		{"", "4 1 over eig"},
		{"-n 7", "7 2 over eig"},
		{"-n 7 -m 1", "7 1 over eig"},
		{"-n 7 -over sm", "7 5 over sm"},
		{"-over nobody", "--over: unknown agreement \"nobody\": allowed are eig, om, sm, phaseking"},
		{"-n 1", "-n: 1 processes: allowed are 2 to 256"},
		{"-m -2", "-m: the number is negative: allowed are 0 and more"},
		{"-m 3", "-m: 3 faults of 4 processes: allowed are 0 to n-2 = 2, because agreement needs two correct processes"},
	} {
		fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		remake := p.Flags(fs)
		if err := fs.Parse(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		made, err := remake(nil)
		got := fmt.Sprint(err)
		if err == nil {
			_, name, _ := strings.Cut(made.Title, ", each by ")
			got = fmt.Sprint(made.N, made.M, " over ", name)
		} else if !errors.As(err, new(*parley.FlagError)) {
			t.Errorf("%v names no flag", err)
		}
		if got != test.want {
			t.Errorf("%q makes %s, want %s", test.args, got, test.want)
		}
	}
}

// A vote that arrives after the rounds have begun is a no.
func TestLateVote(t *testing.T) {
	p := over(t, "eig", 4, 1)
	requests := committest.Votes("yyyy")
	requests[3].When = 300
	s := sim.Run(sim.Options{Protocol: p, Requests: requests})
	parleytest.Judge(t, p, s, "late")
	if got := committest.Outcomes(&s.History); got != "aaaa" {
		t.Error(got)
	}
}

// The suite of all protocols.
func TestSuite(t *testing.T) {
	for _, name := range []string{"eig", "sm", "phaseking"} {
		t.Run(name, func(t *testing.T) {
			o := parleytest.Options{Alphabet: []string{"yes", "yes", "yes", "no"}, Seeds: 100}
			if name == "sm" {
				o.NothingBeyond = "signed messages let processes agree on the vector for any m"
			}
			parleytest.Suite(t, over(t, name, 4, 1), o)
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, over(f, "eig", 4, 1), parleytest.Options{Alphabet: []string{"yes", "no"}})
}
