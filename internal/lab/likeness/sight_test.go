package likeness_test

import (
	"slices"
	"testing"

	"parley"
	"parley/catalog"
	"parley/internal/lab/likeness"
	"parley/trace"
)

func protocol(t *testing.T, name string) parley.Protocol {
	t.Helper()
	for _, p := range catalog.All() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no protocol %s", name)
	return parley.Protocol{}
}

// events numbers events.
func events(list ...trace.Event) []trace.Event {
	for i := range list {
		list[i].ID = uint64(i + 1)
	}
	return list
}

func receives(at, from parley.ID, body string) trace.Event {
	return trace.Event{Op: trace.Receive, At: at, Peer: from, Msg: parley.Msg{Kind: 1, Body: []byte(body)}}
}

// Within a round the order of messages means nothing to a process; in a protocol without rounds it does.
func TestOrder(t *testing.T) {
	tick := trace.Event{Op: trace.Timeout, At: 1}
	a := events(tick, receives(1, 0, "x"), receives(1, 2, "y"), tick, receives(1, 0, "z"))
	b := events(tick, receives(1, 2, "y"), receives(1, 0, "x"), tick, receives(1, 0, "z"))
	late := events(tick, receives(1, 2, "y"), tick, receives(1, 0, "x"), receives(1, 0, "z"))
	for _, c := range []struct {
		protocol string
		other    []trace.Event
		want     likeness.Parting
	}{
		{"om", b, likeness.Parting{Same: true, Equal: 5}},
		{"om", late, likeness.Parting{Equal: 1, A: 2, B: 2}},
		{"causal", b, likeness.Parting{Equal: 1, A: 2, B: 2}},
		{"causal", a[:3], likeness.Parting{Equal: 3, A: 4}},
	} {
		p := protocol(t, c.protocol)
		if got := likeness.Compare(likeness.Of(p, a, 1), likeness.Of(p, c.other, 1)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.protocol, got, c.want)
		}
	}
}

// A process sees its own events, except what happens to messages that it never gets, and its own crash.
func TestOwnEvents(t *testing.T) {
	p := protocol(t, "causal")
	all := events(
		trace.Event{Op: trace.Start, At: 0}, trace.Event{Op: trace.Start, At: 1}, receives(1, 0, "x"),
		trace.Event{Op: trace.Lose, At: 1, Peer: 0}, receives(0, 1, "y"), trace.Event{Op: trace.Crash, At: 1},
		trace.Event{Op: trace.Restart, At: 1},
	)
	if got := likeness.Of(p, all, 1).Events(); !slices.Equal(got, []uint64{2, 3, 7}) {
		t.Errorf("P2 sees %d", got)
	}
	lost := events(slices.Delete(slices.Clone(all), 3, 4)...)
	if !likeness.Compare(likeness.Of(p, all, 1), likeness.Of(p, lost, 1)).Same {
		t.Error("P2 sees that a message is lost")
	}
}

// In a protocol that reads clocks, times count.
func TestClocks(t *testing.T) {
	early, late := trace.Event{Op: trace.Timeout, At: 1, Time: 5}, trace.Event{Op: trace.Timeout, At: 1, Time: 6}
	for name, want := range map[string]bool{"convergence": false, "om": true, "causal": true} {
		p := protocol(t, name)
		if got := likeness.Compare(likeness.Of(p, events(early), 1), likeness.Of(p, events(late), 1)).Same; got != want {
			t.Errorf("%s: the same at another time: %t", name, got)
		}
	}
}
