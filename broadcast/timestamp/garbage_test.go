package timestamp_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
)

// trio is the layers of three members of a view, and the effects of each.
type trio struct {
	parley.Host
	layers  [3]group.Layer
	effects [3][]parley.Effect
	refused []string
}

func newTrio(c timestamp.Config) *trio {
	c.N = 3
	x := &trio{}
	for id := range x.layers {
		x.layers[id] = timestamp.LayerSpec(c).New(parley.ID(id), 3)
	}
	x.install(nil, group.View{Number: 1, Members: parley.Everyone(3)})
	return x
}

func (x *trio) Refused(_, _ parley.ID, why string) { x.refused = append(x.refused, why) }

// do runs a clause of one member.
func (x *trio) do(at parley.ID, clause func(*parley.Step, group.Layer)) {
	s := &parley.Step{Self: at, N: 3, Host: x, Effects: x.effects[at]}
	clause(s, x.layers[at])
	x.effects[at] = s.Effects
}

func (x *trio) cast(at parley.ID, text string) {
	x.do(at, func(s *parley.Step, l group.Layer) { l.Request(s, problem.Request([]byte(text))) })
}

func (x *trio) receive(at, from parley.ID, m parley.Msg) (gap bool) {
	x.do(at, func(s *parley.Step, l group.Layer) { gap = l.Receive(s, from, m) })
	return gap
}

// change ends the view with the reports of some members.
func (x *trio) change(number uint64, reporters ...parley.ID) {
	var reports [][]byte
	for _, id := range reporters {
		reports = append(reports, bytes.Clone(x.layers[id].Report()))
	}
	x.install(x.layers[0].Cut(reports), group.View{Number: number, Members: parley.Everyone(3)})
}

func (x *trio) install(cut []byte, next group.View) {
	for id := range x.layers {
		x.do(parley.ID(id), func(s *parley.Step, l group.Layer) { l.Install(s, cut, next) })
	}
}

// delivered returns the payloads that a member has delivered.
func (x *trio) delivered(at parley.ID) (out []string) {
	for _, e := range x.effects[at] {
		if e.Op == parley.OpDeliver {
			out = append(out, string(e.Msg.Body))
		}
	}
	return out
}

// sent returns the last message from a member to another.
func (x *trio) sent(from, to parley.ID) (m parley.Msg) {
	for _, e := range x.effects[from] {
		if e.Op == parley.OpSend && e.To == to {
			m = e.Msg
		}
	}
	return m
}

// Messages that no member sends change nothing: neither what is held, nor what is acknowledged.
func TestGarbage(t *testing.T) {
	x := newTrio(timestamp.Config{})
	x.cast(0, "a")
	good := x.sent(0, 1)
	with := func(change func(m *parley.Msg)) parley.Msg {
		m := good
		m.Body = bytes.Clone(m.Body)
		change(&m)
		return m
	}
	for why, m := range map[string]parley.Msg{
		"kind":          with(func(m *parley.Msg) { m.Kind = 3 }),
		"origin":        with(func(m *parley.Msg) { m.Origin = 1 }),
		"no count":      with(func(m *parley.Msg) { m.Seq = 0 }),
		"no time":       with(func(m *parley.Msg) { m.Value = 0 }),
		"much time":     with(func(m *parley.Msg) { m.Value = 1<<56 + 1 }),
		"no vector":     with(func(m *parley.Msg) { m.Body = nil }),
		"short vector":  with(func(m *parley.Msg) { m.Body = m.Body[:3] }),
		"of four":       with(func(m *parley.Msg) { m.Body[0] = 4 }),
		"its own count": with(func(m *parley.Msg) { m.Body[1] = 0 }),
		"not yet sent":  with(func(m *parley.Msg) { m.Body[2] = 1 }),
		"an ack of more": with(func(m *parley.Msg) {
			m.Kind, m.Seq, m.Value, m.Body = timestamp.Ack, 0, 0, []byte{3, 0, 0, 0, 9}
		}),
	} {
		before, effects := parley.Save(state{l: x.layers[1]}, 0, nil), len(x.effects[1])
		x.refused = nil
		gap := x.receive(1, 0, m)
		if !bytes.Equal(before, parley.Save(state{l: x.layers[1]}, 0, nil)) || len(x.effects[1]) != effects {
			t.Errorf("%s: it has changed something", why)
		}
		if gap || len(x.refused) != 1 {
			t.Errorf("%s: gap %v, refused %v", why, gap, x.refused)
		}
	}
	if x.receive(1, 0, good) || len(x.refused) != 1 {
		t.Error("the message itself is refused")
	}
}

// state exposes only the state of a layer.
type state struct {
	parley.Base
	l group.Layer
}

func (s state) State(v *parley.Vars) { s.l.State(v) }

// Malformed reports, cuts, records and snapshots stop no member, and a well-formed cut names only processes
// that exist.
func TestGarbageInCuts(t *testing.T) {
	x := newTrio(timestamp.Config{})
	for _, text := range []string{"a", "b", "c"} {
		x.cast(0, text)
		x.cast(2, text+text)
		x.receive(1, 0, x.sent(0, 1))
		x.receive(1, 2, x.sent(2, 1))
	}
	l := x.layers[1]
	cut := x.layers[1].Cut([][]byte{x.layers[1].Report(), x.layers[0].Report()})
	if !l.Reads(cut) || l.Reads(nil) {
		t.Error("a cut is none")
	}
	r := rand.New(rand.NewPCG(1, 1))
	readable := 0
	durable := func() group.Durable {
		c := timestamp.Config{Config: group.Config{N: 3, Durable: true}}
		return timestamp.LayerSpec(c).New(1, 3).(group.Durable)
	}
	for range 5000 {
		garbled := slices.Clone(cut)
		for range 1 + r.IntN(3) {
			garbled[r.IntN(len(garbled))] = byte(r.Uint32())
		}
		garbled = garbled[:len(garbled)-r.IntN(2)*r.IntN(len(garbled))]
		if !l.Reads(x.layers[1].Cut([][]byte{garbled, append([]byte{1, 1}, garbled...)})) {
			t.Fatalf("a cut of %x is none", garbled)
		}
		d := durable()
		d.Replay(garbled)
		d.Replay(append([]byte{1}, garbled[1:]...))
		d.Restore(garbled)
		if !l.Reads(garbled) {
			continue
		}
		readable++
		s := &parley.Step{Self: 1, N: 3, Host: x}
		d.Install(s, garbled, group.View{Number: 2, Members: parley.Everyone(3)})
		for _, e := range s.Effects {
			if e.Op == parley.OpDeliver && e.To >= 3 {
				t.Fatalf("%x: process %d is the sender", garbled, e.To)
			}
		}
	}
	if readable == 0 || readable == 5000 {
		t.Errorf("%d of 5000 can be read", readable)
	}
	// One record, of a fourth process, which does not exist.
	rec := binary.AppendUvarint(nil, 1)
	for _, x := range []uint64{7, 3, 1, 0} {
		rec = binary.AppendUvarint(rec, x)
	}
	if durable().Replay(rec) {
		t.Error("the record of a fourth process is taken")
	}
}

// A member whose clock has reached its maximum broadcasts nothing more in this view, and waits. So the group
// asks for the next view, where clocks restart.
func TestLastTime(t *testing.T) {
	x := newTrio(timestamp.Config{})
	x.cast(2, "a")
	last := x.sent(2, 1)
	last.Value = 1 << 56
	if x.receive(0, 2, last) || x.receive(1, 2, last) {
		t.Fatal("a gap")
	}
	x.receive(1, 0, x.sent(0, 1))
	if got := x.delivered(1); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("delivered %q", got)
	}
	x.cast(1, "b")
	if m := x.sent(1, 0); m.Kind == timestamp.Data || !x.layers[1].Waiting() {
		t.Errorf("it sends %v, and waits: %v", m, x.layers[1].Waiting())
	}
	x.change(2, 0, 1)
	if m := x.sent(1, 0); m.Kind != timestamp.Data || m.Value != 1 {
		t.Errorf("in the next view it sends %v", m)
	}
	if got := x.delivered(1); !slices.Equal(got, []string{"a"}) {
		t.Errorf("in the end it has delivered %q", got)
	}
}

// The row of a message shows what it carries, and how much its sender holds of each process.
func TestExplain(t *testing.T) {
	x := newTrio(timestamp.Config{})
	x.cast(0, "pay 7")
	x.receive(1, 0, x.sent(0, 1))
	explain := timestamp.LayerSpec(timestamp.Config{}).Explain
	for _, c := range []struct {
		m    parley.Msg
		want string
	}{
		{x.sent(0, 1), "message 1 at time 1, holds [1 0 0]: pay 7"},
		{x.sent(1, 0), "holds [1 0 0]"},
		{parley.Msg{Kind: timestamp.Ack, Body: []byte{9}}, "a message that cannot be read"},
		{parley.Msg{Kind: 9}, "a message of no kind"},
	} {
		if rows := slices.Collect(explain(parley.Env{}, c.m, parley.ID.String)); !slices.Equal(rows, []string{c.want}) {
			t.Errorf("%q, and not %q", rows, c.want)
		}
	}
}

// The keys of a member's messages increase, and are never below what others have delivered because of its
// acknowledgements. A message that violates this is a gap, and is not delivered out of order.
func TestKeysGoUp(t *testing.T) {
	data := func(seq, time uint64, body ...byte) parley.Msg {
		return parley.Msg{Kind: timestamp.Data, Seq: seq, Value: time, Body: body}
	}
	x := newTrio(timestamp.Config{})
	if x.receive(1, 0, data(1, 5, 3, 1, 0, 0, 'a')) || !x.receive(1, 0, data(2, 5, 3, 2, 0, 0, 'b')) {
		t.Error("two messages of one key are taken, or not one")
	}
	if x.receive(1, 0, data(2, 6, 3, 2, 0, 0, 'b')) {
		t.Error("a message in its order is a gap")
	}

	x = newTrio(timestamp.Config{})
	x.cast(2, "a")
	m := x.sent(2, 0)
	x.receive(0, 2, m)
	x.receive(1, 2, m)
	x.receive(1, 0, x.sent(0, 1))
	if got := x.delivered(1); len(got) != 1 {
		t.Fatalf("delivered are %q", got)
	}
	if !x.receive(1, 0, data(1, 1, 3, 1, 0, 1, 'b')) {
		t.Error("a message whose place is before what was delivered is taken")
	}
}
