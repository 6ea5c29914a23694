package lockstep_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/explore"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

var deep = flag.Bool("deep", false, "explore all cases")

var onCall = lockstep.Schedule{Delta: 1000, OnDemand: true}

func (b *bench) request(t parley.Tick, m parley.Msg) []parley.Effect {
	return b.at(t, func() { b.machine.Request(&b.s, m) })
}

// A process begins at a request, with or without a value, or at the first frame of
// round 0, and sends its own frame to all in the same step.
func TestOpens(t *testing.T) {
	value, call := parley.Msg{Kind: parley.Propose}, parley.Msg{Kind: lockstep.Call}
	for name, c := range map[string]struct {
		open  func(b *bench) []parley.Effect
		asked int
	}{
		"a value": {func(b *bench) []parley.Effect { return b.request(777, value) }, 1},
		"a call":  {func(b *bench) []parley.Effect { return b.request(777, call) }, 0},
		"a frame": {func(b *bench) []parley.Effect { return b.receive(777, 2, frame(0, 5)) }, 0},
	} {
		b := seat(tellers(4, 2, nil), onCall)
		if e := b.start(500); len(e) != 0 {
			t.Errorf("%s: it does not wait to be called: %+v", name, e)
		}
		effects := c.open(b)
		if to, _ := bodies(effects); !slices.Equal(to, []parley.ID{parley.All}) || b.rounds.asked != c.asked {
			t.Errorf("%s: frames to %v, %d requests", name, to, b.rounds.asked)
		}
		if at := timer(t, 777, effects); at != 1777 {
			t.Errorf("%s: round 0 is to end at %d", name, at)
		}
		// Once it is open, a call does nothing and a value is too late.
		if e := b.request(778, call); len(e) != 0 || len(b.refused) != 0 {
			t.Errorf("%s: a second call: %+v, refused %q", name, e, b.refused)
		}
		if e := b.request(779, value); len(e) != 0 || len(b.refused) != 1 || b.rounds.asked != c.asked {
			t.Errorf("%s: a late value: %+v, refused %q", name, e, b.refused)
		}
	}
}

// Only a frame of round 0 opens an instance.
func TestDoesNotOpen(t *testing.T) {
	b := seat(tellers(4, 2, nil), onCall)
	b.start(0)
	cut, origin := frame(0, 1), frame(0, 1)
	cut.Body, origin.Origin = cut.Body[:2], 1
	for i, m := range []parley.Msg{frame(1, 1), frame(2, 1), frame(3, 1), origin, cut, {Kind: parley.Suspect}} {
		if e := b.receive(parley.Tick(10+i), 3, m); len(e) != 0 {
			t.Errorf("%d: %+v", i, e)
		}
	}
	b.want(t, []string{"3: frame more than a round ahead", "3: frame more than a round ahead",
		"3: frame of a round there is not", "3: not a frame"})
	// Nor does a call of rounds that follow a schedule.
	b = seat(tellers(4, 2, nil), hours)
	b.start(0)
	if e := b.request(50, parley.Msg{Kind: lockstep.Call}); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	b.want(t, []string{"1: call of rounds that have their time"})
}

// Deadlines are counted from the process's own beginning, whatever the local advance.
func TestDeadlinesOnCall(t *testing.T) {
	for _, early := range []bool{false, true} {
		when := onCall
		when.Early = early
		b := seat(tellers(3, 3, nil), when)
		b.start(0)
		b.receive(400, 0, frame(0, 1))
		effects := b.receive(500, 2, frame(0, 2))
		if early {
			if at := timer(t, 500, effects); at != 2400 {
				t.Error("round 1, begun early, is to end at", at)
			}
			b.want(t, nil, 1, 202)
			continue
		}
		if at := timer(t, 1430, b.timeout(1430)); at != 2400 { // 30 late
			t.Error("round 1 is to end at", at)
		}
		b.receive(2399, 0, frame(1, 3))
		b.receive(2400, 2, frame(1, 4))
		b.want(t, []string{"2: late frame"}, 1, 202)
		b.timeout(2400)
		b.want(t, nil, 1, 202, 1003)
	}
}

// A process that restarts cannot know whether the instance has begun.
func TestRestartOnCall(t *testing.T) {
	b := seat(tellers(3, 3, nil), onCall)
	b.s.Restart = true
	b.start(500)
	b.s.Restart = false
	b.receive(600, 0, frame(0, 1))
	b.request(600, parley.Msg{Kind: parley.Propose})
	b.request(600, parley.Msg{Kind: lockstep.Call})
	b.want(t, []string{"0: frame after the last round", "1: request after round 0"})
	if b.rounds.asked != 0 || b.rounds.closed != 0 {
		t.Error("it takes part")
	}
}

// The bound on delays is exact: if a round has room for two largest delays and four times the
// slack, everything is in time in the worst case; with one tick more per delay it is not.
func TestBoundOnCall(t *testing.T) {
	const n = 4
	when := lockstep.Schedule{Delta: 2000, Slack: 50, OnDemand: true}
	for _, test := range []struct {
		delay parley.Tick
		late  bool
	}{{lockstep.Of(saying(n), when).Relies.Delay, false}, {927, true}} {
		s := sim.Run(sim.Options{
			Protocol: lockstep.Of(saying(n), when), Delay: sim.Delay{Least: test.delay, Most: test.delay},
			Requests: []sim.Request{{At: 0, When: 100, Msg: parley.Msg{Kind: lockstep.Call}}},
			Pauses: []sim.Pause{ // the opening frame is read late, the round ends late, and the frame is read late
				{At: 2, From: 100 + test.delay, For: 49}, {At: 2, From: 2100 + test.delay + 49, For: 49},
				{At: 0, From: 2100 + 2*test.delay + 98, For: 49},
			},
		})
		if late := s.Stats.Refused["late frame"] > 0; late != test.late || s.Stats.Pauses != 3 {
			t.Errorf("delay %d: refused %v, %d pauses", test.delay, s.Stats.Refused, s.Stats.Pauses)
		}
	}
}

// onlyTo sends what an honest process would send, but only to one process.
func onlyTo(one parley.ID) faulty.Behavior {
	return faulty.Behavior{Name: "calls one", Model: parley.OralByzantineFaults,
		Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			if t.To != one {
				return nil
			}
			return t.Honest
		}}
}

type called struct {
	p    parley.Protocol
	seed uint64
	most parley.Tick // delay

	alone bool // only a faulty process was called
	spoke bool // the source was called before its value came
	apart parley.Tick
}

func (c *called) run(t *testing.T) *sim.Sim {
	n, m := c.p.N, c.p.M
	r := rand.New(rand.NewPCG(c.seed, 11))
	opt := sim.Options{Protocol: c.p, Seed: c.seed, Delay: sim.Delay{Least: 1, Most: c.most},
		Faulty: make(map[parley.ID]faulty.Behavior)}
	how := append(faulty.Named(), onlyTo(parley.ID(r.IntN(n))), onlyTo(parley.ID(r.IntN(n))))
	var liars []parley.ID
	for _, id := range r.Perm(n)[:m] {
		liars = append(liars, parley.ID(id))
		opt.Faulty[parley.ID(id)] = how[r.IntN(len(how))]
	}
	ask := func(at parley.ID, when parley.Tick, m parley.Msg) {
		opt.Requests = append(opt.Requests, sim.Request{At: at, When: when, Msg: m})
	}
	value := parley.Msg{Kind: parley.Propose, Body: fmt.Appendf(nil, "%d", r.IntN(2))}
	switch r.IntN(3) {
	case 0:
		c.alone = true
		opt.Faulty[liars[0]] = onlyTo(parley.ID(r.IntN(n)))
		ask(liars[0], 10, parley.Msg{Kind: lockstep.Call})
	case 1:
		ask(0, parley.Tick(r.IntN(5000)), value)
	default:
		ask(0, parley.Tick(r.IntN(1000)), value)
		for range 1 + r.IntN(n) {
			ask(parley.ID(r.IntN(n)), parley.Tick(r.IntN(3000)), parley.Msg{Kind: lockstep.Call})
		}
	}
	begun := make(map[parley.ID]parley.Tick)
	opt.Between = func(s *sim.Sim) {
		for id := range s.Correct().All() {
			if _, known := begun[id]; !known && round(t, s, id) >= 0 {
				begun[id] = s.Now()
			}
		}
	}
	s := sim.Run(opt)
	c.spoke = s.Stats.Refused["request after round 0"] > 0
	low, high := parley.Tick(1<<40), parley.Tick(0)
	for id := range s.Correct().All() {
		if at, ok := begun[id]; ok {
			low, high = min(low, at), max(high, at)
		}
	}
	c.apart = max(0, high-low)
	return s
}

// broken returns the properties that do not hold, except the validity of a value that
// came after the source had been called.
func (c *called) broken(s *sim.Sim, promised bool) (out []string) {
	for _, v := range parley.Judge(c.p, s.RunConditions(), &s.History) {
		if v.Broken != nil && (v.Promise.Holds || !promised) && (v.Property.Name != problem.Validity || !c.spoke) {
			out = append(out, v.Property.Name)
		}
	}
	return out
}

func oral(n, m int) problem.Instance { return problem.Instance{N: n, M: m, Default: []byte("0")} }

func bothOnCall(n, m int, when lockstep.Schedule) []parley.Protocol {
	return []parley.Protocol{allOrNone(eig.New(oral(n, m), when)), allOrNone(sm.New(sm.Config{Instance: oral(n, m)}, when))}
}

// allOrNone replaces termination for rounds that may not be called: if one correct process
// decides, all do.
func allOrNone(p parley.Protocol) parley.Protocol {
	p.Properties = slices.Clone(p.Properties)
	for i := range p.Properties {
		if p.Properties[i].Name == problem.Termination {
			p.Properties[i].Check = func(h *parley.History) error {
				if all := problem.Decisions(h); h.Over && len(all) > 0 && len(all) < h.N-h.Faulty.Len() {
					return fmt.Errorf("%d correct processes decide", len(all))
				}
				return nil
			}
		}
	}
	return p
}

// Agreement and validity hold with m faulty processes, whichever process is called: the source, others,
// several at different times, or only a faulty process that sends to one process alone. All
// correct processes begin within one delay of each other, and no frame of theirs is late.
func TestAgreementOnCall(t *testing.T) {
	plain := lockstep.Called
	plain.Early = false
	for _, size := range [][3]int{{4, 1, 150}, {7, 2, 60}} {
		for i, p := range append(bothOnCall(size[0], size[1], lockstep.Called), bothOnCall(size[0], size[1], plain)...) {
			alone, apart := 0, parley.Tick(0)
			for seed := range uint64(size[2]) {
				c := called{p: p, seed: seed, most: p.Relies.Delay}
				s := c.run(t)
				if broken := c.broken(s, true); broken != nil || c.apart > c.most {
					t.Fatalf("%s, n=%d, seed %d: broken %v, %d apart", p.Name, p.N, seed, broken, c.apart)
				}
				if late := s.Stats.Refused["late frame"]; late > s.Stats.RefusedFaulty {
					t.Fatalf("%s, n=%d, seed %d: %d frames of correct processes were late", p.Name, p.N, seed, late)
				}
				if c.alone && len(s.History.Deliveries) > 0 {
					alone++
				}
				apart = max(apart, c.apart)
			}
			if alone < 3 || apart < p.Relies.Delay/2 {
				t.Errorf("%d: a liar's call alone began %d runs, and processes were at most %d apart", i, alone, apart)
			}
		}
	}
}

// Beyond the bound on delays a property breaks.
func TestTooSlowOnCall(t *testing.T) {
	for _, p := range bothOnCall(4, 1, lockstep.Called) {
		bad := 0
		for seed := range uint64(400) {
			c := called{p: p, seed: seed, most: 3 * p.Relies.Delay}
			if s := c.run(t); len(c.broken(s, false)) > 0 {
				bad++
			}
		}
		if bad == 0 {
			t.Errorf("%s: nothing broke with delays of thrice the bound", p.Name)
		}
	}
}

// All lies and all orders of delivery: with four processes of which any one is faulty,
// whichever is called, agreement and validity hold. The explorer lets a message that another
// message causes be up to one delay later than it can be, although the clocks that it shows
// do not move meanwhile: so the delay that it gets is 1/4 of a round.
func TestExhaustiveOnCall(t *testing.T) {
	call := parley.Msg{Kind: lockstep.Call}
	value := parley.Msg{Kind: parley.Propose, Body: []byte("1")}
	for _, c := range []struct {
		liar, asked parley.ID
		alike       parley.Set
		states      uint64
	}{
		{1, 0, parley.SetOf(2, 3), 274_003},
		{1, 1, parley.SetOf(2, 3), 680_544},
		{0, 0, parley.SetOf(1, 2, 3), 407_838},
		{0, 2, parley.SetOf(1, 3), 1_678_329},
	} {
		if testing.Short() || c.states > 300_000 && !*deep {
			continue // would take a minute in all
		}
		p := allOrNone(eig.New(oral(4, 1), lockstep.Called))
		p.Relies.Delay = 480
		q := call
		if c.asked == 0 {
			q = value
		}
		r, err := explore.Search(context.Background(), explore.Options{
			Protocol: p, Workers: 2, Alike: c.alike, Model: explore.Model{FIFO: true},
			Roots: []explore.Root{{Faulty: map[parley.ID]faulty.Behavior{c.liar: faulty.Any},
				Requests: []explore.Request{{At: c.asked, Msg: q}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != explore.Exhausted || r.States != c.states {
			t.Errorf("liar %d, %d is asked: %s, %d states, %+v", c.liar, c.asked, r.Outcome, r.States, r.Findings)
		}
	}
}
