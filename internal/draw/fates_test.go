package draw_test

import (
	"strings"
	"testing"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/trace"
)

// missedSVG draws a run in rounds.
func missedSVG(t *testing.T, p parley.Protocol, events []trace.Event, style reading.Style) string {
	t.Helper()
	r := draw.Run{Protocol: p, Events: events, Rounds: reading.Gather(p, events, reading.Gathering{Style: style})}
	r.Style = style
	for id := range parley.ID(p.N) {
		r.Lives = append(r.Lives, reading.Outcome{Process: id})
	}
	picture := string(svg.File(r.Scene()))
	well(t, picture)
	return picture
}

// What does not arrive is drawn differently from what does, with the reason in its tooltip and in the legend: lost on
// its link, missed because its receiver is down, or omitted by a faulty receiver. Nothing of it has an arrowhead.
func TestMessagesThatDoNotArriveSVG(t *testing.T) {
	data := parley.Msg{Kind: 1, Body: []byte("a")}
	runs := map[string]func(*story){
		"lost": func(s *story) {
			s.add(trace.Event{Time: 0, Op: trace.Lose, At: 1, Peer: 0, Msg: data, Cause: s.send(0, 0, 1, data)})
		},
		"missed: P2 is down": func(s *story) {
			s.send(0, 0, 1, data)
			s.at(500, trace.Crash, 1, parley.Msg{})
		},
		"omitted by P2 at 100": func(s *story) {
			s.come(100, 0, 1, data, s.send(0, 0, 1, data))
			s.add(trace.Event{Time: 100, Op: trace.Refuse, At: 1, Peer: 0, Msg: parley.Msg{Body: []byte(parley.Omitted)}})
		},
	}
	legends := map[string]string{
		"lost": ">lost message<", "missed: P2 is down": ">missed message: its receiver is down<",
		"omitted by P2 at 100": ">omitted by its faulty receiver<",
	}
	for want, run := range runs { // order: each by itself
		for kind, p := range map[string]parley.Protocol{"events": gossip(2), "states": voting(2)} {
			var s story
			run(&s)
			if kind == "states" {
				s.reach(900, 0, parley.StageBlocked)
			}
			r := draw.Run{Protocol: p, Events: s.events}
			r.Faulty = parley.SetOf(1)
			scene := r.Scene()
			picture := string(svg.File(scene))
			all := well(t, picture)
			if n := arrows(all); n != 0 {
				t.Errorf("%s, %s: %d arrowheads", kind, want, n)
			}
			for _, text := range []string{"P1 to P2: 1 says a; sent at 0, " + want + "<", legends[want]} {
				if !strings.Contains(picture, text) {
					t.Errorf("%s: no %s in\n%s", kind, text, picture)
				}
			}
		}
	}
}

// A message in flight when its receiver crashes ends at the crash.
func TestMessageEndsAtCrashSVG(t *testing.T) {
	var s story
	s.send(0, 0, 1, parley.Msg{Kind: 1, Body: []byte("a")})
	s.at(500, trace.Crash, 1, parley.Msg{})
	run := reading.SpaceTime(gossip(2), s.events, reading.SpaceTimeOptions{})
	if len(run.Unarrived) != 1 || run.Unarrived[0].Fell != 500 {
		t.Errorf("got %+v, want one message that ends at 500", run.Unarrived)
	}
}

// Each node of a tree says in words what it holds and which process relayed it.
func TestTreeTips(t *testing.T) {
	f := figure3()
	picture := treeSVG(f.tree(1), reading.TreeOptions{Style: f.style})
	for _, want := range []string{"<title>1: sent by P1, faulty; input ", "<title>12: relayed by P2; input "} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
}
