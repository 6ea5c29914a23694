package bracha_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/bracha"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/parleytest"
	"parley/sim"
)

// behaviors returns everything that a faulty process may do.
func behaviors() []faulty.Behavior {
	first := func(k int) faulty.Behavior { // always the same lie
		return faulty.Behavior{Name: fmt.Sprint("lie ", k), Model: parley.OralByzantineFaults,
			Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int { return min(k, n-2) }}
	}
	split := faulty.Behavior{Name: "split", Model: parley.OralByzantineFaults, // one lie to each half
		Choose: func(_ *parley.Step, t *parley.Turn, _, n int) int { return min(2+int(t.To)%2, n-2) }}
	return append(faulty.Named(), faulty.CrashAt(700), faulty.Any, first(1), first(2), first(3), first(4), first(5), split)
}

// lying is a run in which some processes lie and all broadcast.
func lying(c bracha.Config, seed uint64, liars int) sim.Options {
	r := rand.New(rand.NewPCG(seed, 1))
	opt := sim.Options{Protocol: bracha.New(c), Seed: seed, Faulty: make(map[parley.ID]faulty.Behavior)}
	all := behaviors()
	how := all[r.IntN(len(all))]
	for _, i := range r.Perm(c.N)[:liars] {
		if r.IntN(2) == 0 {
			how = all[r.IntN(len(all))]
		}
		opt.Faulty[parley.ID(i)] = how
	}
	for id := range parley.ID(c.N) {
		for k := range r.IntN(3) {
			opt.Requests = append(opt.Requests, sim.Request{At: id, When: parley.Tick(r.IntN(2000)),
				Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	return opt
}

func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 5
	}
	return n
}

// With n > 3m and m liars, whatever they do: validity, agreement, integrity of correct senders, consistency
// and totality hold.
func TestTheorem(t *testing.T) {
	fromLiars := 0
	for _, c := range []bracha.Config{{N: 4, M: 1}, {N: 5, M: 1}, {N: 7, M: 2}, {N: 10, M: 3}} {
		for seed := range seeds(500) {
			opt := lying(c, seed, c.M)
			s := sim.Run(opt)
			for _, v := range parley.Judge(opt.Protocol, s.RunConditions(), &s.History) {
				if !v.Promise.Holds {
					t.Fatalf("n=%d m=%d: %s is not promised: %s", c.N, c.M, v.Property.Name, v.Promise.Because)
				}
				if v.Broken != nil && v.Property.Mode != parley.Sometimes {
					t.Fatalf("n=%d m=%d seed %d: %s: %v", c.N, c.M, seed, v.Property.Name, v.Broken)
				}
			}
			for _, d := range s.History.Deliveries {
				if _, lies := opt.Faulty[d.From]; lies && d.Msg.Body[len(d.Msg.Body)-1] == '\'' {
					fromLiars++
				}
			}
		}
	}
	if fromLiars == 0 {
		t.Error("no lie was ever delivered: the liars were not heard")
	}
}

// The bound: with n = 3m, silent processes stop the others, and liars make one process deliver what another
// never does. No two deliver different messages.
func TestBeyondTheBound(t *testing.T) {
	for _, c := range []bracha.Config{{N: 3, M: 1}, {N: 6, M: 2}} {
		broken := make(map[string]int)
		for seed := range uint64(1000) {
			opt := lying(c, seed, c.M)
			s := sim.Run(opt)
			for _, name := range parleytest.Judge(t, opt.Protocol, s, seed) {
				broken[name]++
			}
		}
		if broken[problem.Validity] == 0 || broken[bracha.Totality] == 0 || broken[bracha.Consistency] > 0 ||
			broken[problem.SenderIntegrity] > 0 {
			t.Errorf("n=%d m=%d: broken: %v", c.N, c.M, broken)
		}
	}
}

// More liars than m break everything, including consistency.
func TestTooManyLiars(t *testing.T) {
	broken := make(map[string]int)
	for seed := range uint64(2000) {
		opt := lying(bracha.Config{N: 4, M: 1}, seed, 2)
		s := sim.Run(opt)
		for _, name := range parleytest.Judge(t, opt.Protocol, s, seed) {
			broken[name]++
		}
	}
	for _, name := range []string{problem.Validity, problem.Agreement, bracha.Consistency, bracha.Totality} {
		if broken[name] == 0 {
			t.Errorf("%s was not broken: %v", name, broken)
		}
	}
}

// told is what the liar of an exhaustive run sends to one process.
type told struct{ initial, echo, ready string }

// every enumerates all that a liar may send to k processes about one broadcast: of each kind nothing, a or b;
// a liar that is not the sender sends no INITIAL.
func every(k int, initials bool, run func(tales []told)) int {
	values := []string{"", "a", "b"}
	return parleytest.Every(func(choose func(n int) int) {
		tales := make([]told, k)
		for i := range tales {
			if initials {
				tales[i].initial = values[choose(3)]
			}
			tales[i].echo, tales[i].ready = values[choose(3)], values[choose(3)]
		}
		run(tales)
	})
}

// small is a system of n processes, the last of which lies about a broadcast. It is reused for many runs.
type small struct {
	parley.Host
	p         parley.Protocol
	sender    parley.ID
	machines  []parley.Machine
	fresh     [][]byte
	step      parley.Step
	wire      []parley.Effect
	delivered []string
}

func newSmall(c bracha.Config, sender parley.ID) *small {
	x := &small{p: bracha.New(c), sender: sender, delivered: make([]string, c.N-1)}
	x.step = parley.Step{N: c.N, Host: x}
	for id := range parley.ID(c.N - 1) {
		x.machines = append(x.machines, x.p.New(id))
		x.fresh = append(x.fresh, parley.Save(x.machines[id], 0, nil))
	}
	return x
}

func (x *small) Refused(parley.ID, parley.ID, string) {}

func (x *small) do(id parley.ID, clause func(m parley.Machine)) {
	x.step.Self, x.step.Effects = id, x.step.Effects[:0]
	clause(x.machines[id])
	for _, e := range x.step.Effects {
		switch e.Op {
		case parley.OpSend:
			for e.To = range parley.ID(len(x.machines)) {
				if e.To != id {
					x.wire = append(x.wire, e)
				}
			}
		case parley.OpDeliver:
			x.delivered[id] += string(e.Msg.Body)
		}
	}
}

// run makes the liar send its lies, and the correct sender, if there is one, broadcast a; next chooses which
// of the messages in transit arrives.
func (x *small) run(tales []told, next func(n int) int) {
	liar := parley.ID(len(x.machines))
	x.wire = x.wire[:0]
	for id, m := range x.machines {
		parley.Load(m, 0, x.fresh[id])
		x.delivered[id] = ""
	}
	for id, tale := range tales {
		for kind, value := range []string{1: tale.initial, 2: tale.echo, 3: tale.ready} {
			if value != "" {
				x.wire = append(x.wire, parley.Effect{From: liar, To: parley.ID(id),
					Msg: parley.Msg{Kind: parley.Kind(kind), Origin: x.sender, Seq: 1, Body: []byte(value)}})
			}
		}
	}
	if x.sender != liar {
		x.do(x.sender, func(m parley.Machine) { m.Request(&x.step, problem.Request([]byte("a"))) })
	}
	for len(x.wire) > 0 {
		i := next(len(x.wire))
		e := x.wire[i]
		x.wire = append(x.wire[:i], x.wire[i+1:]...)
		x.do(e.To, func(m parley.Machine) { m.Receive(&x.step, e.From, e.Msg) })
	}
}

// All that one liar of four can send, as the sender or not, with its messages arriving first, last, or in
// some order among the others.
func TestEveryLie(t *testing.T) {
	for _, sender := range []parley.ID{3, 0} {
		want := 729 // 9 each to three processes
		if sender == 3 {
			want = 19683 // 27 each
		}
		x := newSmall(bracha.Config{N: 4, M: 1}, sender)
		delivered := make(map[string]int)
		r := rand.New(rand.NewPCG(1, 1))
		for _, next := range []func(n int) int{
			func(int) int { return 0 }, func(n int) int { return n - 1 }, r.IntN,
		} {
			runs := every(3, sender == 3, func(tales []told) {
				x.run(tales, next)
				d := x.delivered
				if d[0] != d[1] || d[1] != d[2] || len(d[0]) > 1 || sender == 0 && d[0] != "a" {
					t.Fatalf("sender %d, told %v: delivered %q", sender, tales, d)
				}
				delivered[d[0]]++
			})
			if runs != want {
				t.Errorf("sender %d: %d runs, not %d", sender, runs, want)
			}
		}
		if sender == 3 && (delivered["a"] == 0 || delivered["b"] == 0 || delivered[""] == 0) {
			t.Errorf("delivered: %v", delivered)
		}
	}
}

// With n = 3 some lies of one liar make one process deliver and the other not; none makes them deliver
// different messages.
func TestEveryLieOfThree(t *testing.T) {
	x := newSmall(bracha.Config{N: 3, M: 1}, 2)
	half := 0
	runs := every(2, true, func(tales []told) {
		x.run(tales, func(int) int { return 0 })
		d := x.delivered
		switch {
		case d[0] == d[1]:
		case d[0] != "" && d[1] != "":
			t.Fatalf("told %v: delivered %q", tales, d)
		default:
			half++
		}
	})
	if runs != 729 || half != 24 {
		t.Errorf("%d runs, of which %d break totality", runs, half)
	}
}
