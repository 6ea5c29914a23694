package harness

import (
	"math/rand/v2"

	"parley"
	"parley/sim"
)

// senderWeather simulates the weather at one sender, in addition to the real links. It decides when a
// message is sent; a late message waits at the receiver, so that it arrives even if its sender crashes
// meanwhile.
type senderWeather struct {
	*sim.Weather
	self   parley.ID
	chance []*rand.Rand  // by receiver: the faults of one link do not depend on others
	last   []parley.Tick // by receiver: the latest arrival
}

func newSenderWeather(w *sim.Weather, seed uint64, self parley.ID, n int) *senderWeather {
	s := &senderWeather{Weather: w, self: self, last: make([]parley.Tick, n)}
	for to := range n {
		s.chance = append(s.chance, rand.New(rand.NewPCG(seed, uint64(self)<<32|uint64(to))))
	}
	return s
}

// copies decides what happens to a message: it returns when each copy is due, 0 for on arrival; none if the
// message is lost, by chance or because the link is cut.
func (s *senderWeather) copies(to parley.ID, now parley.Tick) (due []parley.Tick, lost uint64) {
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
		due = append(due, s.arrival(to, rule.Delay, now))
	}
	return due, 0
}

// arrival draws when one copy is due.
func (s *senderWeather) arrival(to parley.ID, delay sim.Delay, now parley.Tick) parley.Tick {
	at := parley.Tick(0)
	if delay.Most > 0 {
		at = now + delay.Least + parley.Tick(s.chance[to].Int64N(int64(delay.Most-delay.Least)+1))
		if s.Heal > 0 { // from then on no slow link delays it longer than others
			at = min(at, max(now, s.Heal)+s.Delay.Most)
		}
	}
	if s.FIFO && s.last[to] > max(at, now) {
		at = s.last[to]
	}
	s.last[to] = max(s.last[to], at)
	return at
}
