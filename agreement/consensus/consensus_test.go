package consensus_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/interactive"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// config is consensus of n processes over the named agreement, with default 0.
func config(t testing.TB, over string, n, m int) consensus.Config {
	t.Helper()
	agreement, err := interactive.Over(over)
	if err != nil {
		t.Fatal(err)
	}
	return consensus.Config{Instance: problem.Instance{N: n, M: m, Default: []byte("0")}, Over: agreement}
}

func propose(values ...string) []sim.Request {
	var out []sim.Request
	for i, v := range values {
		out = append(out, sim.Request{At: parley.ID(i), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}})
	}
	return out
}

func words(n int, draw *rand.Rand, of ...string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = of[draw.IntN(len(of))]
	}
	return out
}

func liars(draw *rand.Rand, n, m int) map[parley.ID]faulty.Behavior {
	how := append(faulty.Named(), faulty.Crash(draw.IntN(m+1), draw.IntN(n)))
	out := make(map[parley.ID]faulty.Behavior)
	for _, id := range draw.Perm(n)[:m] {
		out[parley.ID(id)] = how[draw.IntN(len(how))]
	}
	return out
}

func decisions(h *parley.History) map[parley.ID]string {
	out := make(map[parley.ID]string)
	for id, v := range problem.Decisions(h) {
		out[id] = string(v)
	}
	return out
}

// The decision is the rule applied to the vector of interactive consistency (relations
// among the problems, question 2): the same runs, with one layer less.
func TestIsRuleOfVector(t *testing.T) {
	caller := consensus.Rule{Of: func(vector [][]byte, otherwise []byte) []byte {
		return append(bytes.Join(vector, []byte("+")), otherwise...)
	}}
	for _, rule := range []consensus.Rule{
		{}, consensus.Majority, consensus.Median, consensus.Minimum, consensus.Maximum, caller,
	} {
		c := config(t, "eig", 5, 1)
		c.Alphabet = [][]byte{[]byte("0"), []byte("1"), []byte("7"), []byte("-3")}
		c.Rule = rule
		decided := make(map[string]bool)
		for seed := range uint64(40) {
			draw := rand.New(rand.NewPCG(seed, 6))
			opt := sim.Options{Seed: seed, Requests: propose(words(5, draw, "0", "1", "7")...), Faulty: liars(draw, 5, 1)}
			opt.Protocol = interactive.New(interactive.Config{Instance: c.Instance, Over: c.Over}, lockstep.Simulated)
			vectors := sim.Run(opt)
			opt.Protocol = consensus.New(c, lockstep.Simulated)
			s := sim.Run(opt)
			parleytest.Judge(t, opt.Protocol, s, opt.Protocol.Name)
			got := decisions(&s.History)
			for id, body := range problem.Decisions(&vectors.History) {
				vector, _ := interactive.DecodeVector(body)
				of := rule.Of
				if of == nil {
					of = consensus.Majority.Of
				}
				if want := string(of(vector, c.Default)); got[id] != want {
					t.Fatalf("%s, seed %d: process %d decides %s on %s, want %s", opt.Protocol.Title, seed, id, got[id], body, want)
				}
				decided[got[id]] = true
			}
		}
		if len(decided) < 2 {
			t.Errorf("rule %q: all runs decide %v", rule.Name, decided)
		}
	}
}

// Interactive consistency examples 2 and 3: all decide 1 on {0,1,1,1,0}. A tie and
// a vector without a majority give the default; every entry is one vote, including the
// process's own.
func TestMajority(t *testing.T) {
	for _, test := range []struct {
		values, otherwise, want string
	}{
		{"0,1,1,1,0", "0", "1"}, {"1,1,1,1", "0", "1"}, {"1,1,1,0", "0", "1"},
		{"0,0,1,1", "0", "0"}, {"0,0,1,1", "1", "1"}, {"1,1,0,0", "x", "x"},
		{"a,a,b,c,d", "0", "0"}, {"a,a,a,c,d", "0", "a"}, {"a,b,c", "z", "z"},
	} {
		values := strings.Split(test.values, ",")
		n := len(values)
		c := config(t, "eig", n, (n-1)/3)
		c.Default = []byte(test.otherwise)
		s := sim.Run(sim.Options{Protocol: consensus.New(c, lockstep.Simulated), Requests: propose(values...)})
		for id, got := range decisions(&s.History) {
			if got != test.want {
				t.Errorf("%s, else %s: process %d decides %s, want %s", test.values, test.otherwise, id, got, test.want)
			}
		}
		if decided := len(decisions(&s.History)); decided != n {
			t.Errorf("%s: %d of %d processes decide", test.values, decided, n)
		}
	}
}

func TestRules(t *testing.T) {
	for _, test := range []struct {
		vector                             string
		majority, median, minimum, maximum string
	}{
		{"5,1,3", "0", "3", "1", "5"},
		{"5,1,3,4", "0", "3", "1", "5"}, // the lower of the two in the middle
		{"-7,-7,9", "-7", "-7", "-7", "9"},
		{"2,10,9", "0", "9", "2", "10"}, // as numbers, not as texts
		{"7,07,007,+7", "0", "007", "+7", "7"},
		{"x,5,6", "0", "5", "0", "6"},                  // not a number: the default
		{",9223372036854775808,3", "0", "0", "0", "3"}, // no entry may exceed 64 bits either
	} {
		var vector [][]byte
		for v := range strings.SplitSeq(test.vector, ",") {
			vector = append(vector, []byte(v))
		}
		before := fmt.Sprintf("%q", vector)
		for rule, want := range map[string]string{
			"majority": test.majority, "median": test.median, "minimum": test.minimum, "maximum": test.maximum,
		} {
			r, err := consensus.RuleOf(rule)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.Of(vector, []byte("0"))); got != want {
				t.Errorf("%s of %s is %s, want %s", rule, test.vector, got, want)
			}
		}
		if after := fmt.Sprintf("%q", vector); after != before {
			t.Errorf("the rules made %s of the vector %s", after, before)
		}
	}
	words := [][]byte{[]byte("x"), []byte("1"), []byte("-1")}
	if got := string(consensus.Median.Of(words, []byte("none"))); got != "none" {
		t.Errorf("with a default that is no number, which counts as 0, the median is %s", got)
	}
	if _, err := consensus.RuleOf("plurality"); err == nil {
		t.Error("there is a rule by the name of plurality")
	}
}

// With signed messages and n = 2m processes agree on the vector and on its majority, and the
// vector is valid, but the entries of faulty processes outvote the equal ones of all correct
// processes (against the lecture's "any number of faulty processes").
func TestSignedConsensusNeedsMajority(t *testing.T) {
	c := config(t, "sm", 4, 2)
	p := consensus.New(c, lockstep.Simulated)
	vector := interactive.New(interactive.Config{Instance: c.Instance, Over: c.Over}, lockstep.Simulated)
	if err := p.Bound(4, 2); err == nil || !strings.Contains(err.Error(), "n > 2m") {
		t.Errorf("n = 2m: %v", err)
	}
	if vector.Bound(4, 2) != nil || p.Bound(5, 2) != nil {
		t.Error("the vector needs no more than n >= m+2, and consensus no more than n > 2m")
	}
	outvoted := 0
	for seed := range uint64(100) {
		opt := sim.Options{
			Protocol: vector, Seed: seed, Requests: propose("1", "0", "1", "0"),
			Faulty: map[parley.ID]faulty.Behavior{1: faulty.Any, 3: faulty.Any},
		}
		if broken := parleytest.Judge(t, vector, sim.Run(opt), vector.Name); broken != nil {
			t.Fatalf("seed %d: of the vector %v is broken", seed, broken)
		}
		opt.Protocol = p
		switch broken := parleytest.Judge(t, p, sim.Run(opt), p.Name); {
		case slices.Equal(broken, []string{problem.Validity}):
			outvoted++
		case broken != nil:
			t.Fatalf("seed %d: of consensus %v is broken", seed, broken)
		}
	}
	if outvoted == 0 {
		t.Error("two liars of four never outvoted the two correct processes")
	}
}

// With n > 2m they cannot: over SM(1) with n = 3, every set of initial values and
// every way in which one process can lie. A source has four answers for each of
// two receivers; as a lieutenant of each of the two other agreements it has one
// message, which it relays to the other one or not.
func TestEveryLie(t *testing.T) {
	t.Parallel()
	c := config(t, "sm", 3, 1)
	for _, p := range []parley.Protocol{
		consensus.New(c, lockstep.Simulated), consensus.NewAgreement(c, lockstep.Simulated),
	} {
		runs := 0
		s := new(sim.Sim)
		for liar := range parley.ID(3) {
			for values := range uint64(8) {
				runs += parleytest.Every(func(choose func(n int) int) {
					every := faulty.Behavior{Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int { return choose(n) }}
					s.Reset(sim.Options{
						Protocol: p, Delay: sim.Delay{Least: 1, Most: 1},
						Requests: propose(fmt.Sprint(values&1), fmt.Sprint(values>>1&1), fmt.Sprint(values>>2&1)),
						Faulty:   map[parley.ID]faulty.Behavior{liar: every},
					})
					s.Run()
					if broken := parleytest.Judge(t, p, s, p.Name); broken != nil {
						t.Fatalf("liar %d, values %03b: %v broken", liar, values, broken)
					}
				})
			}
		}
		// 4^2 * 2^2 ways to lie, 3 faulty processes, 8 inputs. The source of the agreement also
		// has three answers for each receiver before that.
		want := 3 * 8 * 64
		if p.Name == "agreement" {
			want = 2*8*64 + 8*9*64
		}
		if runs != want {
			t.Errorf("%s: %d runs, want %d", p.Name, runs, want)
		}
	}
}

// The median of n > 2m entries is in the range of the correct ones. One faulty process
// moves minimum and maximum arbitrarily, even if all correct processes have
// one value.
func TestReadings(t *testing.T) {
	t.Parallel()
	for _, rule := range []consensus.Rule{consensus.Median, consensus.Minimum, consensus.Maximum} {
		c := config(t, "sm", 5, 2)
		c.Rule = rule
		c.Alphabet = [][]byte{[]byte("-100"), []byte("20"), []byte("21"), []byte("22"), []byte("500"), []byte("cold")}
		p := consensus.New(c, lockstep.Simulated)
		broken := make(map[string]int)
		for seed := range uint64(150) {
			draw := rand.New(rand.NewPCG(seed, 8))
			values := words(5, draw, "20", "21", "22")
			if seed%2 == 1 {
				values = slices.Repeat([]string{"21"}, 5)
			}
			how := make(map[parley.ID]faulty.Behavior)
			for _, id := range draw.Perm(5)[:2] {
				how[parley.ID(id)] = []faulty.Behavior{faulty.Honest, faulty.Any}[draw.IntN(2)]
				values[id] = string(c.Alphabet[draw.IntN(len(c.Alphabet))])
			}
			s := sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: propose(values...), Faulty: how})
			for _, name := range parleytest.Judge(t, p, s, p.Name) {
				broken[name]++
			}
		}
		if rule.Name == "median" && len(broken) > 0 {
			t.Errorf("median: %v", broken)
		}
		if rule.Name != "median" && (len(broken) != 2 || broken[problem.Validity] == 0 || broken[consensus.Range] == 0) {
			t.Errorf("%s: broken are %v, want validity and range and nothing else", rule.Name, broken)
		}
	}
	// If values are not numbers nothing is demanded.
	c := config(t, "sm", 5, 2)
	c.Rule = consensus.Median
	p := consensus.New(c, lockstep.Simulated)
	s := sim.Run(sim.Options{Protocol: p, Requests: propose("a", "a", "a", "a", "a")})
	if broken := parleytest.Judge(t, p, s, p.Name); broken != nil || decisions(&s.History)[2] != "0" {
		t.Errorf("median of no numbers: %v broken, decided %v", broken, decisions(&s.History))
	}
}

func TestPromises(t *testing.T) {
	held := func(over string, n, m, faulty int, rule consensus.Rule) string {
		c := config(t, over, n, m)
		c.Rule = rule
		var names []string
		for _, p := range consensus.Rounds(c).Promises(parley.RunConditions{N: n, M: m, Faulty: faulty}) {
			if p.Because == "" {
				t.Errorf("%s is promised for no reason", p.Property)
			}
			if p.Holds {
				names = append(names, p.Property)
			}
		}
		return strings.Join(names, " ")
	}
	caller := consensus.Rule{Of: consensus.Majority.Of}
	const ends = "termination integrity"
	for _, test := range []struct {
		over         string
		n, m, faulty int
		rule         consensus.Rule
		want         string
	}{
		{"eig", 4, 1, 1, consensus.Majority, "agreement validity " + ends},
		{"eig", 3, 1, 1, consensus.Majority, ends},
		{"eig", 4, 1, 2, consensus.Majority, ends},
		{"sm", 5, 2, 2, consensus.Majority, "agreement validity " + ends},
		{"sm", 4, 2, 2, consensus.Majority, "agreement " + ends},
		{"sm", 4, 2, 0, consensus.Majority, "agreement validity " + ends},
		{"sm", 5, 2, 2, consensus.Median, "agreement validity range " + ends},
		{"sm", 5, 2, 1, consensus.Minimum, "agreement " + ends},
		{"sm", 5, 2, 0, consensus.Maximum, "agreement validity range " + ends},
		{"sm", 5, 2, 2, caller, "agreement " + ends},
	} {
		if got := held(test.over, test.n, test.m, test.faulty, test.rule); got != test.want {
			t.Errorf("%s n=%d m=%d with %d faulty, %s: promised are %s, want %s",
				test.over, test.n, test.m, test.faulty, test.rule.Name, got, test.want)
		}
	}
}

// The reductions both ways: interactive consistency, consensus over it, agreement over
// that, interactive consistency over that again.
func TestRoundTrip(t *testing.T) {
	in := problem.Instance{N: 4, M: 1, Default: []byte("0")}
	p := interactive.New(interactive.Config{Instance: in, Over: func(in problem.Instance) lockstep.Protocol {
		return consensus.Agreement(consensus.Config{Instance: in})
	}}, lockstep.Simulated)
	for seed := range uint64(30) {
		draw := rand.New(rand.NewPCG(seed, 9))
		s := sim.Run(sim.Options{
			Protocol: p, Seed: seed, Requests: propose(words(4, draw, "0", "1")...), Faulty: liars(draw, 4, 1), Measure: true,
		})
		if broken := parleytest.Judge(t, p, s, p.Name); broken != nil {
			t.Fatalf("seed %d: %v broken", seed, broken)
		}
	}
	s := sim.Run(sim.Options{Protocol: p, Requests: propose("1", "1", "1", "1"), Measure: true})
	if want := p.Cost(4, 1); !slices.Equal(s.Stats.Sent, want.PerRound) || want.Rounds != 3 {
		t.Errorf("sent %v, and the cost is %v", s.Stats.Sent, want)
	}
}

func TestSuite(t *testing.T) {
	for _, name := range interactive.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(t, name, 4, 1)
			c.Source = 1 // a king of phaseking: what a lying source breaks beyond the bound, another king repairs
			for _, made := range []func(consensus.Config, lockstep.Schedule) parley.Protocol{
				consensus.New, consensus.NewAgreement,
			} {
				p, o := made(c, lockstep.Simulated), parleytest.Options{Seeds: 60}
				if name == "sm" {
					p.Rename = nil // it leaves out signatures, so renaming back does not restore the message
					// Two faulty, because the protocol cannot be made with fewer than m+2 processes.
					o.Beyond = []parleytest.Beyond{{Protocol: made(config(t, name, 5, 1), lockstep.Simulated), Faulty: 2}}
				}
				t.Run(p.Name, func(t *testing.T) { parleytest.Suite(t, p, o) })
			}
		})
	}
}

func TestFlags(t *testing.T) {
	c := config(t, "eig", 7, 2)
	remake := func(p parley.Protocol, args string) string {
		fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		of := p.Flags(fs)
		err := fs.Parse(strings.Fields(args))
		if err == nil {
			p, err = of(func(text string) (parley.ID, error) {
				id, err := strconv.ParseUint(text, 10, 8)
				return parley.ID(id), err
			})
		}
		if err != nil {
			if !errors.As(err, new(*parley.FlagError)) {
				return "flag provided but not defined"
			}
			return err.Error()
		}
		title := strings.Fields(strings.TrimPrefix(p.Title, "consensus by the "))
		return fmt.Sprintln(p.N, p.M, title[0], title[len(title)-1], p.Proposers.Len())
	}
	plain, agreement := consensus.New(c, lockstep.Simulated), consensus.NewAgreement(c, lockstep.Simulated)
	for _, test := range []struct {
		p          parley.Protocol
		args, want string
	}{
		{plain, "", "7 2 majority eig 7"},
		{plain, "-over sm", "7 3 majority sm 7"}, // n > 2m
		{plain, "-over sm -n 8 -rule median", "8 3 median sm 8"},
		{plain, "-rule mode", `--rule: rule "mode": allowed are majority, median, minimum, maximum`},
		{agreement, "-over om -n 4 -source 3", "4 1 Byzantine consensus 1"},
		{agreement, "-rule median", "flag provided but not defined"},
	} {
		if got := strings.TrimSpace(remake(test.p, test.args)); got != test.want {
			t.Errorf("%s %s makes %q, want %q", test.p.Name, test.args, got, test.want)
		}
	}
}
