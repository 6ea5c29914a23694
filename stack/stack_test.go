package stack_test

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/parleytest"
	"parley/stack"
)

// probe is a layer that records its events and runs a given function.
type probe struct {
	name string
	out  *[]string
	on   func(s *parley.Step, event string, from parley.ID, m parley.Msg)
	busy *bool // a clause of a probe is running
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

// nobody is a host for steps that need none.
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
// their paths, and return to it.
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
		// A path from a peer may name no layer.
		if k < 1<<width {
			out, s.Path = nil, parley.Path(k)
			m.Receive(s, 2, parley.Msg{Kind: 1})
			check(t, "nowhere", out, []string(nil))
			check(t, "nowhere", h.refused, []string{"message to a layer there is not from 2"})
		}
	}
}

// Layers start lowest first, each with its own records; their effects happen
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

// Broadcast and Request go to the nearest serving layer beneath, and a carried
// message returns to the layer that broadcast it, past the layers between.
func TestServing(t *testing.T) {
	var out []string
	carry := func(s *parley.Step, _ string, from parley.ID, m parley.Msg) {
		if m.Kind == parley.Carried { // it returns, as if from process 2
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
	top := layer(&out, "d", false, ask)
	top.Hears = parley.HearsBeneath
	m := stack.New(
		layer(&out, "a", true, carry), layer(&out, "b", true, carry), layer(&out, "c", false, nil), top,
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

// A layer receives in the ways that its protocol says, however it is nested, and
// Carried says which way a message came. Others are refused, whatever their path.
func TestHears(t *testing.T) {
	for _, test := range []struct {
		hears         parley.Hearing
		link, carried bool
	}{
		{parley.HearsLinks, true, false}, {parley.HearsBeneath, false, true}, {parley.HearsBoth, true, true},
	} {
		var out []string
		var body []byte // the body that low claims to carry
		low := layer(&out, "low", true, func(s *parley.Step, event string, from parley.ID, m parley.Msg) {
			if event != "start" {
				s.Deliver(from, parley.Msg{Kind: parley.Carried, Body: body})
			}
		})
		up := layer(&out, "up", false, func(s *parley.Step, event string, _ parley.ID, _ parley.Msg) {
			out = append(out, fmt.Sprint("carried ", s.Carried))
		})
		up.Hears = test.hears
		other := layer(&out, "other", false, nil)
		for name, tower := range map[string]struct {
			parley.Protocol
			path parley.Path
		}{
			"flat":         {stack.New(low, up), 1},
			"past another": {stack.New(low, other, up), 2},
			"in a stack":   {stack.New(low, stack.New(other, up)), 1 | 1<<1},
		} {
			out = nil
			s, h := step()
			m := tower.New(1)
			hears := func(how string, heard, carried bool, refusal string) {
				want, refused := []string{"up receive 1 7 from 2", fmt.Sprint("carried ", carried)}, []string(nil)
				if !heard {
					want, refused = nil, []string{refusal + " from 2"}
				}
				have := slices.DeleteFunc(out, func(one string) bool { return one == "low receive 1 0 from 2" })
				if !slices.Equal(have, want) || !slices.Equal(h.refused, refused) || s.Carried {
					t.Errorf("hearing %d, %s, %s: %q, refused %q", test.hears, name, how, have, h.refused)
				}
				out, h.refused = nil, nil
			}
			s.Path = tower.path
			m.Receive(s, 2, parley.Msg{Kind: 1, Value: 7})
			hears("by a link", test.link, false, "link message to a layer that is carried")
			body, s.Path = parley.AppendMsg(nil, tower.path, parley.Msg{Kind: 1, Value: 7}), 0
			m.Receive(s, 2, parley.Msg{Kind: 1})
			hears("carried", test.carried, true, "carried message for nobody")
		}
	}
}

// Carried is set only in the clause that receives the carried message, not in those that follow.
func TestCarriedOnce(t *testing.T) {
	var out []string
	note := func(name string, on func(s *parley.Step, m parley.Msg)) parley.Protocol {
		p := layer(&out, name, true, func(s *parley.Step, event string, _ parley.ID, m parley.Msg) {
			out[len(out)-1] = fmt.Sprint(name, " ", m.Kind, " ", s.Carried)
			on(s, m)
		})
		p.Hears = parley.HearsBoth
		return p
	}
	m := stack.New(
		note("low", func(s *parley.Step, m parley.Msg) {
			if m.Kind == 1 {
				s.Deliver(2, parley.Msg{Kind: parley.Carried, Body: parley.AppendMsg(nil, 1, parley.Msg{Kind: 2})})
				s.Indicate(parley.Msg{Kind: parley.View})
			}
		}),
		stack.New(note("a", func(s *parley.Step, m parley.Msg) {
			if m.Kind == 2 {
				s.Deliver(2, parley.Msg{Kind: parley.Decide})
			}
		}), note("b", func(*parley.Step, parley.Msg) {})),
	).New(1)
	s, _ := step()
	m.Receive(s, 2, parley.Msg{Kind: 1})
	d, v := parley.Decide, parley.View
	check(t, "carried", out, []string{"low 1 false", "a 2 true", fmt.Sprintf("b %d false", d),
		fmt.Sprintf("a %d false", v), fmt.Sprintf("b %d false", v)})
}

// What a layer carries within a stack cannot come from what carries for that
// stack: a message that claims to have come that way is from a faulty process.
func TestCarriedPastTheCarrier(t *testing.T) {
	var out []string
	up := layer(&out, "up", false, nil)
	up.Hears = parley.HearsBoth
	m := stack.New(
		layer(&out, "low", true, func(s *parley.Step, _ string, from parley.ID, m parley.Msg) {
			s.Deliver(from, parley.Msg{Kind: parley.Carried, Body: parley.AppendMsg(nil, 1|1<<1, parley.Msg{Kind: 1})})
		}),
		stack.New(layer(&out, "carrier", true, nil), up),
	).New(1)
	s, h := step()
	m.Receive(s, 2, parley.Msg{Kind: 1})
	check(t, "events", out, []string{"low receive 1 0 from 2"})
	check(t, "refused", h.refused, []string{"carried message for nobody from 2"})
}

// A peer's message delivered as it is would pass for a peer's message of the layer above.
func TestDeliversLinkKind(t *testing.T) {
	var out []string
	m := stack.New(layer(&out, "low", true, func(s *parley.Step, _ string, from parley.ID, m parley.Msg) {
		s.Deliver(from, m)
	}), layer(&out, "top", false, nil)).New(1)
	s, _ := step()
	if !parleytest.Panics(func() { m.Receive(s, 2, parley.Msg{Kind: 1}) }) || len(out) != 1 {
		t.Errorf("a link kind was delivered to the layer above: %q", out)
	}
}

// A carried message for a layer that could not have asked for it, or one that does not
// parse, comes from a faulty process.
func TestCarriedForUnknownProcess(t *testing.T) {
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
		both := func(p parley.Protocol) parley.Protocol { // so that Hears is not the reason for the refusal
			p.Hears = parley.HearsBoth
			return p
		}
		m := stack.New(
			both(layer(&out, "a", true, func(s *parley.Step, _ string, from parley.ID, m parley.Msg) {
				if len(out) == 1 { // once: it must not receive its own
					s.Deliver(from, parley.Msg{Kind: parley.Carried, Body: body})
				}
			})),
			both(layer(&out, "b", true, nil)), both(layer(&out, "c", false, nil)),
		).New(1)
		s, h := step()
		m.Receive(s, 2, parley.Msg{Kind: 1})
		check(t, name, out, []string{"a receive 1 0 from 2"})
		check(t, name, h.refused, []string{"carried message for nobody from 2"})
	}
}

// Broadcast and Request with no serving layer beneath are left to what lies beneath
// the stack. A Broadcast of a local kind panics.
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
	if !parleytest.Panics(func() { s.Broadcast(parley.Msg{Kind: parley.Suspect}) }) {
		t.Error("a local kind was broadcast")
	}
}

// No layer is entered in the middle of a clause, and the effects of a layer happen in
// the order of the requests: two deliveries come before the consequences of the first.
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

// An indication keeps its place among the effects of each layer. low changes the
// view and has a message of the new one at once; mid delivers what it still had of
// the old one, and broadcasts what it has kept for the new one; so does top. The
// same holds if the indication comes from beneath the stack.
func TestIndicationsInPlace(t *testing.T) {
	var out []string
	view := parley.Msg{Kind: parley.View, Value: 2}
	up := func(s *parley.Step, v uint64) { s.Deliver(0, parley.Msg{Kind: parley.Decide, Value: v}) }
	tower := func(indicates bool) parley.Protocol {
		return stack.New(
			layer(&out, "low", true, func(s *parley.Step, event string, _ parley.ID, m parley.Msg) {
				switch {
				case event == "timeout 0" || m.Kind == parley.View:
					up(s, 10) // the last message of the old view
					if indicates {
						s.Indicate(view)
						up(s, 30) // the first message of the new view
					}
				case m.Kind == parley.Propose:
					up(s, m.Value)
				}
			}),
			layer(&out, "mid", true, func(s *parley.Step, _ string, _ parley.ID, m parley.Msg) {
				if m.Kind != parley.View {
					up(s, m.Value+1)
					return
				}
				s.Request(parley.Msg{Kind: parley.Propose, Value: 40})
				up(s, 20)
			}),
			layer(&out, "top", false, func(s *parley.Step, _ string, _ parley.ID, m parley.Msg) { up(s, m.Value) }),
		)
	}
	only := func(layer string) []string {
		var own []string
		for _, one := range out {
			if what, ok := strings.CutPrefix(one, layer+" receive "); ok {
				own = append(own, what)
			}
		}
		return own
	}
	d, v := parley.Decide, parley.View
	s, _ := step()
	tower(true).New(1).Timeout(s, 0)
	check(t, "mid", only("mid"), []string{fmt.Sprintf("%d 10 from 0", d), fmt.Sprintf("%d 2 from 1", v),
		fmt.Sprintf("%d 30 from 0", d), fmt.Sprintf("%d 40 from 0", d)})
	check(t, "top", only("top"), []string{fmt.Sprintf("%d 11 from 0", d), fmt.Sprintf("%d 20 from 0", d),
		fmt.Sprintf("%d 2 from 1", v), fmt.Sprintf("%d 31 from 0", d), fmt.Sprintf("%d 41 from 0", d)})
	var left []uint64
	for _, e := range s.Effects {
		left = append(left, e.Msg.Value)
	}
	check(t, "host", left, []uint64{11, 20, 2, 2, 31, 41}) // top also delivers something about the view

	out = nil
	s, _ = step()
	tower(false).New(1).Receive(s, 1, view)
	check(t, "mid", only("mid"), []string{fmt.Sprintf("%d 10 from 0", d), fmt.Sprintf("%d 2 from 1", v),
		fmt.Sprintf("%d 40 from 0", d)})
	check(t, "top", only("top"), []string{fmt.Sprintf("%d 11 from 0", d), fmt.Sprintf("%d 20 from 0", d),
		fmt.Sprintf("%d 2 from 1", v), fmt.Sprintf("%d 41 from 0", d)})
	for _, e := range s.Effects {
		if e.Op != parley.OpDeliver {
			t.Errorf("it leaves the stack, which tells all above by itself: %+v", e)
		}
	}
}

// An indication passes every layer above, each after what the layer beneath delivers
// about it, and leaves the stack once. An indication from beneath a stack reaches
// all of its layers, and is then not indicated again.
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

// The description of a stack combines the descriptions of its layers.
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
	// The stack assumes what any layer assumes, the highest or not.
	a.Overhears = true
	for _, p := range []parley.Protocol{stack.New(a, b), stack.New(b, a)} {
		if p.M != 1 || p.Faults != parley.CrashFaults || p.Timing != parley.Synchronous || !p.Overhears {
			t.Errorf("%+v", p)
		}
	}
	if stack.New(b, b).Overhears {
		t.Error("it overhears what no layer does")
	}
	if got := p.Size(parley.Env{Path: 0b110}, parley.Msg{}); got.Messages != 13 {
		t.Error("size", got)
	}
	if got := p.Size(parley.Env{Path: 0b111}, parley.Msg{}); got.Messages != 0 {
		t.Error("size", got)
	}
	// b may ask a to carry; then a message of a hides IDs that a does not know.
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
	if p.Bound != nil {
		t.Error("a stack of layers without a bound has one")
	}
	if err := stack.New(bound(a, "no"), b).Bound(4, 1); err == nil {
		t.Error("the bound of the layer beneath is lost")
	}
	if err := stack.New(a, bound(b, "no")).Bound(4, 1); err == nil {
		t.Error("no bound")
	}
}
