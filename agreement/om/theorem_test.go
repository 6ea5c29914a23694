package om_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/faulty"
	"parley/lockstep"
)

// Slides "Oral Messages Algorithm OM(m)", "Message complexity?" and "The upper
// bound": m+1 rounds, in round r (n-1)(n-2)...(n-1-r) messages. The closed
// figures are the lecture's for its examples, and computed for the others.
func TestCostEqualsMessagesOfAnHonestRun(t *testing.T) {
	for _, count := range []struct {
		n, m     int
		messages []uint64
	}{
		{3, 0, []uint64{2}},
		{3, 1, []uint64{2, 2}},
		{4, 1, []uint64{3, 6}},
		{5, 1, []uint64{4, 12}},
		{5, 3, []uint64{4, 12, 24, 24}},
		{7, 2, []uint64{6, 30, 120}},
		{10, 3, []uint64{9, 72, 504, 3024}},
		{13, 4, []uint64{12, 132, 1320, 11880, 95040}},
	} {
		c := om.Config{N: count.n, M: count.m, Source: parley.ID(count.n - 1), Default: []byte("0")}
		cost := om.Cost(count.n, count.m)
		s := run(om.New(c, lockstep.Simulated), c.Source, "1", 1, nil)
		if !slices.Equal(s.Stats.Sent, cost.PerRound) || cost.Rounds != count.m+1 {
			t.Errorf("(%d,%d): sent %v, the theorem says %v", count.n, count.m, s.Stats.Sent, cost.PerRound)
		}
		for r, messages := range count.messages {
			bits := messages * (1 + uint64(r+1)*parley.IDBits(count.n))
			if got := s.Stats.Sent[r]; got != (parley.Traffic{Messages: messages, Bits: bits}) {
				t.Errorf("(%d,%d) round %d: %v, expected %d messages, %d bits",
					count.n, count.m, r, got, messages, bits)
			}
		}
		for _, d := range s.History.Deliveries {
			if d.When != parley.Tick(count.m+1)*lockstep.Simulated.Delta || string(d.Msg.Body) != "1" {
				t.Errorf("(%d,%d): %d decides %q at %d", count.n, count.m, d.At, d.Msg.Body, d.When)
			}
		}
		if len(s.History.Deliveries) != count.n || len(s.Stats.Refused) != 0 {
			t.Errorf("(%d,%d): %d decisions, refused %v",
				count.n, count.m, len(s.History.Deliveries), s.Stats.Refused)
		}
	}
	if total := om.Cost(16, 5).Total().Messages; total != 3999675 {
		t.Errorf("(16,5): %d messages", total)
	}
}

// draw picks faulty processes, the source among them for every second seed, and
// a behavior for each.
func draw(
	seed uint64, n, count int, source parley.ID, from []faulty.Behavior,
) map[parley.ID]faulty.Behavior {
	rng := rand.New(rand.NewPCG(seed, 3))
	how := make(map[parley.ID]faulty.Behavior)
	if seed%2 == 0 && count > 0 {
		how[source] = from[rng.IntN(len(from))]
	}
	for _, i := range rng.Perm(n) {
		if id := parley.ID(i); len(how) < count && id != source {
			how[id] = from[rng.IntN(len(from))]
		}
	}
	return how
}
