package stack_test

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/stack"
)

// probe is a layer that writes down what happens to it and does what it is told.
type probe struct {
	name string
	out  *[]string
	on   func(s *parley.Step, event string, from parley.ID, m parley.Msg)
	busy *bool // some clause of this probe is running
}

func (p probe) note(s *parley.Step, event string, from parley.ID, m parley.Msg) {
	if *p.busy {
		panic("re-entered")
	}
	*p.busy = true
	*p.out = append(*p.out, fmt.Sprintf("%s %s", p.name, event))
	if p.on != nil {
		p.on(s, event, from, m)
	}
	*p.busy = false
}

func (p probe) Start(s *parley.Step) {
	event := "start"
	for _, r := range s.Log {
		event += " " + string(r.Body)
	}
	p.note(s, event, 0, parley.Msg{})
}

func (p probe) Request(s *parley.Step, m parley.Msg) {
	p.note(s, fmt.Sprintf("request %d %d", m.Kind, m.Value), s.Self, m)
}

func (p probe) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	p.note(s, fmt.Sprintf("receive %d %d from %d", m.Kind, m.Value, from), from, m)
}

func (p probe) Timeout(s *parley.Step, t parley.Timer) {
	p.note(s, fmt.Sprintf("timeout %d", t), 0, parley.Msg{})
}

func (p probe) State(*parley.Vars) {}

// layer is a protocol of probes.
func layer(out *[]string, name string, serves bool,
	on func(s *parley.Step, event string, from parley.ID, m parley.Msg)) parley.Protocol {
	return parley.Protocol{
		Name: name, N: 3, M: 1, Serves: serves,
		New: func(parley.ID) parley.Machine { return probe{name, out, on, new(bool)} },
	}
}

// nobody is the host of steps that need none.
type nobody struct{ refused []string }

func (*nobody) Choose(int) int                        { return 0 }
func (*nobody) Sign(parley.ID, []byte) []byte         { return nil }
func (*nobody) Verify(parley.ID, []byte, []byte) bool { return false }
func (h *nobody) Refused(_, from parley.ID, why string) {
	h.refused = append(h.refused, fmt.Sprintf("%s from %d", why, from))
}

func step() (*parley.Step, *nobody) {
	h := &nobody{}
	return &parley.Step{Self: 1, N: 3, Host: h}, h
}

func check(t *testing.T, what string, have, want any) {
	t.Helper()
	if !reflect.DeepEqual(have, want) {
		t.Errorf("%s:\nhave %q\nwant %q", what, have, want)
	}
}

// A layer's sends, timers and records have its number in ceil(log2 k) bits of
// their paths, and come back to it.
func TestPaths(t *testing.T) {
	for k := 1; k <= 9; k++ {
		var out []string
		var all []parley.Protocol
		for i := range k {
			all = append(all, layer(&out, fmt.Sprint(i), false,
				func(s *parley.Step, event string, _ parley.ID, _ parley.Msg) {
					if event == "start" {
						s.SendAll(parley.Msg{Kind: 1})
						s.Send(2, parley.Msg{Kind: 1})
						s.Keep(parley.Msg{Kind: 1})
						s.SetTimer(7, 1)
						s.StopTimer(7)
						s.Append(nil)
						s.Compact()
					}
				}))
		}
		m := stack.New(all...).New(1)
		s, h := step()
		m.Start(s)
		if len(s.Effects) != 7*k {
			t.Fatalf("%d layers: %d effects", k, len(s.Effects))
		}
		width := 0
		for 1<<width < k {
			width++
		}
		for i, e := range slices.Clone(s.Effects) {
			if int(e.Path) != i/7 || bits.Len(uint(e.Path)) > width {
				t.Errorf("%d layers: effect %d of layer %d has path %#x", k, i%7, i/7, e.Path)
			}
			out, s.Path = nil, e.Path
			if e.Op == parley.OpSend {
				m.Receive(s, 2, parley.Msg{Kind: 1, Value: 5})
				check(t, "arrival", out, []string{fmt.Sprintf("%d receive 1 5 from 2", i/7)})
			} else if e.Op == parley.OpSetTimer {
				m.Timeout(s, 7)
				check(t, "timeout", out, []string{fmt.Sprintf("%d timeout 7", i/7)})
			}
		}
		// A path from a peer may lead nowhere.
		if k < 1<<width {
			out, s.Path = nil, parley.Path(k)
			m.Receive(s, 2, parley.Msg{Kind: 1})
			check(t, "nowhere", out, []string(nil))
			check(t, "nowhere", h.refused, []string{"message to a layer there is not from 2"})
		}
	}
}

// Layers start lowest first, each with its own records; what they ask for happens
// when all have started.
func TestStart(t *testing.T) {
	var out []string
	m := stack.New(
		layer(&out, "low", true, func(s *parley.Step, event string, _ parley.ID, _ parley.Msg) {
			s.Deliver(2, parley.Msg{Kind: parley.Decide, Value: 9})
		}),
		layer(&out, "mid", true, nil),
		layer(&out, "top", false, nil),
	).New(1)
	s, _ := step()
	s.Restart = true
	s.Log = []parley.Record{{Path: 1, Body: []byte("b")}, {Path: 0, Body: []byte("a")},
		{Path: 1, Body: []byte("c")}, {Path: 2, Body: []byte("d")}}
	m.Start(s)
	check(t, "order", out, []string{"low start a", "mid start b c", "top start d",
		fmt.Sprintf("mid receive %d 9 from 2", parley.Decide)})
	if len(s.Log) != 4 || len(s.Effects) != 0 {
		t.Error(s.Log, s.Effects)
	}
}

// Broadcast and Request go to the nearest serving layer beneath, and what is
// carried comes back to the layer that asked for it, past those between.
func TestServing(t *testing.T) {
	var out []string
	carry := func(s *parley.Step, _ string, from parley.ID, m parley.Msg) {
		if m.Kind == parley.Carried { // it comes back, as if from process 2
			s.Deliver(2, parley.Msg{Kind: parley.Carried, Origin: 2, Body: m.Body})
		}
	}
	ask := func(s *parley.Step, event string, _ parley.ID, m parley.Msg) {
		if m.Kind == parley.Propose {
			s.Broadcast(parley.Msg{Kind: 3, Value: 4})
			s.Request(parley.Msg{Kind: parley.Propose, Value: 6})
			s.Deliver(0, parley.Msg{Kind: parley.Carried, Body: []byte("to the host")})
		}
	}
	m := stack.New(
		layer(&out, "a", true, carry), layer(&out, "b", true, carry), layer(&out, "c", false, nil),
		layer(&out, "d", false, ask),
	).New(1)
	s, h := step()
	m.Request(s, parley.Msg{Kind: parley.Propose, Value: 1})
	check(t, "order", out, []string{
		fmt.Sprintf("d request %d 1", parley.Propose), fmt.Sprintf("b request %d 0", parley.Carried),
		fmt.Sprintf("b request %d 6", parley.Propose), "d receive 3 4 from 2",
	})
	if len(s.Effects) != 1 || s.Effects[0].Op != parley.OpDeliver ||
		string(s.Effects[0].Msg.Body) != "to the host" {
		t.Errorf("%+v", s.Effects)
	}
	check(t, "refused", h.refused, []string(nil))
}

// What is carried for a layer that could not have asked, or is no message, comes
// from a liar.
func TestCarriedForNobody(t *testing.T) {
	for name, body := range map[string][]byte{
		"nothing":             nil,
		"cut short":           {2, 1},
		"itself":              parley.AppendMsg(nil, 0, parley.Msg{Kind: 1}),
		"one served by other": parley.AppendMsg(nil, 2, parley.Msg{Kind: 1}),
		"no layer":            parley.AppendMsg(nil, 3, parley.Msg{Kind: 1}),
		"trailing":            append(parley.AppendMsg(nil, 1, parley.Msg{Kind: 1}), 0),
		"local":               {1, byte(parley.Suspect), 0, 0, 0, 0},
	} {
		var out []string
		m := stack.New(
			layer(&out, "a", true, func(s *parley.Step, _ string, from parley.ID, m parley.Msg) {
				s.Deliver(from, parley.Msg{Kind: parley.Carried, Body: body})
			}),
			layer(&out, "b", true, nil), layer(&out, "c", false, nil),
		).New(1)
		s, h := step()
		m.Receive(s, 2, parley.Msg{Kind: 1})
		check(t, name, out, []string{"a receive 1 0 from 2"})
		check(t, name, h.refused, []string{"carried message for nobody from 2"})
	}
}

// Broadcast and Request with nothing beneath that serves stay, for whatever is
// beneath the stack; and so do Broadcasts of local kinds never come to be.
func TestNothingServes(t *testing.T) {
	var out []string
	m := stack.New(layer(&out, "detector", false, nil), layer(&out, "top", false,
		func(s *parley.Step, _ string, _ parley.ID, _ parley.Msg) {
			s.Broadcast(parley.Msg{Kind: 3})
			s.Request(parley.Msg{Kind: parley.Propose})
		})).New(1)
	s, _ := step()
	m.Request(s, parley.Msg{Kind: parley.Propose})
	if len(s.Effects) != 2 || s.Effects[0].Op != parley.OpBroadcast || s.Effects[1].Op != parley.OpRequest ||
		s.Effects[0].Path != 1 {
		t.Errorf("%+v", s.Effects)
	}
	defer func() {
		if recover() == nil {
			t.Error("a local kind was broadcast")
		}
	}()
	s.Broadcast(parley.Msg{Kind: parley.Suspect})
}

// No layer is entered while it is in the middle of a clause, and what a layer
// asked for happens in that order: two deliveries come before what the first one
// leads to.
func TestOrder(t *testing.T) {
	var out []string
	m := stack.New(
		layer(&out, "low", true, func(s *parley.Step, event string, from parley.ID, m parley.Msg) {
			switch {
			case event == "receive 1 0 from 2":
				s.Deliver(0, parley.Msg{Kind: parley.Decide, Value: 1})
				s.Send(0, parley.Msg{Kind: 1, Value: 1})
				s.Deliver(0, parley.Msg{Kind: parley.Decide, Value: 2})
			case m.Kind == parley.Propose:
				s.Deliver(0, parley.Msg{Kind: parley.Decide, Value: 10 + m.Value})
				s.Send(0, parley.Msg{Kind: 1, Value: 10 + m.Value})
			}
		}),
		layer(&out, "top", false, func(s *parley.Step, _ string, _ parley.ID, m parley.Msg) {
			if m.Value < 10 {
				s.Request(parley.Msg{Kind: parley.Propose, Value: m.Value})
			}
		}),
	).New(1)
	s, _ := step()
	m.Receive(s, 2, parley.Msg{Kind: 1})
	d, p := parley.Decide, parley.Propose
	check(t, "order", out, []string{
		"low receive 1 0 from 2",
		fmt.Sprintf("top receive %d 1 from 0", d), fmt.Sprintf("top receive %d 2 from 0", d),
		fmt.Sprintf("low request %d 1", p), fmt.Sprintf("low request %d 2", p),
		fmt.Sprintf("top receive %d 11 from 0", d), fmt.Sprintf("top receive %d 12 from 0", d),
	})
	var sent []uint64
	for _, e := range s.Effects {
		sent = append(sent, e.Msg.Value)
	}
	check(t, "sends", sent, []uint64{1, 11, 12})
}

// An indication passes every layer above, each after what the one beneath did
// about it has reached it, and leaves the stack once. It comes up from beneath a
// stack to all of its layers, and is then not indicated again.
func TestIndications(t *testing.T) {
	var out []string
	suspect := parley.Msg{Kind: parley.Suspect, Value: 3}
	about := func(s *parley.Step, event string, _ parley.ID, m parley.Msg) {
		if m.Kind == parley.Suspect {
			s.Deliver(0, parley.Msg{Kind: parley.Decide, Value: 1})
		}
	}
	upper := stack.New(layer(&out, "u1", true, about), layer(&out, "u2", true, about))
	upper.Serves = true
	m := stack.New(
		layer(&out, "detector", false, func(s *parley.Step, event string, _ parley.ID, _ parley.Msg) {
			if event == "timeout 0" {
				s.Indicate(suspect)
			}
		}),
		layer(&out, "mid", true, about), upper, layer(&out, "top", false, nil),
	).New(1)
	s, _ := step()
	m.Timeout(s, 0)
	d, q := parley.Decide, parley.Suspect
	check(t, "order", out, []string{
		"detector timeout 0",
		fmt.Sprintf("mid receive %d 3 from 1", q),
		fmt.Sprintf("u1 receive %d 1 from 0", d), fmt.Sprintf("u1 receive %d 3 from 1", q),
		fmt.Sprintf("u2 receive %d 1 from 0", d), fmt.Sprintf("u2 receive %d 3 from 1", q),
		fmt.Sprintf("top receive %d 1 from 0", d), fmt.Sprintf("top receive %d 3 from 1", q),
	})
	if len(s.Effects) != 1 || s.Effects[0].Op != parley.OpIndicate ||
		!reflect.DeepEqual(s.Effects[0].Msg, suspect) {
		t.Errorf("%+v", s.Effects)
	}
}

// Deliveries and indications of an inner stack reach the layer above it.
func TestInnerStack(t *testing.T) {
	var out []string
	inner := stack.New(layer(&out, "i1", true, func(s *parley.Step, _ string, _ parley.ID, m parley.Msg) {
		s.Indicate(parley.Msg{Kind: parley.View, Value: 8})
	}), layer(&out, "i2", true, func(s *parley.Step, _ string, _ parley.ID, m parley.Msg) {
		s.Deliver(2, parley.Msg{Kind: parley.Decide, Value: 7})
	}))
	m := stack.New(inner, layer(&out, "top", false, nil)).New(1)
	s, _ := step()
	m.Receive(s, 2, parley.Msg{Kind: 1}) // path 0: the lowest layer of the lowest
	check(t, "order", out, []string{
		"i1 receive 1 0 from 2", fmt.Sprintf("i2 receive %d 8 from 1", parley.View),
		fmt.Sprintf("top receive %d 7 from 2", parley.Decide), fmt.Sprintf("top receive %d 8 from 1", parley.View),
	})
}

// What the stack says of itself.
func TestDescription(t *testing.T) {
	a := parley.Protocol{Name: "a", Title: "one", Kinds: []string{"", "X", "Y"}, N: 4, M: 3,
		Faults: parley.CrashFaults, Serves: true,
		Rename: func(_ parley.Env, m parley.Msg, _ []parley.ID) parley.Msg { m.Value++; return m },
		Size:   func(e parley.Env, _ parley.Msg) parley.Traffic { return parley.Traffic{Messages: 10 + uint64(e.Path)} }}
	b := parley.Protocol{Name: "b", Kinds: []string{"", "Z"}, N: 4, M: 1, Faults: parley.OralByzantineFaults,
		Timing:    parley.Synchronous,
		Proposers: parley.SetOf(2), Properties: []parley.Property{{Name: "p"}}}
	p := stack.New(a, b)
	if p.Name != "a/b" || p.N != 4 || p.M != 1 || p.Faults != parley.CrashFaults ||
		p.Timing != parley.Synchronous || p.Serves ||
		p.Proposers != b.Proposers || len(p.Properties) != 1 || !slices.Equal(p.Kinds, []string{"", "X/Z", "Y"}) ||
		p.Title != "one" {
		t.Errorf("%+v", p)
	}
	if got := p.Size(parley.Env{Path: 0b110}, parley.Msg{}); got.Messages != 13 {
		t.Error("size", got)
	}
	if got := p.Size(parley.Env{Path: 0b111}, parley.Msg{}); got.Messages != 0 {
		t.Error("size", got)
	}
	// b may ask a to carry, and then a message of a hides names that a does not know.
	if p.Rename != nil {
		t.Error("a stack that carries can be renamed")
	}
	a.Serves = false
	p = stack.New(a, b)
	if m := p.Rename(parley.Env{}, parley.Msg{}, nil); m.Value != 1 {
		t.Error("not renamed by the layer")
	}
	if m := p.Rename(parley.Env{Path: 1}, parley.Msg{}, nil); m.Value != 0 {
		t.Error("renamed by another layer")
	}
	bound := func(p parley.Protocol, why string) parley.Protocol {
		p.Bound = func(int, int) error { return fmt.Errorf("%s", why) }
		return p
	}
	if err := p.Bound(4, 1); err != nil {
		t.Error(err)
	}
	if err := stack.New(a, bound(b, "no")).Bound(4, 1); err == nil {
		t.Error("no bound")
	}
}
