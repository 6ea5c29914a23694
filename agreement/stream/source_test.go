package stream

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

func simulated(t Key, n int) parley.Protocol { return simulatedIn(t, n, 64, lockstep.Called) }

func simulatedIn(t Key, n, window int, when lockstep.Schedule) parley.Protocol {
	return New(Config{Key: t, N: n, Window: window}, when)
}

// question is a request to a stream's source.
func question(at parley.ID, when parley.Tick, number uint64, value string) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: parley.Propose, Value: number, Body: []byte(value)}}
}

// outcomes returns what each correct process decided, by slot, and which requests to correct
// processes got no answer.
func outcomes(s *sim.Sim) (decided map[parley.ID]map[uint64]string, missing []uint64) {
	decided = make(map[parley.ID]map[uint64]string)
	for id := range s.Correct().All() {
		decided[id] = make(map[uint64]string)
	}
	for _, d := range s.History.Deliveries {
		if s.History.Correct(d.At) && d.Msg.Kind == parley.Decide {
			decided[d.At][d.Msg.Seq] = string(d.Msg.Body)
		}
	}
	for _, d := range s.History.Indications {
		if s.History.Correct(d.At) && d.Msg.Kind == Unanswered {
			missing = append(missing, d.Msg.Value)
		}
	}
	return decided, missing
}

// Every request is answered and all correct processes decide on it, with many in flight and
// whatever faulty processes send: even if the rounds of all slots in flight end at once.
func TestEveryQuestionIsAnswered(t *testing.T) {
	for _, a := range []Algorithm{EIG, OM, SM, PhaseKing} {
		for i, how := range []faulty.Behavior{faulty.Silent, faulty.Random, faulty.TwoFaced} {
			for seed := range uint64(5) {
				p := simulated(Key{a, 1, 0}, 4)
				opt := sim.Options{Protocol: p, Seed: seed, Faulty: map[parley.ID]faulty.Behavior{2: how}, Steps: 1 << 20}
				const count = 30
				for k := range uint64(count) {
					opt.Requests = append(opt.Requests, question(0, parley.Tick(k*seed*100), k+1, fmt.Sprint(k%2)))
				}
				s := sim.Run(opt)
				all, missing := outcomes(s)
				if len(missing) > 0 || s.Stats.OutOfSteps {
					t.Fatalf("%v %v seed %d: no answers to %v", a, how.Name, seed, missing)
				}
				for id, of := range all {
					if len(of) != count {
						t.Fatalf("%v %v (%d) seed %d: process %d decided %d times", a, how.Name, i, seed, id, len(of))
					}
					for slot, v := range of {
						if v != fmt.Sprint((slot-1)%2) {
							t.Fatalf("%v %v seed %d: process %d decided %q in slot %d", a, how.Name, seed, id, v, slot)
						}
					}
				}
			}
		}
	}
}

// lateness is when processes are late in a run.
const lateness parley.Tick = 50_000

// lateAt is a run in which what a process sends at the time lateness reaches two others too late; or
// one other, and what another sends to it is late as well.
func lateAt(t Key, at parley.ID, both bool, requests ...sim.Request) *sim.Sim {
	links := []sim.Link{{From: parley.SetOf(at), To: parley.SetOf(1, 2), Since: lateness, Until: lateness + 1, Loss: 1}}
	if both {
		links = []sim.Link{
			{From: parley.SetOf(at), To: parley.SetOf(2), Since: lateness, Until: lateness + 1, Loss: 1},
			{From: parley.SetOf(1), To: parley.SetOf(at), Since: lateness, Until: lateness + 6000, Loss: 1},
		}
	}
	return sim.Run(sim.Options{Protocol: simulated(t, 4), Requests: requests, Links: links})
}

// became returns the numbers of the requests for which a kind was indicated.
func became(s *sim.Sim, kind parley.Kind) (numbers []uint64) {
	for _, i := range s.History.Indications {
		if i.Msg.Kind == kind {
			numbers = append(numbers, i.Msg.Value)
		}
	}
	return numbers
}

// A source whose value comes too late for the others does not take it for decided: no
// process has decided anything, and it knows that.
func TestLateQuestion(t *testing.T) {
	s := lateAt(Key{EIG, 1, 0}, 0, false,
		question(0, 0, 0, "none"), question(0, lateness, 1, "one"), question(0, 2*lateness, 2, "two"))
	all, unknown := outcomes(s)
	for id, of := range all {
		if fmt.Sprint(of) != "map[1:none 3:two]" {
			t.Errorf("process %d decided %v", id, of)
		}
	}
	if nothing := became(s, Undecided); !slices.Equal(nothing, []uint64{1}) || len(unknown) > 0 {
		t.Errorf("nothing became of %v, and unknown is %v", nothing, unknown)
	}
}

// A source that also does not hear all others in time does not know what they decided, which may
// be its value.
func TestLateQuestionAndAnswer(t *testing.T) {
	for _, value := range []string{"one", ""} {
		s := lateAt(Key{EIG, 1, 0}, 0, true,
			question(0, 0, 0, "none"), question(0, lateness, 1, value), question(0, 2*lateness, 2, "two"))
		all, unknown := outcomes(s)
		for id, of := range all {
			want := fmt.Sprintf("map[1:none 2:%s 3:two]", value)
			if id == 0 {
				want = "map[1:none 3:two]"
			}
			if fmt.Sprint(of) != want {
				t.Errorf("%q: process %d decided %v", value, id, of)
			}
		}
		if nothing := became(s, Undecided); len(nothing) > 0 || !slices.Equal(unknown, []uint64{1}) {
			t.Errorf("%q: nothing became of %v, and unknown is %v", value, nothing, unknown)
		}
	}
}

// A process whose proposals come too late for the others gets the vector that they have, without
// its own value, or none.
func TestLateProposal(t *testing.T) {
	for _, both := range []bool{false, true} {
		var requests []sim.Request
		for k, name := range []string{"before", "first", "second"} {
			for id := range parley.ID(4) {
				requests = append(requests, sim.Request{At: id, When: lateness * parley.Tick(k), Msg: parley.Msg{
					Kind: parley.Propose, Value: uint64(k), Body: item{name, []byte{'a' + byte(id)}}.append(nil),
				}})
			}
		}
		s := lateAt(Key{EIG, 1, Everyone}, 3, both, requests...)
		answers := make(map[uint64][]string)
		for _, d := range s.History.Deliveries {
			if d.Msg.Value > 0 {
				answers[d.Msg.Value] = append(answers[d.Msg.Value], string(d.Msg.Body))
			}
		}
		values := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}
		whole := string(appendValues(nil, values))
		values[3] = nil
		first, unknown := string(appendValues(nil, values)), []uint64(nil)
		if both {
			first, unknown = whole, []uint64{1}
		}
		want := map[uint64][]string{1: slices.Repeat([]string{first}, 4-len(unknown)), 2: slices.Repeat([]string{whole}, 4)}
		if fmt.Sprint(answers) != fmt.Sprint(want) || !slices.Equal(became(s, Unanswered), unknown) {
			t.Errorf("both ways: %v: %v, want %v; unknown is %v", both, answers, want, became(s, Unanswered))
		}
	}
}

// A signature from one slot does not count in another: a source that sends its chain of slot 1
// again in slot 2 has proposed nothing there.
func TestChainOfAnotherSlot(t *testing.T) {
	var first []byte
	again := faulty.Behavior{Name: "again", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		for i, one := range t.Honest {
			switch {
			case one.Msg.Kind != lockstep.Frame || one.Msg.Seq > 0:
			case one.Msg.Value == 1:
				first = one.Msg.Body
			case one.Msg.Value == 2:
				t.Honest[i].Msg.Body = first
			}
		}
		return t.Honest
	}}
	s := sim.Run(sim.Options{
		Protocol: simulated(Key{SM, 1, 0}, 4), Faulty: map[parley.ID]faulty.Behavior{0: again},
		Requests: []sim.Request{question(0, 0, 1, "one"), question(0, 20000, 2, "two"), question(0, 40000, 3, "three")},
	})
	all, _ := outcomes(s)
	for id, of := range all {
		if fmt.Sprint(of) != "map[1:one 3:three]" {
			t.Errorf("process %d decided %v", id, of)
		}
	}
	if s.Stats.Refused["bad-signature"] == 0 {
		t.Error(s.Stats.Refused)
	}
}

// A process that gets a request although it is not the source begins nothing, and decides as the others do.
func TestQuestionElsewhere(t *testing.T) {
	s := sim.Run(sim.Options{
		Protocol: simulated(Key{EIG, 1, 0}, 4), Requests: []sim.Request{question(1, 0, 1, "other"), question(0, 10, 1, "one")},
		Crashes: []sim.Crash{{At: 3, When: 100}},
	})
	all, _ := outcomes(s)
	for _, id := range []parley.ID{0, 1, 2} {
		if fmt.Sprint(all[id]) != "map[1:one]" {
			t.Errorf("process %d decided %v", id, all[id])
		}
	}
	if s.Stats.Refused["request at a process that is not the source"] != 1 {
		t.Error(s.Stats.Refused)
	}
}

// A slot that no correct process requested is not reported, and the next request still comes to its
// slot.
func TestSlotsWithoutRequest(t *testing.T) {
	calls := faulty.Behavior{Name: "calls", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := slices.Clone(t.Honest)
		for _, one := range t.Honest {
			if one.Msg.Kind == lockstep.Frame && one.Msg.Seq == 0 && one.Msg.Value < 5 {
				one.Msg.Value++
				one.Msg.Body = nil
				out = append(out, one)
			}
		}
		return out
	}}
	s := sim.Run(sim.Options{
		Protocol: simulated(Key{EIG, 1, 0}, 4), Faulty: map[parley.ID]faulty.Behavior{3: calls},
		Requests: []sim.Request{question(0, 0, 1, "one"), question(0, 200000, 2, "two")},
	})
	all, missing := outcomes(s)
	for id, of := range all {
		if len(of) != 2 || of[1] != "one" || of[6] != "two" {
			t.Errorf("process %d decided %v", id, of)
		}
	}
	if len(missing) > 0 {
		t.Error(missing)
	}
}

// tells is a behavior that changes one of its frames.
func tells(change func(m *parley.Msg)) faulty.Behavior {
	return faulty.Behavior{Name: "tells", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		for i := range t.Honest {
			change(&t.Honest[i].Msg)
		}
		return t.Honest
	}}
}

// Frames and values over the limits of a stream count as missing.
func TestStreamLimits(t *testing.T) {
	large := Key{EIG, 3, 0}
	for _, c := range []struct {
		t     Key
		n     int
		liar  parley.ID
		tells func(m *parley.Msg)
		why   string
	}{
		{Key{EIG, 1, 0}, 4, 1, func(m *parley.Msg) {
			if m.Kind == lockstep.Frame && m.Seq == 1 {
				m.Body = make([]byte, Key{EIG, 1, 0}.FrameLimit(4)+1)
			}
		}, "frame over the limit of the stream"},
		{large, 10, 1, func(m *parley.Msg) {
			if m.Kind == lockstep.Frame && m.Seq == 1 && len(m.Body) > 0 {
				m.Body = bytes.ReplaceAll(m.Body, []byte("\x03one"), append([]byte{40}, make([]byte, 40)...))
				m.Body[5] += 37 // the length of the level
			}
		}, "value over the limit of the stream"},
	} {
		s := sim.Run(sim.Options{
			Protocol: simulated(c.t, c.n), Faulty: map[parley.ID]faulty.Behavior{c.liar: tells(c.tells)},
			Requests: []sim.Request{question(0, 0, 1, "one")},
		})
		all, _ := outcomes(s)
		for id, of := range all {
			if fmt.Sprint(of) != "map[1:one]" {
				t.Errorf("%s: process %d decided %v", c.why, id, of)
			}
		}
		if s.Stats.Refused[c.why] == 0 {
			t.Errorf("%s: refused %v", c.why, s.Stats.Refused)
		}
	}
}

// No correct process's frame is over the limit, with the largest possible values.
func TestLargestFrames(t *testing.T) {
	for _, c := range []struct {
		t Key
		n int
	}{
		{Key{EIG, 1, 0}, 4}, {Key{OM, 1, 0}, 4}, {Key{SM, 2, 0}, 4}, {Key{PhaseKing, 1, 0}, 4},
		{Key{EIG, 2, 0}, 7}, {Key{OM, 2, 0}, 7}, {Key{EIG, 3, 0}, 10}, {Key{OM, 3, 0}, 10},
	} {
		// The source sends each process another value, and with signatures two of a kind.
		liar := faulty.Behavior{Name: "many", Tell: func(_ *parley.Step, turn *parley.Turn) []parley.Outgoing {
			for i := range turn.Honest {
				if m := &turn.Honest[i].Msg; m.Kind == lockstep.Frame && m.Seq == 0 && c.t.Algorithm != SM {
					m.Body = bytes.Clone(m.Body)
					m.Body[len(m.Body)-1] = byte(turn.To)
				}
			}
			return turn.Honest
		}}
		s := sim.Run(sim.Options{
			Protocol: simulated(c.t, c.n), Faulty: map[parley.ID]faulty.Behavior{0: liar},
			Requests: []sim.Request{question(0, 0, 1, string(bytes.Repeat([]byte("x"), c.t.Limit())))},
		})
		if k := s.Stats.Refused["frame over the limit of the stream"]; k > 0 {
			t.Errorf("%s among %d: %d frames refused", c.t, c.n, k)
		}
		if c.t.Algorithm != SM && len(s.Stats.Refused) > 0 { // SM refuses known values
			t.Errorf("%s among %d: %v", c.t, c.n, s.Stats.Refused)
		}
	}
}
