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

// keeping is a protocol that keeps clocks. A delivery of kind Local+k is a corner of kind k.
func keeping(n int) parley.Protocol {
	p := gossip(n)
	p.Clock = &parley.ClockView{Apart: 100, Corner: func(m parley.Msg) (parley.Corner, bool) {
		kind := parley.CornerKind(m.Kind - parley.Local)
		return parley.Corner{Shows: parley.Tick(m.Value), Kind: kind}, m.Kind >= parley.Local && kind <= parley.CornerEnds
	}}
	return p
}

func (s *story) corner(at parley.Tick, id parley.ID, kind parley.CornerKind, shows uint64) {
	s.at(at, trace.Deliver, id, parley.Msg{Kind: parley.Local + parley.Kind(kind), Value: shows})
}

// ticking is a run of three clocks, of which P3's is faulty: P2 is 40 ahead at time 1000, and 10 at time 2000.
func ticking() []trace.Event {
	var s story
	s.corner(0, 0, parley.CornerBegins, 0)
	s.corner(0, 1, parley.CornerBegins, 0)
	s.corner(0, 2, parley.CornerBegins, 500)
	s.corner(1000, 0, parley.CornerReads, 1000)
	s.corner(1000, 1, parley.CornerReads, 1040)
	s.corner(1100, 1, parley.CornerAdjusts, 1140)
	s.corner(1500, 2, parley.CornerAdjusts, 9000)
	s.corner(2000, 1, parley.CornerSettles, 2010)
	s.corner(2000, 0, parley.CornerSettles, 2000)
	s.corner(3000, 1, parley.CornerReads, 3010)
	return s.events
}

// The correct clocks are compared wherever one of them has a corner, while all are known.
func TestClocks(t *testing.T) {
	got, ok := reading.ClocksOf(keeping(3), ticking(), reading.Style{Faulty: parley.SetOf(2)})
	if !ok || len(got.Lines) != 3 || got.Apart != 100 || got.Over != 3000 {
		t.Fatalf("%+v", got)
	}
	if text := fmt.Sprint(got.Spread); text != "[{0 0 0} {1000 40 1020} {1100 40 1120} {2000 10 2005}]" {
		t.Error(text)
	}
	if shows, ok := got.Lines[0].Shows(1500); shows != 1500 || !ok {
		t.Errorf("between two corners: %d, %v", shows, ok)
	}
	if _, ok := got.Lines[0].Shows(2500); ok {
		t.Error("a clock is known after its last corner")
	}
	if middle, ok := got.MiddleAt(500); middle != 510 || !ok {
		t.Errorf("the middle is %d, %v", middle, ok)
	}
	if _, ok := got.MiddleAt(2500); ok {
		t.Error("there is a middle of clocks that are not known")
	}
	if _, ok := reading.ClocksOf(gossip(3), ticking(), reading.Style{}); ok {
		t.Error("a protocol without clocks has some")
	}
}

// A clock that no longer counts is not compared, and one that counts again begins another line.
func TestClocksAgain(t *testing.T) {
	var s story
	for id := range parley.ID(2) {
		s.corner(0, id, parley.CornerBegins, 0)
	}
	s.corner(100, 1, parley.CornerEnds, 900)
	s.corner(200, 0, parley.CornerReads, 200)
	s.corner(300, 1, parley.CornerBegins, 305)
	s.corner(400, 0, parley.CornerReads, 400)
	s.corner(400, 1, parley.CornerReads, 405)
	got, _ := reading.ClocksOf(keeping(2), s.events, reading.Style{})
	if text := fmt.Sprint(got.Spread); text != "[{0 0 0} {100 800 500} {200 0 200} {300 5 302} {400 5 402}]" {
		t.Error(text)
	}
	if len(got.Lines[1].Stretches) != 2 {
		t.Errorf("%d stretches", len(got.Lines[1].Stretches))
	}
	picture := clocksSVG(s.events, 2)
	if well(t, picture); !strings.Contains(picture, ">no longer counts<") ||
		!strings.Contains(picture, "Largest difference of two correct clocks: 800 ticks; bound: 100 ticks") {
		t.Error(picture)
	}
}

func clocksSVG(events []trace.Event, n int, faulty ...parley.ID) string {
	r := draw.Run{Heading: draw.Heading{Title: "Clocks"}, Protocol: keeping(n), Events: events}
	r.Faulty = parley.SetOf(faulty...)
	return string(svg.File(r.Scene()))
}

// The picture has the difference of the clocks with its bound, each clock, and no arrows. A clock of a faulty process
// that is far away stays inside.
func TestClocksSVG(t *testing.T) {
	picture := clocksSVG(ticking(), 3, 2)
	all := well(t, picture)
	golden(t, "clocks.svg", picture)
	if arrows(all) != 0 {
		t.Error("messages are drawn")
	}
	for _, want := range []string{
		"Largest difference of two correct clocks: 40 ticks; bound: 100 ticks", "promised: at most 100 ticks",
		"resynchronization 1 begins at 1,000", "A clock that is further away is drawn at the edge",
		`class="clock-faulty"`, ">promised bound<", ">clock of a faulty process<",
		"All correct clocks are known until 2,000; the run ends at 3,000.",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(picture, "no longer counts") || strings.Contains(picture, "resynchronization 2") {
		t.Error("the picture has what it does not show")
	}
	silent := clocksSVG(ticking(), 4, 2, 3)
	if !strings.Contains(silent, "no clock of P4: a faulty process may show any time") {
		t.Error("nothing says that a clock is missing")
	}
}

// Where times are the numbers of steps there are no clocks to draw.
func TestClocksOfSteps(t *testing.T) {
	r := draw.Run{Protocol: keeping(3), Events: ticking(), Steps: true}
	if picture := string(svg.File(r.Scene())); strings.Contains(picture, "two correct clocks") ||
		!strings.Contains(picture, "Time in steps") {
		t.Error(picture)
	}
}
