package fifo_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// bench is one machine, of process 0, that R-delivers what a test passes to it.
type bench struct {
	parley.Host
	parley.Machine
	step    parley.Step
	refused []string
}

func newBench(c fifo.Config) *bench {
	b := &bench{Machine: fifo.New(c).New(0)}
	b.step = parley.Step{N: c.N, Host: b}
	b.Start(&b.step)
	return b
}

func (b *bench) Refused(_, _ parley.ID, why string) { b.refused = append(b.refused, why) }

// arrive R-delivers a message and returns the F-deliveries.
func (b *bench) arrive(q parley.ID, m parley.Msg) []string {
	b.step.Effects = b.step.Effects[:0]
	b.step.Carried = true
	b.Receive(&b.step, q, m)
	out := []string{}
	for _, e := range b.step.Effects {
		if e.Op != parley.OpDeliver || e.To != q || e.Msg.Kind != parley.Carried || e.Msg.Origin != q {
			panic(fmt.Sprintf("%+v", e))
		}
		out = append(out, string(e.Msg.Body))
	}
	return out
}

func data(life, seq uint64, body string) parley.Msg {
	return parley.Msg{Kind: fifo.Data, Value: life, Seq: seq, Body: []byte(body)}
}

// Every order of arrival of five messages, any of them twice and any of them missing: the deliveries at any
// time are the first messages without a gap, in order.
func TestEveryOrder(t *testing.T) {
	orders := 0
	var perm func(left []uint64, taken []uint64)
	perm = func(left, taken []uint64) {
		b := newBench(fifo.Config{N: 2})
		var have []string
		came := make(map[uint64]bool)
		for _, seq := range taken {
			have = append(have, b.arrive(1, data(1, seq, fmt.Sprint(seq)))...)
			b.arrive(1, data(1, seq, "again"))
			came[seq] = true
			var want []string
			for i := uint64(1); came[i]; i++ {
				want = append(want, fmt.Sprint(i))
			}
			if !slices.Equal(have, want) {
				t.Fatalf("%v: %v and not %v", taken, have, want)
			}
			next, bag := fifo.Next(b.Machine, 1, 1)
			if int(next) != len(want)+1 || len(bag) != len(came)-len(want) {
				t.Fatalf("%v: next %d, bag %v", taken, next, bag)
			}
		}
		orders++
		for i := range left {
			rest := slices.Delete(slices.Clone(left), i, i+1)
			perm(rest, append(slices.Clone(taken), left[i]))
		}
	}
	perm([]uint64{1, 2, 3, 4, 5}, nil)
	if orders != 326 { // the arrangements of up to five messages
		t.Errorf("%d orders", orders)
	}
}

// The bag is bounded, and what is past it is refused for good: a gap is not skipped.
func TestBagIsBounded(t *testing.T) {
	b := newBench(fifo.Config{N: 2, Window: 4})
	for seq := uint64(2); seq <= 1000; seq++ {
		if have := b.arrive(1, data(1, seq, "x")); len(have) > 0 {
			t.Fatalf("number %d releases %v", seq, have)
		}
	}
	if _, bag := fifo.Next(b.Machine, 1, 1); !slices.Equal(bag, []uint64{2, 3, 4}) || len(b.refused) != 996 {
		t.Errorf("%v, %d refused", bag, len(b.refused))
	}
	if have := b.arrive(1, data(1, 1, "x")); len(have) != 4 {
		t.Errorf("released %v", have)
	}
	if have := b.arrive(1, data(1, 6, "x")); len(have) != 0 {
		t.Errorf("the gap was skipped: %v", have)
	}
	if size := len(parley.Save(b.Machine, 0, nil)); size > 30 {
		t.Errorf("%d bytes", size)
	}
}

// Malformed messages are refused and change nothing.
func TestRefused(t *testing.T) {
	b := newBench(fifo.Config{N: 3, Window: 4})
	b.arrive(1, data(1, 1, "one"))
	b.arrive(1, data(1, 3, "three"))
	before := fmt.Sprint(parley.Show(b.Machine, 0))
	for _, c := range []struct {
		from parley.ID
		m    parley.Msg
		why  string
	}{
		{1, parley.Msg{Kind: 2, Value: 1, Seq: 2}, "no message of a broadcast"},
		{1, data(1, 0, ""), "no message of a broadcast"},
		{3, data(1, 2, ""), "no message of a broadcast"},
		{1, parley.Msg{Kind: fifo.Data, Value: 1, Seq: 2, Origin: 1}, "no message of a broadcast"},
		{1, data(0, 2, ""), "message of a life long past"},
		{1, data(1, 1, ""), "message delivered before"},
		{1, data(1, 3, ""), "message already in the bag"},
		{1, data(1, 6, ""), "message past the window"},
		{1, data(1, 1<<63, ""), "message past the window"},
	} {
		b.refused = nil
		if have := b.arrive(c.from, c.m); len(have) > 0 || !slices.Equal(b.refused, []string{c.why}) {
			t.Errorf("%v: %v, %v", c.m, have, b.refused)
		}
	}
	b.refused = nil
	if b.arrive(1, parley.Msg{Kind: parley.Suspect, Origin: 2}); b.refused != nil {
		t.Error("an indication is refused")
	}
	if b.Request(&b.step, parley.Msg{Kind: parley.Propose}); len(b.refused) != 1 {
		t.Error("a request that is no broadcast")
	}
	if fmt.Sprint(parley.Show(b.Machine, 0)) != before {
		t.Error("the state has changed")
	}
}

// chain broadcasts bursts, so that many messages of a process are in flight at once.
func chain(n int, r *rand.Rand) []sim.Request {
	var out []sim.Request
	for id := range parley.ID(n) {
		when := parley.Tick(0)
		for k := range 2 + r.IntN(6) {
			if r.IntN(3) == 0 {
				when += parley.Tick(r.IntN(900))
			}
			out = append(out, sim.Request{At: id, When: when, Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	return out
}

// Slide "Build FIFO Broadcast Using Reliable Broadcast": on links that double and reorder, with processes
// that crash in the middle of a send, the properties of reliable broadcast and FIFO order hold. Diffusion
// alone must break FIFO order in some run.
func TestOrder(t *testing.T) {
	disorder := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(4)
		c := diffusion.Config{N: n, Uniform: seed%3 == 0}
		p := fifo.Tower(c)
		opt := sim.Options{Protocol: p, Seed: seed, Twice: 0.2, Requests: chain(n, r)}
		for _, i := range r.Perm(n)[:r.IntN(p.M+1)] {
			opt.Crashes = append(opt.Crashes, sim.Crash{At: parley.ID(i), Step: 2 + r.IntN(6*n), Effects: r.IntN(n + 2)})
		}
		s := sim.Run(opt)
		parleytest.Judge(t, p, s, seed)
		for _, property := range p.Properties { // not only those that are promised
			if err := property.Check(&s.History); err != nil && property.Mode != parley.Sometimes {
				t.Fatalf("seed %d: %s: %v", seed, property.Name, err)
			}
		}
		opt.Protocol = diffusion.New(c)
		if s := sim.Run(opt); problem.Of(problem.FIFOOrder)[0].Check(&s.History) != nil {
			disorder++
		}
	}
	if disorder < 200 {
		t.Errorf("without numbers the order was lost in %d runs only", disorder)
	}
}

// After a message that was lost, outside the model, nothing more of its sender is delivered; order holds, and
// all messages of other senders are delivered.
func TestGapLasts(t *testing.T) {
	stuck := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := fifo.Tower(diffusion.Config{N: 3})
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, Loss: 0.3, Requests: chain(3, r)})
		parleytest.Judge(t, p, s, seed)
		if err := problem.Of(problem.FIFOOrder)[0].Check(&s.History); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for id := range parley.ID(3) {
			for _, q := range []parley.ID{0, 1, 2} {
				top := parley.Show(s.Machine(id), 0)
				if slices.ContainsFunc(top, func(v parley.Variable) bool {
					return v.Name == fmt.Sprintf("fifo.from[%d].lives[0].bag[0].seq", q)
				}) {
					stuck++
				}
			}
		}
	}
	if stuck < 20 {
		t.Errorf("%d gaps", stuck)
	}
}

// A restarted sender begins with number 1, as another sender: its messages are neither duplicates nor after a
// gap.
func TestRestart(t *testing.T) {
	again := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 3 + r.IntN(2)
		p := fifo.Tower(diffusion.Config{N: n})
		at := parley.ID(r.IntN(n))
		opt := sim.Options{Protocol: p, Seed: seed, Twice: 0.2, Requests: chain(n, r),
			Crashes: []sim.Crash{{At: at, Step: 2 + r.IntN(8), Effects: r.IntN(n + 2), Back: parley.Tick(1 + r.IntN(900))}}}
		for k := range 3 {
			opt.Requests = append(opt.Requests, sim.Request{At: at, When: 8000, Msg: problem.Request(fmt.Appendf(nil, "again %d", k))})
		}
		s := sim.Run(opt)
		parleytest.Judge(t, p, s, seed)
		if s.Stats.Restarts == 0 {
			continue
		}
		again++
		s.History.Faulty.Add(at)
		for _, name := range []string{problem.Validity, problem.Agreement, problem.Integrity, problem.FIFOOrder} {
			if err := problem.Of(name)[0].Check(&s.History); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, name, err)
			}
		}
		for id := range parley.Everyone(n).Minus(parley.SetOf(at)).All() {
			var got []string
			for _, d := range s.History.Deliveries {
				if d.At == id && d.From == at && d.When >= 8000 && len(d.Msg.Body) > 4 {
					got = append(got, string(d.Msg.Body))
				}
			}
			if !slices.Equal(got, []string{"again 0", "again 1", "again 2"}) {
				t.Fatalf("seed %d: process %d delivers %v", seed, id, got)
			}
		}
	}
	if again < 100 {
		t.Errorf("%d restarts", again)
	}
}

// The layer has its own numbers: broadcasts of others on the same layer beneath leave no gap. The test runs
// two FIFO layers on one diffusion, in both orders.
func TestOwnNumbers(t *testing.T) {
	beneath := diffusion.New(diffusion.Config{N: 3})
	p := stack.New(beneath, fifo.New(fifo.Config{N: 3}), fifo.New(fifo.Config{N: 3}))
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		parleytest.Judge(t, p, sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: chain(3, r)}), seed)
	}
}

func TestSuite(t *testing.T) {
	options := parleytest.Options{Seeds: 100, Sim: sim.Options{Twice: 0.1}}
	t.Run("uniform", func(t *testing.T) {
		parleytest.Suite(t, fifo.Tower(diffusion.Config{N: 5, Uniform: true}), options)
	})
	options.NothingBeyond = "any number of processes may crash"
	t.Run("plain", func(t *testing.T) { parleytest.Suite(t, fifo.Tower(diffusion.Config{N: 4}), options) })
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, fifo.Tower(diffusion.Config{N: 3, Window: 8}))
}

func TestConfig(t *testing.T) {
	for _, c := range []fifo.Config{{}, {N: 257}, {N: 3, Window: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", c)
				}
			}()
			fifo.New(c)
		}()
	}
	fs := flag.NewFlagSet("", flag.PanicOnError)
	remake := fifo.Tower(diffusion.Config{N: 4}).Flags(fs)
	if err := fs.Parse([]string{"-n", "5", "-uniform"}); err != nil {
		t.Fatal(err)
	}
	if p, err := remake(nil); err != nil || p.N != 5 || p.M != 2 || p.Bound(4, 2) == nil ||
		p.Properties[len(p.Properties)-1].Name != problem.UniformAgreement {
		t.Errorf("%v %+v", err, p)
	}
	if err := fs.Parse([]string{"-n", "999"}); err != nil {
		t.Fatal(err)
	}
	var why *parley.FlagError
	if _, err := remake(nil); !errors.As(err, &why) || why.Flag != "n" {
		t.Error(err)
	}
}

// FIFO order is promised unless a disk is lost.
func TestPromises(t *testing.T) {
	p := fifo.New(fifo.Config{N: 3})
	holds := func(a parley.RunConditions) (out []string) {
		for _, promise := range p.Promises(a) {
			if promise.Holds {
				out = append(out, promise.Property)
			}
		}
		return out
	}
	a := parley.RunConditions{N: 3, M: 2, Faulty: 2}
	if have := holds(a); !slices.Equal(have, []string{problem.Validity, problem.Agreement, problem.Integrity, problem.FIFOOrder}) {
		t.Error(have)
	}
	a.Network.Lost = true
	if have := holds(a); !slices.Equal(have, []string{problem.Integrity, problem.FIFOOrder}) {
		t.Error(have)
	}
	a.Processes.LostDisk = true
	if have := holds(a); !slices.Equal(have, []string{problem.Integrity}) {
		t.Error(have)
	}
}

func TestExplain(t *testing.T) {
	p := fifo.New(fifo.Config{N: 3})
	for _, c := range []struct {
		m    parley.Msg
		want string
	}{{data(1, 7, "hello"), "#7 hello"}, {data(3, 1, "again"), "3#1 again"}} {
		if have := slices.Collect(p.Explain(parley.Env{}, c.m, parley.ID.String)); !slices.Equal(have, []string{c.want}) {
			t.Error(have)
		}
	}
	if m := p.Rename(parley.Env{}, data(1, 7, "x"), []parley.ID{1, 0, 2}); m.Seq != 7 || m.Origin != 0 {
		t.Error(m)
	}
}

func ExampleTower() {
	s := sim.Run(sim.Options{
		Protocol: fifo.Tower(diffusion.Config{N: 3}), Seed: 6,
		Requests: []sim.Request{
			{At: 0, Msg: problem.Request([]byte("first"))}, {At: 0, Msg: problem.Request([]byte("second"))},
		},
	})
	for _, d := range s.History.Deliveries {
		if d.At == 2 {
			fmt.Printf("process %s delivers %s\n", d.At, d.Msg.Body)
		}
	}
	// Output:
	// process 2 delivers first
	// process 2 delivers second
}
