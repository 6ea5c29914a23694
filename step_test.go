package parley_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/parleytest"
)

type host struct {
	chosen []int
	signed []parley.ID
	why    []string
}

func (h *host) Choose(n int) int { h.chosen = append(h.chosen, n); return n - 1 }
func (h *host) Sign(as parley.ID, b []byte) []byte {
	h.signed = append(h.signed, as)
	return append([]byte{byte(as)}, b...)
}
func (h *host) Verify(id parley.ID, b, sig []byte) bool { return reflect.DeepEqual(sig, h.Sign(id, b)) }
func (h *host) Refused(_, _ parley.ID, why string)      { h.why = append(h.why, why) }

// Each request of a step is one effect, in order, with the documented fields.
func TestEffects(t *testing.T) {
	s := &parley.Step{Self: 2, N: 4, Host: &host{}}
	m := parley.Msg{Kind: 1, Seq: 5}
	local := parley.Msg{Kind: parley.Propose}
	suspect := parley.Msg{Kind: parley.Suspect}
	s.Send(3, m)
	s.SendAll(m)
	s.SendTo(parley.SetOf(0, 2, 3), m)
	s.Keep(m)
	s.Broadcast(m)
	s.Request(local)
	s.Deliver(1, local)
	s.Indicate(suspect)
	s.SetTimer(4, 10)
	s.SetTimer(4, -10)
	s.StopTimer(4)
	s.Append([]byte("rec"))
	s.Compact()
	want := []parley.Effect{
		{Op: parley.OpSend, From: 2, To: 3, Msg: m},
		{Op: parley.OpSend, From: 2, To: parley.All, Msg: m},
		{Op: parley.OpSend, From: 2, To: 0, Msg: m},
		{Op: parley.OpSend, From: 2, To: 3, Msg: m},
		{Op: parley.OpKeep, From: 2, To: 2, Msg: m},
		{Op: parley.OpBroadcast, From: 2, To: parley.All, Msg: m},
		{Op: parley.OpRequest, From: 2, To: 2, Msg: local},
		{Op: parley.OpDeliver, From: 2, To: 1, Msg: local},
		{Op: parley.OpIndicate, From: 2, To: 2, Msg: suspect},
		{Op: parley.OpSetTimer, From: 2, Timer: 4, After: 10},
		{Op: parley.OpSetTimer, From: 2, Timer: 4},
		{Op: parley.OpStopTimer, From: 2, Timer: 4},
		{Op: parley.OpAppend, From: 2, Msg: parley.Msg{Body: []byte("rec")}},
		{Op: parley.OpCompact, From: 2},
	}
	if !reflect.DeepEqual(s.Effects, want) {
		t.Errorf("\nhave %+v\nwant %+v", s.Effects, want)
	}
}

// A process does not send to itself, to an unknown process, or a message of a local kind.
func TestSendPanics(t *testing.T) {
	s := &parley.Step{Self: 2, N: 4}
	local := parley.Msg{Kind: parley.Local}
	for name, f := range map[string]func(){
		"to itself":             func() { s.Send(2, parley.Msg{}) },
		"to nobody":             func() { s.Send(4, parley.Msg{}) },
		"to all by Send":        func() { s.Send(parley.All, parley.Msg{}) },
		"local":                 func() { s.Send(1, local) },
		"local to all":          func() { s.SendAll(local) },
		"local to some":         func() { s.SendTo(parley.SetOf(1), local) },
		"local broadcast":       func() { s.Broadcast(local) },
		"indicating a delivery": func() { s.Indicate(parley.Msg{Kind: parley.Decide}) },
		"delivering a view":     func() { s.Deliver(2, parley.Msg{Kind: parley.View}) },
	} {
		if !parleytest.Panics(f) {
			t.Error(name, "is allowed")
		}
	}
	if len(s.Effects) != 0 {
		t.Error(s.Effects)
	}
}

// Choose asks the host only if there is more than one answer.
func TestChoose(t *testing.T) {
	h := &host{}
	s := &parley.Step{Host: h}
	if s.Choose(0) != 0 || s.Choose(1) != 0 || s.Choose(3) != 2 || !slices.Equal(h.chosen, []int{3}) {
		t.Error(h.chosen)
	}
}

// A machine signs for itself and its coalition only.
func TestSignAs(t *testing.T) {
	h := &host{}
	s := &parley.Step{Self: 2, N: 5, Members: parley.SetOf(2, 4), Host: h}
	b := []byte("b")
	if !s.Verify(2, b, s.Sign(b)) || !s.Verify(4, b, s.SignAs(4, b)) || s.Verify(3, b, s.Sign(b)) {
		t.Error("signatures do not verify as they should")
	}
	if !parleytest.Panics(func() { s.SignAs(3, b) }) {
		t.Error("a signature of a correct process was given")
	}
	if slices.Contains(h.signed[:2], 3) {
		t.Error(h.signed)
	}
	s.Members = parley.Set{}
	if parleytest.Panics(func() { s.Sign(b) }) {
		t.Error("a process may not sign for itself")
	}
	s.Refuse(1, "why")
	if !slices.Equal(h.why, []string{"why"}) {
		t.Error(h.why)
	}
}

// Adapters pop from a path in the opposite order of their pushes.
func TestPath(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for range 2000 {
		type level struct {
			bits  int
			child parley.Path
		}
		var levels []level
		var p parley.Path
		for left := 64; left > 0; {
			bits := min(left, r.IntN(12))
			child := parley.Path(r.Uint64()) & (1<<bits - 1)
			levels, left = append(levels, level{bits, child}), left-bits
			p = p.Push(bits, child)
			if r.IntN(10) == 0 {
				break
			}
		}
		s := parley.Step{Path: p}
		for _, l := range slices.Backward(levels) {
			if child := s.Pop(l.bits); child != l.child {
				t.Fatalf("%#x: %d popped, and %d was pushed in %d bits", p, child, l.child, l.bits)
			}
		}
		if s.Path != 0 {
			t.Fatalf("%#x is left of %#x", s.Path, p)
		}
	}
	for name, f := range map[string]func(){
		"65 bits":            func() { parley.Path(1<<63).Push(1, 0) },
		"a child too large":  func() { parley.Path(0).Push(2, 4) },
		"a child in no bits": func() { parley.Path(0).Push(0, 1) },
		"too deep in a step": func() {
			s := parley.Step{Effects: []parley.Effect{{Path: 1 << 62}}}
			s.Lower(0,
				2, 1)
		},
		"a child of 33 in mux's": func() { parley.Path(0).Push(32, 1<<32) },
	} {
		if !parleytest.Panics(f) {
			t.Error(name, "fits")
		}
	}
	if p := parley.Path(5).Push(32, 1<<32-1); p != 5<<32|(1<<32-1) {
		t.Errorf("%#x", p)
	}
}

// Lower marks the effects since a mark. Take removes some of them, and visits effects that
// are added meanwhile.
func TestLowerAndTake(t *testing.T) {
	s := &parley.Step{Self: 0, N: 2}
	s.StopTimer(0)
	mark := s.Mark()
	s.StopTimer(1)
	s.StopTimer(2)
	s.Lower(mark, 3, 5)
	s.Lower(mark, 0, 0)
	s.Lower(s.Mark(), 3, 1)
	var paths []parley.Path
	var timers []parley.Timer
	s.Take(mark, func(e *parley.Effect) bool {
		paths, timers = append(paths, e.Path), append(timers, e.Timer)
		if e.Timer == 1 {
			s.StopTimer(3)
		}
		return e.Timer == 1 || e.Timer == 3
	})
	if !slices.Equal(paths, []parley.Path{5, 5, 0}) || !slices.Equal(timers, []parley.Timer{1, 2, 3}) {
		t.Error(paths, timers)
	}
	if len(s.Effects) != 2 || s.Effects[0].Timer != 0 || s.Effects[1].Timer != 2 {
		t.Error(s.Effects)
	}
}

// LogOf gives each child its own records, in order.
func TestLogOf(t *testing.T) {
	rec := func(p parley.Path, b string) parley.Record { return parley.Record{Path: p, Body: []byte(b)} }
	all := []parley.Record{rec(0b101, "a"), rec(0b10, "b"), rec(0b01, "c"), rec(0b11, "d")}
	if have := parley.LogOf(all, 2, 1); !reflect.DeepEqual(have, []parley.Record{rec(1, "a"), rec(0, "c")}) {
		t.Error(have)
	}
	if have := parley.LogOf(all, 2, 0); have != nil {
		t.Error(have)
	}
	if have := parley.LogOf(all, 0, 0); !reflect.DeepEqual(have, all) {
		t.Error(have)
	}
}

// A turn's child sees its own part, and Lift restores the paths.
func TestTurn(t *testing.T) {
	sent := func(p parley.Path) parley.Outgoing {
		return parley.Outgoing{Path: p, Msg: parley.Msg{Value: uint64(p)}}
	}
	turn := &parley.Turn{
		Self: 1, To: 2, Round: 3, Members: parley.SetOf(1),
		Honest: []parley.Outgoing{sent(0b01), sent(0b10), sent(0b111)},
		Seen:   slices.Values([]parley.Received{{From: 3, Path: 0b11}, {From: 4, Path: 0b1}, {From: 5, Path: 0b0}}),
		Memo:   "of the whole",
	}
	child := turn.Child(1, 1)
	seen := slices.Collect(child.Seen)
	if child.Self != 1 || child.To != 2 || child.Round != 3 || child.Members != turn.Members ||
		child.Memo != nil ||
		!reflect.DeepEqual(seen, []parley.Received{{From: 3, Path: 1}, {From: 4, Path: 0}}) {
		t.Errorf("%+v %+v", child, seen)
	}
	want := []parley.Outgoing{{Path: 0, Msg: sent(0b01).Msg}, {Path: 0b11, Msg: sent(0b111).Msg}}
	if !reflect.DeepEqual(child.Honest, want) {
		t.Errorf("%+v", child.Honest)
	}
	if back := parley.Lift(child.Honest, 1, 1); back[0].Path != 1 || back[1].Path != 0b111 {
		t.Errorf("%+v", back)
	}
	if len(turn.Honest) != 3 || turn.Honest[2].Path != 0b111 {
		t.Errorf("the turn itself was changed: %+v", turn.Honest)
	}
	for range child.Seen {
		break
	}
}

// Base has an empty clause for every event.
func TestBase(t *testing.T) {
	var b parley.Base
	s := &parley.Step{}
	b.Start(s)
	b.Request(s, parley.Msg{})
	b.Receive(s, 1, parley.Msg{})
	b.Timeout(s, 1)
	if len(s.Effects) != 0 {
		t.Error(s.Effects)
	}
	if parley.ID(7).String() != "7" || parley.All.String() != "all" {
		t.Error("names")
	}
}
