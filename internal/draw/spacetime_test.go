package draw_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/lockstep"
	"parley/sim"
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
		text := term.SpaceTime(gossip(4), happenings(), timed(style))
		lines(t, "space and time", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	golden(t, "spacetime.txt", out.String())
}

// timed returns the options of a diagram without a limit.
func timed(style reading.Style) term.SpaceTimeOptions {
	return term.SpaceTimeOptions{SpaceTimeOptions: reading.SpaceTimeOptions{Style: style}, All: "--show spacetime"}
}

// Events beyond the requested number of lines are counted, with the flag that shows all.
func TestSpaceTimeMost(t *testing.T) {
	o := timed(reading.Style{Width: 100})
	all := strings.Count(term.SpaceTime(gossip(4), happenings(), o), "\n")
	o.Most = 3
	text := term.SpaceTime(gossip(4), happenings(), o)
	if !strings.Contains(text, "… 15 more events: --show spacetime shows all") || strings.Count(text, "\n") != 2+3+1+1 || all < 20 {
		t.Errorf("three lines of %d:\n%s", all, text)
	}
}

// In a protocol with rounds, a line has what one process sends with one content, with a head at each receiver. Lies,
// silence, lateness, and omissions are marked.
func TestSpaceTimeOfRounds(t *testing.T) {
	var out strings.Builder
	for _, p := range []play{liars(), crashed(), random(1)} {
		s := p.style
		for _, width := range widths {
			s.Width = width
			text := term.SpaceTime(p.protocol, p.log.Events, timed(s))
			lines(t, "rounds in space and time", text, width)
			fmt.Fprintf(&out, "--- n = %d, width %d\n%s\n", p.n, width, text)
		}
		plain := term.SpaceTime(p.protocol, p.log.Events, timed(s))
		s.Color = true
		colored := term.SpaceTime(p.protocol, p.log.Events, timed(s))
		if colored == plain || escapes.ReplaceAllString(colored, "") != plain {
			t.Errorf("another text with colors:\n%s", colored)
		}
	}
	golden(t, "spacetime-rounds.txt", out.String())
}

// A message that a correct process refuses as late, or that a faulty one fails to receive, is marked in the table and in
// the diagram.
func TestMissedMessages(t *testing.T) {
	for want, c := range map[string]sim.Options{
		"late":    {Links: []sim.Link{{From: parley.SetOf(1), Delay: sim.Delay{Least: 5000, Most: 5000}}}},
		"omitted": {Faulty: map[parley.ID]faulty.Behavior{2: deafTo(1)}},
	} {
		log := &trace.Log{Keep: true}
		c.Protocol, c.Log = eig.New(eig.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated), log
		c.Requests = []sim.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}}
		sim.Run(c)
		style := reading.Style{Width: 100}
		for id := range c.Faulty {
			style.Faulty.Add(id)
		}
		table := term.Rounds(reading.Gather(c.Protocol, log.Events, reading.Gathering{Style: style}), term.RoundsOptions{Style: style})
		diagram := term.SpaceTime(c.Protocol, log.Events, timed(style))
		if !strings.Contains(table, "("+want+")") || !strings.Contains(diagram, ", "+want) || !strings.Contains(diagram, "×") {
			t.Errorf("%s:\n%s\n%s", want, table, diagram)
		}
		picture := missedSVG(t, c.Protocol, log.Events, style)
		for _, text := range []string{"; " + want, ">" + want} {
			if !strings.Contains(picture, text) {
				t.Errorf("%s: no %s in the picture", want, text)
			}
		}
		if bar := strings.Contains(picture, `class="late"`); bar != (want == "late") {
			t.Errorf("%s: a bar is drawn: %v", want, bar)
		}
	}
}

// deafTo receives nothing from one process.
func deafTo(from parley.ID) faulty.Behavior {
	return faulty.Behavior{Name: "deaf", Model: parley.OmissionFaults,
		Hear: func(_ *parley.Step, sender parley.ID, _ parley.Msg) bool { return sender != from }}
}

// Without rounds too, a message that its receiver omits ends in a cross, and causes nothing.
func TestOmittedMessage(t *testing.T) {
	var s story
	data := parley.Msg{Kind: 1, Body: []byte("a")}
	s.come(100, 0, 1, data, s.send(0, 0, 1, data))
	s.add(trace.Event{Time: 100, Op: trace.Refuse, At: 1, Peer: 0, Msg: parley.Msg{Body: []byte(parley.Omitted)}})
	text := term.SpaceTime(gossip(2), s.events, timed(reading.Style{}))
	if !strings.Contains(text, "╰×│   1 says a, omitted by P2\n") {
		t.Errorf("got\n%s", text)
	}
}

// A message to a process that is down never arrives. One that is merely in flight at the end is not drawn.
func TestMessageToCrashed(t *testing.T) {
	var s story
	data := parley.Msg{Kind: 1, Body: []byte("a")}
	s.at(10, trace.Crash, 1, parley.Msg{})
	s.send(20, 0, parley.All, data)
	s.at(30, trace.Restart, 1, parley.Msg{})
	s.send(40, 0, 1, data)
	text := term.SpaceTime(gossip(3), s.events, timed(reading.Style{}))
	want := "\n20   ●───×     │   1 says a  (missed by P2)\n30   │    ◉    │   P2 restarts\n●"
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s", text)
	}
}

// A message goes from its sending to its arrival where there is room, and otherwise is straight. Lanes for which there
// is no room at all are replaced by a list.
func TestSpaceTimeForms(t *testing.T) {
	var s story
	data := parley.Msg{Kind: 1, Origin: 0, Body: []byte("a")}
	var sent [6]uint64
	for i := range sent {
		sent[i] = s.send(parley.Tick(10*i), 0, 1, data)
	}
	for i := range 4 {
		s.come(parley.Tick(100+i), 0, 1, data, sent[i])
	}
	few := term.SpaceTime(gossip(2), s.events, timed(reading.Style{}))
	for i := 4; i < 6; i++ {
		s.come(parley.Tick(100+i), 0, 1, data, sent[i])
	}
	many := term.SpaceTime(gossip(2), s.events, timed(reading.Style{}))
	untimed := timed(reading.Style{})
	untimed.Untimed = true
	if text := term.SpaceTime(gossip(2), s.events, untimed); strings.Contains(text, "10") || strings.Contains(text, "sent") {
		t.Errorf("no times:\n%s", text)
	}
	listed := term.SpaceTime(gossip(30), s.events, timed(reading.Style{}))
	if strings.Count(few, "╮") != 4 || strings.Count(few, "╰") != 4 || strings.Contains(few, "sent at") {
		t.Errorf("four messages in flight:\n%s", few)
	}
	slots := gossip(2) // rounds that begin on demand are no rounds of the diagram
	slots.Timing, slots.OnDemand = parley.Synchronous, true
	if text := term.SpaceTime(slots, s.events[:10], timed(reading.Style{})); text != few {
		t.Errorf("rounds on demand:\n%s", text)
	}
	if strings.Contains(many, "╮") || strings.Count(many, "├───▶│   1 says a  (sent at ") != 6 {
		t.Errorf("six messages in flight:\n%s", many)
	}
	if !strings.Contains(listed, "30 lanes need") || !strings.Contains(listed, "\n100  P1 ▶ P2: 1 says a") {
		t.Errorf("thirty lanes:\n%s", listed)
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

// answering makes every receiver of a heartbeat send something at once.
func answering(events []trace.Event) []trace.Event {
	var s story
	renumbered := make(map[uint64]uint64)
	for _, e := range events {
		old := e.ID
		e.Cause = renumbered[e.Cause]
		renumbered[old] = s.add(e)
		if e.Op == trace.Receive && e.Msg.Kind == 2 {
			s.send(e.Time, e.At, e.Peer, parley.Msg{Kind: 1, Body: []byte("here")})
		}
	}
	return s.events
}

// Heartbeats are counted and not drawn, unless there is nothing else, or they are requested, or they are few, or they
// are questions that are answered.
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
		"answered":     {answering(beating(3, 9, true)), false, true},
	} {
		o := reading.SpaceTimeOptions{Style: reading.Style{Width: 100}, Beats: c.alive}
		text := term.SpaceTime(gossip(3), c.events, term.SpaceTimeOptions{SpaceTimeOptions: o, AllBeats: "--alive"})
		if drawn := strings.Contains(text, "│   1 is alive"); drawn != c.drawn {
			t.Errorf("%s: drawn %v\n%s", name, drawn, text)
		}
		counted := strings.Contains(text, `not drawn: 54 signs of life, such as "1 is alive": --alive draws them`)
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
		term.SpaceTime(gossip(2), events, term.SpaceTimeOptions{})
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
	want := "Deliveries, in the order of each process\nP1: a\nP2: a, (suspects P3), (restarts), b\nP3: nothing\n"
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
· delivery            not seen
✓ uniform total order held

delivery: something is delivered
delivery: something is delivered
uniform total order: all in one order
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
