package parley_test

import (
	"fmt"
	"slices"
	"testing"

	"parley"
)

func ops(effects []parley.Effect) (out []string) {
	for _, e := range effects {
		out = append(out, fmt.Sprintf("%d>%s %d", e.Op, e.To, e.Timer))
	}
	return out
}

// DurableFirst puts log records first, then Compact, then the rest; each kind keeps its order.
func TestDurableFirst(t *testing.T) {
	numbered := func(list ...parley.Op) (out []parley.Effect) {
		for i, op := range list {
			out = append(out, parley.Effect{Op: op, Timer: parley.Timer(i)})
		}
		return out
	}
	for _, c := range []struct {
		asked []parley.Op
		order []int
	}{
		{nil, nil},
		{[]parley.Op{parley.OpSend, parley.OpDeliver, parley.OpSetTimer}, []int{0, 1, 2}},
		{[]parley.Op{parley.OpSend, parley.OpAppend, parley.OpDeliver, parley.OpAppend}, []int{1, 3, 0, 2}},
		{[]parley.Op{parley.OpCompact, parley.OpSend, parley.OpAppend, parley.OpStopTimer}, []int{2, 0, 1, 3}},
		{[]parley.Op{parley.OpAppend, parley.OpCompact, parley.OpSend}, []int{0, 1, 2}},
	} {
		effects := numbered(c.asked...)
		want := make([]parley.Effect, 0, len(effects))
		for _, i := range c.order {
			want = append(want, effects[i])
		}
		if parley.DurableFirst(effects); !slices.Equal(ops(effects), ops(want)) {
			t.Errorf("%v: got %q, want %q", c.asked, ops(effects), ops(want))
		}
	}
	effects := numbered(parley.OpSend, parley.OpAppend, parley.OpDeliver, parley.OpAppend)
	if allocs := testing.AllocsPerRun(100, func() {
		slices.Reverse(effects)
		parley.DurableFirst(effects)
	}); allocs > 0 {
		t.Errorf("got %v allocations, want none", allocs)
	}
}

// Singly replaces a send to all, in its place, by one send to each process but the sender.
func TestSingly(t *testing.T) {
	s := parley.Step{Self: 1, N: 3}
	s.Deliver(0, parley.Msg{Kind: parley.Carried})
	s.SendAll(parley.Msg{Kind: 1})
	s.Send(2, parley.Msg{Kind: 2})
	var got []string
	for _, e := range parley.Singly(s.Effects, s.N) {
		got = append(got, fmt.Sprintf("%d:%d>%s", e.Op, e.Msg.Kind, e.To))
	}
	want := []string{
		fmt.Sprintf("%d:%d>0", parley.OpDeliver, parley.Carried),
		fmt.Sprintf("%d:1>0", parley.OpSend), fmt.Sprintf("%d:1>2", parley.OpSend), fmt.Sprintf("%d:2>2", parley.OpSend),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// At addresses the effects that its function requests, and none before or after them.
func TestAt(t *testing.T) {
	s := parley.Step{Self: 0, N: 2}
	s.Send(1, parley.Msg{Kind: 1})
	s.At(5, 7, func() {
		s.Send(1, parley.Msg{Kind: 2})
		s.SetTimer(1, 1)
	})
	s.Send(1, parley.Msg{Kind: 3})
	var got []string
	for _, e := range s.Effects {
		got = append(got, fmt.Sprintf("%d/%d", e.Path, e.Epoch))
	}
	if want := []string{"0/0", "5/7", "5/7", "0/0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
