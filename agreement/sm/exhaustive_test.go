package sm_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// odometer answers the choices of a run with the digits of a number, and counts.
type odometer struct {
	digits, radix []int
	at            int
}

func (o *odometer) choose(_ *parley.Step, _ *parley.Turn, _, n int) int {
	if o.at == len(o.digits) {
		o.digits, o.radix = append(o.digits, 0), append(o.radix, n)
	}
	o.at++
	return o.digits[o.at-1]
}

// next tells whether there is another run, and begins it.
func (o *odometer) next() bool {
	for o.at = len(o.digits); o.at > 0; o.at-- {
		if o.digits[o.at-1]++; o.digits[o.at-1] < o.radix[o.at-1] {
			o.digits, o.radix = o.digits[:o.at], o.radix[:o.at]
			o.at = 0
			return true
		}
	}
	return false
}

// exhaust runs every behaviour of every single faulty process: a faulty source,
// and each faulty lieutenant with each value of a correct source.
func exhaust(c sm.Config) (runs, broke, split int) {
	p := sm.New(c, lockstep.Simulated)
	try := func(liar parley.ID, value string) {
		var o odometer
		for more := true; more; more = o.next() {
			s := sim.Run(sim.Options{
				Protocol: p, Delay: sim.Delay{Least: 1, Most: 1}, Requests: propose(c, value),
				Faulty: the(faulty.Behaviour{Name: "each", Choose: o.choose}, liar),
			})
			runs++
			if violated(p, s) != nil {
				broke++
			}
			if broken(p, s, problem.Agreement) {
				split++
			}
		}
	}
	try(0, "1")
	for id := 1; id < c.N; id++ {
		try(parley.ID(id), "0")
		try(parley.ID(id), "1")
	}
	return runs, broke, split
}

// TestExhaustive: one faulty process, all that it can do with two values. The
// source has 4 answers for each lieutenant; a lieutenant relays or not.
func TestExhaustive(t *testing.T) {
	for _, x := range []struct{ n, m, runs, split int }{
		{3, 1, 24, 0},  // 4^2 + 2*2*2
		{4, 1, 88, 0},  // 4^3 + 3*2*2^2
		{5, 1, 320, 0}, // 4^4 + 4*2*2^3
		{4, 0, 70, 36}, // 4^3 + 3*2: SM(0) tolerates nobody
		{4, 2, 88, 0},  // one liar more than there is
	} {
		runs, broke, split := exhaust(config(x.n, x.m))
		same(t, fmt.Sprintf("n=%d, m=%d: runs", x.n, x.m), runs, x.runs)
		same(t, fmt.Sprintf("n=%d, m=%d: broken promises", x.n, x.m), broke, 0)
		same(t, fmt.Sprintf("n=%d, m=%d: split runs", x.n, x.m), split, x.split)
	}
}

// TestExhaustivePair: two colluding faulty processes, the source among them, and
// all that they can do with two values at n=4: SM(2) holds, SM(1) does not.
func TestExhaustivePair(t *testing.T) {
	for _, x := range []struct{ m, runs, split int }{
		// For each of two receivers 4 answers of the source; the other relays or not,
		// and shows the other value or (in two ways) does not.
		{1, 4 * 4 * (2 * 3) * (2 * 3), 64},
		// In round 2 it may show what the other receiver said in round 1, which has
		// 1, 1, 2 or no values: 3 + 3 + 5 + 1 ways in place of the 4 answers.
		{2, 12 * 12 * (2 * 3) * (2 * 3), 0},
	} {
		c := config(4, x.m)
		p := sm.New(c, lockstep.Simulated)
		var o odometer
		var runs, split int
		for more := true; more; more = o.next() {
			s := sim.Run(sim.Options{
				Protocol: p, Delay: sim.Delay{Least: 1, Most: 1}, Requests: propose(c, "1"),
				Faulty: the(faulty.Behaviour{Name: "each", Choose: o.choose}, 0, 1),
			})
			runs++
			if broken(p, s, problem.Agreement) {
				split++
			}
		}
		same(t, fmt.Sprintf("SM(%d): runs", x.m), runs, x.runs)
		same(t, fmt.Sprintf("SM(%d): split runs", x.m), split, x.split)
	}
}
