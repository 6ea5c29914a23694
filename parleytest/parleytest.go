// Package parleytest tests any protocol. It uses only the fields of [parley.Protocol], so a protocol needs no test
// code of its own. The suite checks that
//
//   - the protocol keeps its promises in random (seeded) runs with as many faults as it tolerates;
//   - a property breaks if there are too few processes for the faults;
//   - a run is repeatable, and its machines can be saved and loaded during the run;
//   - processes survive a crash at any step;
//   - faults of networks, clocks and processes break no promise that still holds under these faults;
//   - no message of a liar makes a process panic;
//   - the number of messages is as the protocol's field Cost states.
//
// The suite also works for protocols of other modules:
//
//	func TestSuite(t *testing.T) { parleytest.Suite(t, mine.New(mine.Config{N: 4, M: 1})) }
//	func FuzzReceive(f *testing.F) { parleytest.Fuzz(f, mine.New(mine.Config{N: 4, M: 1})) }
//
// The following fields of a [parley.Protocol] determine what is checked: the fault model, N and M, Properties and
// Promises, Bound, Cost and Size, Lies and Rename. Every failure names the seed and the faulty processes of the
// run.
package parleytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/sim"
)

// Options describe properties of a protocol that the protocol does not declare itself. The zero value suits
// most protocols.
type Options struct {
	// Seeds is the number of seeded runs with faults; 0 means 300, or 60 with -short. Other checks use a
	// fraction of it.
	Seeds int
	// Alphabet holds the values that processes propose. nil means 0 and 1.
	Alphabet []string
	// Inputs, if not nil, draws the requests of a run. By default each of the Proposers gets a value of the alphabet
	// at time 0. If there are no Proposers and the protocol Serves, each process broadcasts a few messages, all
	// different. The cost of a broadcast is measured with the first request alone.
	Inputs func(r *rand.Rand) []sim.Request
	// Sim holds the options that all runs share: delays, Loss and Twice, FIFO, and, if the protocol needs them, Graph
	// and Detect. A protocol that does not end by itself also needs Until; 0 means its Span. A run that uses up its
	// Steps fails; 0 means 1<<18 + n*n*n. The suite fills in the rest.
	Sim sim.Options
	// Recovers declares that a process that restarts from its log keeps all promises, like a process that
	// never crashed. Otherwise a restarted process counts as faulty for the whole run.
	Recovers bool
	// NeverBack declares that crashed processes do not restart. Otherwise a process that restarts with only
	// its log, even an empty log, must break no promise.
	NeverBack bool
	// LogKeepsMore, if not empty, is the reason why a process that restarts from its log records may know
	// more than its durable variables contained.
	LogKeepsMore string
	// Beyond are systems in which some property that the protocol promises must break. By default the suite
	// makes the protocol again, by its Flags, with the largest number of processes that its Bound refuses. If
	// the suite cannot do that, set Beyond.
	Beyond []Beyond
	// NothingBeyond, if not empty, is the reason why nothing breaks beyond the bound.
	NothingBeyond string
}

// Beyond is a system in which a property must break: a protocol with more faulty processes than it tolerates,
// or under conditions in which it promises nothing.
type Beyond struct {
	Protocol parley.Protocol
	Faulty   int
	// Sim, if not nil, replaces Options.Sim, for example with lossy links or false suspicions.
	Sim *sim.Options
	// Breaks names the property that must break; empty means any.
	Breaks string
}

// Suite runs all checks that apply to p, each as a subtest of t.
func Suite(t *testing.T, p parley.Protocol, options ...Options) {
	t.Helper()
	s := newSuite(p, options)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s.logf = t.Logf
			err := s.run(c.run)
			if why := skip(""); errors.As(err, &why) {
				t.Log("does not apply:", string(why))
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Check runs the checks of [Suite] outside a test. It returns the first failure.
func Check(p parley.Protocol, options ...Options) error {
	s := newSuite(p, options)
	for _, c := range checks {
		err := s.run(c.run)
		if why := skip(""); err != nil && !errors.As(err, &why) {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// checks are the checks by name. One that does not apply returns a skip.
var checks = []struct {
	name string
	run  func(suite) error
}{
	{"promises", promises},
	{"beyond", beyond},
	{"determinism", determinism},
	{"reload", reload},
	{"rename", rename},
	{"crashes", crashPoints},
	{"faults", faults},
	{"log", logs},
	{"hostile", hostile},
	{"lies", lies},
	{"cost", cost},
}

// skip is the reason why a check does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// failure is the value with which a check panics within a run that cannot continue.
type failure struct{ error }

// run runs one check, and returns a failure that it panics with as its error.
func (s suite) run(check func(suite) error) (err error) {
	defer func() {
		if why := recover(); why != nil {
			f, ok := why.(failure)
			if !ok {
				panic(why)
			}
			err = f.error
		}
	}()
	return check(s)
}

// suite is a protocol under test.
type suite struct {
	p    parley.Protocol
	o    Options
	logf func(format string, args ...any)
}

func newSuite(p parley.Protocol, options []Options) suite {
	s := suite{p: p, logf: func(string, ...any) {}}
	switch len(options) {
	case 0:
	case 1:
		s.o = options[0]
	default:
		panic("parleytest: one Options at most")
	}
	if s.o.Seeds == 0 {
		s.o.Seeds = 300
		if testing.Testing() && testing.Short() {
			s.o.Seeds = 60
		}
	}
	if s.o.Sim.Until == 0 {
		s.o.Sim.Until = p.Span
	}
	if s.o.Sim.Steps == 0 {
		s.o.Sim.Steps = 1<<18 + uint64(p.N)*uint64(p.N)*uint64(p.N)
	}
	if len(s.o.Alphabet) == 0 {
		s.o.Alphabet = []string{"0", "1"}
	}
	return s
}

// share returns 1/one of the seeds, at least one.
func (s suite) share(one int) int { return max(1, s.o.Seeds/one) }

// byzantine returns whether faulty processes may lie.
func (s suite) byzantine() bool { return s.p.Faults >= parley.SignedByzantineFaults }

// inputs draws the requests of a run of p.
func (s suite) inputs(p parley.Protocol, r *rand.Rand) []sim.Request {
	if s.o.Inputs != nil {
		return s.o.Inputs(r)
	}
	var out []sim.Request
	value := func() []byte { return []byte(s.o.Alphabet[r.IntN(len(s.o.Alphabet))]) }
	common, alike := value(), r.IntN(2) == 0
	for id := range p.Proposers.All() {
		v := common
		if !alike {
			v = value()
		}
		out = append(out, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: v}})
	}
	if len(out) > 0 || !p.Serves {
		return out
	}
	for id := range parley.ID(p.N) {
		for k := range r.IntN(3) {
			out = append(out, broadcast(id, k, parley.Tick(r.IntN(2000))))
		}
	}
	if len(out) == 0 {
		out = append(out, broadcast(parley.ID(r.IntN(p.N)), 0, 0))
	}
	return out
}

// broadcast returns the request for a broadcast with a unique payload.
func broadcast(at parley.ID, k int, when parley.Tick) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: parley.Carried, Body: fmt.Appendf(nil, "%d.%d", at, k)}}
}
