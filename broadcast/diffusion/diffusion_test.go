package diffusion_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
)

// ring returns a graph in which each process has two neighbors.
func ring(n int) []parley.Set {
	out := make([]parley.Set, n)
	for i := range n {
		out[i] = parley.SetOf(parley.ID((i+1)%n), parley.ID((i+n-1)%n))
	}
	return out
}

func TestSuite(t *testing.T) {
	for name, c := range map[string]diffusion.Config{
		"complete": {N: 5},
		"ring":     {N: 6, M: 1, Graph: ring(6)},
		"uniform":  {N: 5, Uniform: true},
		"even":     {N: 4, Uniform: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := diffusion.New(c)
			p.Cost = nil // it counts one broadcast
			parleytest.Suite(t, p, parleytest.Options{Seeds: 100, Sim: sim.Options{Twice: 0.1}})
		})
	}
}

// One broadcast costs what the lecture's rules yield.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		config diffusion.Config
		want   uint64
	}{{diffusion.Config{N: 4}, 13}, {diffusion.Config{N: 7, Uniform: true}, 43}, {diffusion.Config{N: 6, Graph: ring(6)}, 13},
		{diffusion.Config{N: 1}, 1}} {
		p := diffusion.New(c.config)
		if have := p.Cost(p.N, p.M).Total().Messages; have != c.want {
			t.Errorf("%+v: %d messages", c.config, have)
		}
		one := func(*rand.Rand) []sim.Request { return []sim.Request{{Msg: problem.Request([]byte("m"))}} }
		if err := parleytest.Check(p, parleytest.Options{Seeds: 20, Inputs: one,
			NothingBeyond: "tested elsewhere"}); err != nil && p.N > 1 {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, diffusion.New(diffusion.Config{N: 4, Uniform: true, Window: 8}))
}

// bench is one machine, process 0 of n, and its refusals.
type bench struct {
	parley.Host
	parley.Machine
	step    parley.Step
	refused []string
}

func newBench(c diffusion.Config) *bench {
	b := &bench{Machine: diffusion.New(c).New(0)}
	b.step = parley.Step{N: c.N, Host: b}
	b.Start(&b.step)
	b.step.Effects = nil
	return b
}

// receive passes a message to the machine and returns the payloads that it delivers.
func (b *bench) receive(from parley.ID, m parley.Msg) []string {
	b.step.Effects = b.step.Effects[:0]
	b.Receive(&b.step, from, m)
	var out []string
	for _, e := range b.step.Effects {
		if e.Op == parley.OpDeliver {
			out = append(out, string(e.Msg.Body))
		}
	}
	return out
}

func (b *bench) Refused(_, _ parley.ID, why string) { b.refused = append(b.refused, why) }
func data(origin parley.ID, life, seq uint64) parley.Msg {
	return parley.Msg{Kind: diffusion.Data, Origin: origin, Value: life, Seq: seq,
		Body: fmt.Appendf(nil, "%d.%d.%d", origin, life, seq)}
}

// A message is delivered at once, even if earlier ones are missing. One that is a window ahead of the first
// gap is refused, and delivered from a later copy after the gap is filled. Nothing is delivered twice.
func TestWindow(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		b := newBench(diffusion.Config{N: 3, Uniform: uniform, Window: 4})
		for _, c := range []struct {
			seq  uint64
			want string
		}{
			{1, "1.1.1"}, {5, "1.1.5"}, {6, ""}, {1 << 63, ""}, {5, ""}, {4, "1.1.4"}, {2, "1.1.2"}, {6, "1.1.6"},
			{7, ""}, {3, "1.1.3"}, {7, "1.1.7"}, {10, "1.1.10"}, {1, ""}, {3, ""}, {10, ""}, {8, "1.1.8"}, {9, "1.1.9"},
			{9, ""}, {14, "1.1.14"}, {15, ""},
		} {
			if have := b.receive(2, data(1, 1, c.seq)); len(have) > 1 || c.want != "" && !slices.Equal(have, []string{c.want}) ||
				c.want == "" && len(have) > 0 {
				t.Errorf("uniform %t: number %d releases %v", uniform, c.seq, have)
			}
		}
		want := []string{"message past the window", "message past the window", "message past the window",
			"message past the window"}
		if !slices.Equal(b.refused, want) {
			t.Error(b.refused)
		}
	}
}

// The uniform form holds at most a window of messages.
func TestHeldIsBounded(t *testing.T) {
	b := newBench(diffusion.Config{N: 5, Uniform: true, Window: 10})
	for seq := range uint64(1000) {
		b.receive(1, data(1, 1, seq+1))
	}
	small := len(parley.Save(b.Machine, 0, nil))
	if len(b.refused) != 990 || small > 400 {
		t.Errorf("%d refused, %d bytes", len(b.refused), small)
	}
	for seq := range uint64(10) { // the held messages arrive from a third process
		if have := b.receive(2, data(1, 1, seq+1)); len(have) != 1 {
			t.Errorf("number %d releases %v", seq+1, have)
		}
	}
	if have := len(parley.Save(b.Machine, 0, nil)); have > 40 {
		t.Errorf("%d bytes are left", have)
	}
}

// Each message is delivered once, whatever the order of arrival; after all have arrived, hardly any memory is
// used.
func TestDuplicatesAreNotRemembered(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newBench(diffusion.Config{N: 4})
		const n = 500
		var order []int
		for range 3 {
			order = append(order, r.Perm(n)...)
		}
		r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		seen := make(map[int]bool)
		for _, i := range order {
			have := b.receive(parley.ID(1+r.IntN(3)), data(2, 1, uint64(i)+1))
			if seen[i] != (len(have) == 0) {
				t.Fatalf("seed %d: number %d, seen %t, releases %v", seed, i, seen[i], have)
			}
			seen[i] = true
		}
		if size := len(parley.Save(b.Machine, 0, nil)); size > 30 {
			t.Errorf("seed %d: %d bytes are left", seed, size)
		}
	}
}

// Incarnations of one sender are independent, and only the last few are remembered.
func TestLives(t *testing.T) {
	b := newBench(diffusion.Config{N: 3})
	for life := uint64(1); life <= 20; life++ {
		for range 2 {
			b.receive(1, data(1, life, 1))
		}
		if life > 1 && b.receive(2, data(1, life-1, 1)) != nil {
			t.Errorf("life %d was forgotten at once", life-1)
		}
	}
	size := len(parley.Save(b.Machine, 0, nil))
	for life := uint64(1); life <= 20; life++ {
		if have := b.receive(2, data(1, life, 1)); len(have) > 0 {
			t.Errorf("life %d again: %v", life, have)
		}
	}
	if len(b.refused) != 20-problem.MaxLives || size > 80 {
		t.Errorf("%d bytes, refused %v", size, b.refused)
	}
}

// Malformed messages are refused and change nothing.
func TestRefused(t *testing.T) {
	b := newBench(diffusion.Config{N: 4, M: 1, Graph: ring(4)})
	b.Request(&b.step, problem.Request([]byte("own")))
	before := parley.Save(b.Machine, 0, nil)
	for _, c := range []struct {
		from parley.ID
		m    parley.Msg
		why  string
	}{
		{1, parley.Msg{Kind: 2, Origin: 1, Seq: 1, Value: 1}, "no message of a broadcast"},
		{1, parley.Msg{Kind: diffusion.Data, Origin: 4, Seq: 1, Value: 1}, "no message of a broadcast"},
		{1, parley.Msg{Kind: diffusion.Data, Origin: parley.All, Seq: 1, Value: 1}, "no message of a broadcast"},
		{1, data(1, 1, 0), "no message of a broadcast"},
		{1, data(1, 0, 1), "no message of a broadcast"},
		{2, data(1, 1, 1), "sender is no neighbour"},
		{1, data(0, 1, 2), "message in one's own name"},
		{1, data(0, 2, 1), "message in one's own name"},
	} {
		b.refused = nil
		b.receive(c.from, c.m)
		if len(b.step.Effects) > 0 || !slices.Equal(b.refused, []string{c.why}) {
			t.Errorf("%v: %v, %v", c.m, b.refused, b.step.Effects)
		}
	}
	for _, quiet := range []parley.Msg{data(0, 1, 1), {Kind: parley.Suspect, Origin: 2}} { // own, relayed; a detector's
		b.refused = nil
		if b.receive(1, quiet); len(b.step.Effects) > 0 || b.refused != nil {
			t.Errorf("%v: %v, %v", quiet, b.refused, b.step.Effects)
		}
	}
	b.refused = nil
	if b.Request(&b.step, parley.Msg{Kind: parley.Propose}); len(b.refused) != 1 {
		t.Error("a request that is no broadcast")
	}
	if !bytes.Equal(before, parley.Save(b.Machine, 0, nil)) {
		t.Error("the state has changed")
	}
}

// The incarnation is one more than any in the log, and is the first thing that a start makes durable.
func TestIncarnation(t *testing.T) {
	m := diffusion.New(diffusion.Config{N: 3}).New(0)
	s := &parley.Step{N: 3, Restart: true, Log: []parley.Record{{Body: binary.AppendUvarint(nil, 300)}}}
	m.Start(s)
	m.Request(s, problem.Request([]byte("m")))
	if s.Effects[0].Op != parley.OpAppend || s.Effects[1].Msg.Value != 301 || s.Effects[1].Msg.Seq != 1 {
		t.Errorf("%+v", s.Effects)
	}
	// It relays a message of its earlier incarnation like any other: it may have crashed before it had sent
	// it to all.
	s.Effects = nil
	m.Receive(s, 1, data(0, 300, 7))
	if len(s.Effects) != 2 || s.Effects[0].Op != parley.OpSend || s.Effects[1].Op != parley.OpDeliver {
		t.Errorf("%+v", s.Effects)
	}
}

func TestConfig(t *testing.T) {
	lame := ring(4)
	lame[0].Remove(1)
	self := ring(4)
	self[2].Add(2)
	far := ring(4)
	far[2].Add(9)
	for _, c := range []struct {
		config diffusion.Config
		flag   string
	}{
		{diffusion.Config{}, "n"}, {diffusion.Config{N: 257}, "n"}, {diffusion.Config{N: 3, M: 3}, "m"},
		{diffusion.Config{N: 3, M: -1}, "m"}, {diffusion.Config{N: 4, Graph: ring(3)}, "graph"},
		{diffusion.Config{N: 4, Graph: ring(4), Uniform: true}, "uniform"}, {diffusion.Config{N: 4, Graph: lame}, "graph"},
		{diffusion.Config{N: 4, Graph: self}, "graph"}, {diffusion.Config{N: 4, Graph: far}, "graph"},
		{diffusion.Config{N: 4, Window: -1}, "window"},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", c.config)
				}
			}()
			diffusion.New(c.config)
		}()
		if len(c.config.Graph) > 0 || c.config.Window != 0 {
			continue // not expressible by flags
		}
		var why *parley.FlagError
		if _, err := remade(c.config, c.config.N, c.config.M); !errors.As(err, &why) || why.Flag != c.flag {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
	p, err := remade(diffusion.Config{N: 5, Uniform: true}, 7, 0)
	if err != nil || p.N != 7 || p.M != 3 || p.Bound == nil {
		t.Errorf("%v %+v", err, p)
	}
	if p := diffusion.New(diffusion.Config{N: 6}); p.M != 5 || p.Bound != nil {
		t.Errorf("%+v", p)
	}
	if diffusion.Bound(5, 2) != nil || diffusion.Bound(4, 2) == nil {
		t.Error("bound")
	}
}

// remade makes a protocol with the flags of another.
func remade(c diffusion.Config, n, m int) (parley.Protocol, error) {
	fs := flag.NewFlagSet("", flag.PanicOnError)
	remake := diffusion.New(diffusion.Config{N: 4, Uniform: c.Uniform}).Flags(fs)
	if err := fs.Parse([]string{"-n", strconv.Itoa(n), "-m", strconv.Itoa(m)}); err != nil {
		return parley.Protocol{}, err
	}
	return remake(nil)
}

// Which promises hold, and which do not because there is no majority or links lose messages.
func TestPromises(t *testing.T) {
	promised := func(c diffusion.Config, f func(a *parley.RunConditions)) (out []string) {
		a := parley.RunConditions{N: c.N, M: 2, Faulty: 2}
		f(&a)
		for _, p := range diffusion.New(c).Promises(a) {
			if p.Because == "" {
				t.Errorf("%+v: no reason", p)
			}
			if p.Holds {
				out = append(out, p.Property)
			}
		}
		return out
	}
	plain, uniform := diffusion.Config{N: 5}, diffusion.Config{N: 5, Uniform: true}
	reliable := []string{problem.Validity, problem.Agreement, problem.Integrity}
	for i, c := range []struct {
		have, want []string
	}{
		{promised(plain, func(*parley.RunConditions) {}), reliable},
		{promised(plain, func(a *parley.RunConditions) { a.Faulty = 4 }), reliable},
		{promised(plain, func(a *parley.RunConditions) { a.Network.Lost = true }), reliable[2:]},
		{promised(diffusion.Config{N: 5, M: 1, Graph: ring(5)}, func(*parley.RunConditions) {}), reliable},
		{promised(diffusion.Config{N: 5, M: 1, Graph: ring(5)}, func(a *parley.RunConditions) { a.Network.Disconnected = true }),
			reliable[2:]},
		{promised(uniform, func(*parley.RunConditions) {}), append(slices.Clone(reliable), problem.UniformAgreement)},
		{promised(uniform, func(a *parley.RunConditions) { a.Faulty = 3 }), reliable[2:]},
		{promised(uniform, func(a *parley.RunConditions) { a.Processes.Minority = true }), reliable[2:]},
		{promised(uniform, func(a *parley.RunConditions) { a.N, a.Faulty = 4, 2 }), reliable[2:]},
	} {
		if !slices.Equal(c.have, c.want) {
			t.Errorf("case %d: %v", i, c.have)
		}
	}
}

func TestExplain(t *testing.T) {
	p := diffusion.New(diffusion.Config{N: 3})
	name := func(id parley.ID) string { return "P" + id.String() }
	for _, c := range []struct {
		m    parley.Msg
		want string
	}{{data(2, 1, 7), "P2#7 2.1.7"}, {data(2, 3, 1), "P2.3#1 2.3.1"}} {
		if have := slices.Collect(p.Explain(parley.Env{}, c.m, name)); !slices.Equal(have, []string{c.want}) {
			t.Error(have)
		}
	}
	if m := p.Rename(parley.Env{}, data(2, 1, 1), []parley.ID{1, 2, 0}); m.Origin != 0 {
		t.Error(m)
	}
}

func Example() {
	s := sim.Run(sim.Options{
		Protocol: diffusion.New(diffusion.Config{N: 3}),
		Requests: []sim.Request{{At: 0, Msg: problem.Request([]byte("hello"))}},
		Crashes:  []sim.Crash{{At: 0, Step: 2, Effects: 1}}, // it has written to process 1 only
	})
	for _, d := range s.History.Deliveries {
		fmt.Printf("process %s delivers %s of process %s\n", d.At, d.Msg.Body, d.From)
	}
	// Output:
	// process 1 delivers hello of process 0
	// process 2 delivers hello of process 0
}
