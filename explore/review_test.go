package explore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/explore"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// scripted is a machine made of functions, with one variable.
type scripted struct {
	parley.Base
	start, request func(s *parley.Step, x *uint64)
	receive        func(s *parley.Step, m parley.Msg, x *uint64)
	timeout        func(s *parley.Step, t parley.Timer, x *uint64)

	x uint64
}

func (m *scripted) State(v *parley.Vars) { parley.Num(v, "x", &m.x) }

func (m *scripted) Start(s *parley.Step) {
	if m.start != nil {
		m.start(s, &m.x)
	}
}

func (m *scripted) Request(s *parley.Step, _ parley.Msg) {
	if m.request != nil {
		m.request(s, &m.x)
	}
}

func (m *scripted) Receive(s *parley.Step, _ parley.ID, q parley.Msg) {
	if m.receive != nil {
		m.receive(s, q, &m.x)
	}
}

func (m *scripted) Timeout(s *parley.Step, t parley.Timer) {
	if m.timeout != nil {
		m.timeout(s, t, &m.x)
	}
}

func scriptedBy(n int, m scripted) parley.Protocol {
	return parley.Protocol{
		Name: "scripted", N: n, Kinds: []string{"", "M"},
		New: func(parley.ID) parley.Machine { own := m; return &own },
	}
}

func to1(s *parley.Step, value uint64) {
	if s.Self == 0 {
		s.Send(1, parley.Msg{Kind: 1, Value: value})
	}
}

// TestBudgetsApart: two states are not merged because different uses of their budgets add up to the same.
// No message and no timer changes a machine here, so a state is the number of messages left and the budgets
// used: the oracle counts these.
func TestBudgetsApart(t *testing.T) {
	p := scriptedBy(2, scripted{
		start: func(s *parley.Step, _ *uint64) {
			for range 4 {
				to1(s, 0)
			}
			s.SetTimer(1, 10)
		},
		timeout: func(s *parley.Step, _ parley.Timer, _ *uint64) { s.SetTimer(1, 10) },
	})
	m := explore.Model{Losses: 3, Doubles: 3, Timeouts: 3, FalseSuspicions: 1}
	x := naive{p: p, m: m, asked: make([][]parley.Msg, 2), known: make(map[string]bool), seen: make(map[string]bool)}
	x.visit(&world{procs: make([]proc, 2)})
	if r := search(t, explore.Options{Protocol: p, Roots: asking(), Model: m}); r.States != uint64(len(x.known)) {
		t.Errorf("%d states of %d", r.States, len(x.known))
	}
}

// TestChoices: each of many answers is reported as it is.
func TestChoices(t *testing.T) {
	p := scriptedBy(1, scripted{request: func(s *parley.Step, x *uint64) { *x = uint64(s.Choose(1000)); s.Deliver(0, parley.Msg{Value: *x}) }})
	r := search(t, explore.Options{
		Protocol: p, Roots: asking(cast(0, "a")),
		Goal: func(v *explore.View) bool {
			return len(v.History.Deliveries) > 0 && v.History.Deliveries[0].Msg.Value == 999
		},
	})
	if last := r.Findings[0].Run.Steps[1]; last.Choices[0] != 999 || last.Effects[0].Msg.Value != 999 {
		t.Errorf("%+v", last)
	}
	p = scriptedBy(1, scripted{request: func(s *parley.Step, _ *uint64) { s.Choose(1 << 40) }})
	if _, err := explore.Search(context.Background(), explore.Options{Protocol: p, Roots: asking(cast(0, "a"))}); err == nil ||
		!strings.Contains(err.Error(), "more than 1048575 outcomes") {
		t.Error(err)
	}
}

// fallen is a protocol in rounds that panics when round 1 ends.
type fallen struct{}

func (fallen) Request(*parley.Step, parley.Msg)                {}
func (fallen) Emit(*parley.Step, int)                          {}
func (fallen) Absorb(*parley.Step, int, parley.ID, parley.Msg) {}
func (fallen) State(*parley.Vars)                              {}
func (fallen) Close(_ *parley.Step, r int) {
	if r == 1 {
		panic("no!")
	}
}

// TestPanicReplays: the run ends with the transition in which the machine panics, which it also does in a
// replay. The faults of that transition count.
func TestPanicReplays(t *testing.T) {
	slandered := scriptedBy(2, scripted{receive: func(*parley.Step, parley.Msg, *uint64) { panic("no!") }})
	slandered.Promises = func(parley.RunConditions) []parley.Promise { return nil }
	r := search(t, explore.Options{Protocol: slandered, Roots: asking(), Model: explore.Model{FalseSuspicions: 1}})
	f := r.Findings[0]
	if last := f.Run.Steps[len(f.Run.Steps)-1]; last.Kind != explore.OnFalseSuspicion || !f.RunConditions.Processes.Suspected {
		t.Errorf("%+v", f)
	}
	inRounds := lockstep.Of(lockstep.Protocol{
		Protocol: parley.Protocol{Name: "late", N: 2}, Last: 1,
		New: func(parley.ID) lockstep.Rounds { return fallen{} },
	}, lockstep.Simulated)
	for _, c := range []explore.Options{
		{Protocol: slandered, Roots: asking(), Model: explore.Model{FalseSuspicions: 1}},
		{Protocol: inRounds, Roots: asking()},
		{Protocol: inRounds, Roots: asking(), Step: explore.Rounds},
		{Protocol: inRounds, Roots: asking(), Step: explore.Rounds, Order: explore.RandomOrder, Walks: 3},
	} {
		f := search(t, c).Findings[0]
		if f.Property != explore.NoPanic {
			t.Fatalf("%+v", f)
		}
		steps, err := sim.Replay{Protocol: c.Protocol}.Run(f.Run.Log(true).Events)
		if err == nil || !strings.Contains(err.Error(), "it panics: no!") || steps != len(f.Run.Steps)-1 {
			t.Errorf("%d steps of %d: %v", steps, len(f.Run.Steps), err)
		}
	}
}

// TestRunsCounted: in each of three rounds, each of two processes is sent one of two messages, and only the
// last round makes a difference. Runs are not counted where states are not visited level by level.
func TestRunsCounted(t *testing.T) {
	o := explore.Options{
		Protocol: forgetful(), Roots: []explore.Root{{Faulty: map[parley.ID]faulty.Behavior{1: faulty.Any}}}, Step: explore.Rounds,
	}
	for order, want := range []uint64{64, 0} {
		o.Order = explore.Order(order)
		if r := search(t, o); r.Runs != want {
			t.Errorf("order %d: %d runs", order, r.Runs)
		}
	}
}

// forgetful returns a protocol of three rounds in which each process remembers only the messages of the
// last.
func forgetful() parley.Protocol {
	return lockstep.Of(lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: "forgetful", N: 3, M: 1, Faults: parley.OralByzantineFaults, Kinds: []string{"", "NUMBER"},
			Lies: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
				out := slices.Clone(t.Honest)
				out[0].Msg.Value += uint64(s.Choose(2))
				return out
			},
		},
		Last: 2, New: func(parley.ID) lockstep.Rounds { return new(forgetter) },
	}, lockstep.Simulated)
}

type forgetter struct{ last uint64 }

func (*forgetter) Request(*parley.Step, parley.Msg) {}
func (*forgetter) Emit(s *parley.Step, _ int)       { s.SendAll(parley.Msg{Kind: 1}) }
func (f *forgetter) Absorb(_ *parley.Step, _ int, from parley.ID, m parley.Msg) {
	if from == 1 {
		f.last = m.Value
	}
}
func (*forgetter) Close(*parley.Step, int) {}
func (f *forgetter) State(v *parley.Vars)  { parley.Num(v, "last", &f.last) }

// TestShortened: a violation of a promise is not replaced by a shorter run in which nothing is promised,
// such as one with a crash here.
func TestShortened(t *testing.T) {
	p := scriptedBy(2, scripted{
		request: func(s *parley.Step, _ *uint64) { to1(s, 1) },
		receive: func(s *parley.Step, m parley.Msg, _ *uint64) { s.Deliver(0, m) },
	})
	p.Properties = []parley.Property{{Name: "quiet", Check: func(h *parley.History) error {
		if h.Faulty.Len() > 0 || len(h.Deliveries) > 0 {
			return errors.New("it is not")
		}
		return nil
	}}}
	p.Promises = func(a parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: "quiet", Holds: a.Faulty == 0}}
	}
	r := search(t, explore.Options{
		Protocol: p, Roots: asking(cast(0, "a")), Model: explore.Model{Crashes: 1}, Beyond: true, All: true,
		Order: explore.RandomOrder, Walks: 50,
	})
	if !slices.ContainsFunc(r.Findings, func(f explore.Finding) bool { return f.Promised }) {
		t.Errorf("%d findings, and none that is promised", len(r.Findings))
	}
}

// TestCrashesTwice: a process that was notified of a crash is also notified of the same process's next
// crash.
func TestCrashesTwice(t *testing.T) {
	p := scriptedBy(2, scripted{receive: func(_ *parley.Step, _ parley.Msg, x *uint64) { *x++ }})
	o := explore.Options{Protocol: p, Roots: asking(), Model: explore.Model{Crashes: 2, Restarts: 1, Detect: true}, Looks: true}
	o.Goal = func(v *explore.View) bool {
		return v.History.Over && v.Down == parley.SetOf(1) && v.Vars(0)[0].Value == "2"
	}
	if r := search(t, o); r.Outcome != explore.Found {
		t.Error("nobody is told twice")
	}
	o.Goal = func(v *explore.View) bool {
		return v.History.Over && v.Down == parley.SetOf(1) && len(v.History.Restarts) == 1 && v.Vars(0)[0].Value == "0"
	}
	if r := search(t, o); r.Outcome != explore.Exhausted {
		t.Error("it is over, and somebody is not told yet")
	}
}

// TestAtOnce: a timer that is due at once expires before anything else, but messages before it is set may
// have arrived in any order; and between two timers that are due at once, in either order, their process
// may crash.
func TestAtOnce(t *testing.T) {
	p := scriptedBy(3, scripted{
		request: func(s *parley.Step, _ *uint64) { s.SendAll(parley.Msg{Kind: 1}) },
		receive: func(s *parley.Step, _ parley.Msg, x *uint64) {
			if *x = 1; s.Self == 1 {
				s.SetTimer(1, 0)
			}
		},
		timeout: func(_ *parley.Step, _ parley.Timer, x *uint64) { *x = 2 },
	})
	o := explore.Options{Protocol: p, Roots: asking(cast(0, "a")), Model: explore.Model{InTime: true}, Looks: true}
	o.Goal = func(v *explore.View) bool { return v.Vars(1)[0].Value == "1" && v.Vars(2)[0].Value == "1" }
	if r := search(t, o); r.Outcome != explore.Found {
		t.Error("nothing arrives before the one after which a timer is due")
	}
	o.Protocol = scriptedBy(1, scripted{
		start: func(s *parley.Step, _ *uint64) {
			s.SetTimer(1, 10)
			s.SetTimer(2, 10)
		},
		timeout: func(s *parley.Step, n parley.Timer, _ *uint64) { s.Deliver(0, parley.Msg{Value: uint64(n)}) },
	})
	o.Model.Crashes, o.Roots = 1, asking()
	for n := range uint64(2) {
		o.Goal = func(v *explore.View) bool {
			d := v.History.Deliveries
			return v.Down.Len() > 0 && len(d) == 1 && d[0].Msg.Value == n+1
		}
		if r := search(t, o); r.Outcome != explore.Found {
			t.Errorf("it never crashes between timer %d and the other one", n+1)
		}
	}
}

// TestSilence: two messages to one process that lead to the same process state in either order still do not
// commute if one of the orders sends something.
func TestSilence(t *testing.T) {
	p := scriptedBy(3, scripted{
		request: func(s *parley.Step, _ *uint64) { to1(s, 1); to1(s, 2) },
		receive: func(s *parley.Step, m parley.Msg, x *uint64) {
			if m.Value == 2 && *x == 0 {
				s.Send(2, parley.Msg{Kind: 1})
			}
			*x = 1
		},
	})
	r := search(t, explore.Options{Protocol: p, Roots: asking(cast(0, "a"))})
	if r.States != 8 { // before, asked, after either message, after both in two ways, and the sent message arrives
		t.Errorf("%d states", r.States)
	}
}

// TestOrdered: with Ordered, the search distinguishes which of two processes delivered first, to the end of
// the run; without it, it does not.
func TestOrdered(t *testing.T) {
	p := scriptedBy(3, scripted{
		request: func(s *parley.Step, _ *uint64) { s.SendAll(parley.Msg{Kind: 1}) },
		receive: func(s *parley.Step, m parley.Msg, _ *uint64) { s.Deliver(0, m) },
	})
	for _, ordered := range []bool{false, true} {
		found := 0
		for first := range parley.ID(2) {
			o := explore.Options{Protocol: p, Roots: asking(cast(0, "a")), Ordered: ordered}
			o.Goal = func(v *explore.View) bool {
				return v.History.Over && v.History.Deliveries[0].At == 1+first
			}
			if search(t, o).Outcome == explore.Found {
				found++
			}
		}
		if ordered != (found == 2) {
			t.Errorf("ordered: %t, %d orders", ordered, found)
		}
	}
}
