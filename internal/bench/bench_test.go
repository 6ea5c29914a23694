package bench_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/eig/sliced"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/internal/bench"
	"parley/lockstep"
	"parley/sim"
)

// The machines of the processes and the engines for the whole system hold the same values in every node and decide
// the same, against the same adversary, also with more than m liars and beyond the bound.
func TestMachinesAndEnginesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	nodes, all := 0, 0
	for i := range 400 {
		n := 4 + rng.IntN(5)
		in := eig.Config{N: n, M: rng.IntN(min(n-1, 4)), Source: parley.ID(rng.IntN(n)), Default: []byte{"01"[rng.IntN(2)]}}
		sys := sliced.System{N: n, M: in.M, Source: int(in.Source), Value: uint64(rng.IntN(2)), Default: uint64(in.Default[0] - '0')}
		opt := sim.Options{Faulty: make(map[parley.ID]faulty.Behavior), Requests: []sim.Request{{
			At: in.Source, Msg: parley.Msg{Kind: parley.Propose, Body: fmt.Append(nil, sys.Value)},
		}}}
		for _, id := range rng.Perm(n)[:rng.IntN(n-1)] {
			opt.Faulty[parley.ID(id)] = faulty.Script
			if id == sys.Source {
				sys.SourceFaulty = true
			} else {
				sys.Faulty |= 1 << sys.Lieutenant(id)
			}
		}
		liar := sliced.TwoFaced(rng.Uint64())
		p := eig.Rounds(in)
		p.Lies = eig.Tell(in, func(path []parley.ID, to parley.ID, _ []byte) []byte {
			if to == in.Source {
				return nil
			}
			return fmt.Append(nil, liar(slicedPath(sys, path), 0)>>sys.Lieutenant(int(to))&1)
		})
		opt.Protocol = lockstep.Of(p, lockstep.Simulated)
		run := sim.Run(opt)
		tree := maps.Collect(sys.Levels(liar).Nodes())
		decided := sys.DepthFirst(liar, 1+i%2)
		for id, v := range problem.Decisions(&run.History) {
			r := sys.Lieutenant(int(id))
			if r < 0 {
				continue
			}
			if want := fmt.Sprint(decided >> r & 1); string(v) != want {
				t.Fatalf("case %d: process %d decides %s, and the engine %s", i, id, v, want)
			}
			machine := opt.Protocol.Tree(run.Machine(id))
			var walk func(path []parley.ID)
			walk = func(path []parley.ID) {
				a, b, children := machine.Node(path)
				node := tree[slicedPath(sys, path)]
				wantIn, wantOut := fmt.Sprint(node.In>>r&1), fmt.Sprint(node.Out>>r&1)
				if string(a) != wantIn || string(b) != wantOut {
					t.Fatalf("case %d: node %v of process %d is %s/%s, and in the engine %s/%s", i, path, id, a, b, wantIn, wantOut)
				}
				nodes++
				for _, child := range children {
					walk(append(slices.Clip(path), child))
				}
			}
			walk(machine.Root())
			all += len(tree)
		}
	}
	if nodes != all || nodes < 20_000 {
		t.Errorf("%d nodes of %d were compared", nodes, all)
	}
}

func slicedPath(sys sliced.System, path []parley.ID) sliced.Path {
	var p sliced.Path
	for _, id := range path[1:] {
		p = p.Append(sys.Lieutenant(int(id)))
	}
	return p
}

// Every engine of every protocol runs, and its run agrees.
func TestRun(t *testing.T) {
	decisions := make(map[string]string)
	for protocol, engines := range bench.Engines {
		for _, engine := range engines {
			s := bench.Spec{Protocol: protocol, Engine: engine, N: 10, M: 3, Seed: 5, Workers: 2, Signatures: "ideal"}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			r := s.Run()
			if !r.Agreement || r.WallSeconds <= 0 || r.PeakRSS == 0 || r.EquivalentDeliveries == 0 {
				t.Errorf("%s, %s: %+v", protocol, engine, r)
			}
			decisions[protocol+" "+engine] = r.Decision
			if want := map[string]uint64{"eig": 586 * 9, "om": 3609}[protocol]; r.Nodes != want {
				t.Errorf("%s, %s: %d nodes, want %d", protocol, engine, r.Nodes, want)
			}
		}
	}
	// With a correct source that sends 1, the oral protocols decide 1. The source of the staircase is faulty and
	// shows several values.
	for who, v := range decisions {
		if want := map[bool]string{true: "0", false: "1"}[who == "sm machine"]; v != want {
			t.Errorf("%s decides %s", who, v)
		}
	}
}

// An invalid spec is refused, and the error says what is allowed.
func TestCheck(t *testing.T) {
	good := bench.Spec{Protocol: "eig", Engine: "levels", N: 7, M: 2, Workers: 1, Signatures: "ideal"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*bench.Spec){
		"protocol":   func(s *bench.Spec) { s.Protocol = "paxos" },
		"engine":     func(s *bench.Spec) { s.Engine = "warp" },
		"no engine":  func(s *bench.Spec) { s.Engine = "" },
		"half name":  func(s *bench.Spec) { s.Engine = "level" },
		"bound":      func(s *bench.Spec) { s.N = 6 },
		"n":          func(s *bench.Spec) { s.N = 1 },
		"big":        func(s *bench.Spec) { s.N = 100 },
		"workers":    func(s *bench.Spec) { s.Workers = 0 },
		"signatures": func(s *bench.Spec) { s.Signatures = "rsa" },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

func BenchmarkEIGMachine(b *testing.B) {
	for _, nm := range [][2]int{{13, 4}, {16, 5}, {19, 6}} {
		b.Run(fmt.Sprintf("n=%d,m=%d", nm[0], nm[1]), func(b *testing.B) {
			s := bench.Spec{Protocol: "eig", Engine: "machine", N: nm[0], M: nm[1], Seed: 1, Workers: 1, Signatures: "ideal"}
			for b.Loop() {
				if r := s.Run(); !r.Agreement {
					b.Fatal("no agreement")
				}
			}
		})
	}
}
