package draw_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/internal/draw/reading"
	"parley/trace"
)

// Without rounds, a story has one line for each step with its effects. Steps that only receive share a line, and
// losses follow the step that sent the messages.
func TestStory(t *testing.T) {
	var s story
	a, b := parley.Msg{Kind: 1, Body: []byte("a")}, parley.Msg{Kind: 1, Origin: 1, Body: []byte("b")}
	record := parley.Msg{Body: []byte("xyz")}
	s.at(0, trace.Start, 0, parley.Msg{})
	s.at(0, trace.Append, 0, record) // not mentioned for a start
	s.at(0, trace.Start, 3, parley.Msg{})
	s.send(0, 3, 0, b) // mentioned for a start
	s.at(1, trace.Request, 0, parley.Msg{Kind: parley.Carried, Body: []byte("a")})
	s.at(1, trace.Append, 0, record)
	s.send(1, 0, 1, a)
	s.send(1, 0, 2, a)
	s.add(trace.Event{Time: 1, Op: trace.Lose, At: 2, Msg: a})
	s.send(1, 0, 3, b)
	s.at(1, trace.Crash, 0, parley.Msg{})
	s.add(trace.Event{Time: 1, Op: trace.Lose, At: 0, Peer: 3, Msg: b}) // the receiver is down
	s.come(2, 0, 1, a, 0)
	s.come(3, 0, 2, a, 0)
	s.come(4, 0, 3, b, 0)
	s.add(trace.Event{Time: 4, Op: trace.Deliver, At: 3, Peer: 1, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("b")}})
	s.come(5, 3, 2, a, 0)
	s.at(6, trace.Crash, 2, parley.Msg{})
	s.at(7, trace.Timeout, 3, parley.Msg{Value: 9})
	s.at(7, trace.Append, 3, parley.Msg{Body: []byte{1, 2}})
	s.send(7, 3, parley.All, b)
	s.at(8, trace.Restart, 0, parley.Msg{Value: 1})
	s.at(8, trace.Suspect, 3, parley.Msg{Kind: parley.Suspect, Origin: 0})
	s.at(9, trace.Indicate, 3, parley.Msg{Kind: parley.Suspect, Origin: 0})
	s.come(9, 3, 1, b, 0)
	s.send(9, 1, 0, a)
	s.at(9, trace.Deliver, 1, parley.Msg{Kind: parley.Carried, Body: []byte("b")}) // it lies, so this means nothing
	s.at(10, trace.Pause, 3, parley.Msg{})
	s.at(11, trace.Resume, 3, parley.Msg{})
	got := reading.Story(gossip(4), s.events, reading.Style{Faulty: parley.SetOf(1)})
	want := []string{
		"P4 sends 2 says b to P1",
		"P1 broadcasts a: makes xyz durable; sends 1 says a to P2 ✗ and P3; sends 2 says b to P4; crashes",
		"1 says a from P1 to P3 is lost",
		"P2 ✗ receives 1 says a from P1; P3 receives 1 says a from P1",
		"P4 receives 2 says b from P1: delivers b of P2",
		"P3 receives 1 says a from P4",
		"P3 crashes",
		"timer 9 of P4 expires: makes 2 bytes durable; sends 2 says b to P1, P2 ✗ and P3",
		"P1 restarts without its disk",
		"P4 is notified that P1 has failed: suspects P1",
		"P2 ✗ receives 2 says b from P4: sends 1 says a to P1",
		"P4 is paused", "P4 resumes",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// With rounds, a line has what one process sends to others in one round, and to which processes a liar sends nothing
// although it should.
func TestStoryOfRounds(t *testing.T) {
	p := setting{n: 4, m: 1, value: "1", faulty: map[parley.ID]faulty.Behavior{
		1: {Name: "mute to P3", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			if t.To == 2 {
				return nil
			}
			return t.Honest
		}},
	}}.play()
	got := reading.Story(p.protocol, p.log.Events, reading.Style{Faulty: parley.SetOf(1)})
	want := []string{
		"P1 proposes 1",
		"round 0: P1 sends {1,1} to P2 ✗, P3 and P4",
		"round 1: P2 ✗ sends {1,12} to P4, nothing to P3",
		"round 1: P3 sends {1,13} to P2 ✗ and P4",
		"round 1: P4 sends {1,14} to P2 ✗ and P3",
		"P1 decides 1", "P3 decides 1", "P4 decides 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
