package mux_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/mux"
	"parley/parleytest"
	"parley/sim"
)

// pool is a protocol to be had many times: each process tells all others its
// value, having written it down, and delivers all values once it has them. It
// asks again until then.
func pool(n int) parley.Protocol {
	return parley.Protocol{
		Name: "pool", Title: "pooling of values", N: n, Faults: parley.CrashFaults, Proposers: parley.Everyone(n),
		New: func(self parley.ID) parley.Machine { return &pooling{self: self, values: make([][]byte, n)} },
		Properties: []parley.Property{{
			Name: "pooled", Says: "who delivers, delivers what all proposed", Mode: parley.Always,
			Check: func(h *parley.History) error {
				var want []string
				for id := range parley.ID(n) {
					for _, q := range h.Requests {
						if q.At == id {
							want = append(want, string(q.Msg.Body))
						}
					}
				}
				for _, d := range h.Deliveries {
					if string(d.Msg.Body) != strings.Join(want, ",") {
						return fmt.Errorf("%s delivered %s of %q", h.Name(d.At), d.Msg.Body, want)
					}
				}
				return nil
			},
		}},
		Explain: func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			return slices.Values([]string{name(e.From) + " has " + string(m.Body)})
		},
		Size: func(_ parley.Env, m parley.Msg) parley.Traffic {
			return parley.Traffic{Messages: 1, Bits: parley.ValueBits(m.Body)}
		},
		Lies: func(s *parley.Step, t *parley.Turn) []parley.Sent {
			heard := 0
			for range t.Seen {
				heard++
			}
			if len(t.Honest) == 0 && heard > 0 && s.Choose(2) == 1 { // a word where an honest process has none
				return []parley.Sent{{Msg: parley.Msg{Kind: 1, Body: []byte("lie")}}}
			}
			return t.Honest
		},
		Rename: func(_ parley.Env, m parley.Msg, _ []parley.ID) parley.Msg { return m },
	}
}

type pooling struct {
	parley.Base
	self parley.ID

	back     bool
	done     bool
	own      []byte
	values   [][]byte // nil: not known
	suspects parley.Set
}

func (p *pooling) Start(s *parley.Step) {
	p.back = s.Restart
	for _, r := range s.Log {
		p.own = r.Body
	}
	p.values[p.self] = p.own
	p.say(s)
}

func (p *pooling) Request(s *parley.Step, m parley.Msg) {
	if m.Seq != 0 {
		panic("an instance sees its number")
	}
	if p.values[p.self] == nil {
		p.own, p.values[p.self] = m.Body, m.Body
		s.Append(m.Body)
		p.say(s)
	}
}

func (p *pooling) say(s *parley.Step) {
	if p.values[p.self] == nil || p.done {
		return
	}
	s.SendAll(parley.Msg{Kind: 1, Value: 1, Body: p.values[p.self]})
	s.SetTimer(3, 5000)
}

func (p *pooling) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind == parley.Suspect {
		p.suspects.Add(m.Origin)
		return
	}
	if m.Kind != 1 || len(m.Body) == 0 {
		s.Refuse(from, "no value")
		return
	}
	if p.done && m.Value == 1 { // it asks
		s.Send(from, parley.Msg{Kind: 1, Body: p.values[p.self]})
	}
	p.values[from] = m.Body
	if !p.done && !slices.ContainsFunc(p.values, func(v []byte) bool { return v == nil }) {
		p.done = true
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: bytes.Join(p.values, []byte(","))})
		s.StopTimer(3)
	}
}

func (p *pooling) Timeout(s *parley.Step, _ parley.Timer) { p.say(s) }

func (p *pooling) State(v *parley.Vars) {
	v.Bool("back", &p.back)
	v.Bool("done", &p.done)
	v.Set("suspects", &p.suspects)
	v.Durable(func() { v.Bytes("own", &p.own) })
	parley.PerProcess(v, "values", p.values, func(_ parley.ID, b *[]byte) { v.Bytes("value", b) })
}

// ask is the input of a run: a value for each of n processes in each instance.
func ask(n int, instances ...uint64) []sim.Request {
	var out []sim.Request
	for k, number := range instances {
		for id := range parley.ID(n) {
			out = append(out, sim.Request{At: id, When: parley.Tick(100 * k), Msg: parley.Msg{
				Kind: parley.Propose, Seq: number, Body: fmt.Appendf(nil, "%d/%d", number, id),
			}})
		}
	}
	return out
}

// results lists what was delivered, in order.
func results(h *parley.History) []string {
	var out []string
	for _, d := range h.Deliveries {
		out = append(out, fmt.Sprintf("#%d %d %s", d.Msg.Seq, d.At, d.Msg.Body))
	}
	slices.Sort(out)
	return out
}

// Instances go on independently of each other, under any numbers, and each one's
// properties are those of the protocol.
func TestInstances(t *testing.T) {
	const n = 3
	p := mux.New(pool(n), 4)
	numbers := []uint64{7, 0, 1<<32 - 1}
	for seed := range uint64(50) {
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: ask(n, numbers...)})
		var want []string
		for _, number := range numbers {
			for id := range n {
				want = append(want, fmt.Sprintf("#%d %d %d/0,%d/1,%d/2", number, id, number, number, number))
			}
		}
		slices.Sort(want)
		if got := results(&s.History); !slices.Equal(got, want) {
			t.Fatalf("seed %d: delivered %q, want %q", seed, got, want)
		}
		for _, property := range p.Properties {
			if err := property.Check(&s.History); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, property.Name, err)
			}
		}
	}
	// Values mixed up between instances would be found out.
	broken := parley.History{N: n, Requests: []parley.Happening{
		{At: 0, Msg: parley.Msg{Seq: 1, Body: []byte("a")}}, {At: 0, Msg: parley.Msg{Seq: 2, Body: []byte("b")}},
	}, Deliveries: []parley.Happening{{At: 0, Msg: parley.Msg{Seq: 2, Body: []byte("a")}}}}
	if err := p.Properties[0].Check(&broken); err == nil || !strings.HasPrefix(err.Error(), "instance 2: ") {
		t.Errorf("mixed up instances: %v", err)
	}
}

// Beyond the limit, neither a request nor a message makes an instance.
func TestLimit(t *testing.T) {
	s := sim.Run(sim.Options{Protocol: mux.New(pool(3), 2), Requests: ask(3, 5, 6, 4), Until: 20000})
	for _, one := range results(&s.History) {
		if strings.HasPrefix(one, "#4") {
			t.Errorf("a third instance of two delivers: %s", one)
		}
	}
	// Each of the three is refused its own request; nobody says anything.
	if got := s.Stats.Refused["more instances than there is room for"]; got != 3 || len(results(&s.History)) != 6 {
		t.Errorf("%d refused, delivered %q", got, results(&s.History))
	}
	if r := sim.Run(sim.Options{Protocol: mux.New(pool(3), 2), Requests: ask(3, 1<<32)}).Stats.Refused; len(r) != 1 {
		t.Errorf("a number of 33 bits: refused %v", r)
	}
}

// A process that comes back has the instances it has records of, each its own,
// from the log and from the durable variables alike.
func TestRestart(t *testing.T) {
	const n = 3
	for step, want := range map[int]int{2: 3, 3: 6, 4: 6, 5: 6} { // in step 2 it has not heard of 8
		s := sim.Run(sim.Options{
			Protocol: mux.New(pool(n), 4), Requests: ask(n, 9, 8), Until: 40000,
			Crashes: []sim.Crash{{At: 1, Step: step, Effects: 1, Back: 2000}},
		})
		for _, one := range results(&s.History) {
			if !strings.HasSuffix(one, "9/0,9/1,9/2") && !strings.HasSuffix(one, "8/0,8/1,8/2") {
				t.Errorf("crash in step %d: %s", step, one)
			}
		}
		if once := slices.Compact(results(&s.History)); len(once) != want {
			t.Errorf("crash in step %d: delivered %q", step, once)
		}
	}

	m := mux.New(pool(n), 4)
	records := []parley.Record{{Path: 9, Body: []byte("nine")}, {Path: 2, Body: []byte("two")}}
	fresh := m.New(1)
	step := &parley.Step{Self: 1, N: n, Restart: true, Log: records}
	fresh.Start(step)
	var said []string
	for _, e := range step.Effects {
		if e.Op == parley.OpSend {
			said = append(said, fmt.Sprintf("%d: %s", e.Path, e.Msg.Body))
		}
	}
	if !slices.Equal(said, []string{"2: two", "9: nine"}) {
		t.Errorf("after a restart it says %q", said)
	}
	durable := parley.SaveDurable(fresh, 0, nil)
	again := m.New(1)
	if !parley.LoadDurable(again, 0, durable) {
		t.Fatal("the durable state is not loaded")
	}
	step = &parley.Step{Self: 1, N: n, Restart: true}
	again.Start(step)
	if !bytes.Equal(parley.Save(fresh, 0, nil), parley.Save(again, 0, nil)) {
		t.Errorf("from its log %v, from its durable variables %v", parley.Show(fresh, 0), parley.Show(again, 0))
	}
	// An instance that is new to it may be an old one without records.
	step.Effects, step.Restart = nil, false
	state := parley.Save(again, 0, nil)
	if again = m.New(1); !parley.Load(again, 0, state) {
		t.Fatal("the state is not loaded")
	}
	again.Request(step, parley.Msg{Kind: parley.Propose, Seq: 3, Body: []byte("x")})
	back := 0
	for _, v := range parley.Show(again, 0) {
		if strings.HasSuffix(v.Name, ".back") && v.Value == "true" {
			back++
		}
	}
	if back != 3 || step.Restart {
		t.Errorf("%d of 3 instances know of the restart", back)
	}
}

// Indications reach all instances, those to come too, the last of a kind about a
// process alone.
func TestIndications(t *testing.T) {
	m := mux.New(pool(3), 4).New(0)
	s := &parley.Step{Self: 0, N: 3}
	m.Start(s)
	m.Request(s, parley.Msg{Kind: parley.Propose, Seq: 1, Body: []byte("a")})
	for range 3 {
		m.Receive(s, 0, parley.Msg{Kind: parley.Suspect, Origin: 2})
	}
	m.Request(s, parley.Msg{Kind: parley.Propose, Seq: 2, Body: []byte("b")})
	suspected, told := 0, 0
	for _, v := range parley.Show(m, 0) {
		if strings.HasSuffix(v.Name, ".suspects") && v.Value == "[2]" {
			suspected++
		}
		if strings.HasPrefix(v.Name, "told[") && strings.HasSuffix(v.Name, ".origin") {
			told++
		}
	}
	if suspected != 2 || told != 1 {
		t.Errorf("%d of 2 instances know of the suspicion, and %d are remembered: %v", suspected, told, parley.Show(m, 0))
	}
}

// What an instance to come is told is in a state that can be renamed: as it would be
// if the detector had spoken of the others, in the order of their names. A view is
// about nobody and stays between what was said before and after it.
func TestIndicationsRenamed(t *testing.T) {
	perm := []parley.ID{2, 0, 1}
	suspect := func(id parley.ID) parley.Msg { return parley.Msg{Kind: parley.Suspect, Origin: id} }
	stable := func(id parley.ID, seq uint64) parley.Msg {
		return parley.Msg{Kind: parley.Stable, Origin: id, Seq: seq, Value: 5, Body: []byte("b")}
	}
	view := parley.Msg{Kind: parley.View, Seq: 4}
	for _, said := range [][2][]parley.Msg{
		{{suspect(0), suspect(1)}, {suspect(0), suspect(2)}}, // one is still sooner than the other
		{{suspect(2)}, {suspect(1)}},
		{{suspect(1), view, stable(0, 3), suspect(0)}, {suspect(0), view, stable(2, 3), suspect(2)}},
		{{suspect(1), view, suspect(0), view}, {suspect(2), suspect(0), view}}, // the first view is no news
		{{stable(2, 1), view, stable(2, 2)}, {view, stable(1, 2)}},
	} {
		var states [2][]byte
		for i, list := range said {
			m := mux.New(pool(3), 4).New(0)
			s := &parley.Step{Self: 0, N: 3}
			for _, q := range list {
				m.Receive(s, 0, q)
			}
			states[i] = parley.Save(m, 0, nil)
			if i == 0 {
				states[i] = parley.SaveRenamed(m, 0, parley.Renaming{Perm: perm}, nil)
			}
			again := mux.New(pool(3), 4).New(0)
			for _, q := range []parley.Msg{stable(0, 9), stable(1, 9), stable(2, 9), view} { // it is used
				again.Receive(s, 0, q)
			}
			if !parley.Load(again, 0, parley.Save(m, 0, nil)) {
				t.Error("a state is not loaded")
			}
			for _, one := range []parley.Machine{m, again} {
				one.Receive(s, 0, stable(1, 10))
			}
			if !bytes.Equal(parley.Save(m, 0, nil), parley.Save(again, 0, nil)) {
				t.Errorf("%v: %v, loaded: %v", list, parley.Show(m, 0), parley.Show(again, 0))
			}
		}
		if !bytes.Equal(states[0], states[1]) {
			t.Errorf("%v renamed is not %v:\n%x\n%x", said[0], said[1], states[0], states[1])
		}
	}
}

// An instance to come is told what is news, in the order in which it was said.
func TestIndicationsReplayed(t *testing.T) {
	p, heard := asking(func(*parley.Step) {})
	m := mux.New(p, 4).New(0)
	s := &parley.Step{Self: 0, N: 3}
	for _, q := range []parley.Msg{
		{Kind: parley.Suspect, Origin: 2}, {Kind: parley.Stable, Origin: 1, Seq: 1}, {Kind: parley.Suspect, Origin: 1},
		{Kind: parley.View, Seq: 1}, {Kind: parley.Stable, Origin: 1, Seq: 2}, {Kind: parley.Suspect, Origin: 0},
		{Kind: parley.Suspect, Origin: 2},
	} {
		m.Receive(s, 0, q)
	}
	m.Request(s, parley.Msg{Kind: parley.Propose})
	a, v, b := parley.Suspect, parley.View, parley.Stable
	want := fmt.Sprint([][3]int{{int(a), 1, 0}, {int(v), 0, 1}, {int(b), 1, 2}, {int(a), 0, 0}, {int(a), 2, 0}})
	if got := fmt.Sprint(*heard); got != want {
		t.Errorf("told %v, want %v", got, want)
	}
}

// asking is a protocol that does something upon each Request. It notes kind, origin
// and number of what its machines receive.
func asking(do func(s *parley.Step)) (parley.Protocol, *[][3]int) {
	heard := new([][3]int)
	return parley.Protocol{
		Name: "asking", N: 3, New: func(parley.ID) parley.Machine { return &asks{do: do, heard: heard} },
	}, heard
}

type asks struct {
	parley.Base
	do    func(s *parley.Step)
	heard *[][3]int
}

func (a *asks) Request(s *parley.Step, _ parley.Msg) { a.do(s) }

func (a *asks) Receive(_ *parley.Step, _ parley.ID, m parley.Msg) {
	*a.heard = append(*a.heard, [3]int{int(m.Kind), int(m.Origin), int(m.Seq)})
}

func (a *asks) State(*parley.Vars) {}

// No answer in the words of a layer beneath can be brought to the instance that
// asked: so none may ask, and what comes all the same reaches none, and makes none.
func TestOwnWordsBeneath(t *testing.T) {
	propose := parley.Msg{Kind: parley.Propose, Seq: 7}
	var refused refusals
	s := &parley.Step{Self: 0, N: 3, Host: &refused}
	p, heard := asking(func(s *parley.Step) { s.Broadcast(parley.Msg{Kind: 1}) })
	m := mux.New(p, 4).New(0)
	m.Request(s, propose)
	if len(s.Effects) != 1 || s.Effects[0].Op != parley.OpBroadcast || s.Effects[0].Path != 7 {
		t.Errorf("a broadcast is %+v", s.Effects)
	}
	before := parley.Save(m, 0, nil)
	m.Receive(s, 2, parley.Msg{Kind: parley.Decide})
	if len(*heard) != 0 || !bytes.Equal(parley.Save(m, 0, nil), before) ||
		!slices.Equal(refused.why, []string{"answer to no instance from 2"}) {
		t.Errorf("an answer is heard %v, refused %q", *heard, refused.why)
	}
	p, _ = asking(func(s *parley.Step) { s.Request(propose) })
	defer func() {
		if why := recover(); why == nil || !strings.Contains(fmt.Sprint(why), "instance 7 of asking asks") {
			t.Errorf("an instance asks in words of the layer beneath: %v", why)
		}
	}()
	mux.New(p, 4).New(0).Request(s, propose)
}

type refusals struct {
	parley.Host
	why []string
}

func (r *refusals) Refused(_, from parley.ID, why string) {
	r.why = append(r.why, fmt.Sprintf("%s from %d", why, from))
}

// The timer of an instance that a process does not have is no matter to it: the two
// halves of a twin have one clock.
func TestForeignTimer(t *testing.T) {
	m := mux.New(pool(3), 4).New(0)
	s := &parley.Step{Self: 0, N: 3}
	m.Request(s, parley.Msg{Kind: parley.Propose, Seq: 7, Body: []byte("v")})
	before, effects := parley.Save(m, 0, nil), len(s.Effects)
	s.Path = 8
	m.Timeout(s, 3)
	if !bytes.Equal(parley.Save(m, 0, nil), before) || len(s.Effects) != effects {
		t.Errorf("a timer of instance 8 changes something: %v", parley.Show(m, 0))
	}
	s.Path = 7
	m.Timeout(s, 3)
	if len(s.Effects) == effects {
		t.Error("a timer of instance 7 does nothing")
	}
}

// A liar speaks in an instance in which it would honestly be silent, whether or not
// the instance's own Lies look at what the liars hear: mux looks.
func TestLiarSpeaksWhereHonestIsSilent(t *testing.T) {
	p := pool(3)
	p.Lies = func(_ *parley.Step, t *parley.Turn) []parley.Sent {
		if len(t.Honest) == 0 {
			return []parley.Sent{{Msg: parley.Msg{Kind: 1, Body: []byte("lie")}}}
		}
		return t.Honest
	}
	requests := ask(2, 2)
	for _, q := range ask(3, 1) {
		q.When = 4000 // it has heard of instance 2 when it speaks in instance 1
		requests = append(requests, q)
	}
	s := sim.Run(sim.Options{
		Protocol: mux.New(p, 4), Requests: requests, Until: 20000,
		Faulty: map[parley.ID]faulty.Behaviour{2: faulty.Flip},
	})
	lied := 0
	for id := range parley.ID(2) {
		for _, v := range parley.Show(s.Machine(id), s.Now()) {
			if v == (parley.Variable{Name: "#2.values[2].value", Value: "lie"}) {
				lied++
			}
		}
	}
	if lied != 2 {
		t.Errorf("%d of 2 are lied to by a process that honestly has nothing to say", lied)
	}
}

// Rows, sizes and lies are those of the instance that the path names. A liar may
// speak in every instance that it was honestly to speak in or has heard of.
func TestLooksInside(t *testing.T) {
	p := mux.New(pool(3), 4)
	e := parley.Env{From: 1, To: 0, Path: 5}
	m := parley.Msg{Kind: 1, Body: []byte("1")}
	name := func(id parley.ID) string { return fmt.Sprintf("P%d", id+1) }
	if rows := slices.Collect(p.Explain(e, m, name)); !slices.Equal(rows, []string{"#5: P2 has 1"}) {
		t.Errorf("rows %q", rows)
	}
	if size := p.Size(e, m); size != (parley.Traffic{Messages: 1, Bits: 1}) {
		t.Errorf("size %v", size)
	}
	turn := &parley.Turn{
		Self: 1, To: 0, Honest: []parley.Sent{{Path: 8, Msg: m}},
		Seen: slices.Values([]parley.Got{{From: 0, To: 1, Path: 3, Msg: m}, {From: 2, To: 1, Path: 8, Msg: m}}),
	}
	var said []string
	for _, sent := range p.Lies(&parley.Step{Host: lying{}}, turn) {
		said = append(said, fmt.Sprintf("%d: %s", sent.Path, sent.Msg.Body))
	}
	if !slices.Equal(said, []string{"3: lie", "8: 1"}) {
		t.Errorf("a liar says %q", said)
	}
}

// lying answers every choice with the first lie.
type lying struct{ parley.Host }

func (lying) Choose(int) int { return 1 }

// A liar who opens instances fills the room that there is, and no more.
func TestFlood(t *testing.T) {
	flood := faulty.Behaviour{Name: "flood", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Sent {
		var out []parley.Sent
		for path := range parley.Path(20) {
			out = append(out, parley.Sent{Path: 100 + path, Msg: parley.Msg{Kind: 1, Body: []byte("x")}})
		}
		return out
	}}
	s := sim.Run(sim.Options{
		Protocol: mux.New(pool(3), 6), Requests: ask(3, 1), Until: 3000,
		Faulty: map[parley.ID]faulty.Behaviour{2: flood},
	})
	if got := s.Stats.Refused["more instances than there is room for"]; got < 2*(20-5) {
		t.Errorf("%d messages refused", got)
	}
	live := 0
	for _, v := range parley.Show(s.Machine(0), s.Now()) {
		if strings.HasPrefix(v.Name, "live[") {
			live++
		}
	}
	if live != 6 {
		t.Errorf("%d instances, and there is room for 6", live)
	}
}

func TestSuite(t *testing.T) {
	parleytest.Suite(t, mux.New(pool(3), 3), parleytest.Options{
		Seeds: 100, Recovers: true, Sim: sim.Options{Until: 60000},
		Inputs: func(r *rand.Rand) []sim.Request { return ask(3, uint64(r.IntN(2)), 7, 1<<20) },
	})
}
