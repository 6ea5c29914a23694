package draw_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/internal/draw/reading"
	"parley/trace"
)

// Gather agrees with a slow reference: for each receiver, the rows of everything sent to it, one event after another.
func TestGather(t *testing.T) {
	plays := []play{article(), figure3(), liars(), crashed()}
	for seed := range uint64(12) {
		plays = append(plays, random(seed), setting{n: 5, m: 1, value: "1", seed: seed,
			faulty: map[parley.ID]faulty.Behavior{2: faulty.SendOmission}}.play())
	}
	for _, p := range plays {
		rounds := reading.Gather(p.protocol, p.log.Events, reading.Gathering{Style: p.style, Rows: 1000})
		bare := func(id parley.ID) string { return fmt.Sprint(id + 1) }
		for round := range p.m + 1 {
			for from := range parley.ID(p.n) {
				for to := range parley.ID(p.n) {
					var want []string
					for _, e := range p.log.Events {
						sent := e.Op == trace.Send && to != from && (e.Peer == to || e.Peer == parley.All) || e.Op == trace.Keep && to == from
						if sent && e.At == from && e.Msg.Seq == uint64(round) {
							env := parley.Env{From: from, To: to, Path: e.Path, Round: round}
							want = slices.AppendSeq(want, p.protocol.Explain(env, e.Msg, bare))
						}
					}
					said := sentTo(rounds, round, from, to)
					if len(said) > 1 {
						t.Fatalf("round %d: P%d tells P%d %d things", round, from+1, to+1, len(said))
					}
					var got []string
					if len(said) == 1 {
						got = said[0].Rows
						if said[0].Total != uint64(len(got)) {
							t.Errorf("%d rows, said to be %d", len(got), said[0].Total)
						}
					}
					if !slices.Equal(got, want) {
						t.Errorf("round %d: P%d tells P%d %v, want %v", round, from+1, to+1, got, want)
					}
				}
			}
		}
	}
}

// A frame with several messages equals its sender's own copies of them if they have the same content.
func TestGatherCopies(t *testing.T) {
	p := parley.Protocol{N: 4, Timing: parley.Synchronous, Kinds: []string{"", "FRAME", "A", "B"}}
	one, two := parley.Msg{Kind: 2, Body: []byte("x")}, parley.Msg{Kind: 3, Body: []byte("y")}
	frame := parley.Msg{Kind: 1, Body: parley.AppendMsg(parley.AppendMsg(nil, 0, one), 1, two)}
	other := parley.Msg{Kind: 1, Body: parley.AppendMsg(parley.AppendMsg(nil, 1, one), 1, two)}
	events := []trace.Event{
		{Op: trace.Send, At: 2, Peer: 0, Msg: frame},
		{Op: trace.Send, At: 2, Peer: 1, Msg: other},
		{Op: trace.Send, At: 2, Peer: 3, Msg: frame},
		{Op: trace.Keep, At: 2, Peer: 2, Path: 0, Msg: one},
		{Op: trace.Keep, At: 2, Peer: 2, Path: 1, Msg: two},
	}
	rounds := reading.Gather(p, events, reading.Gathering{})
	if len(rounds) != 1 || len(rounds[0].Said) != 2 || !slices.Equal(rounds[0].Said[0].To, []parley.ID{0, 2, 3}) {
		t.Errorf("%+v", rounds)
	}
}

// A process that sends some receivers only a part of what it keeps does not lie.
func TestPartsAreNoLies(t *testing.T) {
	p := parley.Protocol{N: 4, Timing: parley.Asynchronous, Kinds: []string{"", "A"}}
	say := func(op trace.Op, to parley.ID, v string) trace.Event {
		return trace.Event{Op: op, At: 2, Peer: to, Msg: parley.Msg{Kind: 1, Body: []byte(v)}}
	}
	events := []trace.Event{
		say(trace.Keep, 2, "x"), say(trace.Keep, 2, "y"), say(trace.Send, 0, "x"), say(trace.Send, 0, "y"),
		say(trace.Send, 1, "y"), say(trace.Send, 3, "z"), say(trace.Send, 3, "y"),
	}
	g := reading.Gathering{Style: reading.Style{Faulty: parley.SetOf(2)}}
	for to, want := range map[parley.ID]bool{0: false, 1: false, 3: true} {
		if said := sentTo(reading.Gather(p, events, g), 1, 2, to); len(said) != 1 || said[0].Lie != want {
			t.Errorf("to P%d: %+v, want a lie: %v", to+1, said, want)
		}
	}
}

// The protocol counts a message with more rows than are enumerated.
func TestGatherCounts(t *testing.T) {
	const total = 3_000_000
	walked := 0
	p := parley.Protocol{
		N: 3, Timing: parley.Asynchronous, Kinds: []string{"", "BULK"},
		Explain: func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
			return func(yield func(string) bool) {
				for range total {
					if walked++; !yield("{1,2}") {
						return
					}
				}
			}
		},
		Size: func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: total} },
	}
	events := []trace.Event{{Op: trace.Send, At: 1, Peer: parley.All, Msg: parley.Msg{Kind: 1}}}
	rounds := reading.Gather(p, events, reading.Gathering{})
	if len(rounds) != 1 || rounds[0].Title != "BULK" || len(rounds[0].Said) != 1 {
		t.Fatalf("%+v", rounds)
	}
	if said := rounds[0].Said[0]; said.Total != total || len(said.Rows) != 12 || said.Values != nil {
		t.Errorf("%d rows of %d, values %v", len(said.Rows), said.Total, said.Values)
	}
	if walked > 10_000 {
		t.Errorf("%d rows were gone through", walked)
	}
}

// A lie differs from the liar's own copy, or from the value that it was given.
func TestLies(t *testing.T) {
	p := liars()
	for _, r := range p.rounds() {
		for _, s := range r.Said {
			others := slices.ContainsFunc(s.To, func(id parley.ID) bool { return id != s.From })
			want := s.From == 4 && others || s.From == 0 && s.Rows[0] != "{1,1}"
			if s.Lie != want {
				t.Errorf("round %d: P%d tells %v %v: lie %v", r.Number, s.From+1, s.To, s.Rows, s.Lie)
			}
		}
	}
}

// A process is shown as silent where a message was due: the crashed lieutenant, to the processes that it did not
// reach, but never the General after round 0.
func TestSilence(t *testing.T) {
	p := setting{n: 7, m: 2, value: "1", faulty: map[parley.ID]faulty.Behavior{0: faulty.Silent, 4: faulty.Crash(1, 3)}}.play()
	got := make(map[string]bool)
	for _, r := range p.rounds() {
		for _, s := range r.Said {
			if s.Total == 0 {
				got[fmt.Sprintf("round %d P%d to %v", r.Number, s.From+1, s.To)] = true
			}
		}
	}
	want := map[string]bool{
		"round 0 P1 to [1 2 3 5 6]": true, "round 1 P5 to [3 5 6]": true, "round 2 P5 to [1 2 3 5 6]": true,
	}
	if len(got) != len(want) {
		t.Errorf("silent: %v", got)
	}
	for s := range want {
		if !got[s] {
			t.Errorf("not silent: %s; but %v", s, got)
		}
	}
}

// The value in a row, for the rows of this module's protocols.
func TestValuesOfRows(t *testing.T) {
	for row, want := range map[string]string{
		"{0,132}": "0", "{a,b,1.10}": "a,b", "3: {1,31}": "1", "1:1:2": "1", "propose 1": "1", "king: 0": "0", "commit": "commit",
	} {
		p := parley.Protocol{
			N: 2, Kinds: []string{"", "SAY"},
			Explain: func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
				return func(yield func(string) bool) { yield(row) }
			},
		}
		rounds := reading.Gather(p, []trace.Event{{Op: trace.Send, At: 0, Peer: 1, Msg: parley.Msg{Kind: 1}}}, reading.Gathering{})
		if v := rounds[0].Said[0].Values; len(v) != 1 || v[0].Value != want {
			t.Errorf("%s speaks of %v, want %s", row, v, want)
		}
	}
}
