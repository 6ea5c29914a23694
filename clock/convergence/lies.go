package convergence

import (
	"fmt"
	"iter"

	"parley"
)

// lies: a liar shows each reader another time. A question and a START it may ask or
// keep to itself.
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

// lie chooses the time that a reader is shown. The reader's T1 tells what its own
// clock shows, up to the time that a message takes: a difference of the threshold
// can be had that is just believed.
func (p *Plan) lie(s *parley.Step, reader parley.ID, m parley.Msg) (value uint64, said bool) {
	t1 := parley.Tick(m.Seq)
	ahead := t1 + p.Least + p.Threshold
	behind := t1 + p.RoundTrip/2 - p.Threshold
	if reader%2 == 0 {
		ahead, behind = behind, ahead
	}
	shown := []parley.Tick{
		parley.Tick(m.Value), // honest
		ahead,                // two faces: the odd ones hurry, the even ones lag
		behind,               // the other way round
		t1 + p.Least + p.Threshold,
		t1 + p.RoundTrip/2 - p.Threshold,
		t1 + p.RoundTrip/2 + p.Threshold + 1, // too much to be believed
		t1 + p.Least + p.Threshold/2,
	}
	k := s.Choose(len(shown) + 1)
	if k == len(shown) {
		return 0, false
	}
	return uint64(shown[k]), true
}

// explain shows a message as what it says.
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

// cost counts the messages of all resynchronizations, of one if there is no end, and of a start.
// In each, every process asks every other and is answered. A time has 64 bits. There
// are no rounds to tell apart: PerRound is the sum.
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
