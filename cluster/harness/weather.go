package harness

import (
	"math/rand/v2"

	"parley"
	"parley/sim"
)

// sky is the weather at one sender. It comes on top of what real links do to messages: it is
// decided where a message is sent, and what is late waits where it arrives, so that it arrives
// even if its sender crashes meanwhile.
type sky struct {
	*sim.Weather
	self   parley.ID
	chance []*rand.Rand  // by receiver: what befalls one link does not depend on others
	last   []parley.Tick // by receiver: when the latest arrives
}

func newSky(w *sim.Weather, seed uint64, self parley.ID, n int) *sky {
	s := &sky{Weather: w, self: self, last: make([]parley.Tick, n)}
	for to := range n {
		s.chance = append(s.chance, rand.New(rand.NewPCG(seed, uint64(self)<<32|uint64(to))))
	}
	return s
}

// befall decides what becomes of a message: when each copy is due, 0 for as soon as it is
// there; none if it is lost, by chance or because its ends are cut off.
func (s *sky) befall(to parley.ID, now parley.Tick) (due []parley.Tick, lost uint64) {
	if !s.Works(s.self, to, now) {
		return nil, byCut
	}
	rule := s.Rule(s.self, to, now)
	if rule.Loss > 0 && s.chance[to].Float64() < rule.Loss {
		return nil, byChance
	}
	copies := 1
	if rule.Twice > 0 && s.chance[to].Float64() < rule.Twice {
		copies = 2
	}
	for range copies {
		due = append(due, s.post(to, rule.Delay, now))
	}
	return due, 0
}

// post draws when one copy is due.
func (s *sky) post(to parley.ID, delay sim.Delay, now parley.Tick) parley.Tick {
	at := parley.Tick(0)
	if delay.Most > 0 {
		at = now + delay.Least + parley.Tick(s.chance[to].Int64N(int64(delay.Most-delay.Least)+1))
		if s.Heal > 0 { // no slow link holds it back for longer than others from then on
			at = min(at, max(now, s.Heal)+s.Delay.Most)
		}
	}
	if s.FIFO && s.last[to] > max(at, now) {
		at = s.last[to]
	}
	s.last[to] = max(s.last[to], at)
	return at
}
