package draw_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/trace"
)

// gossip is an asynchronous protocol of which only the explanations matter. Kind 1 is a message, kind 2 a heartbeat.
func gossip(n int) parley.Protocol {
	return parley.Protocol{
		Name: "gossip", Title: "a broadcast", N: n, M: 1, Kinds: []string{"", "DATA", "ALIVE"},
		Explain: func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			return func(yield func(string) bool) {
				switch m.Kind {
				case 1:
					yield(fmt.Sprintf("%s says %s", name(m.Origin), m.Body))
				case 2:
					yield(name(e.From) + " is alive")
				case parley.Indication + 9:
					yield("gives up")
				}
			}
		},
	}
}

// story builds a run by hand, with losses, crashes, restarts, and everything else that a picture shows.
type story struct{ events []trace.Event }

func (s *story) add(e trace.Event) uint64 {
	e.ID = uint64(len(s.events) + 1)
	s.events = append(s.events, e)
	return e.ID
}

func (s *story) send(at parley.Tick, from, to parley.ID, m parley.Msg) uint64 {
	return s.add(trace.Event{Time: at, Op: trace.Send, At: from, Peer: to, Msg: m})
}

func (s *story) come(at parley.Tick, from, to parley.ID, m parley.Msg, cause uint64) {
	s.add(trace.Event{Time: at, Op: trace.Receive, At: to, Peer: from, Msg: m, Cause: cause})
}

func (s *story) at(at parley.Tick, op trace.Op, id parley.ID, m parley.Msg) {
	s.add(trace.Event{Time: at, Op: op, At: id, Peer: id, Msg: m})
}

// happenings returns a run of four processes with one event of every kind.
func happenings() []trace.Event {
	var s story
	data := parley.Msg{Kind: 1, Origin: 0, Seq: 1, Body: []byte("<m> & m'")}
	carried := parley.Msg{Kind: parley.Carried, Body: data.Body}
	s.at(100, trace.Request, 0, carried)
	sent := s.send(100, 0, parley.All, data)
	s.at(100, trace.Deliver, 0, carried)
	s.add(trace.Event{Time: 100, Op: trace.Lose, At: 3, Peer: 0, Msg: data, Cause: sent})
	s.come(400, 0, 1, data, sent)
	s.add(trace.Event{Time: 400, Op: trace.Deliver, At: 1, Peer: 0, Msg: carried})
	relay := s.send(400, 1, 3, data)
	s.at(700, trace.Crash, 2, parley.Msg{})
	s.at(900, trace.Pause, 3, parley.Msg{})
	s.at(1500, trace.Resume, 3, parley.Msg{})
	s.come(1500, 1, 3, data, relay)
	s.add(trace.Event{Time: 1500, Op: trace.Deliver, At: 3, Peer: 0, Msg: carried})
	s.at(2500, trace.Suspect, 1, parley.Msg{Kind: parley.Suspect, Origin: 2})
	s.at(2500, trace.Indicate, 1, parley.Msg{Kind: parley.Suspect, Origin: 2})
	s.at(2600, trace.Indicate, 3, parley.Msg{Kind: parley.View, Seq: 2,
		Body: parley.AppendSet(nil, parley.SetOf(0, 1, 3))})
	s.at(9000, trace.Restart, 2, parley.Msg{Value: 1})
	s.at(9100, trace.Indicate, 2, parley.Msg{Kind: parley.Indication + 9})
	s.at(9200, trace.Request, 3, problem.RequestTo(parley.SetOf(1, 3), []byte("named")))
	s.at(9300, trace.Request, 3, parley.Msg{Kind: parley.Propose, Body: []byte("v")})
	s.at(9400, trace.Deliver, 3, parley.Msg{Kind: parley.Decide, Body: []byte("v")})
	return s.events
}

// The terminal's diagram of one event of every kind fits its width.
func TestSpaceTime(t *testing.T) {
	var out strings.Builder
	style := reading.Style{Faulty: parley.SetOf(3)}
	for _, width := range widths {
		style.Width = width
		text := term.SpaceTime(gossip(4), happenings(), reading.SpaceTimeOptions{Style: style})
		lines(t, "space and time", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	golden(t, "spacetime.txt", out.String())
}

// Events beyond the requested number are counted.
func TestSpaceTimeMost(t *testing.T) {
	text := term.SpaceTime(gossip(4), happenings(), reading.SpaceTimeOptions{Style: reading.Style{Width: 100}, Most: 3})
	if !strings.Contains(text, "and 15 events more") || strings.Count(text, "\n") != 2+3+1+1 {
		t.Errorf("three lines of eighteen:\n%s", text)
	}
}

// beating returns a run in which all processes send heartbeats repeatedly, and optionally one message.
func beating(n, times int, data bool) []trace.Event {
	var s story
	for k := range times {
		for id := range parley.ID(n) {
			at := parley.Tick(100*k) + parley.Tick(id)
			sent := s.send(at, id, parley.All, parley.Msg{Kind: 2})
			for to := range parley.ID(n) {
				if to != id {
					s.come(at+50, id, to, parley.Msg{Kind: 2}, sent)
				}
			}
		}
	}
	if data {
		m := parley.Msg{Kind: 1, Seq: 1, Body: []byte("m")}
		sent := s.send(5000, 0, 1, m)
		s.come(5050, 0, 1, m, sent)
	}
	return s.events
}

// Heartbeats are counted and not drawn, unless there is nothing else, or they are requested, or they are few.
func TestSignsOfLife(t *testing.T) {
	for name, c := range map[string]struct {
		events []trace.Event
		alive  bool
		drawn  bool
	}{
		"amid others":  {beating(3, 9, true), false, false},
		"asked for":    {beating(3, 9, true), true, true},
		"nothing else": {beating(3, 9, false), false, true},
		"only a few":   {beating(3, 3, true), false, true},
	} {
		o := reading.SpaceTimeOptions{Style: reading.Style{Width: 100}, Beats: c.alive}
		text := term.SpaceTime(gossip(3), c.events, o)
		if drawn := strings.Contains(text, "▶   1 is alive"); drawn != c.drawn {
			t.Errorf("%s: drawn %v\n%s", name, drawn, text)
		}
		counted := strings.Contains(text, `not drawn: 54 signs of life, such as "1 is alive"`)
		if counted == c.drawn {
			t.Errorf("%s: counted %v\n%s", name, counted, text)
		}
		picture := spaceTimeSVG(gossip(3), c.events, o, "", "")
		if counted := strings.Contains(picture, "54 signs of life are not drawn"); counted == c.drawn {
			t.Errorf("%s: the picture counts them: %v", name, counted)
		}
	}
}

// The picture of one event of every kind is well-formed, contains external data as text, and has an arrow for each
// message that arrived.
func TestSpaceTimeSVG(t *testing.T) {
	o := reading.SpaceTimeOptions{Style: reading.Style{Faulty: parley.SetOf(3)}}
	picture := spaceTimeSVG(gossip(4), happenings(), o, "A broadcast with <everything>", "n = 4")
	all := well(t, picture)
	golden(t, "spacetime.svg", picture)
	arrows := 0
	for _, line := range all["line"] {
		for _, a := range line.Attr {
			if a.Name.Local == "marker-end" {
				arrows++
				x1, _ := number(line, "x1")
				x2, _ := number(line, "x2")
				y1, _ := number(line, "y1")
				y2, _ := number(line, "y2")
				if x1 == x2 || y2 <= y1 {
					t.Errorf("a message from %d,%d to %d,%d does not go to another lane, and on in time", x1, y1, x2, y2)
				}
			}
		}
	}
	if arrows != 2 {
		t.Errorf("%d arrows for the 2 messages that came", arrows)
	}
}

// Of a run with very many events the beginning is drawn, and the rest is counted.
func TestSpaceTimeSVGMost(t *testing.T) {
	picture := spaceTimeSVG(gossip(3), beating(3, 400, false), reading.SpaceTimeOptions{}, "", "")
	well(t, picture)
	if !strings.Contains(picture, "later events are not drawn") || len(picture) > 250_000 {
		t.Errorf("%d bytes", len(picture))
	}
}

// No events, or events that no run has, still make a picture.
func TestSpaceTimeStrange(t *testing.T) {
	for _, events := range [][]trace.Event{
		nil,
		{{Op: trace.Receive, At: 9, Peer: 1, Cause: 7}, {Op: trace.Receive, At: 1, Peer: 9}, {Op: trace.Deliver, At: 7}},
		{{Op: trace.Receive, At: 1, Peer: 0, Cause: 99, Msg: parley.Msg{Kind: 1}, Time: -5}},
	} {
		well(t, spaceTimeSVG(gossip(2), events, reading.SpaceTimeOptions{}, "", ""))
		term.SpaceTime(gossip(2), events, reading.SpaceTimeOptions{})
	}
}

// The deliveries of each process are in its order, with views and the like between them.
func TestDeliveries(t *testing.T) {
	h := &parley.History{N: 3}
	order := uint64(0)
	happen := func(to *[]parley.ExternalEvent, at parley.ID, m parley.Msg) {
		order++
		*to = append(*to, parley.ExternalEvent{At: at, From: 0, Order: order, Msg: m})
	}
	if got := term.Deliveries(gossip(3), h, reading.Style{}); got != "" {
		t.Errorf("nothing was delivered: %q", got)
	}
	happen(&h.Deliveries, 0, parley.Msg{Kind: parley.Carried, Body: []byte("a")})
	happen(&h.Deliveries, 1, parley.Msg{Kind: parley.Carried, Body: []byte("a")})
	happen(&h.Indications, 1, parley.Msg{Kind: parley.Suspect, Origin: 2})
	happen(&h.Restarts, 1, parley.Msg{})
	happen(&h.Deliveries, 1, parley.Msg{Kind: parley.Carried, Body: []byte("b")})
	happen(&h.Deliveries, 1, parley.Msg{Kind: parley.Decide, Body: []byte("no delivery of this kind")})
	got := term.Deliveries(gossip(3), h, reading.Style{})
	want := "Deliveries, in the order of each process\nP1: a\nP2: a, (suspects P3), (comes back), b\nP3: nothing\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A property that must hold in some run is seen in this one or not; no run breaks it.
func TestCardSometimes(t *testing.T) {
	sometimes := func(broken error) parley.Verdict {
		v := verdict("delivery", "something is delivered", true, "follows from validity", broken)
		v.Property.Mode = parley.Sometimes
		return v
	}
	text := term.Card{Verdicts: []parley.Verdict{
		sometimes(nil), sometimes(errors.New("nothing is delivered")),
		verdict("uniform total order", "all in one order", true, "a theorem", nil),
	}}.Text()
	want := `✓ delivery            seen
  something is delivered
· delivery            not seen
  something is delivered
✓ uniform total order held
  all in one order
  promised: a theorem
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// Without rounds, the messages sent are one number, next to the theorem's for one task and for all tasks.
func TestCardWhole(t *testing.T) {
	c := term.Card{
		Whole: true, Counted: "sent by all processes", Measured: []parley.Traffic{{Messages: 1234, Bits: 5}},
		Cost: parley.Cost{Rounds: 2, PerRound: []parley.Traffic{{Messages: 3}, {Messages: 1}}, AtMost: true},
	}
	for _, test := range []struct {
		task  string
		tasks uint64
		want  string
	}{
		{"one broadcast", 3, "messages: 1,234; the theorem says at most 4 for one broadcast, 12 for 3\n"},
		{"", 0, "messages: 1,234; the theorem says at most 4\n"},
		{"one broadcast", 1, "messages: 1,234; the theorem says at most 4\n"},
	} {
		c.Task, c.Tasks = test.task, test.tasks
		if text := c.Text(); !strings.HasPrefix(text, test.want) || strings.Contains(text, "round") {
			t.Errorf("%+v:\n%s", test, text)
		}
	}
	c.Cost = parley.Cost{}
	if text := c.Text(); text != "messages: 1,234\nbits: 5\nmeasured: sent by all processes\n" {
		t.Errorf("without a theorem:\n%s", text)
	}
	c.Measured = []parley.Traffic{{}}
	if text := c.Text(); text != "" {
		t.Errorf("nothing was measured:\n%s", text)
	}
}
