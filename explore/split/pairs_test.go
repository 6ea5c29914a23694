package split_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/broadcast/diffusion"
	"parley/explore"
	"parley/explore/split"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

func signedBy(n, m int) parley.Protocol {
	return sm.New(sm.Config{Instance: oral(n, m)}, lockstep.Simulated)
}

func pairSearch(t *testing.T, p parley.Protocol, roots []explore.Root) []split.Pair {
	t.Helper()
	found, err := split.Indistinguishable(context.Background(), explore.Options{Protocol: p, Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// play makes a run in the simulator, in which the liars send what they sent.
func play(p parley.Protocol, r explore.Root) (*sim.Sim, []trace.Event) {
	log := &trace.Log{Keep: true}
	o := sim.Options{Protocol: p, Faulty: r.Faulty, Log: log, Signer: sim.Ideal(1)}
	for _, q := range r.Requests {
		o.Requests = append(o.Requests, sim.Request{At: q.At, Msg: q.Msg})
	}
	return sim.Run(o), log.Events
}

// seenBy returns the requests and messages of a process, round by round and sorted in each.
func seenBy(events []trace.Event, id parley.ID) string {
	var lines []string
	for _, e := range events {
		if e.At == id && (e.Op == trace.Request || e.Op == trace.Receive) {
			lines = append(lines, fmt.Sprintf("%d %s from %d: %x", e.Msg.Seq, e.Op, e.Peer, parley.AppendMsg(nil, e.Path, e.Msg)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checked replays an argument in the simulator and evaluates the properties themselves.
func checked(t *testing.T, p parley.Protocol, found []split.Pair) {
	t.Helper()
	if len(found) == 0 {
		t.Fatal("no pair")
	}
	broken := false
	for i, pair := range found {
		id := pair.Same
		var states []string
		for _, c := range []*split.Case{pair.One, pair.Other} {
			if c.Faulty.Has(id) {
				t.Errorf("pair %d: process %d is not correct", i, id)
			}
			s, events := play(p, c.Liars)
			log := c.Run.Log(true).Events
			for of := range s.Correct().All() {
				if seenBy(events, of) != seenBy(log, of) {
					t.Errorf("pair %d: process %d sees\n%s\nin the simulator, and\n%s", i, of, seenBy(events, of), seenBy(log, of))
				}
			}
			states = append(states, seenBy(events, id)+string(parley.Save(s.Machine(id), s.Now(), nil)))
			if !sameDecisions(problem.Decisions(&s.History), problem.Decisions(c.History)) {
				t.Errorf("pair %d: other decisions in the simulator", i)
			}
			broken = broken || holdsNot(p, c.History) != ""
			lied(t, c, log)
		}
		if states[0] != states[1] {
			t.Errorf("pair %d: process %d sees\n%s\nin one run, and in the other\n%s", i, id, states[0], states[1])
		}
		if i > 0 && found[i-1].Other != pair.One {
			t.Errorf("pair %d does not begin where the one before it ends", i)
		}
		if i > 0 {
			bound(t, p, pair.One, found[i-1].Same, id)
		}
	}
	first, last := found[0], found[len(found)-1]
	v, w := forced(t, p, first.One, first.Same), forced(t, p, last.Other, last.Same)
	if v == w {
		t.Errorf("both ends force %s", v)
	}
	if !broken {
		t.Error("the protocol breaks nothing in any of these runs, which cannot be")
	}
}

func sameDecisions(a, b map[parley.ID][]byte) bool {
	same := len(a) == len(b)
	for id := range a {
		same = same && bytes.Equal(a[id], b[id])
	}
	return same
}

// holdsNot returns the first property that does not hold.
func holdsNot(p parley.Protocol, h *parley.History) string {
	for _, q := range p.Properties {
		if q.Mode != parley.Sometimes && q.Check(h) != nil {
			return q.Name
		}
	}
	return ""
}

// deciding returns a run with only these decisions.
func deciding(h *parley.History, who []parley.ID, what ...string) *parley.History {
	out := *h
	out.Over, out.Deliveries = false, nil
	for i, id := range who {
		out.Deliveries = append(out.Deliveries, parley.ExternalEvent{At: id, Msg: parley.Msg{Kind: parley.Decide, Body: []byte(what[i])}})
	}
	return &out
}

// forced checks that validity allows a process only one value, and returns it.
func forced(t *testing.T, p parley.Protocol, c *split.Case, id parley.ID) string {
	t.Helper()
	v := string(c.Forced[id].Value)
	if c.Forced[id].By != problem.Validity || holdsNot(p, deciding(c.History, []parley.ID{id}, v)) != "" {
		t.Errorf("process %d is not forced to decide %q by validity", id, v)
	}
	for _, other := range []string{"0", "1", "", "2"} {
		if other != v && holdsNot(p, deciding(c.History, []parley.ID{id}, other)) != problem.Validity {
			t.Errorf("process %d may decide %q as well as %q", id, other, v)
		}
	}
	return v
}

// bound checks that two processes must decide alike, and that both are correct.
func bound(t *testing.T, p parley.Protocol, c *split.Case, one, other parley.ID) {
	t.Helper()
	who := []parley.ID{one, other}
	if c.Binds != problem.Agreement || one == other || c.Faulty.Has(one) || c.Faulty.Has(other) ||
		holdsNot(p, deciding(c.History, who, "0", "1")) != problem.Agreement {
		t.Errorf("agreement does not bind processes %d and %d", one, other)
	}
}

// lied checks that each recorded lie is sent by a liar and differs from the honest message.
func lied(t *testing.T, c *split.Case, log []trace.Event) {
	t.Helper()
	for _, lie := range c.Lies {
		var said []parley.Outgoing
		for _, e := range log {
			if e.Op == trace.Send && e.At == lie.From && (e.Peer == lie.To || e.Peer == parley.All) && int(e.Msg.Seq) == lie.Round {
				said = append(said, parley.Outgoing{Path: e.Path, Msg: e.Msg})
			}
		}
		if !c.Faulty.Has(lie.From) || c.Faulty.Has(lie.To) || fmt.Sprint(said) != fmt.Sprint(lie.Said) ||
			fmt.Sprint(lie.Said) == fmt.Sprint(lie.Honest) {
			t.Errorf("round %d, %d to %d: %v is called a lie for %v, and said is %v", lie.Round, lie.From, lie.To, lie.Said, lie.Honest, said)
		}
	}
}

// Lecture, "Impossibility Results": three processes, of which one lies. Case one: p_0 says 1,
// and p_2 tells p_1 0. Case two: p_0 says 1 to p_1 and 0 to p_2. To p_1 they are the same; and
// so, to p_2, are case two and that in which p_0 says 0 and p_1 lies.
func TestLecturesProof(t *testing.T) {
	for _, p := range []parley.Protocol{eig.New(oral(3, 1), lockstep.Simulated), om.New(oral(3, 1), lockstep.Simulated)} {
		found := pairSearch(t, p, liars(3, 1, "0", "1"))
		checked(t, p, found)
		if len(found) != 2 || found[0].Same != 1 || found[1].Same != 2 {
			t.Fatalf("%s: %d pairs", p.Name, len(found))
		}
		for i, want := range []struct {
			liar parley.ID
			says string
		}{{2, "1:1 2:1 / 1>2:1 2>1:0"}, {0, "1:1 2:0 / 1>2:1 2>1:0"}, {1, "1:0 2:0 / 1>2:1 2>1:0"}} {
			c := found[min(i, 1)].One
			if i == 2 {
				c = found[1].Other
			}
			if _, lies := liars(3, 1, "0", "1")[c.Run.Root].Faulty[want.liar]; !lies {
				t.Errorf("%s, case %d does not begin with root %d", p.Name, i+1, c.Run.Root)
			}
			if c.Faulty != parley.SetOf(want.liar) || len(c.Lies) != 1 {
				t.Errorf("%s, case %d: faulty are %v, with %d lies", p.Name, i+1, c.Faulty, len(c.Lies))
			}
			if got := valuesOf(p, c.Run.Log(true).Events); got != want.says {
				t.Errorf("%s, case %d: %s, and %s is what the lecture has", p.Name, i+1, got, want.says)
			}
		}
		if v := found[0].One.Forced[1].Value; string(v) != "1" {
			t.Errorf("%s: in case one %s is forced", p.Name, v)
		}
	}
}

// valuesOf returns what three processes send: the source to each, and then each to the other.
func valuesOf(p parley.Protocol, events []trace.Event) string {
	var first, second []string
	for _, e := range events {
		if e.Op != trace.Receive {
			continue
		}
		for row := range p.Explain(parley.Env{From: e.Peer, To: e.At, Path: e.Path}, e.Msg, parley.ID.String) {
			v := row[1:2]
			if e.Peer == 0 {
				first = append(first, e.At.String()+":"+v)
			} else {
				second = append(second, e.Peer.String()+">"+e.At.String()+":"+v)
			}
		}
	}
	slices.Sort(first)
	slices.Sort(second)
	return strings.Join(first, " ") + " / " + strings.Join(second, " ")
}

// A liar without a choice costs less than one with a choice, wherever it occurs; what it sends is still a
// lie.
func TestLiesWithoutChoice(t *testing.T) {
	for name, how := range map[string]faulty.Behavior{"flip": faulty.Flip, "twin": faulty.Twin} {
		roots := append(liars(3, 1, "0", "1"), explore.Root{
			Faulty: map[parley.ID]faulty.Behavior{2: how}, Requests: []explore.Request{propose(0, "1")},
		})
		found := pairSearch(t, eig.New(oral(3, 1), lockstep.Simulated), roots)
		checked(t, eig.New(oral(3, 1), lockstep.Simulated), found)
		c := found[0].One
		if flip := c.Run.Root == len(roots)-1; flip != (name == "flip") || len(c.Lies) != 1 || c.Lies[0].To != 1 {
			t.Errorf("%s: begins with root %d, and tells %v", name, c.Run.Root, c.Lies)
		}
	}
}

// Within the bound a decision rule exists, so there is no argument against all rules: with oral messages
// from four processes on, and with signed ones whenever there are enough rounds.
func TestNoPairWithinTheBound(t *testing.T) {
	for _, p := range []parley.Protocol{
		eig.New(oral(4, 1), lockstep.Simulated), om.New(oral(4, 1), lockstep.Simulated), om.New(oral(5, 1), lockstep.Simulated),
		signedBy(3, 1), signedBy(4, 1), signedBy(5, 1),
	} {
		if found := pairSearch(t, p, liars(p.N, 1, "0", "1")); found != nil {
			t.Errorf("%s with %d processes: %d pairs", p.Name, p.N, len(found))
		}
	}
}

// Lecture: m+1 rounds are also the lower bound. With m rounds and m liars there is an argument, for oral
// and for signed messages; with two liars the chain is longer. If n <= 3m, there is one with any number of
// rounds.
func TestTooFewRounds(t *testing.T) {
	for _, c := range []struct {
		p     parley.Protocol
		liars int
		pairs int
		lies  int
	}{
		{om.New(oral(3, 0), lockstep.Simulated), 1, 2, 1},
		{om.New(oral(4, 0), lockstep.Simulated), 1, 2, 1},
		{eig.New(oral(5, 0), lockstep.Simulated), 1, 2, 1},
		{signedBy(3, 0), 1, 2, 1},
		{signedBy(4, 0), 1, 2, 1},
		{signedBy(4, 1), 2, 4, 7},
		{om.New(oral(7, 1), lockstep.Simulated), 2, 3, 11}, // n > 3m for two
		{om.New(oral(4, 1), lockstep.Simulated), 2, 2, 4},
		{eig.New(oral(4, 2), lockstep.Simulated), 2, 2, 7},
	} {
		found := pairSearch(t, c.p, liars(c.p.N, c.liars, "0", "1"))
		checked(t, c.p, found)
		lies := len(found[0].One.Lies)
		for _, pair := range found {
			lies += len(pair.Other.Lies)
		}
		if len(found) != c.pairs || lies != c.lies {
			t.Errorf("%s with m = %d, %d processes and %d liars: %d pairs with %d lies, and not %d with %d",
				c.p.Name, c.p.M, c.p.N, c.liars, len(found), lies, c.pairs, c.lies)
		}
	}
}

// If one liar is enough, the argument has no second one.
func TestFewestLiars(t *testing.T) {
	p := om.New(oral(4, 0), lockstep.Simulated)
	for _, pair := range pairSearch(t, p, append(liars(4, 2, "0", "1"), liars(4, 1, "0", "1")...)) {
		if pair.One.Faulty.Len() != 1 || pair.Other.Faulty.Len() != 1 {
			t.Errorf("faulty are %v and %v", pair.One.Faulty, pair.Other.Faulty)
		}
	}
}

// Consensus has the same argument: its validity is about the initial values of the correct processes.
func TestPairsOfConsensus(t *testing.T) {
	p := consensus.New(consensus.Config{Instance: oral(3, 1)}, lockstep.Simulated)
	checked(t, p, pairSearch(t, p, proposals(3, 1)))
}

// proposals returns all ways in which m of n processes lie and the others start with 0 or 1.
func proposals(n, m int) (out []explore.Root) {
	for _, r := range liars(n, m, "0") {
		for values := range 1 << n {
			root := explore.Root{Faulty: r.Faulty}
			for id := range n {
				root.Requests = append(root.Requests, propose(parley.ID(id), fmt.Sprint(values>>id&1)))
			}
			out = append(out, root)
		}
	}
	return out
}

// deaf is a process that sends nothing and decides 0, the given number of times.
type deaf struct {
	value []byte
	times int
}

func (p *deaf) Request(_ *parley.Step, m parley.Msg)          { p.value = m.Body }
func (*deaf) Emit(*parley.Step, int)                          {}
func (*deaf) Absorb(*parley.Step, int, parley.ID, parley.Msg) {}
func (p *deaf) State(v *parley.Vars)                          { v.Bytes("value", &p.value) }
func (p *deaf) Close(s *parley.Step, _ int) {
	for range p.times {
		s.Deliver(0, parley.Msg{Kind: parley.Decide, Body: []byte("0")})
	}
}

func allDeaf(times int, properties ...parley.Property) parley.Protocol {
	return lockstep.Of(lockstep.Protocol{
		Protocol: parley.Protocol{Name: "deaf", N: 3, Proposers: parley.SetOf(0), Properties: properties},
		New:      func(parley.ID) lockstep.Rounds { return &deaf{times: times} },
	}, lockstep.Simulated)
}

// If the source sends nothing, two runs are enough: one process must decide both values. A property of mode
// Sometimes demands nothing of any run.
func TestOnePair(t *testing.T) {
	never := parley.Property{Name: "never", Mode: parley.Sometimes, Check: func(*parley.History) error { return errors.New("not seen") }}
	p := allDeaf(1, append(problem.Byzantine(0), never)...)
	found := pairSearch(t, p, liars(3, 0, "0", "1"))
	checked(t, p, found)
	if len(found) != 1 || found[0].Same != 1 || string(found[0].One.Forced[1].Value) != "1" {
		t.Errorf("%d pairs", len(found))
	}
}

// Without agreement no property links the processes, and each can follow validity.
func TestNoPairWithoutAgreement(t *testing.T) {
	p := eig.New(oral(4, 0), lockstep.Simulated)
	p.Properties = slices.DeleteFunc(p.Properties, func(q parley.Property) bool { return q.Name == problem.Agreement })
	if found := pairSearch(t, p, liars(4, 1, "0", "1")); found != nil {
		t.Errorf("%d pairs", len(found))
	}
}

// TestPairsOracle compares the shortest chain with one found by brute force: all runs are made in the
// simulator, and two are neighbors if a correct process receives the same in both. With oral messages it
// also compares the cost of the runs: one for each liar, one for each lie and two for each silence.
func TestPairsOracle(t *testing.T) {
	for _, c := range []struct {
		p     parley.Protocol
		liars int
		runs  int
	}{
		{eig.New(oral(3, 1), lockstep.Simulated), 1, 30},
		{om.New(oral(3, 1), lockstep.Simulated), 1, 30},
		{om.New(oral(4, 1), lockstep.Simulated), 1, 108},
		{om.New(oral(4, 0), lockstep.Simulated), 1, 60},
		{om.New(oral(4, 1), lockstep.Simulated), 2, 540},
		{signedBy(3, 1), 1, 40},
		{signedBy(4, 0), 1, 134},
		{signedBy(4, 1), 2, 3480},
	} {
		roots := append(liars(c.p.N, c.liars, "0"), liars(c.p.N, c.liars, "1")...) // liars may start with either value
		all := allRuns(c.p, roots)
		want, cheapest := shortest(all)
		found := pairSearch(t, c.p, roots)
		cost := 0
		for i, pair := range found {
			if cost += costOf(pair.Other); i == 0 {
				cost += costOf(pair.One)
			}
		}
		if c.p.Name == "sm" { // a source that signs both values answers differently
			cost = cheapest
		}
		if len(found) != want || cost != cheapest || len(all) != c.runs {
			t.Errorf("%s with %d processes, m = %d and %d liars: %d pairs at a cost of %d; in %d runs, of %d, there are %d at %d",
				c.p.Name, c.p.N, c.p.M, c.liars, len(found), cost, len(all), c.runs, want, cheapest)
		}
	}
}

func costOf(c *split.Case) int {
	cost := c.Faulty.Len()
	for _, lie := range c.Lies {
		if cost++; len(lie.Said) == 0 {
			cost++
		}
	}
	return cost
}

// plain is a run, and what the correct lieutenants receive in it.
type plain struct {
	value string // of a correct source
	views []string
	cost  int
}

// allRuns returns all runs, with every answer to every choice.
func allRuns(p parley.Protocol, roots []explore.Root) (all []plain) {
	for _, r := range roots {
		var digits, radix []int
		for more := true; more; {
			at := 0
			how := make(map[parley.ID]faulty.Behavior)
			for id := range r.Faulty {
				how[id] = faulty.Behavior{Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int {
					if at == len(digits) {
						digits, radix = append(digits, 0), append(radix, n)
					}
					at++
					return digits[at-1]
				}}
			}
			_, events := play(p, explore.Root{Faulty: how, Requests: r.Requests})
			one := plain{cost: len(how)}
			for _, d := range digits {
				one.cost += d
			}
			if _, lies := r.Faulty[0]; !lies {
				one.value = string(r.Requests[0].Msg.Body)
			}
			for id := parley.ID(1); int(id) < p.N; id++ {
				if _, lies := r.Faulty[id]; !lies {
					one.views = append(one.views, fmt.Sprint(id, " ", seenBy(events, id)))
				}
			}
			all = append(all, one)
			for at = len(digits); at > 0 && digits[at-1] == radix[at-1]-1; at-- {
			}
			if more = at > 0; more {
				digits[at-1]++
				digits, radix = digits[:at], radix[:at]
			}
		}
	}
	return all
}

// shortest returns the number of pairs in a shortest chain between runs with different values of a correct
// source, and the cost of the cheapest such chain; 0 if there is none.
func shortest(all []plain) (pairs, cost int) {
	with := make(map[string][]int) // by view
	reached := make(map[int]int)   // runs, and the cost of reaching them
	for i, r := range all {
		for _, view := range r.views {
			with[view] = append(with[view], i)
		}
		if r.value == "1" && len(r.views) > 0 {
			reached[i] = r.cost
		}
	}
	seen := make(map[int]bool)
	for ; len(reached) > 0; pairs++ {
		found := false
		next := make(map[int]int)
		for i := range reached {
			if seen[i] = true; all[i].value == "0" && (!found || reached[i] < cost) {
				found, cost = true, reached[i]
			}
		}
		if found {
			return pairs, cost
		}
		for i, to := range reached {
			for _, view := range all[i].views {
				for _, k := range with[view] {
					if old, known := next[k]; !seen[k] && (!known || to+all[k].cost < old) {
						next[k] = to + all[k].cost
					}
				}
			}
		}
		reached = next
	}
	return 0, 0
}

// The same search returns the same result, to the last event.
func TestPairsAgain(t *testing.T) {
	hashes := func() (out []string) {
		for _, pair := range pairSearch(t, signedBy(4, 1), liars(4, 2, "0", "1")) {
			out = append(out, fmt.Sprint(pair.Same), pair.One.Run.Log(false).Hash(), pair.Other.Run.Log(false).Hash())
		}
		return out
	}
	if one, other := hashes(), hashes(); !slices.Equal(one, other) {
		t.Errorf("%v, and then %v", one, other)
	}
}

// TestPairsRefused checks searches that cannot be made, or end too early for an answer.
func TestPairsRefused(t *testing.T) {
	p, both := eig.New(oral(3, 1), lockstep.Simulated), liars(3, 1, "0", "1")
	odd := parley.Property{Name: "odd", Check: func(h *parley.History) error { // a proposed value must not be decided
		for _, d := range h.Deliveries {
			if v := string(d.Msg.Body); v == "0" || v == "1" {
				return errors.New("it was proposed")
			}
		}
		return nil
	}}
	vectors := interactive.New(interactive.Config{Instance: oral(3, 1)}, lockstep.Simulated)
	for want, o := range map[string]explore.Options{
		"diffusion has no rounds to step by":              {Protocol: diffusion.New(diffusion.Config{N: 3}), Roots: asking()},
		"no fault but those of faulty processes":          {Protocol: p, Roots: both, Model: explore.Model{Crashes: 1}},
		"all that a process must decide in some run is 1": {Protocol: p, Roots: liars(3, 1, "1")},
		"a property says what a single process":           {Protocol: vectors, Roots: proposals(3, 1)},
		"no process is correct":                           {Protocol: p, Roots: liars(3, 3, "1")},
		"process 0 does not decide once in deaf":          {Protocol: allDeaf(2, problem.Byzantine(0)...), Roots: liars(3, 0, "0", "1")},
		"in no run of deaf a property":                    {Protocol: allDeaf(1, odd), Roots: liars(3, 0, "0", "1")},
		"nothing to begin with":                           {Protocol: p},
		"before an answer: out of views":                  {Protocol: p, Roots: both, States: 20},
	} {
		found, err := split.Indistinguishable(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), want) || found != nil {
			t.Errorf("%v, %v, and %q is expected", found, err, want)
		}
		if early := strings.Contains(want, "before"); err != nil && errors.Is(err, split.ErrUnfinished) != early {
			t.Errorf("%v is that the search did not end: %v", err, !early)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := split.Indistinguishable(ctx, explore.Options{Protocol: p, Roots: both}); !errors.Is(err, split.ErrUnfinished) {
		t.Errorf("interrupted: %v", err)
	}
}
