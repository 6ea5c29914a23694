package harness

import (
	"slices"
	"testing"

	"parley"
	"parley/sim"
)

// The weather applies its cuts, losses and duplicates in the times of its rules; the last matching rule
// counts, and none after the weather has healed.
func TestWeather(t *testing.T) {
	cut := sim.Link{From: parley.SetOf(0), To: parley.SetOf(1), Since: 100, Until: 200, Loss: 1}
	late := sim.Link{To: parley.SetOf(2), Delay: sim.Delay{Least: 50, Most: 50}}
	slow := sim.Link{Since: 300, Until: 400, Delay: sim.Delay{Least: 99, Most: 99}}
	w := &sim.Weather{Delay: sim.Delay{Least: 7, Most: 7}, Links: []sim.Link{cut, late, slow}, Heal: 1000,
		Graph: []parley.Set{parley.SetOf(1, 2), {}, {}}}
	s := newSenderWeather(w, 0, 0, 3)
	for _, one := range []struct {
		to   parley.ID
		when parley.Tick
		due  []parley.Tick
		cut  bool
	}{
		{1, 99, []parley.Tick{106}, false},
		{1, 100, nil, true},
		{1, 199, nil, true},
		{1, 200, []parley.Tick{207}, false},
		{2, 100, []parley.Tick{150}, false},
		{2, 300, []parley.Tick{399}, false},
		{2, 980, []parley.Tick{1007}, false}, // it heals meanwhile
		{2, 1000, []parley.Tick{1007}, false},
	} {
		if due, why := s.copies(one.to, one.when); !slices.Equal(due, one.due) || (why == byCut) != one.cut {
			t.Errorf("to %d at %d: got due %d, lost %d, want %d, cut %t", one.to, one.when, due, why, one.due, one.cut)
		}
	}
	if _, why := newSenderWeather(w, 0, 1, 3).copies(0, 500); why != byCut {
		t.Error("a message went where there is no link")
	}
	calm := newSenderWeather(&sim.Weather{}, 0, 0, 2)
	if due, _ := calm.copies(1, 5); !slices.Equal(due, []parley.Tick{0}) {
		t.Errorf("without weather: due %d, want at once", due)
	}
}

// The numbers of lost and doubled messages match the probabilities, and FIFO links double nothing and never
// reorder.
func TestWeatherByChance(t *testing.T) {
	const all = 3000
	count := func(w sim.Weather) (lost, twice, overtaken int) {
		last := parley.Tick(0)
		s := newSenderWeather(&w, 3, 0, 2)
		for i := range parley.Tick(all) {
			due, _ := s.copies(1, i)
			switch len(due) {
			case 0:
				lost++
			case 2:
				twice++
			}
			for _, at := range due {
				if at < last {
					overtaken++
				}
				last = max(last, at)
			}
		}
		return lost, twice, overtaken
	}
	near := func(what string, got int, want float64) {
		if d := float64(got) - want*all; d < -200 || d > 200 {
			t.Errorf("%s: %d of %d, want about %.0f", what, got, all, want*all)
		}
	}
	lost, twice, overtaken := count(sim.Weather{Delay: sim.Delay{Least: 1, Most: 90}, Loss: 0.3, Twice: 0.2})
	near("lost", lost, 0.3)
	near("doubled", twice, 0.7*0.2)
	if overtaken == 0 {
		t.Error("nothing was overtaken")
	}
	_, twice, overtaken = count(sim.Weather{Delay: sim.Delay{Least: 1, Most: 90}, Loss: 0.3, Twice: 0.2, FIFO: true})
	if twice > 0 || overtaken > 0 {
		t.Errorf("in order: %d doubled and %d overtaken, want none", twice, overtaken)
	}
}
