package om_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// Slides "Oral Messages Algorithm OM(m)", "Message complexity?" and "The upper
// bound": m+1 rounds, in round r (n-1)(n-2)...(n-1-r) messages. The closed
// figures are the lecture's for its examples, and computed for the others.
func TestCostIsWhatAnHonestRunSends(t *testing.T) {
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

// behaviours are all there are: the named ones, and crashes in every round.
func behaviours(m int) []faulty.Behaviour {
	all := faulty.Named()
	for r := range m + 1 {
		all = append(all, faulty.Crash(r, 0), faulty.Crash(r, 2), faulty.CrashAt(parley.Tick(1000*r+500)))
	}
	return all
}

// draw picks faulty processes, the source among them in every second seed, and
// a behaviour for each.
func draw(
	seed uint64, n, count int, source parley.ID, from []faulty.Behaviour,
) map[parley.ID]faulty.Behaviour {
	rng := rand.New(rand.NewPCG(seed, 3))
	how := make(map[parley.ID]faulty.Behaviour)
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

// Theorem (slide "Oral Messages Algorithm OM(m)": 3m+1 or more processes, at
// most m of them faulty): validity and agreement, whatever the faulty do.
func TestWithinTheBound(t *testing.T) {
	for _, size := range []struct{ n, m, runs int }{{4, 1, 3000}, {5, 1, 2000}, {7, 2, 1500}, {10, 3, 150}} {
		all := behaviours(size.m)
		used, lied := make(map[string]int), 0
		for seed := range uint64(size.runs) {
			c := om.Config{N: size.n, M: size.m, Source: parley.ID(seed % uint64(size.n)), Default: []byte("0")}
			p := om.New(c, lockstep.Simulated)
			how := draw(seed, size.n, size.m, c.Source, all)
			value := fmt.Sprint(seed / 2 % 2)
			s := run(p, c.Source, value, seed, how)
			if names := parleytest.Judge(t, p, s, p.M); names != nil || len(s.Stats.Refused) != 0 {
				t.Fatalf("(%d,%d) seed %d: broken %v, refused %v",
					size.n, size.m, seed, names, s.Stats.Refused)
			}
			for id, b := range how {
				used[b.Name]++
				in, _, _ := p.Tree(s.Machine(correct(s))).Node([]parley.ID{c.Source, id})
				if in != nil && string(in) != value {
					lied++
				}
			}
		}
		if len(used) != len(all) || lied == 0 {
			t.Errorf("(%d,%d): behaviours used %v, lies held %d", size.n, size.m, used, lied)
		}
	}
}

// correct returns some correct lieutenant of a run; the source has no tree.
func correct(s *sim.Sim) parley.ID {
	source := s.History.Requests[0].At
	for id := range s.Correct().All() {
		if id != source {
			return id
		}
	}
	panic("no correct lieutenant")
}

// Beyond the bound nothing is promised, and something must be seen to break: at
// n = 3m, and with one fault more than m at n = 3m+1.
func TestBeyondTheBound(t *testing.T) {
	for _, size := range []struct{ n, m, faults, runs int }{
		{3, 1, 1, 100}, {6, 2, 2, 200}, {9, 3, 3, 60}, {4, 1, 2, 100}, {7, 2, 3, 200}, {10, 3, 4, 40},
	} {
		count := make(map[string]int)
		for seed := range uint64(size.runs) {
			c := om.Config{N: size.n, M: size.m, Default: []byte("0")}
			p := om.New(c, lockstep.Simulated)
			liars := []faulty.Behaviour{faulty.Random, faulty.TwoFaced, faulty.Flip}
			how := draw(seed, size.n, size.faults, c.Source, liars)
			for _, name := range parleytest.Judge(t, p, run(p, 0, "1", seed, how), seed) {
				count[name]++
			}
		}
		if count[problem.Validity] == 0 || count[problem.Agreement] == 0 && size.n > 3 {
			t.Errorf("(%d,%d) with %d faults: broken %v of %d runs", size.n, size.m, size.faults, count, size.runs)
		}
		if count[problem.Termination]+count[problem.Integrity] != 0 {
			t.Errorf("(%d,%d): the rounds end and a decision falls once, always: %v", size.n, size.m, count)
		}
	}
}
