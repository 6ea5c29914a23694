package atomic_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// hall has the layers of the members of a view of n processes, and the messages in transit between them.
type hall struct {
	parley.Host
	n       int
	layers  []group.Layer
	links   [][][]parley.Msg // in flight, by sender and receiver
	logs    [][]byte         // what member 1 made durable
	said    [][]string       // by process: its deliveries
	refused []string
}

func layerOf(self parley.ID, n int) group.Durable {
	return atomic.LayerSpec(group.Config{N: n, Durable: true}).New(self, n).(group.Durable)
}

func newHall(n int) *hall {
	h := &hall{n: n, links: make([][][]parley.Msg, n), said: make([][]string, n)}
	for id := range parley.ID(n) {
		h.layers, h.links[id] = append(h.layers, layerOf(id, n)), make([][]parley.Msg, n)
	}
	h.install(nil, 1)
	return h
}

func (h *hall) Refused(_, _ parley.ID, why string) { h.refused = append(h.refused, why) }

// do runs a clause of a layer.
func (h *hall) do(at parley.ID, clause func(*parley.Step, group.Layer)) {
	s := &parley.Step{Self: at, N: h.n, Host: h}
	clause(s, h.layers[at])
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpSend:
			h.links[at][e.To] = append(h.links[at][e.To], e.Msg)
		case parley.OpDeliver:
			_, body, _ := problem.Decode(e.Msg, h.n)
			h.said[at] = append(h.said[at], string(body))
		case parley.OpAppend:
			if at == 1 {
				h.logs = append(h.logs, bytes.Clone(e.Msg.Body))
			}
		}
	}
}

// cast broadcasts a text to some processes, or to all if none is named.
func (h *hall) cast(at parley.ID, text string, to ...parley.ID) {
	m := problem.Request([]byte(text))
	if len(to) > 0 {
		m = problem.RequestTo(parley.SetOf(to...), []byte(text))
	}
	h.do(at, func(s *parley.Step, l group.Layer) { l.Request(s, m) })
}

func (h *hall) hand(from, to parley.ID, m parley.Msg) (gap bool) {
	h.do(to, func(s *parley.Step, l group.Layer) { gap = l.Receive(s, from, m) })
	return gap
}

// receive takes the oldest message from a link.
func (h *hall) receive(from, to parley.ID) {
	m := h.links[from][to][0]
	h.links[from][to] = h.links[from][to][1:]
	h.hand(from, to, m)
}

// settle delivers all messages in transit among some processes.
func (h *hall) settle(among ...parley.ID) {
	for again := true; again; {
		again = false
		for _, from := range among {
			for _, to := range among {
				for len(h.links[from][to]) > 0 {
					h.receive(from, to)
					again = true
				}
			}
		}
	}
}

// cut returns the cut of the reports of some members.
func (h *hall) cut(of ...parley.ID) []byte {
	var reports [][]byte
	for _, id := range of {
		reports = append(reports, h.layers[id].Report())
	}
	return h.layers[0].Cut(reports)
}

// install begins a view of all at each process.
func (h *hall) install(cut []byte, number uint64) {
	for id := range h.layers {
		h.do(parley.ID(id), func(s *parley.Step, l group.Layer) {
			l.Install(s, cut, group.View{Number: number, Members: parley.Everyone(h.n)})
		})
	}
}

// A message that is not the next one of its link is a gap, and one with an old number is refused.
func TestGap(t *testing.T) {
	h := newHall(2)
	h.cast(0, "a", 1)
	h.cast(0, "b", 1)
	link := h.links[0][1]
	for i, c := range []struct {
		m        parley.Msg
		gap      bool
		proposed int
	}{{link[1], true, 0}, {link[0], false, 1}, {link[0], false, 1}, {link[1], false, 2}} {
		if gap := h.hand(0, 1, c.m); gap != c.gap || len(h.links[1][0]) != c.proposed {
			t.Errorf("%d: gap %v, sent %v", i, gap, h.links[1][0])
		}
	}
}

// A message that only its sender has, because the sender is no receiver and its links broke, is in the
// sender's report.
func TestOwnMessageSurvives(t *testing.T) {
	h := newHall(3)
	h.cast(0, "a", 1, 2)
	h.install(h.cut(0, 1, 2), 2)
	if want := [][]string{nil, {"a"}, {"a"}}; fmt.Sprint(h.said) != fmt.Sprint(want) {
		t.Errorf("delivered %q", h.said)
	}
}

// A joiner continues from its sponsor's position: of the cut it delivers what is addressed to itself, whether
// to its sponsor too or not, above the last priority that the sponsor had delivered. It does not matter that
// it was no member when a message was sent.
func TestJoiner(t *testing.T) {
	h := newHall(4)
	three := group.View{Number: 2, Members: parley.Everyone(3)}
	for id := range parley.ID(3) {
		h.do(id, func(s *parley.Step, l group.Layer) { l.Install(s, nil, three) })
	}
	h.cast(0, "first")
	h.settle(0, 1, 2)
	joiner := h.layers[3]
	if !joiner.Restore(h.layers[1].Snapshot()) || joiner.Restore([]byte{1}) || joiner.Restore([]byte{1, 1, 1}) {
		t.Error("a snapshot is not accepted, or one that is none is")
	}
	h.cast(2, "second")
	h.cast(2, "third", 0, 1)
	h.cast(2, "fourth", 0, 3)
	h.install(h.cut(0, 1, 2), 3)
	want := [][]string{{"first", "second", "third", "fourth"}, {"first", "second", "third"}, {"first", "second"}, {"second", "fourth"}}
	if fmt.Sprint(h.said) != fmt.Sprint(want) {
		t.Errorf("delivered %q", h.said)
	}
}

// The rows of the messages in views.
func TestExplainInViews(t *testing.T) {
	h := newHall(2)
	explain := atomic.LayerSpec(group.Config{N: 2}).Explain
	var rows []string
	h.cast(0, "m")
	for _, from := range []parley.ID{0, 1, 0, 1} {
		e := parley.Env{From: from, To: 1 - from}
		rows = slices.AppendSeq(rows, explain(e, h.links[from][e.To][0], parley.ID.String))
		h.receive(from, e.To)
	}
	want := []string{
		"REQ 0#1 to 0 1: m (message 1)", "PROP 0#1 at 1.1 (message 1)", "FINAL 0#1 at 1.1 (message 2)",
		"LOGGED 0#1 (message 2)",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
}

// Malformed reports, cuts, records and snapshots stop no member.
func TestGarbageInViews(t *testing.T) {
	h := newHall(3)
	for k := range 4 {
		h.cast(parley.ID(k%3), fmt.Sprint("m", k))
	}
	h.receive(0, 1)
	h.receive(0, 2)
	h.receive(1, 0)
	r := rand.New(rand.NewPCG(1, 1))
	cut := h.cut(1, 0)
	reads := h.layers[1].Reads
	if !reads(cut) {
		t.Fatal("a cut is none")
	}
	readable := 0
	for range 5000 {
		garbled := slices.Clone(cut)
		for range 1 + r.IntN(3) {
			garbled[r.IntN(len(garbled))] = byte(r.Uint32())
		}
		garbled = garbled[:len(garbled)-r.IntN(2)*r.IntN(len(garbled))]
		if !reads(h.layers[1].Cut([][]byte{garbled, append([]byte{1, 1}, garbled...)})) {
			t.Fatalf("a cut of %x is none", garbled)
		}
		d := layerOf(1, 3)
		d.Replay(garbled)
		d.Restore(garbled)
		if reads(garbled) {
			readable++
			d.Install(&parley.Step{Self: 1, N: 3, Host: h}, garbled, group.View{Number: 2, Members: parley.Everyone(3)})
		}
	}
	if readable == 0 || readable == 5000 {
		t.Errorf("%d of 5000 can be read", readable)
	}
}

// req is the Req of a message from one process to some.
func req(from parley.ID, seq uint64, to ...parley.ID) parley.Msg {
	body := append(parley.AppendSet([]byte{byte(seq)}, parley.SetOf(to...)), 'a')
	return parley.Msg{Kind: atomic.Req, Origin: from, Seq: seq, Body: body}
}

// A member that has reached the last priority, 2^56, proposes none: it holds no further messages in this
// view, and senders wait. So the next view follows, where priorities restart.
func TestLastPriority(t *testing.T) {
	h := newHall(3)
	h.hand(0, 1, req(0, 1, 1))
	h.hand(0, 1, parley.Msg{Kind: atomic.Final, Origin: 0, Seq: 1, Value: 1 << 56, Body: []byte{2, 0}})
	if !slices.Equal(h.said[1], []string{"a"}) {
		t.Fatalf("delivered %q", h.said)
	}
	h.links[1] = make([][]parley.Msg, 3)
	h.cast(1, "b")
	next := req(0, 2, 0, 1, 2)
	next.Body[0] = 3 // the third message on the link
	h.hand(0, 1, next)
	for _, m := range slices.Concat(h.links[1]...) {
		if m.Kind != atomic.Req {
			t.Errorf("it sends %v", m)
		}
	}
	if h.layers[1].(group.Sender).Oldest() == 0 {
		t.Error("it waits for nothing")
	}
	cut := h.cut(1)
	if !h.layers[1].Reads(cut) {
		t.Fatalf("the cut %x cannot be read", cut)
	}
	if h.install(cut, 2); !slices.Equal(h.said[1], []string{"a", "b"}) {
		t.Errorf("delivered %q", h.said)
	}
}

// A cut, a record or a report of processes that do not exist is refused.
func TestProcessesOfNowhere(t *testing.T) {
	for _, m := range []parley.Msg{req(0, 1, 1, 4), req(4, 1, 1)} {
		five := newHall(5)
		if five.hand(m.Origin, 1, m); len(five.logs) != 1 {
			t.Fatalf("%x, refused %q", five.logs, five.refused)
		}
		rec, three := five.logs[0], layerOf(1, 3)
		if three.Replay(rec) || three.Reads(rec) {
			t.Errorf("%x is taken", rec)
		}
		if report := append([]byte{0, 0}, rec...); !bytes.Equal(three.Cut([][]byte{report}), []byte{0}) {
			t.Errorf("the report %x is taken", report)
		}
	}
}
