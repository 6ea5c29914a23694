package interactive_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
	"parley/trace"
)

var zero = []byte("0")

// instance returns an instance of n processes that tolerates m faults, with default 0.
func instance(n, m int) problem.Instance { return problem.Instance{N: n, M: m, Default: zero} }

func over(t testing.TB, name string, in problem.Instance) interactive.Config {
	t.Helper()
	agreement, err := interactive.Over(name)
	if err != nil {
		t.Fatal(err)
	}
	return interactive.Config{Instance: in, Over: agreement}
}

func propose(values ...string) []sim.Request {
	var out []sim.Request
	for i, v := range values {
		out = append(out, sim.Request{At: parley.ID(i), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}})
	}
	return out
}

func bits(n int, from uint64) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(from >> i & 1)
	}
	return out
}

func vectors(t testing.TB, h *parley.History) map[parley.ID]string {
	t.Helper()
	out := make(map[parley.ID]string)
	for id, body := range problem.Decisions(h) {
		if _, err := interactive.DecodeVector(body); err != nil {
			t.Fatalf("process %d delivers %x: %v", id, body, err)
		}
		out[id] = string(body)
	}
	return out
}

// everyLie runs the protocol with every way in which one process can lie, and
// returns the number of runs and how many of them broke a property.
func everyLie(t testing.TB, p parley.Protocol, liar parley.ID, values []string) (runs, broken int) {
	t.Helper()
	s := new(sim.Sim)
	runs = parleytest.Every(func(choose func(n int) int) {
		every := faulty.Behavior{Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int { return choose(n) }}
		s.Reset(sim.Options{
			Protocol: p, Requests: propose(values...), Delay: sim.Delay{Least: 1, Most: 1},
			Faulty: map[parley.ID]faulty.Behavior{liar: every},
		})
		s.Run()
		if parleytest.Judge(t, p, s, p.Name) != nil {
			broken++
		}
	})
	return runs, broken
}

// Over eig with n = 4 and m = 1 a faulty process has three answers to each of nine
// questions: what its value is, for 3 receivers, and what the source of each other
// agreement sent it, for the 2 other lieutenants. So there are 3^9 ways to lie.
func TestEveryLie(t *testing.T) {
	t.Parallel()
	p := interactive.New(over(t, "eig", instance(4, 1)), lockstep.Simulated)
	runs, broken := everyLie(t, p, 0, []string{"1", "1", "0", "1"})
	if runs != 19683 || broken != 0 {
		t.Errorf("%d of %d runs broken, want 0 of 19683", broken, runs)
	}
}

// With n = 3 and m = 1 the faulty process has three answers to each of four questions.
// Each correct source's 1 is kept only if the faulty process relays it honestly: its 0 or
// its silence makes a tie at the other process, whose default breaks agreement and
// validity. The 9 things that it can say as a source itself break nothing.
func TestBeyondTheBound(t *testing.T) {
	p := interactive.New(over(t, "eig", instance(3, 1)), lockstep.Simulated)
	if p.Bound(3, 1) == nil || p.Bound(4, 1) != nil {
		t.Error("the bound is not n > 3m")
	}
	for liar := range parley.ID(3) {
		if runs, broken := everyLie(t, p, liar, []string{"1", "1", "1"}); runs != 81 || broken != 72 {
			t.Errorf("liar %d: %d of %d runs broken, want 72 of 81", liar, broken, runs)
		}
	}
}

// With signed messages m+1 faulty processes break it: two of five show some processes
// in the last round what the others do not receive. m+2 processes are the fewest for
// which agreement means anything.
func TestBeyondTheSignedBound(t *testing.T) {
	p := interactive.New(over(t, "sm", instance(5, 1)), lockstep.Simulated)
	broken := 0
	for seed := range uint64(200) {
		s := sim.Run(sim.Options{
			Protocol: p, Seed: seed, Requests: propose(bits(5, seed)...),
			Faulty: map[parley.ID]faulty.Behavior{1: faulty.Any, 3: faulty.Any},
		})
		if slices.Contains(parleytest.Judge(t, p, s, p.Name), problem.Agreement) {
			broken++
		}
	}
	t.Logf("agreement broken in %d of 200 runs", broken)
	if broken == 0 {
		t.Error("two liars against SM(1) never broke agreement")
	}
	if p.Bound(4, 2) != nil || p.Bound(3, 2) == nil {
		t.Error("the bound is not n >= m+2")
	}
}

// The vector is promised to be agreed on if each agreement beneath promises both agreement
// and validity, and to be valid if each promises validity.
func TestPromises(t *testing.T) {
	with := func(agreement, validity bool) []bool {
		c := interactive.Config{Instance: instance(4, 1), Over: func(in problem.Instance) lockstep.Protocol {
			p := eig.Rounds(in)
			p.Promises = func(a parley.RunConditions) []parley.Promise {
				return []parley.Promise{
					{Property: problem.Agreement, Holds: agreement || !a.SourceFaulty},
					{Property: problem.Validity, Holds: validity || a.SourceFaulty},
				}
			}
			return p
		}}
		var out []bool
		for _, p := range interactive.Rounds(c).Promises(parley.RunConditions{N: 4, M: 1, Faulty: 1}) {
			out = append(out, p.Holds)
		}
		return out
	}
	for _, test := range []struct {
		agreement, validity bool
		want                []bool // agreement, validity, termination, integrity
	}{
		{true, true, []bool{true, true, true, true}},
		{false, true, []bool{false, true, true, true}},
		{true, false, []bool{false, false, true, true}},
	} {
		if got := with(test.agreement, test.validity); !slices.Equal(got, test.want) {
			t.Errorf("agreement %t, validity %t: promised %v, want %v", test.agreement, test.validity, got, test.want)
		}
	}
}

// Entry i is what an agreement with source i alone would have decided, with the same
// lies (relations among the problems, question 1); a process's own entry is its
// own value.
func TestIsNAgreements(t *testing.T) {
	type tell func(in problem.Instance, say eig.Say) lockstep.Protocol
	for name, rounds := range map[string]tell{
		"eig": func(in problem.Instance, say eig.Say) lockstep.Protocol {
			p := eig.Rounds(in)
			p.Lies = eig.Tell(in, say)
			return p
		},
		"om": func(in problem.Instance, say eig.Say) lockstep.Protocol {
			p := om.Rounds(in)
			p.Lies = om.Tell(in, om.Say(say))
			return p
		},
	} {
		for seed := range uint64(60) {
			draw := rand.New(rand.NewPCG(seed, 1))
			in := instance(7, 2)
			// What is sent depends only on path and receiver, so that it is the same
			// in every run.
			say := func(path []parley.ID, to parley.ID, held []byte) []byte {
				x := seed
				for _, id := range append(path[:len(path):len(path)], to) {
					x = (x + uint64(id) + 1) * 0x9E3779B97F4A7C15
				}
				return [][]byte{held, zero, []byte("1"), []byte("2"), nil}[x>>32%5]
			}
			liars := make(map[parley.ID]faulty.Behavior)
			for _, id := range draw.Perm(in.N)[:in.M] {
				liars[parley.ID(id)] = faulty.Script
			}
			values := bits(in.N, draw.Uint64())
			run := func(p parley.Protocol) *sim.Sim {
				return sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: propose(values...), Faulty: liars})
			}
			whole := run(interactive.New(interactive.Config{Instance: in, Over: func(in problem.Instance) lockstep.Protocol {
				return rounds(in, say)
			}}, lockstep.Simulated))
			want := make(map[parley.ID][][]byte)
			for i := range parley.ID(in.N) {
				in.Source = i
				alone := run(lockstep.Of(rounds(in, say), lockstep.Simulated))
				for id, v := range problem.Decisions(&alone.History) {
					want[id] = append(want[id], v)
				}
			}
			for id, got := range vectors(t, &whole.History) {
				if got != string(interactive.EncodeVector(want[id])) {
					t.Fatalf("%s, seed %d: process %d decides %s, and the agreements by themselves say %q",
						name, seed, id, got, want[id])
				}
			}
		}
	}
}

// A process whose value does not reach all in time is one of the m faulty and does not notice. If
// sources decide like all others, it still has the vector of all others, whatever its
// own entry is in that vector.
func TestLateEntry(t *testing.T) {
	observed := interactive.Config{Instance: instance(4, 1), Over: eig.Observed}
	for _, c := range []interactive.Config{observed, over(t, "phaseking", instance(4, 1))} {
		for deaf := uint64(1); deaf < 8; deaf++ {
			to := parley.Set{deaf}
			p := interactive.New(c, lockstep.Simulated)
			s := sim.Run(sim.Options{
				Protocol: p, Requests: propose("a", "b", "c", "d"),
				Links: []sim.Link{{From: parley.SetOf(3), To: to, Until: 1, Loss: 1}},
			})
			own := "d"
			if got := vectors(t, &s.History); got[0] != "{a,b,c,d}" {
				own = "0"
			}
			for id, got := range vectors(t, &s.History) {
				if got != "{a,b,c,"+own+"}" {
					t.Errorf("late for %03b: process %d decides %s", deaf, id, got)
				}
			}
		}
	}
}

// A process without a value, or with one that is too large, starts with the default; a
// second value changes nothing. All processes agree on that too.
func TestInitialValues(t *testing.T) {
	for _, name := range interactive.Names() {
		p := interactive.New(over(t, name, instance(4, 1)), lockstep.Simulated)
		requests := propose("", "x", "y")
		requests = append(requests, propose("z", "z", "z")...)
		requests = append(requests, sim.Request{At: 3, Msg: parley.Msg{
			Kind: parley.Propose, Body: bytes.Repeat([]byte("x"), problem.MaxValue+1),
		}})
		s := sim.Run(sim.Options{Protocol: p, Requests: requests})
		for id, got := range vectors(t, &s.History) {
			if got != "{,x,y,0}" {
				t.Errorf("%s: process %d decides %s", name, id, got)
			}
		}
	}
}

// Each row names its agreement.
func TestExplain(t *testing.T) {
	name := func(id parley.ID) string { return fmt.Sprintf("P%d", id+1) }
	for _, test := range []struct {
		over        string
		first, next []string // what P2 sends in the first round and in the next
	}{
		{"eig", []string{"P2: {b,P2}"}, []string{"P1: {a,P1.P2}", "P3: {c,P3.P2}", "P4: {d,P4.P2}"}},
		{"om", []string{"P2: {b,P2}"}, []string{"P1: {a,P1.P2}", "P3: {c,P3.P2}", "P4: {d,P4.P2}"}},
		{"sm", []string{"P2: b:P2"}, []string{"P1: a:P1:P2", "P3: c:P3:P2", "P4: d:P4:P2"}},
		{"phaseking", []string{"P2: {b,P2}"}, []string{"P1: a", "P2: b", "P3: c", "P4: d"}},
	} {
		p := interactive.New(over(t, test.over, instance(4, 1)), lockstep.Simulated)
		log := &trace.Log{Keep: true}
		sim.Run(sim.Options{Protocol: p, Requests: propose("a", "b", "c", "d"), Log: log})
		var rows [2][]string
		for _, e := range log.Events {
			if e.Op != trace.Send || e.At != 1 || e.Msg.Seq > 1 {
				continue
			}
			for row := range p.Explain(parley.Env{From: e.At, To: e.Peer, Path: e.Path}, e.Msg, name) {
				if !slices.Contains(rows[e.Msg.Seq], row) {
					rows[e.Msg.Seq] = append(rows[e.Msg.Seq], row)
				}
			}
		}
		for _, list := range rows {
			slices.Sort(list)
		}
		if !slices.Equal(rows[0], test.first) || !slices.Equal(rows[1], test.next) {
			t.Errorf("%s: P2 says %q and %q, want %q and %q", test.over, rows[0], rows[1], test.first, test.next)
		}
	}
}

// The tree of a process has the vector above the trees of the agreements.
func TestTree(t *testing.T) {
	p := interactive.New(over(t, "om", instance(5, 1)), lockstep.Simulated)
	s := sim.Run(sim.Options{Protocol: p, Requests: propose("1", "1", "1", "1", "0")})
	tree := p.Tree(s.Machine(1))
	in, out, children := tree.Node(tree.Root())
	if in != nil || string(out) != "{1,1,1,1,0}" || !slices.Equal(children, []parley.ID{0, 1, 2, 3, 4}) {
		t.Errorf("the root has %q, %q and %v", in, out, children)
	}
	if _, out, children := tree.Node([]parley.ID{4}); string(out) != "0" || len(children) != 3 {
		t.Errorf("agreement 4 gives %q and has %v below it", out, children)
	}
	loaded := p.New(1)
	if !parley.Load(loaded, 0, parley.Save(s.Machine(1), 0, nil)) {
		t.Fatal("the state is not loaded")
	}
	if _, again, _ := p.Tree(loaded).Node(nil); !bytes.Equal(again, out) {
		t.Errorf("the root of a loaded process has %q", again)
	}
	fresh := p.Tree(p.New(1))
	if _, out, _ := fresh.Node(fresh.Root()); out != nil {
		t.Errorf("before the first round the vector is %q", out)
	}
	if interactive.Rounds(over(t, "sm", instance(4, 1))).Tree != nil {
		t.Error("over sm, which has no tree, there is one")
	}
}
