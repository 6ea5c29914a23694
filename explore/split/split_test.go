package split_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/sm"
	"parley/broadcast/diffusion"
	"parley/explore"
	"parley/explore/split"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// pair returns the roots of a coalition of two with the same behavior, for each value of a correct source.
func pair(how faulty.Behavior, a, b parley.ID) []explore.Root {
	liars := map[parley.ID]faulty.Behavior{a: how, b: how}
	out := []explore.Root{{Faulty: liars, Requests: []explore.Request{propose(0, "0")}}}
	if a != 0 {
		out = append(out, explore.Root{Faulty: liars, Requests: []explore.Request{propose(0, "1")}})
	}
	return out
}

// allPairs returns the roots of all coalitions of two.
func allPairs(n int, how faulty.Behavior) (out []explore.Root) {
	for b := range parley.ID(n) {
		for a := range b {
			out = append(out, pair(how, a, b)...)
		}
	}
	return out
}

func splitLast(t *testing.T, o explore.Options) split.Report {
	t.Helper()
	r, err := split.Search(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSplitSeven exhausts OM(2) with seven processes and two traitors, over the values 0 and 1: the source
// and a lieutenant, who send 5 + 5 bits before the last round and 4 to each of 5 receivers in it; and two
// lieutenants, who send 8 bits, for either value of the source, and 8 to each of 4 receivers. Without the
// split there are 2^30 and 2^41. With six processes, one receiver fewer, the source and the lieutenant may
// also be silent: the receivers treat silence as the default when a round closes, so it adds no states.
func TestSplitSeven(t *testing.T) {
	for _, c := range []struct {
		n                         int
		roots                     []explore.Root
		stages, evaluations, runs uint64
	}{
		{7, pair(explore.NeverSilent, 0, 6), 1 + 1<<5 + 1<<10, 81_920, 1 << 30},
		{7, pair(explore.NeverSilent, 5, 6), 2 + 2 + 2<<8, 524_288, 1 << 41},
		{6, pair(faulty.Any, 0, 5), 1 + 1<<4 + 1<<8, 1 << 8 * 4 * 27, 3_486_784_401},
	} {
		if testing.Short() && c.evaluations > 100_000 {
			continue
		}
		r := splitLast(t, explore.Options{Protocol: om.New(oral(c.n, 2), lockstep.Simulated), Roots: c.roots})
		if r.Outcome != explore.Exhausted || r.Broken != 0 || len(r.Findings) > 0 {
			t.Errorf("%s: %d adversaries break something", r.Outcome, r.Broken)
		}
		if r.Stages != c.stages || r.Evaluations != c.evaluations || r.Runs != c.runs {
			t.Errorf("%d stages, %d evaluations, %d adversaries; expected are %d, %d and %d",
				r.Stages, r.Evaluations, r.Runs, c.stages, c.evaluations, c.runs)
		}
		if r.Histories != 2 {
			t.Errorf("%d histories: all decide on 0, or all on 1", r.Histories)
		}
	}
}

// signed returns SM(m).
func signed(n, m int) parley.Protocol {
	return sm.New(sm.Config{Instance: oral(n, m)}, lockstep.Simulated)
}

// TestSplitIsSearch makes searches with and without the split: both have the same number of adversaries,
// and the same violations in the same way.
func TestSplitIsSearch(t *testing.T) {
	type options = explore.Options
	eigs := func(n, m int) parley.Protocol { return eig.New(oral(n, m), lockstep.Simulated) }
	oms := func(n, m int) parley.Protocol { return om.New(oral(n, m), lockstep.Simulated) }
	four := []explore.Request{propose(0, "1"), propose(1, "1"), propose(2, "0"), propose(3, "1")}
	both := map[parley.ID]faulty.Behavior{0: faulty.Any, 3: listener}
	alone := func(who parley.ID) []explore.Root {
		return []explore.Root{{Faulty: map[parley.ID]faulty.Behavior{who: explore.NeverSilent}, Requests: four}}
	}
	for name, c := range map[string]struct {
		o            options
		runs, broken uint64
	}{
		"eig 3 1":             {options{Protocol: eigs(3, 1), Roots: liars(3, 1, "0", "1")}, 21, 4},
		"eig 4 1":             {options{Protocol: eigs(4, 1), Roots: liars(4, 1, "0", "1")}, 81, 0},
		"eig 5 1":             {options{Protocol: eigs(5, 1), Roots: liars(5, 1, "0", "1")}, 297, 0},
		"om 3 1":              {options{Protocol: oms(3, 1), Roots: liars(3, 1, "0", "1")}, 21, 4},
		"om 4 1":              {options{Protocol: oms(4, 1), Roots: liars(4, 1, "0", "1")}, 81, 0},
		"om 5 1":              {options{Protocol: oms(5, 1), Roots: liars(5, 1, "0", "1")}, 297, 0},
		"sm 3 1":              {options{Protocol: signed(3, 1), Roots: liars(3, 1, "0", "1")}, 24, 0},
		"sm 4 1":              {options{Protocol: signed(4, 1), Roots: liars(4, 1, "0", "1")}, 88, 0},
		"sm 5 1":              {options{Protocol: signed(5, 1), Roots: liars(5, 1, "0", "1")}, 320, 0},
		"om 4 2":              {options{Protocol: oms(4, 2), Roots: pair(faulty.Any, 0, 3)}, 729, 56},
		"eig 4 2":             {options{Protocol: eigs(4, 2), Roots: allPairs(4, explore.NeverSilent)}, 1152, 312},
		"om 5 2":              {options{Protocol: oms(5, 2), Roots: pair(explore.NeverSilent, 0, 4)}, 1 << 12, 0},
		"om 5 2, lieutenants": {options{Protocol: oms(5, 2), Roots: pair(explore.NeverSilent, 3, 4)}, 1 << 13, 2700},
		"om 4 1, two lie":     {options{Protocol: oms(4, 1), Roots: allPairs(4, faulty.Any)}, 297, 63},
		"sm 4 1, two lie":     {options{Protocol: signed(4, 1), Roots: allPairs(4, faulty.Any)}, 1752, 192},
		"sm 4 2":              {options{Protocol: signed(4, 2), Roots: allPairs(4, faulty.Any)}, 15576, 0},
		"sm 4 0":              {options{Protocol: signed(4, 0), Roots: liars(4, 1, "0", "1")}, 70, 36},
		"nobody lies":         {options{Protocol: oms(4, 1), Roots: asking(propose(0, "1"))}, 1, 0},
		"interactive": {options{Protocol: interactive.New(interactive.Config{Instance: oral(4, 1)}, lockstep.Simulated),
			Roots: alone(3)}, 1 << 9, 0},
		"phaseking": {options{Protocol: phaseking.New(phaseking.Config{Instance: oral(4, 1)}, lockstep.Simulated),
			Roots: alone(1)}, 1 << 15, 0},
		"one listens": {options{Protocol: oms(4, 1), Roots: []explore.Root{{Faulty: both, Requests: four[:1]}}}, 164, 32},
		"gossip":      {options{Protocol: gossip(2), Roots: []explore.Root{{Faulty: map[parley.ID]faulty.Behavior{1: faulty.Any}}}}, 16, 15},
		"otherwise chosen": {options{Protocol: oms(4, 1), Roots: []explore.Root{{Requests: four[:1],
			Faulty: map[parley.ID]faulty.Behavior{0: faulty.SendOmission, 1: faulty.TwoFaced, 2: faulty.Twin}}}}, 1 << 2, 0},
	} {
		if testing.Short() && c.runs > 2000 {
			continue
		}
		t.Run(strings.NewReplacer(" ", "-", ",", "").Replace(name), func(t *testing.T) {
			c.o.Step, c.o.Beyond, c.o.All = explore.Rounds, true, true
			whole := search(t, c.o)
			there := make(map[string]bool)
			for _, f := range whole.Findings {
				there[words(f)] = true
			}
			for c.o.Workers = 1; c.o.Workers <= 2; c.o.Workers++ {
				split := splitLast(t, c.o)
				if split.Runs != c.runs || whole.Runs != c.runs {
					t.Errorf("%d adversaries, without the split %d; %d are expected", split.Runs, whole.Runs, c.runs)
				}
				if split.Outcome != whole.Outcome || (split.Outcome == explore.Found) != (c.broken > 0) || split.Broken != c.broken {
					t.Errorf("%s, %d break something; without the split %s; %d are expected",
						split.Outcome, split.Broken, whole.Outcome, c.broken)
				}
				here := make(map[string]bool)
				for _, f := range split.Findings {
					here[words(f.Finding)] = true
				}
				if !maps.Equal(here, there) {
					t.Errorf("found: %v\nwithout the split: %v", slices.Sorted(maps.Keys(here)), slices.Sorted(maps.Keys(there)))
				}
			}
		})
	}
}

// listener receives what the others send in a round before it sends, and has one more lie if most of them
// send 1.
var listener = faulty.Behavior{Name: "listener", Overhears: true, Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	ones := 0
	for got := range t.Seen {
		if got.Msg.Seq == t.Honest[0].Msg.Seq && bytes.HasSuffix(got.Msg.Body, []byte("1")) {
			ones++
		}
	}
	switch s.Choose(2 + ones/2) {
	case 0:
		return nil
	case 1:
		return t.Honest
	}
	f := t.Honest[0]
	f.Msg.Body = bytes.ReplaceAll(f.Msg.Body, []byte("0"), []byte("1"))
	return []parley.Outgoing{f}
}}

// gossip is a protocol of two rounds in which every process sends a number, and delivers the sum so far
// whenever it can; a liar adds a little. No process may reach an odd sum, and both correct ones deliver
// four times.
func gossip(lies int) parley.Protocol {
	return lockstep.Of(lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: "gossip", N: 3, M: 1, Faults: parley.OralByzantineFaults, Kinds: []string{"", "NUMBER"},
			Properties: []parley.Property{
				{Name: "nothing", Check: func(h *parley.History) error {
					for _, d := range h.Deliveries {
						if h.Correct(d.At) && d.Msg.Seq == 1 && d.Msg.Value%2 == 1 {
							return fmt.Errorf("%d heard %d early", d.At, d.Msg.Value)
						}
					}
					return nil
				}},
				{Name: "even", Mode: parley.Eventually, Check: func(h *parley.History) error {
					var all [3][]uint64
					odd := uint64(0)
					for _, d := range h.Deliveries {
						if h.Correct(d.At) {
							all[d.At] = append(all[d.At], d.Msg.Value)
							odd |= d.Msg.Value & 1
						}
					}
					if h.Over && (odd == 1 || len(all[0]) != 4 || len(all[2]) != 4) {
						return fmt.Errorf("%d", all)
					}
					return nil
				}},
			},
			Lies: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
				out := slices.Clone(t.Honest)
				out[0].Msg.Value += uint64(s.Choose(lies))
				return out
			},
		},
		Last: 1, New: func(parley.ID) lockstep.Rounds { return &gossiper{} },
	}, lockstep.Simulated)
}

type gossiper struct{ sum uint64 }

func (g *gossiper) Request(*parley.Step, parley.Msg) {}
func (g *gossiper) deliver(s *parley.Step, r int) {
	s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Seq: uint64(r), Value: g.sum})
}
func (g *gossiper) Emit(s *parley.Step, r int) {
	s.SendAll(parley.Msg{Kind: 1, Value: 2})
	g.deliver(s, r)
}
func (g *gossiper) Absorb(_ *parley.Step, _ int, _ parley.ID, m parley.Msg) { g.sum += m.Value }
func (g *gossiper) Close(s *parley.Step, r int)                             { g.deliver(s, r+1) }
func (g *gossiper) State(v *parley.Vars)                                    { parley.Num(v, "sum", &g.sum) }

// words returns what a finding says, whichever process it names first.
func words(f explore.Finding) string {
	parts := strings.Split(f.Why, " and ")
	slices.Sort(parts)
	return fmt.Sprintln(f.Run.Root, f.Property, f.Promised, parts)
}

// TestSplitBeyond finds violations with too few processes or rounds: OM(2) with six processes, m rounds
// instead of m+1 for oral and for signed messages. Each finding is a run, and its liars do the same in the
// simulator.
func TestSplitBeyond(t *testing.T) {
	for name, o := range map[string]explore.Options{
		"OM(2), n = 6":            {Protocol: om.New(oral(6, 2), lockstep.Simulated), Roots: pair(explore.NeverSilent, 4, 5)},
		"OM(0), one liar":         {Protocol: om.New(oral(4, 0), lockstep.Simulated), Roots: liars(4, 1, "0", "1")},
		"OM(1), two liars":        {Protocol: om.New(oral(7, 1), lockstep.Simulated), Roots: pair(explore.NeverSilent, 0, 6)},
		"EIG(1), two liars":       {Protocol: eig.New(oral(7, 1), lockstep.Simulated), Roots: pair(explore.NeverSilent, 0, 6)},
		"SM(0), one liar":         {Protocol: signed(4, 0), Roots: liars(4, 1, "0", "1")},
		"SM(1), two liars":        {Protocol: signed(5, 1), Roots: pair(faulty.Any, 0, 4)},
		"OM(1), n = 3, one omits": {Protocol: om.New(oral(3, 1), lockstep.Simulated), Roots: one(faulty.SendOmission, "1")},
	} {
		r := splitLast(t, o)
		if r.Outcome != explore.Exhausted || r.Broken != 0 {
			t.Errorf("%s: %s, and nothing is promised", name, r.Outcome)
		}
		o.Beyond = true
		r = splitLast(t, o)
		if r.Outcome != explore.Found || len(r.Findings) == 0 || r.Broken == 0 {
			t.Errorf("%s: %s", name, r.Outcome)
			continue
		}
		f := r.Findings[0]
		var property parley.Property
		for _, p := range o.Protocol.Properties {
			if p.Name == f.Property {
				property = p
			}
		}
		h := parley.History{N: o.Protocol.N, Over: true}
		in := sim.Options{Protocol: o.Protocol, Faulty: f.Liars.Faulty}
		for id := range f.Liars.Faulty {
			h.Faulty.Add(id)
		}
		for _, q := range f.Liars.Requests {
			h.Requests = append(h.Requests, parley.ExternalEvent{At: q.At, Msg: q.Msg})
			in.Requests = append(in.Requests, sim.Request{At: q.At, Msg: q.Msg})
		}
		for _, e := range f.Run.Log(true).Events {
			if e.Op == trace.Deliver {
				h.Deliveries = append(h.Deliveries, parley.ExternalEvent{At: e.At, From: e.Peer, Msg: e.Msg})
			}
		}
		if property.Check(&h) == nil || f.Promised {
			t.Errorf("%s: the run does not break %s, or it is promised", name, f.Property)
		}
		if property.Check(&sim.Run(in).History) == nil {
			t.Errorf("%s: in the simulator the liars do not break %s", name, f.Property)
		}
	}
}

// one returns the roots of a single faulty lieutenant.
func one(how faulty.Behavior, value string) []explore.Root {
	return []explore.Root{{Faulty: map[parley.ID]faulty.Behavior{2: how}, Requests: []explore.Request{propose(0, value)}}}
}

// loud is a protocol in rounds with something that does not fit.
type loud struct{ emits, absorbs, closes func(s *parley.Step, r int) }

func (*loud) Request(*parley.Step, parley.Msg) {}
func (l *loud) Emit(s *parley.Step, r int)     { l.emits(s, r) }
func (l *loud) Absorb(s *parley.Step, r int, _ parley.ID, _ parley.Msg) {
	l.absorbs(s, r)
}
func (l *loud) Close(s *parley.Step, r int) { l.closes(s, r) }
func (*loud) State(*parley.Vars)            {}

// clockwork is a synchronous machine without rounds. Its timer expires three times.
type clockwork struct {
	parley.Base
	remembers, answers, slows, goesOn bool

	heard parley.ID
	late  parley.Tick
}

func (*clockwork) Start(s *parley.Step) { s.SetTimer(1, 1000) }
func (c *clockwork) Receive(_ *parley.Step, from parley.ID, m parley.Msg) {
	if c.remembers {
		c.heard = from
	}
	if c.slows {
		c.late = max(c.late, parley.Tick(m.Value))
	}
}
func (c *clockwork) Timeout(s *parley.Step, _ parley.Timer) {
	if s.Now < 3000 || c.answers {
		s.SendAll(parley.Msg{Kind: 1})
	}
	if s.Now < 3000 || c.goesOn {
		s.SetTimer(1, 1000+c.late)
	}
}
func (c *clockwork) State(v *parley.Vars) {
	v.ID("heard", &c.heard)
	parley.Num(v, "late", &c.late)
}

// slowing sends what no correct process sends.
var slowing = faulty.Behavior{Name: "slowing", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := slices.Clone(t.Honest)
	out[0].Msg.Value = 5
	return out
}}

// idle does nothing at all.
type idle struct{ parley.Base }

func (idle) State(*parley.Vars) {}

// TestSplitRefused checks protocols and options that do not fit.
func TestSplitRefused(t *testing.T) {
	oms := om.New(oral(4, 1), lockstep.Simulated)
	roots := liars(4, 1, "0")
	nothing := func(*parley.Step, int) {}
	indicates := func(s *parley.Step, _ int) { s.Indicate(parley.Msg{Kind: parley.Stable}) }
	rounds := func(l loud) parley.Protocol {
		return lockstep.Of(lockstep.Protocol{Protocol: parley.Protocol{Name: "loud", N: 4}, Last: 1,
			New: func(parley.ID) lockstep.Rounds { return &l }}, lockstep.Simulated)
	}
	early := lockstep.Simulated
	early.Early = true
	machines := func(m func() parley.Machine) parley.Protocol {
		return parley.Protocol{Name: "x", N: 3, Timing: parley.Synchronous, New: func(parley.ID) parley.Machine { return m() }}
	}
	order := machines(func() parley.Machine { return &clockwork{remembers: true} })
	answers := machines(func() parley.Machine { return &clockwork{answers: true} })
	slows := machines(func() parley.Machine { return &clockwork{slows: true} })
	for want, o := range map[string]explore.Options{
		"diffusion has no rounds to step by":           {Protocol: diffusion.New(diffusion.Config{N: 4}), Roots: asking()},
		"process 0 acts on a message before the round": {Protocol: om.New(oral(4, 1), early), Roots: roots},
		"a process chooses, and not what it says":      {Protocol: oms, Roots: one(faulty.ReceiveOmission, "0")},
		"knows no fault but those of faulty processes": {Protocol: oms, Roots: roots, Model: explore.Model{Restarts: 1}},
		"a goal is about states":                       {Protocol: oms, Roots: roots, Goal: func(*explore.View) bool { return true }},
		"it has no limit of depth":                     {Protocol: oms, Roots: roots, Depth: 1},
		"it cannot be combined with symmetry":          {Protocol: oms, Roots: roots, Unreduced: true},
		"no process is correct":                        {Protocol: oms, Roots: liars(4, 4, "0")},
		"makes a difference to process":                {Protocol: order, Roots: asking()},
		"a round of 500 ticks is over":                 {Protocol: om.New(oral(4, 1), lockstep.Schedule{Delta: 500, Slack: 1}), Roots: roots},
		"more than 1000 rounds":                        {Protocol: machines(func() parley.Machine { return &clockwork{goesOn: true} }), Roots: asking()},
		"may say too much to process 1":                {Protocol: gossip(1 << 17), Roots: []explore.Root{{Faulty: map[parley.ID]faulty.Behavior{0: faulty.Any}}}},
		"it has no rounds":                             {Protocol: machines(func() parley.Machine { return idle{} }), Roots: asking()},
		"sends when the last round ends":               {Protocol: answers, Roots: asking()},
		"depend on what it hears":                      {Protocol: slows, Roots: one(slowing, "")},
		"process 0 asks for more than":                 {Protocol: rounds(loud{nothing, nothing, indicates}), Roots: asking()},
		"chooses":                                      {Protocol: rounds(loud{func(s *parley.Step, _ int) { s.Choose(2) }, nothing, nothing}), Roots: asking()},
	} {
		if _, err := split.Search(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q is expected", err, want)
		}
	}
}

// TestSplitInterrupted checks that an interrupted search proves nothing.
func TestSplitInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := split.Search(ctx, explore.Options{Protocol: om.New(oral(7, 2), lockstep.Simulated), Roots: pair(explore.NeverSilent, 0, 6)})
	if err != nil || r.Outcome != explore.Interrupted || r.Runs == 1<<30 {
		t.Errorf("%s, %d adversaries, %v", r.Outcome, r.Runs, err)
	}
}
