package convergence

import (
	"fmt"
	"iter"

	"parley"
)

// lies lets a liar show each reader another time, and send or omit a question and a START.
func (p *Plan) lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for _, sent := range t.Honest {
		var said bool
		if sent.Msg.Kind == Time {
			sent.Msg.Value, said = p.lie(s, t.To, sent.Msg)
		} else {
			said = s.Choose(2) == 0
		}
		if said {
			out = append(out, sent)
		}
	}
	return out
}

// lie chooses the time that a reader is shown. The reader's T1 shows its own clock, up to the delay of the
// message, so a liar can reach a difference that is just within the threshold.
func (p *Plan) lie(s *parley.Step, reader parley.ID, m parley.Msg) (value uint64, said bool) {
	t1 := parley.Tick(m.Seq)
	ahead := t1 + p.Least + p.Threshold
	behind := t1 + p.RoundTrip/2 - p.Threshold
	if reader%2 == 0 {
		ahead, behind = behind, ahead
	}
	shown := []parley.Tick{
		parley.Tick(m.Value), // honest
		ahead,                // two faces: ahead for odd readers, behind for even ones
		behind,               // the other way round
		t1 + p.Least + p.Threshold,
		t1 + p.RoundTrip/2 - p.Threshold,
		t1 + p.RoundTrip/2 + p.Threshold + 1, // just beyond the threshold
		t1 + p.Least + p.Threshold/2,
	}
	k := s.Choose(len(shown) + 1)
	if k == len(shown) {
		return 0, false
	}
	return uint64(shown[k]), true
}

// explain shows the content of a message.
func explain(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch m.Kind {
		case Read:
			yield(fmt.Sprintf("READ at %d", int64(m.Seq)))
		case Time:
			yield(fmt.Sprintf("TIME %d, asked at %d", int64(m.Value), int64(m.Seq)))
		case Start:
			yield("START")
		}
	}
}

// cost counts the messages of all resynchronizations, or of one if they never end, and of a start. In a
// resynchronization every process asks every other and gets an answer. A time has 64 bits. There are no rounds
// to distinguish: PerRound is the sum.
func (p *Plan) cost(n, _ int) parley.Cost {
	links := parley.Traffic{Messages: uint64(n) * uint64(n-1)}
	sum := parley.Traffic{Messages: 2, Bits: 3 * 64}.Times(links.Messages).Times(uint64(max(p.Resyncs, 1)))
	if p.Begin == Cold {
		sum = sum.Plus(links)
	}
	return parley.Cost{Rounds: max(p.Resyncs, 1), PerRound: []parley.Traffic{sum}}
}

func size(_ parley.Env, m parley.Msg) parley.Traffic {
	one := parley.Traffic{Messages: 1}
	switch m.Kind {
	case Read:
		one.Bits = 64
	case Time:
		one.Bits = 2 * 64
	}
	return one
}
