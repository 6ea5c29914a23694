package rsm_test

import (
	"bytes"
	"fmt"
	"testing"

	"parley"
	"parley/membership/group"
	"parley/replica/rsm"
)

// used returns a replica that has served two clients and its own process.
func used(t *testing.T, c rsm.Config) *bench {
	t.Helper()
	c.N, c.New = 3, account
	b := newBench(t, c, 0)
	b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 7")})
	for client := range uint64(2) {
		b.receive(1, parley.Msg{Kind: 1, Value: 70 + client, Seq: 3, Body: []byte("deposit 5")})
	}
	return b
}

// Bytes that are no state are not loaded. What is loaded equals what is saved.
func TestLoad(t *testing.T) {
	b := used(t, rsm.Config{Every: 1})
	saved := parley.Save(b, 0, nil)
	fresh := func() parley.Machine { return rsm.New(rsm.Config{N: 3, New: account, Every: 1}).New(0) }
	m := fresh()
	if !parley.Load(m, 0, saved) || !bytes.Equal(parley.Save(m, 0, nil), saved) {
		t.Error("what was saved is not loaded")
	}
	refused := 0
	for i := range saved {
		for bit := range 8 {
			c := bytes.Clone(saved)
			c[i] ^= 1 << bit
			m := fresh()
			if !parley.Load(m, 0, c) {
				refused++
			} else if !bytes.Equal(parley.Save(m, 0, nil), c) {
				t.Errorf("byte %d: %x is loaded and saved as %x", i, c, parley.Save(m, 0, nil))
			}
		}
	}
	if refused == 0 {
		t.Error("everything is a state")
	}
}

// Only the incarnation of the process is durable. Loading it changes nothing else.
func TestLoadDurable(t *testing.T) {
	b := used(t, rsm.Config{})
	before, durable := fmt.Sprint(parley.Show(b, 0)), parley.SaveDurable(b, 0, nil)
	if len(durable) != 1 || !parley.LoadDurable(b, 0, durable) {
		t.Errorf("durable: %x", durable)
	}
	if after := fmt.Sprint(parley.Show(b, 0)); after != before {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
}

// A joiner takes over a valid state, whatever it had, and keeps its own commands. Given an invalid one it
// stops, says why, and takes over the next one.
func TestRestore(t *testing.T) {
	sponsor := used(t, rsm.Config{Transfer: true})
	sponsor.receive(0, parley.Msg{Kind: group.SnapshotWanted, Origin: 1, Seq: 9})
	state := sponsor.effects[0].Msg
	if state.Kind != group.State || state.Seq != 9 {
		t.Fatalf("%+v", sponsor.effects)
	}
	restored := func(body []byte) parley.Msg { return parley.Msg{Kind: group.SnapshotInstalled, Seq: 9, Body: body} }
	view := parley.Msg{Kind: parley.View, Seq: 4}
	bodies := [][]byte{nil, state.Body[:len(state.Body)-1], append(bytes.Clone(state.Body), 0)}
	// The setup has a fourth process, and the sessions have another order.
	bodies = append(bodies, swapped(t, state.Body, []byte{0x07}, []byte{0x0f}),
		swapped(t, state.Body, []byte{140, 1}, []byte{150, 1}))
	for _, body := range bodies {
		b := newBench(t, rsm.Config{N: 3, New: account, Transfer: true}, 1)
		b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 1")})
		b.receive(1, restored(body))
		if len(b.effects) != 1 || b.effects[0].Msg.Kind != rsm.Stopped || len(b.effects[0].Msg.Body) == 0 {
			t.Errorf("%x: %+v", body, b.effects)
			continue
		}
		b.receive(1, view)
		b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 1")})
		if b.receive(1, parley.Msg{Kind: group.SnapshotWanted}); len(b.effects) > 0 {
			t.Errorf("it has stopped, and asks for %+v", b.effects)
		}
		b.receive(1, restored(state.Body))
		b.request(parley.Msg{Kind: parley.Carried, Body: []byte("balance")})
		b.receive(1, view)
		for k, want := range []string{"1011", "1011"} { // the first requests are not forgotten
			if len(b.effects) != 1 || b.effects[0].Op != parley.OpBroadcast {
				t.Fatalf("back in a view it asks for %+v", b.effects)
			}
			b.receive(1, b.effects[0].Msg)
			if got := b.effects[0].Msg; got.Seq != uint64(3+k) || string(got.Body) != want {
				t.Fatalf("%+v", b.effects)
			}
			b.effects = b.effects[1:]
		}
	}
}

// A command in flight when a replica stopped may have been applied. After rejoining, its answer is not taken
// for that of a later command.
func TestStopsWithCommandUnderWay(t *testing.T) {
	c := rsm.Config{N: 3, New: account, Transfer: true, Every: 1}
	b, other := newBench(t, c, 1), newBench(t, c, 0)
	b.receive(1, parley.Msg{Kind: parley.View, Seq: 1})
	b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 1")})
	first := b.effects[0].Msg
	b.receive(0, parley.Msg{Kind: 1, Value: 77, Seq: 1, Body: []byte("balance")})
	b.receive(0, parley.Msg{Kind: 2, Seq: 1, Value: 5})
	b.receive(2, parley.Msg{Kind: 2, Seq: 1, Value: 5})
	if n := len(b.effects); n != 2 || b.effects[1].Msg.Kind != rsm.Stopped {
		t.Fatalf("%+v", b.effects)
	}
	other.receive(1, first)
	b.receive(1, parley.Msg{Kind: group.Excluded})
	b.receive(1, parley.Msg{Kind: group.SnapshotInstalled, Body: stateOf(t, other)})
	b.receive(1, parley.Msg{Kind: parley.View, Seq: 4})
	b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 5")})
	b.receive(1, first)
	next := b.effects[len(b.effects)-1].Msg
	if b.receive(1, next); len(b.effects) == 0 || string(b.effects[0].Msg.Body) != "1006" {
		t.Errorf("next it asks for %+v, and gets %+v", next, b.effects)
	}
}

// swapped returns b with part, which occurs once, replaced by by.
func swapped(t *testing.T, b, part, by []byte) []byte {
	t.Helper()
	if bytes.Count(b, part) != 1 {
		t.Fatalf("%x has not %x once", b, part)
	}
	return bytes.Replace(b, part, by, 1)
}

// A process sends no request before it is in a view. Excluded and readmitted, it sends its unanswered command
// again as the same client with the same number.
func TestAsksAgain(t *testing.T) {
	b := newBench(t, rsm.Config{N: 3, New: account, Transfer: true}, 1)
	b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 1")})
	if len(b.effects) > 0 {
		t.Errorf("in no view it asks for %+v", b.effects)
	}
	b.receive(1, parley.Msg{Kind: parley.View, Seq: 3})
	first := b.effects[0].Msg
	b.receive(1, parley.Msg{Kind: group.Excluded})
	b.receive(1, parley.Msg{Kind: group.SnapshotInstalled, Body: stateOf(t, b)})
	b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 2")})
	if len(b.effects) > 0 {
		t.Errorf("it asks for %+v, and is out", b.effects)
	}
	b.receive(1, parley.Msg{Kind: parley.View, Seq: 6})
	if len(b.effects) != 1 || fmt.Sprint(b.effects[0].Msg) != fmt.Sprint(first) {
		t.Errorf("it asks for %+v, not for %+v", b.effects, first)
	}
	b.receive(1, first)
	if len(b.effects) != 2 || string(b.effects[0].Msg.Body) != "1001" || b.effects[1].Msg.Seq != 2 {
		t.Errorf("%+v", b.effects)
	}
}

// stateOf returns what a replica gives to a joiner.
func stateOf(t *testing.T, b *bench) []byte {
	t.Helper()
	b.receive(0, parley.Msg{Kind: group.SnapshotWanted})
	return b.effects[0].Msg.Body
}

// A replica that has stopped answers each Inspect like any other.
func TestInspectStopped(t *testing.T) {
	b := newBench(t, rsm.Config{N: 3, New: account, Transfer: true}, 1)
	b.receive(1, parley.Msg{Kind: group.SnapshotInstalled})
	b.request(parley.Msg{Kind: rsm.Inspect})
	if len(b.effects) != 1 || b.effects[0].Msg.Kind != rsm.Inspect || b.effects[0].Msg.Seq != 0 {
		t.Errorf("%+v", b.effects)
	}
}
