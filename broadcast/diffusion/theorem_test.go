package diffusion_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
)

// talk makes each process broadcast a few messages, some of them at once.
func talk(n int, r *rand.Rand) []sim.Request {
	var out []sim.Request
	for id := range parley.ID(n) {
		for k := range 1 + r.IntN(4) {
			out = append(out, sim.Request{At: id, When: parley.Tick(100 * r.IntN(20)),
				Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	return out
}

// crashes crashes up to m processes in the middle of a step.
func crashes(n, m int, r *rand.Rand) []sim.Crash {
	var out []sim.Crash
	for _, i := range r.Perm(n)[:r.IntN(m+1)] {
		out = append(out, sim.Crash{At: parley.ID(i), Step: 2 + r.IntN(3*n), Effects: r.IntN(n + 2)})
	}
	return out
}

// graph draws a random connected graph: a tree with some more links.
func graph(n int, r *rand.Rand) []parley.Set {
	out := make([]parley.Set, n)
	link := func(a, b int) { out[a].Add(parley.ID(b)); out[b].Add(parley.ID(a)) }
	for i := 1; i < n; i++ {
		link(i, r.IntN(i))
	}
	for range r.IntN(n) {
		if a, b := r.IntN(n), r.IntN(n); a != b {
			link(a, b)
		}
	}
	return out
}

// Slide "Reliable Broadcast by Message Diffusion": validity, agreement and integrity hold if every two
// correct processes are connected by correct ones. Links double and reorder, and processes crash in the
// middle of a send. Where correct processes are disconnected, some run must break agreement.
func TestReliableOnAnyGraph(t *testing.T) {
	joined, apart, broke := 0, 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(6)
		c := diffusion.Config{N: n, M: n - 1}
		if seed%4 > 0 {
			c.Graph = graph(n, r)
		}
		p := diffusion.New(c)
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, Twice: 0.2, Graph: c.Graph, Requests: talk(n, r),
			Crashes: crashes(n, n-1, r)})
		lacking := parleytest.Judge(t, p, s, seed)
		if s.RunConditions().Network.Disconnected {
			apart++
			if slices.Contains(lacking, problem.Agreement) {
				broke++
			}
		} else {
			joined++
		}
	}
	if joined < 100 || apart < 50 || broke < 20 {
		t.Errorf("%d runs with all joined, %d without, agreement broke in %d", joined, apart, broke)
	}
}

// Each process relays before it delivers: on a complete graph, if what was sent arrives, all correct
// processes deliver what any process delivered.
func TestRelayComesFirst(t *testing.T) {
	crashed := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.IntN(4)
		s := sim.Run(sim.Options{Protocol: diffusion.New(diffusion.Config{N: n}), Seed: seed, Requests: talk(n, r),
			Crashes: crashes(n, n-1, r)})
		crashed += int(s.Stats.Crashes)
		if err := problem.Of(problem.UniformAgreement)[0].Check(&s.History); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if crashed < 100 {
		t.Errorf("%d crashes", crashed)
	}
}

// The plain form is not uniform on a graph: 0 delivers its own message, and its only neighbor crashes before
// it relays.
func TestPlainIsNotUniform(t *testing.T) {
	c := diffusion.Config{N: 4, M: 2, Graph: []parley.Set{
		parley.SetOf(1), parley.SetOf(0, 2), parley.SetOf(1, 3), parley.SetOf(2)}}
	s := sim.Run(sim.Options{Protocol: diffusion.New(c), Graph: c.Graph,
		Requests: []sim.Request{{At: 0, Msg: problem.Request([]byte("m"))}},
		Crashes:  []sim.Crash{{At: 0, Step: 2, Effects: 99}, {At: 1, Step: 2, Effects: 0}}})
	parleytest.Judge(t, diffusion.New(c), s, "the run")
	if problem.Of(problem.UniformAgreement)[0].Check(&s.History) == nil {
		t.Error("it is uniform")
	}
}

// doomed makes up to m processes crash after a period in which all that they send is lost, as when a computer
// fails with full buffers.
func doomed(opt *sim.Options, n, m int, r *rand.Rand) {
	for _, i := range r.Perm(n)[:r.IntN(m+1)] {
		since := parley.Tick(1 + r.IntN(2000))
		opt.Crashes = append(opt.Crashes, sim.Crash{At: parley.ID(i), When: since + parley.Tick(r.IntN(700)), Effects: 99})
		opt.Links = append(opt.Links, sim.Link{From: parley.SetOf(parley.ID(i)), Since: since, Loss: 1})
	}
}

// If fewer than half of the processes crash, the uniform form is reliable and uniform, even if what a process
// sent before its crash is lost. In some of the same runs the plain form must deliver what no correct process
// delivers.
func TestUniform(t *testing.T) {
	uniform, plain := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 3 + r.IntN(4)
		opt := sim.Options{Seed: seed, Twice: 0.2, Requests: talk(n, r)}
		if seed%2 == 0 {
			doomed(&opt, n, (n-1)/2, r)
		} else {
			opt.Crashes = crashes(n, (n-1)/2, r)
		}
		opt.Protocol = diffusion.New(diffusion.Config{N: n, Uniform: true})
		s := sim.Run(opt)
		for _, property := range opt.Protocol.Properties {
			if err := property.Check(&s.History); err != nil && property.Mode != parley.Sometimes {
				t.Fatalf("seed %d: %s: %v", seed, property.Name, err)
			}
		}
		parleytest.Judge(t, opt.Protocol, s, seed)
		uniform += len(s.History.Deliveries)
		opt.Protocol = diffusion.New(diffusion.Config{N: n})
		s = sim.Run(opt)
		if problem.Of(problem.UniformAgreement)[0].Check(&s.History) != nil {
			plain++
		}
	}
	if uniform < 5000 || plain < 10 {
		t.Errorf("%d deliveries, and the plain form was not uniform in %d runs", uniform, plain)
	}
}

// A process delivers when it has copies from more than half: its own and the sender's are two of three, but
// two of four are not enough.
func TestMajority(t *testing.T) {
	for _, c := range []struct{ n, copies int }{{1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 3}, {6, 4}, {7, 4}} {
		m := diffusion.New(diffusion.Config{N: c.n, Uniform: true}).New(0)
		s := &parley.Step{N: c.n}
		m.Start(s)
		m.Request(s, problem.Request([]byte("m")))
		own := s.Effects[len(s.Effects)-1]
		if c.n > 1 {
			own = s.Effects[len(s.Effects)-2]
		}
		for copies := 1; ; copies++ {
			last := s.Effects[len(s.Effects)-1]
			if last.Op == parley.OpDeliver {
				if copies != c.copies {
					t.Errorf("n=%d: delivered with %d copies", c.n, copies)
				}
				break
			}
			s.Effects = s.Effects[:0]
			if copies == c.n {
				t.Fatalf("n=%d: never delivered", c.n)
			}
			relayed := parley.Msg{Kind: diffusion.Data, Seq: 1, Value: 1, Body: []byte("m")}
			m.Receive(s, parley.ID(copies), relayed) // twice from each: a process counts once
			m.Receive(s, parley.ID(copies), relayed)
			if len(s.Effects) == 0 {
				s.Effects = append(s.Effects, own)
			}
		}
	}
}

// A restarted process begins another incarnation with number 1: what it broadcasts then is no duplicate of an
// earlier broadcast, even of its first one, and messages in transit from its first incarnation are delivered
// once as well.
func TestRestart(t *testing.T) {
	again := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := 3 + r.IntN(3)
		opt := sim.Options{Protocol: diffusion.New(diffusion.Config{N: n, Uniform: seed%2 == 1}), Seed: seed,
			Twice: 0.2, Requests: talk(n, r)}
		for back, at := range r.Perm(n)[:1] {
			opt.Crashes = []sim.Crash{{At: parley.ID(at), Step: 2 + r.IntN(8), Effects: r.IntN(n + 2),
				Back: parley.Tick(1 + 300*back + r.IntN(1500))}}
		}
		opt.Requests = append(opt.Requests, sim.Request{At: opt.Crashes[0].At, When: 8000,
			Msg: problem.Request([]byte("again"))})
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, seed)
		if s.Stats.Restarts == 0 {
			continue
		}
		// Processes that were never down see no effect of the restart.
		s.History.Faulty.Add(opt.Crashes[0].At)
		for _, property := range opt.Protocol.Properties {
			if err := property.Check(&s.History); err != nil && property.Mode != parley.Sometimes {
				t.Fatalf("seed %d: %s: %v", seed, property.Name, err)
			}
		}
		for _, d := range s.History.Deliveries {
			if string(d.Msg.Body) == "again" {
				again++
			}
		}
	}
	if again < 600 {
		t.Errorf("%d deliveries of the last message", again)
	}
}

// Without its disk a process reuses its old numbers, and its broadcasts are taken for earlier ones. So
// nothing is promised then.
func TestLostDisk(t *testing.T) {
	p := diffusion.New(diffusion.Config{N: 3})
	s := sim.Run(sim.Options{Protocol: p,
		Requests: []sim.Request{{At: 0, Msg: problem.Request([]byte("one"))},
			{At: 0, When: 8000, Msg: problem.Request([]byte("two"))}},
		Crashes: []sim.Crash{{At: 0, Step: 2, Effects: 99, Back: 4000, LostDisk: true}}})
	lacking := parleytest.Judge(t, p, s, "the run")
	if want := []string{problem.Validity, problem.Agreement}; !slices.Equal(lacking, want) {
		t.Error(lacking)
	}
}
