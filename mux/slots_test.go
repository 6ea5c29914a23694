package mux_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/mux"
	"parley/parleytest"
	"parley/sim"
)

// opened is indicated when a slot begins for which this process has no value. Seq is the slot.
const opened = parley.Indication

// slotsOf runs only slots. A Request sets a process's value for the slot in its Seq, and opens it; with
// Seq 0, for the next slot that has neither begun nor a value. A Call opens it without a value.
func slotsOf(p lockstep.Protocol, when lockstep.Schedule, window int) parley.Protocol {
	mux.NewPipeline(p, when, window, 0, nil) // panics if the arguments are wrong
	out := mux.InSlots(lockstep.Of(p, when))
	out.New = func(self parley.ID) parley.Machine {
		m := &slots{}
		m.line = mux.NewPipeline(p, when, window, self, m)
		return m
	}
	out.Properties = nil
	for _, one := range p.Properties {
		out.Properties = append(out.Properties, ofEach(one))
	}
	return out
}

// ofEach makes a property of one slot a property of every slot.
func ofEach(p parley.Property) parley.Property {
	check := p.Check
	p.Vacuous, p.Check = nil, func(h *parley.History) error {
		bySlot := make(map[uint64]*parley.History)
		each := func(all []parley.ExternalEvent, list func(*parley.History) *[]parley.ExternalEvent) {
			for _, one := range all {
				if bySlot[one.Msg.Seq] == nil {
					only := *h
					only.Requests, only.Deliveries = nil, nil
					bySlot[one.Msg.Seq] = &only
				}
				to := list(bySlot[one.Msg.Seq])
				*to = append(*to, one)
			}
		}
		each(h.Requests, func(h *parley.History) *[]parley.ExternalEvent { return &h.Requests })
		each(h.Deliveries, func(h *parley.History) *[]parley.ExternalEvent { return &h.Deliveries })
		for slot, only := range bySlot {
			if err := check(only); err != nil {
				return fmt.Errorf("slot %d: %w", slot, err)
			}
		}
		return nil
	}
	return p
}

type slots struct {
	line   *mux.Pipeline
	values []value // by slot
}

type value struct {
	slot uint64
	msg  parley.Msg
}

func (m *slots) Start(s *parley.Step) {
	if s.Restart {
		m.line.Deactivate()
	}
}

func (m *slots) Request(s *parley.Step, q parley.Msg) {
	slot := q.Seq
	if q.Seq = 0; q.Kind != lockstep.Call {
		for slot == 0 || m.value(slot) >= 0 {
			slot = max(slot, m.line.Opened()) + 1
		}
		m.values = append(m.values, value{slot, q})
	}
	m.line.OpenSlot(s, slot)
}

// value returns the index of the value for a slot, -1 if there is none.
func (m *slots) value(slot uint64) int {
	return slices.IndexFunc(m.values, func(v value) bool { return v.slot == slot })
}

func (m *slots) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind < parley.Local {
		m.line.Receive(s, from, q)
	}
}

func (m *slots) Timeout(s *parley.Step, _ parley.Timer) { m.line.Timeout(s) }

func (m *slots) ProposalFor(s *parley.Step, slot uint64) (parley.Msg, bool) {
	i := m.value(slot)
	if i < 0 {
		s.Indicate(parley.Msg{Kind: opened, Seq: slot})
		return parley.Msg{}, false
	}
	q := m.values[i].msg
	m.values = slices.Delete(m.values, i, i+1)
	return q, true
}

func (m *slots) SlotDone(s *parley.Step, slot uint64, delivered []parley.Effect) {
	for _, e := range delivered {
		e.Msg.Seq = slot
		s.Effects = append(s.Effects, e)
	}
}

func (m *slots) State(v *parley.Vars) {
	parley.Slice(v, "values", &m.values, func(_ int, one *value) {
		parley.Num(v, "slot", &one.slot)
		parley.Num(v, "kind", &one.msg.Kind)
		v.Bytes("body", &one.msg.Body)
	})
	v.Machine("slots", m.line)
}

func oral(n, m int) problem.Instance { return problem.Instance{N: n, M: m, Default: []byte("0")} }

// inSlots lists what each correct process delivered, as slot=value.
func inSlots(s *sim.Sim) map[parley.ID][]string {
	out := make(map[parley.ID][]string)
	for _, d := range s.History.Deliveries {
		if s.History.Correct(d.At) {
			out[d.At] = append(out[d.At], fmt.Sprintf("%d=%s", d.Msg.Seq, d.Msg.Body))
		}
	}
	return out
}

// withholder is honest except in the last round, in which it sends nothing to one process:
// in every slot only that process has to wait for the end of the round.
func withholder(from parley.ID, last uint64) faulty.Behavior {
	return faulty.Behavior{Name: "withholds", Model: parley.OralByzantineFaults,
		Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			return slices.DeleteFunc(t.Honest, func(one parley.Outgoing) bool {
				return t.To == from && one.Msg.Seq == last
			})
		}}
}

// caller opens slots, near and far, for a time: always at the given process, and at
// random at the others.
func caller(to parley.ID) faulty.Behavior {
	return faulty.Behavior{Name: "calls", Model: parley.OralByzantineFaults,
		Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			out := slices.Clone(t.Honest)
			for _, one := range t.Honest {
				if s.Now < 40000 && (t.To == to || s.Choose(4) == 0) {
					one.Msg.Seq, one.Msg.Body = 0, nil
					one.Msg.Value += uint64(s.Choose(12))
					out = append(out, one)
				}
			}
			return out
		}}
}

type line struct {
	n, m, window, slots int
	seed                uint64
}

// run has the source propose its values as fast as it can, and some other processes open slots.
func (l line) run(how ...faulty.Behavior) *sim.Sim {
	r := rand.New(rand.NewPCG(l.seed, 5))
	opt := sim.Options{
		Protocol: slotsOf(eig.Rounds(oral(l.n, l.m)), lockstep.Called, l.window), Seed: l.seed,
		Faulty: make(map[parley.ID]faulty.Behavior), Steps: 1 << 22,
	}
	for i, id := range r.Perm(l.n)[:l.m] {
		opt.Faulty[parley.ID(id)] = how[i%len(how)]
	}
	ask := func(at parley.ID, when parley.Tick, m parley.Msg) {
		opt.Requests = append(opt.Requests, sim.Request{At: at, When: when, Msg: m})
	}
	gap := 1 + 12000/l.window
	for k := range l.slots {
		when := parley.Tick(k*gap + r.IntN(gap))
		ask(0, when, parley.Msg{Kind: parley.Propose, Body: fmt.Appendf(nil, "v%d", k+1)})
		for id := range parley.ID(l.n) {
			if r.IntN(3) == 0 {
				ask(id, when+parley.Tick(r.IntN(2*gap)), parley.Msg{Kind: lockstep.Call})
			}
		}
	}
	return sim.Run(opt)
}

// check demands one sequence of slots everywhere, from the first on and without gaps, and
// that no message of a correct process was refused because of the window or its time.
func (l line) check(t *testing.T, s *sim.Sim) (slots int) {
	t.Helper()
	all := inSlots(s)
	var first []string
	for id := range s.Correct().All() {
		if first == nil {
			first = all[id]
		}
		if !slices.Equal(first, all[id]) {
			t.Fatalf("%+v: process %d delivers\n%v, another one\n%v", l, id, all[id], first)
		}
	}
	for i, one := range first {
		if !strings.HasPrefix(one, fmt.Sprintf("%d=", i+1)) {
			t.Fatalf("%+v: out of order: %v", l, first)
		}
	}
	for _, why := range []string{"late frame", "frame of a slot past the window", "frame of a slot that has not begun",
		"frame more than a round ahead", "woke too late: abstains"} {
		if bad := s.Stats.Refused[why]; bad > s.Stats.RefusedFaulty {
			t.Fatalf("%+v: %s: %d times, and liars were refused %d times", l, why, bad, s.Stats.RefusedFaulty)
		}
	}
	return len(first)
}

// Slots are one sequence at all correct processes, whatever m faulty ones send and whatever the
// window, even if they open slots and make one process finish them later.
func TestSlotsAreOneSequence(t *testing.T) {
	all := append(faulty.Named(), withholder(1, 1), withholder(2, 1), caller(1), caller(2))
	for _, l := range []line{{4, 1, 2, 12, 0}, {4, 1, 4, 40, 0}, {4, 1, 64, 80, 0}, {7, 2, 3, 16, 0}} {
		begun := 0
		for seed := range uint64(5 * len(all)) {
			l.seed = seed
			i := int(seed) % len(all)
			begun += l.check(t, l.run(all[i], all[(i+int(seed)/len(all))%len(all)]))
		}
		if begun < 3*l.slots*len(all) {
			t.Errorf("%+v: only %d slots in all runs", l, begun)
		}
	}
}

// If all processes are correct and none opens slots for another, the source's values are
// delivered in its order.
func TestSlotsCarryValues(t *testing.T) {
	for seed := range uint64(20) {
		opt := sim.Options{Protocol: slotsOf(eig.Rounds(oral(4, 1)), lockstep.Called, 4), Seed: seed}
		var want []string
		for k := range 9 {
			opt.Requests = append(opt.Requests, sim.Request{When: parley.Tick(2500 * k), Msg: parley.Msg{
				Kind: parley.Propose, Body: fmt.Appendf(nil, "v%d", k)}})
			want = append(want, fmt.Sprintf("%d=v%d", k+1, k))
		}
		s := sim.Run(opt)
		for id, have := range inSlots(s) {
			if !slices.Equal(have, want) || len(s.Stats.Refused) > 0 {
				t.Fatalf("seed %d: process %d delivers %v, refused %v", seed, id, have, s.Stats.Refused)
			}
		}
		begun := 0
		for _, x := range s.History.Indications {
			if x.Msg.Kind == opened && x.At != 0 {
				begun++
			}
		}
		if begun != 3*9 {
			t.Fatalf("seed %d: %d times a slot was begun for another's call", seed, begun)
		}
	}
}

// Opening a slot begins all slots before it.
func TestSlotsBefore(t *testing.T) {
	s := sim.Run(sim.Options{Protocol: slotsOf(eig.Rounds(oral(4, 1)), lockstep.Called, 8), Requests: []sim.Request{
		{At: 2, Msg: parley.Msg{Kind: lockstep.Call, Seq: 5}}, {At: 0, Msg: parley.Msg{Kind: parley.Propose, Seq: 3, Body: []byte("x")}},
		{At: 1, When: 9000, Msg: parley.Msg{Kind: lockstep.Call, Seq: 14}},
	}})
	for id, have := range inSlots(s) {
		if !slices.Equal(have, []string{"1=", "2=", "3=x", "4=", "5="}) {
			t.Errorf("process %d delivers %q", id, have)
		}
	}
	if s.Stats.Refused["call of a slot past the window"] != 1 {
		t.Error(s.Stats.Refused)
	}
}

// Frames for slots that are over, past the window or not begun are refused, and the
// memory of slots that are over is reused.
func TestSlotsWindow(t *testing.T) {
	s := sim.Run(sim.Options{Protocol: slotsOf(eig.Rounds(oral(4, 1)), lockstep.Called, 4), Until: 9000,
		Requests: []sim.Request{{At: 0, Msg: parley.Msg{Kind: lockstep.Call, Seq: 2}}}})
	m, host := s.Machine(0), &turnedAway{}
	step := parley.Step{Self: 0, N: 4, Now: 9000, Host: host}
	for _, q := range []parley.Msg{
		{Kind: lockstep.Frame, Value: 2}, {Kind: lockstep.Frame, Value: 7}, {Kind: lockstep.Frame, Seq: 1, Value: 3},
		{Kind: lockstep.Frame}, {Kind: 2, Value: 3}, {Kind: lockstep.Frame, Value: 3, Origin: 1},
		{Kind: lockstep.Frame, Value: 3, Body: []byte{1}}, {Kind: lockstep.Frame, Value: 1<<64 - 1},
	} {
		m.Receive(&step, 2, q)
	}
	want := []string{"frame of a slot that is over", "frame of a slot past the window", "frame of a slot that has not begun",
		"not a frame", "not a frame", "not a frame", "frame of a slot that has not begun", "frame of a slot past the window"}
	if !slices.Equal(host.why, want) || len(step.Effects) != 0 {
		t.Errorf("refused %q, effects %+v", host.why, step.Effects)
	}
}

type turnedAway struct{ why []string }

func (r *turnedAway) Choose(int) int                        { return 0 }
func (r *turnedAway) Sign(parley.ID, []byte) []byte         { return nil }
func (r *turnedAway) Verify(parley.ID, []byte, []byte) bool { return false }
func (r *turnedAway) Refused(_, _ parley.ID, why string)    { r.why = append(r.why, why) }

// A process that sleeps through the end of a round abstains in that slot, takes part in
// later ones and delivers none of them. After a restart it is inactive.
func TestSlotsMissed(t *testing.T) {
	opt := sim.Options{Protocol: slotsOf(eig.Rounds(oral(4, 1)), lockstep.Called, 8),
		Pauses: []sim.Pause{{At: 3, From: 2500, For: 5000}}}
	for k := range 6 {
		opt.Requests = append(opt.Requests, sim.Request{When: parley.Tick(1 + 2400*k), Msg: parley.Msg{
			Kind: parley.Propose, Body: fmt.Appendf(nil, "v%d", k+1)}})
	}
	s := sim.Run(opt)
	all := inSlots(s)
	if len(all[0]) != 6 || !slices.Equal(all[0], all[1]) || len(all[3]) != 1 {
		t.Errorf("delivered %v", all)
	}
	if last := s.History.Deliveries[len(s.History.Deliveries)-1].When; last >= 12000+2*900+900 {
		t.Errorf("the last slot is over at %d: the one that slept takes no part", last)
	}
	opt.Pauses, opt.Crashes = nil, []sim.Crash{{At: 3, When: 2600, Back: 100}}
	s = sim.Run(opt)
	if all := inSlots(s); len(all[0]) != 6 || len(all[3]) != 1 || s.Stats.Restarts != 1 {
		t.Errorf("delivered %v", all)
	}
}

// A process that can rejoin delays slots that it alone requested. It stops waiting when another
// process opens a later one; otherwise it would be too late in that one.
func TestOwnSlotsBeforeOthers(t *testing.T) {
	m, host := &slots{}, &turnedAway{}
	line := mux.NewRejoining(eig.Rounds(oral(4, 1)), lockstep.Called, 2, 0, m, mux.RejoinConfig{M: 1, PositionQuery: 2, PositionReply: 3})
	m.line = &line.Pipeline
	s := &parley.Step{N: 4, Host: host}
	line.Start(s, true)
	due := parley.Tick(0)
	at := func(now parley.Tick, clause func()) {
		s.Now, s.Effects = now, nil
		clause()
		for _, e := range s.Effects {
			if e.Op == parley.OpSetTimer {
				due = now + e.After
			}
		}
	}
	until := func(now parley.Tick, clause func()) {
		for due > 0 && due < now {
			now := due
			due = 0
			at(now, func() { line.Timeout(s) })
		}
		at(now, clause)
	}
	until(1, func() { line.OpenSlot(s, 1) })
	until(10, func() { line.OpenSlot(s, 2) })
	until(4500, func() { line.OpenSlot(s, 3) })
	until(5000, func() { m.Receive(s, 2, parley.Msg{Kind: lockstep.Frame, Value: 4}) })
	until(20_000, func() {})
	if m.line.Done() != 4 || m.line.Missed() > 0 || len(host.why) > 0 {
		t.Errorf("%d slots are over, the first one missed is %d; refused %q", m.line.Done(), m.line.Missed(), host.why)
	}
}

// NewPipeline panics for a protocol or schedule that cannot run in slots.
func TestSlotsThatAreNone(t *testing.T) {
	p := eig.Rounds(oral(4, 1))
	for name, make := range map[string]func(){
		"fixed times": func() { slotsOf(p, lockstep.Simulated, 4) },
		"no window":   func() { slotsOf(p, lockstep.Called, 0) },
		"signed":      func() { slotsOf(sm.Rounds(sm.Config{Instance: oral(4, 1)}), lockstep.Called, 4) },
	} {
		if !parleytest.Panics(make) {
			t.Errorf("%s: taken", name)
		}
	}
}

// The protocol suite passes: the source proposes its values, and then all processes open slots.
func TestSlotsSuite(t *testing.T) {
	parleytest.Suite(t, slotsOf(eig.Rounds(oral(4, 1)), lockstep.Called, 5), parleytest.Options{
		Seeds: 60,
		Inputs: func(r *rand.Rand) []sim.Request {
			var out []sim.Request
			last := uint64(1 + r.IntN(5))
			for k := range last {
				out = append(out, sim.Request{Msg: parley.Msg{Kind: parley.Propose, Seq: k + 1,
					Body: []byte{"01"[r.IntN(2)]}}})
			}
			for id := range parley.ID(4) {
				out = append(out, sim.Request{At: id, When: parley.Tick(1 + r.IntN(2000)),
					Msg: parley.Msg{Kind: lockstep.Call, Seq: last}})
			}
			return out
		},
	})
}
