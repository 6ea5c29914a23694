package trace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/trace"
)

// town is a run of n nodes with wrong clocks, each of which records its own part.
type town struct {
	r      *rand.Rand
	now    int64 // true time
	skew   []int64
	traces []trace.Trace
	links  map[[2]int][]parley.Msg
	sent   map[string]int // by content: the sender
	lost   int
	number int
}

func newTown(seed uint64, n int) *town {
	w := &town{r: rand.New(rand.NewPCG(seed, 9)), links: make(map[[2]int][]parley.Msg), sent: make(map[string]int)}
	for i := range n {
		w.skew = append(w.skew, w.r.Int64N(400)-200)
		w.begin(i, 1)
	}
	return w
}

// begin begins an incarnation of a node.
func (w *town) begin(id int, life uint64) {
	h := trace.Header{
		Protocol: "test", N: 4, M: 1,
		Node: &trace.Node{Machine: "test", Self: id, Life: life, Began: 1_000_000 + w.skew[id] + w.now},
	}
	w.traces = append(w.traces, trace.Trace{Name: fmt.Sprintf("%d.%d", id, life), Header: h, Log: &trace.Log{Keep: true}})
	w.note(len(w.traces)-1, trace.Event{Op: trace.Start})
}

func (w *town) note(at int, e trace.Event) {
	t := &w.traces[at]
	e.At = parley.ID(t.Header.Node.Self)
	e.Time = parley.Tick(1_000_000 + w.skew[e.At] + w.now - t.Header.Node.Began)
	t.Log.Add(e)
}

// run makes random steps: sends to one or all, receipts, and links that lose everything in flight.
func (w *town) run(steps int) {
	n := len(w.skew)
	for range steps {
		w.now += 1 + w.r.Int64N(30)
		a, b := w.r.IntN(n), w.r.IntN(n)
		link := w.links[[2]int{a, b}]
		switch k := w.r.IntN(10); {
		case a == b:
		case k < 4:
			w.number++
			m := parley.Msg{Kind: 1, Value: uint64(w.r.IntN(3))} // some are equal
			if w.r.IntN(2) == 0 {
				m.Body = fmt.Appendf(nil, "%d", w.number)
			}
			if w.r.IntN(2) == 0 {
				w.note(a, trace.Event{Op: trace.Send, Peer: parley.ID(b), Msg: m})
				w.links[[2]int{a, b}] = append(link, m)
				break
			}
			w.note(a, trace.Event{Op: trace.Send, Peer: parley.All, Msg: m})
			for to := range n {
				if to != a {
					w.links[[2]int{a, to}] = append(w.links[[2]int{a, to}], m)
				}
			}
		case k < 9 && len(link) > 0:
			w.note(b, trace.Event{Op: trace.Receive, Peer: parley.ID(a), Msg: link[0]})
			w.links[[2]int{a, b}] = link[1:]
		case k == 9 && len(link) > 1 && len(link[0].Body) > 0 && len(link[1].Body) > 0: // so that a trace shows which one
			w.note(b, trace.Event{Op: trace.Receive, Peer: parley.ID(a), Msg: link[1]})
			w.links[[2]int{a, b}] = link[2:]
			w.lost++
		}
	}
}

func merged(t *testing.T, traces []trace.Trace, how trace.Merging) *trace.MergedTrace {
	t.Helper()
	w, err := trace.Merge(traces, how)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// However wrong the clocks are, the cause of every receipt is an earlier send of the same content on the same
// link. No send has two receipts at one node. Each node's events are in its own order. Lost messages are
// counted.
func TestMerge(t *testing.T) {
	for seed := range uint64(200) {
		w := newTown(seed, 3)
		w.run(300)
		all := merged(t, w.traces, trace.Merging{})
		if all.Absent != parley.SetOf(3) || len(all.Unsent) > 0 || all.Reordered {
			t.Fatalf("seed %d: absent %v, unsent %v", seed, all.Absent, all.Unsent)
		}
		next := make([]int, 3)
		used := make(map[[2]uint64]bool)
		last, lost := parley.Tick(0), 0
		for _, e := range all.Log.Events {
			if e.Time < last {
				t.Fatalf("seed %d: event %d goes back in time", seed, e.ID)
			}
			if last = e.Time; e.Op == trace.Lose {
				lost++
				continue
			}
			own := w.traces[e.At].Log.Events[next[e.At]]
			next[e.At]++
			if own.Op != e.Op || own.Peer != e.Peer || own.Msg.Value != e.Msg.Value || !bytes.Equal(own.Msg.Body, e.Msg.Body) {
				t.Fatalf("seed %d: event %d is not the next one of %d", seed, e.ID, e.At)
			}
			if e.Op != trace.Receive {
				continue
			}
			key := [2]uint64{e.Cause, uint64(e.At)}
			if e.Cause == 0 || e.Cause >= e.ID || used[key] {
				t.Fatalf("seed %d: event %d has cause %d", seed, e.ID, e.Cause)
			}
			used[key] = true
			if c := all.Log.Events[e.Cause-1]; c.Op != trace.Send || c.At != e.Peer || c.Peer != parley.All && c.Peer != e.At ||
				c.Msg.Value != e.Msg.Value || !bytes.Equal(c.Msg.Body, e.Msg.Body) {
				t.Fatalf("seed %d: event %d is not what %d sent", seed, e.ID, e.Cause)
			}
		}
		for id, k := range next {
			if k != len(w.traces[id].Log.Events) {
				t.Fatalf("seed %d: of %d events of %d there are %d", seed, len(w.traces[id].Log.Events), id, k)
			}
		}
		if lost != int(all.Lost) || lost > w.lost {
			t.Fatalf("seed %d: %d lost, %d are said, and there were %d", seed, lost, all.Lost, w.lost)
		}
		if header := all.Header; header.Facts.Network.Lost != (lost > 0) || header.Node.Self != trace.Merged {
			t.Fatalf("seed %d: %+v", seed, header)
		}
	}
}

// send and receive return events.
func send(to parley.ID, body string) trace.Event {
	return trace.Event{Op: trace.Send, Peer: to, Msg: parley.Msg{Kind: 1, Body: []byte(body)}}
}

func receive(from parley.ID, body string) trace.Event {
	return trace.Event{Op: trace.Receive, Peer: from, Msg: parley.Msg{Kind: 1, Body: []byte(body)}}
}

// life returns the trace of an incarnation of a node.
func life(id int, number uint64, at time.Duration, events ...trace.Event) trace.Trace {
	l := &trace.Log{Keep: true}
	for i, e := range append([]trace.Event{{Op: trace.Start}}, events...) {
		e.At, e.Time = parley.ID(id), parley.Tick(i)*parley.Tick(time.Millisecond)
		l.Add(e)
	}
	h := trace.Header{Protocol: "test", N: 3, M: 1, Node: &trace.Node{Self: id, Life: number, Began: int64(time.Hour + at)}}
	return trace.Trace{Name: fmt.Sprintf("%d.%d", id, number), Header: h, Log: l}
}

// story describes a log in words.
func story(l *trace.Log) string {
	var out []string
	for _, e := range l.Events {
		text := fmt.Sprintf("%d:%v", e.At, e.Op)
		if len(e.Msg.Body) > 0 {
			text += fmt.Sprintf(" %s/%d", e.Msg.Body, e.Peer)
		}
		if e.Cause > 0 {
			text += fmt.Sprintf("<%d", e.Cause)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// A liar's own trace does not count. What it sent is what others received.
func TestMergeLiars(t *testing.T) {
	liar := life(1, 1, 0, send(0, "I said so"), receive(0, "a"))
	liar.Header.Node.Lies = "twofaced"
	w := merged(t, []trace.Trace{
		life(0, 1, 0, send(parley.All, "a"), receive(1, "x")), liar, life(2, 1, 0, receive(1, "y"), receive(0, "a")),
	}, trace.Merging{})
	want := "0:start, 2:start, 0:send a/65535, 1:send y/2, 2:receive y/1<4, 1:send x/0, 0:receive x/1<6, 2:receive a/0<3"
	if have := story(w.Log); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	if w.Liars != parley.SetOf(1) || !slices.Equal(w.Header.Faulty, []int{1}) || w.Complete() != nil || len(w.Unsent) > 0 {
		t.Errorf("%+v, %v", w.Header, w.Complete())
	}
}

// A correct node recorded a message that another correct one has not sent: one of them is not correct.
func TestMergeUnsent(t *testing.T) {
	w := merged(t, []trace.Trace{
		life(0, 1, 0, send(1, "a")), life(1, 1, 0, receive(0, "b")), life(2, 1, 0, receive(0, "a")),
	}, trace.Merging{})
	if len(w.Unsent) != 2 {
		t.Errorf("%v in %s", w.Unsent, story(w.Log))
	}
}

// A message that was on the link when the connection broke is lost. One sent while the receiver was down was
// never in flight, and one sent just before the end may still be: neither is lost.
func TestMergeLives(t *testing.T) {
	first := life(1, 1, 0, receive(0, "a"), receive(0, "c"))
	first.Log.Broken = true
	again := life(1, 2, 5*time.Second, receive(0, "e"))
	w := merged(t, []trace.Trace{
		life(0, 1, -time.Millisecond, send(1, "a"), send(1, "b"), send(1, "c"), send(1, "d"), send(1, "e"), send(1, "f")),
		first, again, life(2, 1, 0),
	}, trace.Merging{})
	want := "0:start, 0:send a/1, 1:start, 2:start, 0:send b/1, 1:lose b/0<5, 1:receive a/0<2, 0:send c/1, " +
		"1:receive c/0<8, 1:crash, 0:send d/1, 0:send e/1, 0:send f/1, 1:start, 1:receive e/0<12"
	if have := story(w.Log); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	if w.Restarted != parley.SetOf(1) || w.Crashed != parley.SetOf(1) || w.Lost != 1 || w.Complete() == nil {
		t.Errorf("%+v, %v", w, w.Complete())
	}
	last := life(2, 1, 0)
	last.Log.Broken, last.Log.Gaps = true, []trace.Gap{{After: 1, Events: 5}}
	w = merged(t, []trace.Trace{life(0, 1, 0), last}, trace.Merging{})
	why := "there is no trace of 1\n2 dropped 5 events\na trace of 2 ended without a footer"
	if err := w.Complete(); err == nil || err.Error() != why {
		t.Error(err)
	}
}

// Traces that do not belong together are refused.
func TestMergeRefuses(t *testing.T) {
	other, size, plain, strange := life(1, 1, 0), life(1, 1, 0), life(1, 1, 0), life(1, 1, 0)
	other.Header.Node.Machine = "other"
	size.Header.M = 0
	plain.Header.Node = nil
	strange.Header.Node.Self = 3
	for want, list := range map[string][]trace.Trace{
		"nothing to merge": nil, "traces of": {life(0, 1, 0), other}, "different configurations": {life(0, 1, 0), size},
		"not the trace of a node": {plain}, "node 3 among 3": {strange}, "of the same life": {life(0, 1, 0), life(0, 1, 0)},
	} {
		if _, err := trace.Merge(list, trace.Merging{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; %s was to be said", err, want)
		}
	}
}

// The last messages of a process before it was killed are not lost by a link, in any of its incarnations. A
// gap before a message that arrived is a loss.
func TestMergeKilledSenderLosesNothing(t *testing.T) {
	first := life(1, 1, 0, send(0, "a"), send(0, "b"), send(0, "c"), send(0, "d"))
	first.Log.Broken = true
	again := life(1, 2, 5*time.Second, send(0, "e"), send(0, "f"))
	again.Log.Broken = true
	for _, c := range []struct {
		got  []trace.Event
		lost uint64
	}{
		{[]trace.Event{receive(1, "a"), receive(1, "b"), receive(1, "e")}, 0},
		{[]trace.Event{receive(1, "a"), receive(1, "c"), receive(1, "e")}, 1},
		{[]trace.Event{receive(1, "a"), receive(1, "b"), receive(1, "f")}, 1},
		{nil, 0},
	} {
		other := life(0, 1, 0, c.got...)
		other.Log.Until = parley.Tick(time.Minute)
		w := merged(t, []trace.Trace{other, first, again, life(2, 1, 0)}, trace.Merging{})
		if w.Lost != c.lost {
			t.Errorf("got %d messages lost, want %d: %s", w.Lost, c.lost, story(w.Log))
		}
	}
}
