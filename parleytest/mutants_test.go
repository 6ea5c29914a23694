package parleytest_test

import (
	"errors"
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// flawed is a FloodSet process with some clauses replaced.
type flawed struct {
	flooding
	emit   func(p *flawed, s *parley.Step, r int)
	absorb func(p *flawed, s *parley.Step, r int, from parley.ID, m parley.Msg)
	state  func(p *flawed, v *parley.Vars)
	count  int
	scores []byte
}

func (p *flawed) Emit(s *parley.Step, r int) {
	if p.emit != nil {
		p.emit(p, s, r)
		return
	}
	p.flooding.Emit(s, r)
}

func (p *flawed) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	if p.absorb != nil {
		p.absorb(p, s, r, from, m)
		return
	}
	p.flooding.Absorb(s, r, from, m)
}

func (p *flawed) State(v *parley.Vars) {
	if p.state != nil {
		p.state(p, v)
		return
	}
	p.flooding.State(v)
}

// flaw returns FloodSet(4, 1) with the given processes.
func flaw(process func() *flawed) parley.Protocol {
	p := floodSet(4, 1)
	p.New = func(parley.ID) lockstep.Rounds {
		m := process()
		m.last = 1
		return m
	}
	return lockstep.Of(p, lockstep.Simulated)
}

// mutant is a protocol with one fault, and the check that must find it.
type mutant struct {
	name, check string
	says        string // part of the text of the failure
	p           parley.Protocol
	o           parleytest.Options
}

// changed returns FloodSet with something changed, and lying EIG.
func changed(change func(p *parley.Protocol)) parley.Protocol {
	p := FloodSet(4, 1)
	change(&p)
	return p
}

func lying(change func(p *parley.Protocol)) parley.Protocol {
	p := eig.New(eig.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated)
	change(&p)
	return p
}

// inTheory returns mutants of what a protocol promises or declares.
func inTheory() []mutant {
	return []mutant{
		{name: "none, as a control", p: FloodSet(4, 1)},
		{name: "none, as another", p: lying(func(*parley.Protocol) {})},
		{name: "none, as a third", p: mail(3, true, true), o: mails},
		{name: "none, with names that only an address explains", p: distances(4)},
		{name: "none, and it does not end", p: beats(100), o: parleytest.Options{Sim: sim.Options{Until: 5000}}},
		{name: "it does not end", check: "promises", says: "does not end", p: beats(100)},
		{name: "time stands still", check: "promises", says: "does not end", p: beats(0)},
		{name: "time stands still before its end", check: "promises", says: "does not end", p: beats(0),
			o: parleytest.Options{Sim: sim.Options{Until: 5000}}},
		{name: "one round too few", check: "promises", p: changed(func(p *parley.Protocol) {
			p.New = FloodSet(4, 0).New
		})},
		{name: "no properties", check: "promises", p: changed(func(p *parley.Protocol) { p.Properties = nil })},
		{name: "no promises", check: "promises", p: changed(func(p *parley.Protocol) {
			p.Promises = func(parley.RunConditions) []parley.Promise { return nil }
		})},
		{name: "never sometimes", check: "promises", p: FloodSet(4, 1),
			o: parleytest.Options{Alphabet: []string{"0"}}},
		{name: "liars never heard", check: "promises", p: lying(func(p *parley.Protocol) {
			made := p.New
			p.New = func(self parley.ID) parley.Machine { return deaf{made(self)} }
			p.Promises = func(parley.RunConditions) []parley.Promise {
				return []parley.Promise{{Property: "integrity", Holds: true}}
			}
		})},
		{name: "lies refused, the truth heard", check: "promises", says: "no lie", p: lying(func(p *parley.Protocol) {
			p.Lies = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
				return [][]parley.Outgoing{t.Honest, {{Msg: parley.Msg{Kind: lockstep.Frame + 1}}}, nil}[s.Choose(3)]
			}
		})},
		{name: "rounds too short for the delays", check: "promises", p: FloodSet(4, 1), o: parleytest.Options{
			Sim: sim.Options{Delay: sim.Delay{Least: 1, Most: 1100}},
		}},
		{name: "a bound that nothing breaks beyond", check: "beyond", p: lying(func(p *parley.Protocol) {
			p.Bound = func(n, m int) error {
				if n <= 4*m {
					return errors.New("too few")
				}
				return nil
			}
		})},
		{name: "no remaking it", check: "beyond", says: "no room", p: lying(func(p *parley.Protocol) {
			p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
				fs.Int("n", 4, "")
				fs.Int("m", 1, "")
				return func(parley.Naming) (parley.Protocol, error) { return parley.Protocol{}, errors.New("no room") }
			}
		})},
		{name: "no flags to remake it by", check: "beyond", says: "no flags", p: lying(func(p *parley.Protocol) {
			p.Flags = func(*flag.FlagSet) func(parley.Naming) (parley.Protocol, error) { return nil }
		})},
		{name: "a beyond within the bound", check: "beyond", p: FloodSet(4, 1), o: parleytest.Options{
			Beyond: []parleytest.Beyond{{Protocol: FloodSet(4, 2), Faulty: 1}},
		}},
	}
}

// inMachines returns mutants of the machines.
func inMachines() []mutant {
	global := 0
	return []mutant{
		{name: "state outside machines", check: "determinism", p: flaw(func() *flawed {
			return &flawed{emit: func(p *flawed, s *parley.Step, r int) {
				if global++; global%37 == 0 {
					s.SendAll(parley.Msg{Kind: 2})
				}
				p.flooding.Emit(s, r)
			}}
		})},
		{name: "a variable not visited", check: "reload", p: flaw(func() *flawed {
			return &flawed{state: func(p *flawed, v *parley.Vars) {
				parley.Slice(v, "known", &p.known, func(_ int, value *[]byte) { v.Bytes("value", value) })
			}}
		})},
		{name: "loading into a used machine adds to it", check: "reload", p: flaw(func() *flawed {
			return &flawed{state: func(p *flawed, v *parley.Vars) {
				p.flooding.State(v)
				if v.Loading() {
					p.count++
				}
				if p.count > 1 && !v.Loading() {
					p.known = nil
				}
			}}
		})},
		{name: "loaded bytes changed in place", check: "reload", p: flaw(func() *flawed {
			return &flawed{absorb: func(p *flawed, s *parley.Step, r int, from parley.ID, m parley.Msg) {
				p.flooding.Absorb(s, r, from, m)
				if p.scores == nil {
					p.scores = make([]byte, s.N)
				}
				p.scores[from]++
			}, state: func(p *flawed, v *parley.Vars) {
				p.flooding.State(v)
				v.Bytes("scores", &p.scores)
			}}
		})},
		{name: "Rename changes what has no names", check: "rename", p: changed(func(p *parley.Protocol) {
			p.Rename = func(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
				m.Value += uint64(perm[0])
				return m
			}
		})},
		{name: "a name not renamed", check: "rename", p: flaw(func() *flawed {
			return &flawed{
				absorb: func(p *flawed, s *parley.Step, r int, from parley.ID, m parley.Msg) {
					p.flooding.Absorb(s, r, from, m)
					p.count |= 1 << from
				},
				state: func(p *flawed, v *parley.Vars) {
					p.flooding.State(v)
					parley.Num(v, "heard", &p.count)
				},
			}
		})},
		{name: "a name not renamed while it is needed", check: "rename", p: flaw(func() *flawed {
			return &flawed{
				emit: func(p *flawed, s *parley.Step, r int) {
					p.fresh = slices.Clone(p.known) // so that something is received in each round
					p.flooding.Emit(s, r)
				},
				absorb: func(p *flawed, s *parley.Step, r int, from parley.ID, m parley.Msg) {
					p.flooding.Absorb(s, r, from, m)
					p.count = (1 - r) * int(1+from)
				},
				state: func(p *flawed, v *parley.Vars) {
					p.flooding.State(v)
					parley.Num(v, "last heard", &p.count)
				},
			}
		})},
		{name: "who comes back is taken seriously", check: "crashes", p: lying(func(p *parley.Protocol) {
			made := p.New
			p.New = func(self parley.ID) parley.Machine { return revenant{made(self)} }
		})},
		{name: "it sends before it appends, and forgets", check: "crashes", p: mail(3, false, true), o: mails},
		{name: "records not in durable variables", check: "log", p: mail(3, true, false)},
		{name: "an index from a message", check: "hostile", p: flaw(func() *flawed {
			return &flawed{absorb: func(p *flawed, s *parley.Step, r int, from parley.ID, m parley.Msg) {
				_ = make([]int, s.N)[m.Origin]
				p.flooding.Absorb(s, r, from, m)
			}}
		})},
		{name: "choice 0 is a lie", check: "lies", p: lying(func(p *parley.Protocol) {
			lies := p.Lies
			p.Lies = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
				said := lies(s, t)
				if reflect.DeepEqual(said, t.Honest) {
					return nil
				}
				return said
			}
		})},
		{name: "a theorem that counts wrongly", check: "cost", p: lying(func(p *parley.Protocol) {
			p.Cost = func(n, m int) parley.Cost { return eig.Cost(n+1, m) }
		})},
	}
}

// TestMutants injects one fault at a time into a protocol: the check that is for it must fail, and must be
// the first to fail.
func TestMutants(t *testing.T) {
	for _, mutant := range slices.Concat(inTheory(), inMachines(), broadcastMutants()) {
		t.Run(mutant.name, func(t *testing.T) {
			mutant.o.Seeds = 150
			err := parleytest.Check(mutant.p, mutant.o)
			if mutant.check == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), mutant.check+": ") ||
				!strings.Contains(err.Error(), mutant.says) {
				t.Fatalf("%v, and %s should fail", err, mutant.check)
			}
			t.Log(strings.SplitN(err.Error(), "\n", 2)[0])
		})
	}
}
