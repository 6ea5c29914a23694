package draw_test

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/trace"
)

// deliver adds deliveries at a process, one for each letter, all sent by P1.
func (s *story) deliver(at parley.Tick, id parley.ID, letters string) {
	for _, letter := range strings.Split(letters, "") {
		s.add(trace.Event{Time: at, Op: trace.Deliver, At: id, Peer: 0,
			Msg: parley.Msg{Kind: parley.Carried, Body: []byte(letter)}})
	}
}

// delivered is a run in which P2 delivers in another order, P3 has a gap and a suspicion, and P4 is faulty.
func delivered() []trace.Event {
	var s story
	s.deliver(100, 0, "abc")
	s.deliver(200, 1, "bac")
	s.deliver(300, 2, "a")
	s.at(310, trace.Indicate, 2, parley.Msg{Kind: parley.Suspect, Origin: 3})
	s.deliver(320, 2, "c")
	s.deliver(400, 3, "cba")
	s.at(500, trace.Deliver, 0, parley.Msg{Kind: parley.Decide, Body: []byte("no delivery of this kind")})
	return s.events
}

// The same message of the same sender is one item, wherever it is delivered.
func TestSequence(t *testing.T) {
	got, ok := reading.Sequence(gossip(4), delivered(), reading.Style{})
	if !ok || !got.Delivered || len(got.Items) != 4 {
		t.Fatalf("%+v", got)
	}
	var rows []string
	for _, row := range got.Rows {
		text := ""
		for _, c := range row {
			text += fmt.Sprint(c.Item)
		}
		rows = append(rows, text)
	}
	if text := strings.Join(rows, " "); text != "012 102 032 210" {
		t.Error(text)
	}
	for _, c := range []struct {
		among parley.Set
		want  bool
	}{
		{parley.SetOf(0, 1), false}, {parley.SetOf(0, 2), true}, {parley.SetOf(1, 2), true},
		{parley.SetOf(2), true}, {parley.SetOf(2, 3), false},
	} {
		if got.Same(c.among) != (c.among.Len() == 1) {
			t.Errorf("%v: the same: %v", c.among, got.Same(c.among))
		}
		if got.OneOrder(c.among) != c.want {
			t.Errorf("%v: one order: %v", c.among, !c.want)
		}
	}
	if _, ok := reading.Sequence(gossip(4), nil, reading.Style{}); ok {
		t.Error("something is delivered in an empty run")
	}
	if _, ok := reading.Sequence(keeping(3), ticking(), reading.Style{}); ok {
		t.Error("the corner of a clock is a delivery")
	}
	if got, _ := reading.Sequence(voting(4), votes(), reading.Style{}); got.Delivered {
		t.Error("a stage is a delivery")
	}
}

func orderSVG(n int, events []trace.Event) string {
	r := draw.Run{Heading: draw.Heading{Title: "Order"}, Protocol: gossip(n), Events: events}
	r.Faulty = parley.SetOf(3)
	return string(svg.File(r.Scene()))
}

// Cells of the same message have the same color, lines join them in neighboring rows, and the picture says whether
// orders differ.
func TestOrderSVG(t *testing.T) {
	picture := orderSVG(4, delivered())
	well(t, picture)
	golden(t, "order.svg", picture)
	for want, n := range map[string]int{
		`class="cell-v1"`: 4, `class="cell-v2"`: 3, `class="cell-v3"`: 4, `class="join-v1"`: 3, `class="join-v2"`: 1,
		`class="join-v3"`: 3, `class="cell-other"`: 1 + 1, "different orders: their lines cross": 1,
		"P3 suspects P4 at 310": 4, ">indication or restart<": 1,
	} {
		if got := strings.Count(picture, want); got != n {
			t.Errorf("%d of %s, want %d", got, want, n)
		}
	}
	var s story
	s.deliver(100, 0, "ab")
	s.deliver(100, 1, "ab")
	if same := orderSVG(2, s.events); !strings.Contains(same, "All correct processes deliver the same in the same order") {
		t.Error("one order is not one")
	}
}

// Of long rows the beginning and the last are drawn, long texts have numbers, and both are said.
func TestOrderLong(t *testing.T) {
	var s story
	for i := range 300 {
		s.add(trace.Event{Time: 5, Op: trace.Deliver, At: 0, Peer: 1,
			Msg: parley.Msg{Kind: parley.Carried, Body: fmt.Appendf(nil, "a long message, number %d", i)}})
	}
	picture := orderSVG(2, s.events)
	well(t, picture)
	for _, want := range []string{
		">1: a long message, number 0 of P2<", ">300<", "of long rows, only the first",
		"284 texts are not listed", ">nothing<",
	} {
		if !strings.Contains(strings.ToLower(picture), strings.ToLower(want)) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(picture, ">200<") || len(picture) > 200_000 {
		t.Errorf("%d bytes", len(picture))
	}
}

// What only indicates, and has a picture of its events, has no order besides.
func TestOrderOfIndications(t *testing.T) {
	var s story
	s.at(310, trace.Indicate, 2, parley.Msg{Kind: parley.Suspect, Origin: 3})
	if picture := orderSVG(4, s.events); strings.Contains(picture, "in its order") {
		t.Error("the indications are drawn twice")
	}
	p := gossip(4)
	p.Timing = parley.Synchronous
	r := draw.Run{Protocol: p, Events: s.events}
	if picture := string(svg.File(r.Scene())); !strings.Contains(picture, "What each process indicates, in its order") {
		t.Error("in rounds nothing shows the indications")
	}
}
