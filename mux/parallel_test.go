package mux_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/mux"
	"parley/parleytest"
	"parley/seq"
	"parley/sim"
	"parley/trace"
)

// gather is a protocol for composition: in each of its rounds every process sends
// all others its value and the round, and at the end delivers what it received in all
// of them. Only proposers have a value of their own, the others send "-".
func gather(name string, n, rounds int, proposers ...parley.ID) lockstep.Protocol {
	who := parley.SetOf(proposers...)
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: name, N: n, M: 1, Faults: parley.OralByzantineFaults, Proposers: who,
			Cost: func(n, _ int) parley.Cost {
				each := parley.Traffic{Messages: uint64(n * n), Bits: uint64(8 * n * n)}
				return parley.Cost{Rounds: rounds, PerRound: slices.Repeat([]parley.Traffic{each}, rounds)}
			},
			Size: func(e parley.Env, m parley.Msg) parley.Traffic {
				if m.Seq != uint64(e.Round) {
					panic(fmt.Sprintf("%s is shown a message of round %d in round %d", name, m.Seq, e.Round))
				}
				return parley.Traffic{Messages: 1, Bits: 8}
			},
			Explain: func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
				return slices.Values([]string{fmt.Sprintf("%s says %s in %d", name(e.From), m.Body, m.Seq)})
			},
			Lies: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
				for got := range t.Seen {
					if got.Msg.Seq != uint64(got.Round) || got.Round > t.Round || string(got.Msg.Body[1:]) != name {
						panic(fmt.Sprintf("a liar of %s sees a message not its own in round %d: %v", name, t.Round, got))
					}
				}
				if s.Choose(2) == 1 || len(t.Honest) == 0 {
					return nil
				}
				m := t.Honest[0].Msg
				if m.Seq != uint64(t.Round) {
					panic(fmt.Sprintf("a liar of %s is asked about round %d in round %d", name, m.Seq, t.Round))
				}
				m.Body = []byte("X" + name)
				return []parley.Outgoing{{Path: t.Honest[0].Path, Msg: m}}
			},
		},
		Last: rounds - 1,
		New:  func(self parley.ID) lockstep.Rounds { return &gathering{name: name, last: rounds - 1, value: "-"} },
	}
}

type gathering struct {
	name  string
	last  int
	value string
	heard []string
}

func (g *gathering) Request(_ *parley.Step, m parley.Msg) { g.value = string(m.Body) }

func (g *gathering) Emit(s *parley.Step, r int) {
	m := parley.Msg{Kind: 1, Seq: uint64(r), Body: []byte(g.value[:1] + g.name)}
	s.SendAll(m)
	s.Keep(m)
}

func (g *gathering) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	if m.Seq != uint64(r) || m.Kind != 1 {
		s.Refuse(from, "not of this round")
		return
	}
	g.heard = append(g.heard, fmt.Sprintf("%d:%d:%s", r, from, m.Body))
}

func (g *gathering) Close(s *parley.Step, r int) {
	if r == g.last {
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: []byte(strings.Join(g.heard, " "))})
	}
}

func (g *gathering) State(v *parley.Vars) {
	b := []byte(g.value)
	v.Bytes("value", &b)
	g.value = string(b)
	parley.Slice(v, "heard", &g.heard, func(_ int, x *string) {
		b := []byte(*x)
		v.Bytes("message", &b)
		*x = string(b)
	})
}

// delivered runs a protocol and returns what each process delivers at each path,
// with the times of the deliveries in rounds.
func delivered(t *testing.T, p lockstep.Protocol, opt sim.Options) (map[parley.Path][]string, *sim.Sim) {
	t.Helper()
	opt.Protocol = lockstep.Of(p, lockstep.Simulated)
	opt.Log = &trace.Log{Keep: true}
	for id := range p.Proposers.All() {
		opt.Requests = append(opt.Requests, sim.Request{At: id, Msg: parley.Msg{
			Kind: parley.Propose, Body: fmt.Appendf(nil, "%c", 'a'+id),
		}})
	}
	s := sim.Run(opt)
	out := make(map[parley.Path][]string)
	for _, e := range opt.Log.Events {
		if e.Op == trace.Deliver {
			out[e.Path] = append(out[e.Path], fmt.Sprintf("%d at %d: %s", e.At, e.Time/lockstep.Simulated.Delta, e.Msg.Body))
		}
	}
	return out, s
}

// flips sends the one lie there is to all.
var flips = map[parley.ID]faulty.Behavior{
	2: {Name: "flips", Choose: func(*parley.Step, *parley.Turn, int, int) int { return 0 }},
}

// Each part does the same side by side with others as alone, however adapters are
// nested, and a faulty process lies in all parts.
func TestSideBySideIsAlone(t *testing.T) {
	const n = 4
	a, b, c := gather("A", n, 2, 0, 1, 2, 3), gather("B", n, 3, 1), gather("C", n, 1, 0, 3)
	for _, test := range []struct {
		name  string
		whole lockstep.Protocol
		parts map[parley.Path]lockstep.Protocol
	}{
		{"one", mux.Rounds("one", []lockstep.Protocol{a}), map[parley.Path]lockstep.Protocol{0: a}},
		{"three", mux.Rounds("three", []lockstep.Protocol{a, b, c}), map[parley.Path]lockstep.Protocol{0: a, 1: b, 2: c}},
		{
			"mux of mux", mux.Rounds("outer", []lockstep.Protocol{c, mux.Rounds("inner", []lockstep.Protocol{a, b, c}), b}),
			// The outer number is in the lowest two bits.
			map[parley.Path]lockstep.Protocol{0: c, 0<<2 | 1: a, 1<<2 | 1: b, 2<<2 | 1: c, 2: b},
		},
		{"seq in mux", mux.Rounds("outer", []lockstep.Protocol{b, seq.Of("then", a, c)}),
			map[parley.Path]lockstep.Protocol{0: b, 1: seq.Of("then", a, c)}},
	} {
		for _, liars := range []map[parley.ID]faulty.Behavior{nil, flips} {
			t.Run(fmt.Sprintf("%s/%d liars", test.name, len(liars)), func(t *testing.T) {
				got, s := delivered(t, test.whole, sim.Options{Faulty: liars, Measure: true})
				if len(got) != len(test.parts) {
					t.Errorf("deliveries at %d paths, want %d", len(got), len(test.parts))
				}
				for path, part := range test.parts {
					want, _ := delivered(t, part, sim.Options{Faulty: liars})
					if !slices.Equal(got[path], want[0]) || len(want[0]) == 0 {
						t.Errorf("path %d: %s side by side with others delivers\n%q, alone\n%q", path, part.Name, got[path], want[0])
					}
				}
				// One frame per peer and round carries all messages.
				if want := uint64(n * (n - 1) * (test.whole.Last + 1)); s.Stats.Sends != want {
					t.Errorf("%d frames, want %d", s.Stats.Sends, want)
				}
				if liars == nil && !slices.Equal(s.Stats.Sent, test.whole.Cost(n, 1).PerRound) {
					t.Errorf("sent %v, and the parts' costs add up to %v", s.Stats.Sent, test.whole.Cost(n, 1).PerRound)
				}
			})
		}
	}
}

// The whole assumes what any part assumes, and tolerates what every part does.
func TestSum(t *testing.T) {
	a, b := gather("A", 4, 2, 0, 1), gather("B", 4, 3, 1, 2)
	b.Faults = parley.CrashFaults
	b.Bound = func(int, int) error { return fmt.Errorf("too many") }
	p := mux.Rounds("both", []lockstep.Protocol{a, b})
	if p.Proposers != parley.SetOf(0, 1, 2) || p.Faults != parley.CrashFaults || p.Last != 2 || p.Bound(4, 1) == nil {
		t.Errorf("proposers %v, faults %v, last %d, bound %v", p.Proposers, p.Faults, p.Last, p.Bound(4, 1))
	}
	e := parley.Env{From: 3, To: 1, Path: 1, Round: 2}
	name := func(id parley.ID) string { return fmt.Sprintf("P%d", id+1) }
	rows := slices.Collect(p.Explain(e, parley.Msg{Kind: 1, Seq: 2, Body: []byte("v")}, name))
	if !slices.Equal(rows, []string{"#1: P4 says v in 2"}) {
		t.Errorf("rows %q", rows)
	}
	four := mux.OfSources("four", []lockstep.Protocol{a, a, a, a})
	e.Path, e.Round = 3, 1
	rows = slices.Collect(four.Explain(e, parley.Msg{Kind: 1, Seq: 1, Body: []byte("v")}, name))
	if !slices.Equal(rows, []string{"P4: P4 says v in 1"}) {
		t.Errorf("rows %q", rows)
	}
}

// A faulty process's messages to parts that do not exist or are over are refused and have no
// effect.
func TestStrayMessages(t *testing.T) {
	a, b, c := gather("A", 4, 3, 0), gather("B", 4, 1, 0), gather("C", 4, 1, 0)
	p := mux.Rounds("three", []lockstep.Protocol{a, b, c})
	stray := faulty.Behavior{Name: "stray", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		frame := t.Honest[0].Msg
		for _, path := range []parley.Path{3, 1, 7} {
			frame.Body = parley.AppendMsg(frame.Body, path, parley.Msg{Kind: 1, Seq: frame.Seq, Body: []byte("XX")})
		}
		return []parley.Outgoing{{Msg: frame}}
	}}
	got, s := delivered(t, p, sim.Options{Faulty: map[parley.ID]faulty.Behavior{3: stray}})
	// Each of three correct processes refuses two messages to part 3 in each of three rounds;
	// part 1 is over after one round.
	if s.Stats.Refused["message to a part there is not"] != 18 || s.Stats.Refused["message to a part that is over"] != 6 {
		t.Errorf("refused %v", s.Stats.Refused)
	}
	for path, list := range got {
		for _, one := range list {
			if strings.Contains(one, "XX") != (path == 1 && one[0] != '3') {
				t.Errorf("path %d: %s", path, one)
			}
		}
	}
	open := lockstep.Of(p, lockstep.Simulated)
	e := parley.Env{From: 3, To: 0}
	bad := parley.Msg{Kind: lockstep.Frame, Body: parley.AppendMsg(nil, 3, parley.Msg{Kind: 1})}
	if size := open.Size(e, bad); size != (parley.Traffic{}) {
		t.Errorf("a message to no part has size %v", size)
	}
}

// A faulty process lies in every part that is not over, even if it has nothing to send there, and
// sees only what belongs to that part.
func TestLies(t *testing.T) {
	always := []parley.Outgoing{{Msg: parley.Msg{Kind: 1, Body: []byte("lie")}}} // one shared slice
	part := func(name string, rounds int) lockstep.Protocol {
		p := gather(name, 4, rounds, 0)
		p.Lies = func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			for got := range t.Seen {
				if string(got.Msg.Body) != name {
					panic(fmt.Sprintf("a liar of %s sees %v", name, got))
				}
			}
			return always
		}
		return p
	}
	p := mux.Rounds("three", []lockstep.Protocol{part("A", 2), part("B", 1), part("C", 2)})
	seen := slices.Values([]parley.Received{
		{Path: 2, Msg: parley.Msg{Body: []byte("C")}}, {Path: 1, Msg: parley.Msg{Body: []byte("B")}},
	})
	for round, want := range []string{"[0 1 2]", "[0 2]"} {
		var paths []parley.Path
		turn := &parley.Turn{Self: 1, Round: round, Seen: seen, Honest: []parley.Outgoing{{Path: 0}}}
		for _, sent := range p.Lies(&parley.Step{}, turn) {
			paths = append(paths, sent.Path)
		}
		if fmt.Sprint(paths) != want {
			t.Errorf("in round %d a liar speaks in parts %v, want %s", round, paths, want)
		}
	}
}

// OfSources requires a part for each process.
func TestOfSourcesCounts(t *testing.T) {
	a := gather("A", 4, 1, 0)
	if !parleytest.Panics(func() { mux.OfSources("three", []lockstep.Protocol{a, a, a}) }) {
		t.Error("three parts are taken to be about four processes")
	}
}
