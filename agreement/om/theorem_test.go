package om_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
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

// broken returns the names of the broken properties. No promise may be broken.
func broken(t *testing.T, p parley.Protocol, s *sim.Sim) []string {
	t.Helper()
	var names []string
	a := parley.Assumptions{N: p.N, M: p.M, Faulty: s.History.Faulty.Len()}
	for _, v := range parley.Judge(p, a, &s.History) {
		if v.Violated() {
			t.Errorf("n=%d m=%d faulty %v: %s: %v",
				p.N, p.M, slices.Collect(s.History.Faulty.All()), v.Property.Name, v.Broken)
		}
		if v.Broken != nil {
			names = append(names, v.Property.Name)
		}
	}
	return names
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
			if names := broken(t, p, s); names != nil || len(s.Stats.Refused) != 0 {
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
			for _, name := range broken(t, p, run(p, 0, "1", seed, how)) {
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

// odometer answers the choices of one run after another so that every
// combination of answers comes up once.
type odometer struct {
	digits, bases []int
	at            int
}

func (o *odometer) choose(n int) int {
	if o.at == len(o.digits) {
		o.digits, o.bases = append(o.digits, 0), append(o.bases, n)
	}
	if o.bases[o.at] != n {
		panic("the same answers led to another question")
	}
	o.at++
	return o.digits[o.at-1]
}

// next moves on to the next combination, false if there is none.
func (o *odometer) next() bool {
	o.at = 0
	for last := len(o.digits) - 1; last >= 0; last-- {
		if o.digits[last]++; o.digits[last] < o.bases[last] {
			return true
		}
		o.digits, o.bases = o.digits[:last], o.bases[:last]
	}
	return false
}

// exhaust runs every adversary there is with one faulty process, over the
// values 0 and 1 and silence. Which process is faulty and, while the source is
// correct, what it says are part of the enumeration.
func exhaust(t *testing.T, n int) (runs int, failed []string) {
	p := om.New(om.Config{N: n, M: 1, Default: []byte("0")}, lockstep.Simulated)
	for liar := range parley.ID(n) {
		for _, value := range []string{"0", "1"} {
			if liar == 0 && value == "0" {
				continue // a faulty source may say anything, whatever it was given
			}
			var o odometer
			how := map[parley.ID]faulty.Behaviour{liar: {
				Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int { return o.choose(n) },
			}}
			for more := true; more; more = o.next() {
				s := run(p, 0, value, 1, how)
				runs++
				for _, name := range broken(t, p, s) {
					failed = append(failed, fmt.Sprintf("%s: P%d lies %v about %s", name, liar, o.digits, value))
				}
			}
		}
	}
	return runs, failed
}

// n = 4, m = 1: with a correct source 3 liars x 2 values x 3^2 things to tell
// the two other lieutenants, with a faulty one 3^3, and none breaks anything.
func TestExhaustFour(t *testing.T) {
	if runs, failed := exhaust(t, 4); runs != 3*2*9+27 || failed != nil {
		t.Errorf("%d runs, expected 81; broken: %v", runs, failed)
	}
}

// n = 5, m = 1: 4 x 2 x 3^3 + 3^4.
func TestExhaustFive(t *testing.T) {
	if runs, failed := exhaust(t, 5); runs != 4*2*27+81 || failed != nil {
		t.Errorf("%d runs, expected 297; broken: %v", runs, failed)
	}
}

// n = 3, m = 1, slide "Impossibility Results": 2 x 2 x 3 + 3^2 runs. The lone
// correct lieutenant of a correct source decides by its own value and the
// liar's word. Two unlike votes tie and the default 0 decides, so the source's
// value is lost just if it is 1 and the liar says 0 (answer 1) or nothing
// (answer 2, and the default 0 stands for it): 4 runs. Lieutenants of a faulty
// source hold the same two values and agree.
func TestExhaustThree(t *testing.T) {
	runs, failed := exhaust(t, 3)
	slices.Sort(failed)
	want := []string{
		"validity: P1 lies [1] about 1", "validity: P1 lies [2] about 1",
		"validity: P2 lies [1] about 1", "validity: P2 lies [2] about 1",
	}
	if runs != 21 || !slices.Equal(failed, want) {
		t.Errorf("%d runs, expected 21; broken:\n%s", runs, strings.Join(failed, "\n"))
	}
}
