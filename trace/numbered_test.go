package trace_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/trace"
)

// numbered returns the numbered trace of an incarnation of one of two nodes, written to a file and read.
func numbered(t *testing.T, self int, life uint64, events ...trace.Event) trace.Trace {
	t.Helper()
	h := trace.Header{
		Protocol: "test", N: 2, M: 1,
		Node: &trace.Node{Machine: "test", Self: self, Life: life, Began: 1, Numbered: true},
	}
	log := &trace.Log{Keep: true}
	for _, e := range events {
		e.At = parley.ID(self)
		log.Add(e)
	}
	var b bytes.Buffer
	if err := trace.Write(&b, h, log); err != nil {
		t.Fatal(err)
	}
	all, err := trace.ReadAll("test", &b)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// A message to a process that crashed later and never read it is not lost by a link, however long before the
// crash it was sent. A loss that its sender recorded is one.
func TestMergeKilledReceiverLosesNothing(t *testing.T) {
	m := parley.Msg{Kind: 1, Value: 7}
	send := func(at parley.Tick) trace.Event { return trace.Event{Op: trace.Send, Peer: 1, Time: at, Msg: m} }
	first := numbered(t, 0, 1, trace.Event{Op: trace.Start}, send(10), send(20), send(30),
		trace.Event{Op: trace.Lose, Peer: 1, Time: 30}, trace.Event{Op: trace.Timeout, Time: 90_000})
	get := trace.Event{Op: trace.Receive, Peer: 0, Time: 15, Cause: trace.Sending(1, 1), Msg: m}
	for _, c := range []struct {
		end  trace.Op
		lost uint64
	}{{trace.Crash, 1}, {trace.Timeout, 2}} {
		other := numbered(t, 1, 1, trace.Event{Op: trace.Start}, get, trace.Event{Op: c.end, Time: 80_000})
		if w := merged(t, []trace.Trace{other, first}, trace.Merging{Grace: 100}); w.Lost != c.lost {
			t.Errorf("the receiver ends with %v: got %d lost, want %d", c.end, w.Lost, c.lost)
		}
	}
}

// Receipts in numbered traces belong to the sends that they name, although all messages are equal, some
// overtake others, arrive twice or are lost, and their sender has crashed and restarted. Its last messages
// before the crash are not lost.
func TestMergeNumbered(t *testing.T) {
	m := parley.Msg{Kind: 1, Value: 7}
	send := func(at parley.Tick) trace.Event { return trace.Event{Op: trace.Send, Peer: 1, Time: at, Msg: m} }
	get := func(at parley.Tick, life, nth uint64) trace.Event {
		return trace.Event{Op: trace.Receive, Peer: 0, Time: at, Cause: trace.Sending(life, nth), Msg: m}
	}
	first := numbered(t, 0, 1, trace.Event{Op: trace.Start}, send(10), send(20),
		trace.Event{Op: trace.Lose, Peer: 1, Time: 20}, send(30), send(40), trace.Event{Op: trace.Crash, Time: 41})
	second := numbered(t, 0, 2, trace.Event{Op: trace.Restart, Time: 50}, send(60), send(70))
	other := numbered(t, 1, 1, trace.Event{Op: trace.Start}, get(35, 1, 3), get(36, 1, 1), get(37, 1, 1),
		get(80, 2, 2), get(81, 2, 1), trace.Event{Op: trace.Timeout, Time: 90_000})
	w := merged(t, []trace.Trace{other, second, first}, trace.Merging{Grace: 100})
	var pairs []string
	for _, e := range w.Log.Events {
		if e.Op == trace.Receive {
			pairs = append(pairs, fmt.Sprintf("%d of %d", e.Time, w.Log.Events[e.Cause-1].Time))
		}
	}
	want := []string{"35 of 30", "36 of 10", "37 of 10", "80 of 70", "81 of 60"}
	if !slices.Equal(pairs, want) {
		t.Errorf("got receipts %q, want %q", pairs, want)
	}
	if w.Lost != 1 || !w.Doubled || !w.Reordered || len(w.Unsent) > 0 {
		t.Errorf("lost %d, doubled %t, reordered %t, unsent %v, want 1, true, true, none", w.Lost, w.Doubled, w.Reordered, w.Unsent)
	}
	if lost := w.Log.Events[slices.IndexFunc(w.Log.Events, func(e trace.Event) bool { return e.Op == trace.Lose })]; lost.At != 1 ||
		lost.Peer != 0 || w.Log.Events[lost.Cause-1].Time != 20 {
		t.Errorf("got %+v for what was lost, want it of 20", lost)
	}
}
