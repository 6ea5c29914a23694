// Package parleytest is what any protocol is tested for without a line of its
// own: that it keeps what it promises in seeded runs with as many faults as it
// promises to tolerate, that something breaks beyond its bound, that a run can be
// repeated and its machines saved and loaded in the middle of it, that it lives
// through a crash at any step, that it breaks no promise when networks, clocks and
// processes do what they can to it, that no message from a liar stops a process, and
// that it sends what its theorem says. It is for protocols outside this module
// too:
//
//	func TestSuite(t *testing.T) { parleytest.Suite(t, mine.New(mine.Config{N: 4, M: 1})) }
//	func FuzzReceive(f *testing.F) { parleytest.Fuzz(f, mine.New(mine.Config{N: 4, M: 1})) }
//
// What a protocol says of itself decides what is checked: its fault model, N and
// M, Properties and Promises, Bound, Cost and Size, Lies and Rename. Every
// failure names the seed and the faulty processes of the run.
package parleytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/sim"
)

// Options say what a protocol does not say of itself. The zero value will do for
// most.
type Options struct {
	// Seeds is the number of seeded runs with faults: by default 300, and 60 with
	// -short. Other checks take a share of it.
	Seeds int
	// Alphabet are the values that processes propose: by default 0 and 1.
	Alphabet []string
	// Inputs are the requests of a run, where the usual ones will not do: by
	// default each of the Proposers is given a value of the alphabet at time 0,
	// and where there are none, processes of a serving protocol broadcast a few
	// messages each, every one another. What a broadcast costs is measured with the
	// first request alone.
	Inputs func(r *rand.Rand) []sim.Request
	// Sim holds what runs have in common: delays, Loss and Twice, FIFO, Graph and
	// Detect where the protocol needs them, and Until for a protocol that does not end
	// by itself: by default its Span. A run that uses up its Steps fails: by default
	// 1<<18 and n*n*n more. The suite fills in the rest.
	Sim sim.Options
	// Recovers tells that a process which restarts from its log is as good as one
	// that never crashed. Otherwise it counts as faulty for the whole run.
	Recovers bool
	// NeverBack tells that nobody restarts what has crashed. Otherwise a process
	// that comes back with nothing but its log, and be it empty, must do no harm.
	NeverBack bool
	// LogKeepsMore tells that a process which restarts from its records may know more than its durable
	// variables had, with the reason.
	LogKeepsMore string
	// Beyond are systems in which some property must be seen to break that the
	// protocol under test promises. By default it is remade, by its Flags, with
	// as many processes as its Bound just refuses; if they cannot be made, give others.
	Beyond []Beyond
	// NothingBeyond tells that nothing breaks at the bound, with the reason.
	NothingBeyond string
}

// Beyond is a protocol with more faulty processes than it tolerates, or in
// circumstances in which it promises nothing.
type Beyond struct {
	Protocol parley.Protocol
	Faulty   int
	// Sim, if not nil, stands in the place of Options.Sim: links that lose, suspicions
	// that are false.
	Sim *sim.Options
	// Breaks names the property that is to break; any if empty.
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

// Check is [Suite] without a test around it. It returns the first failure.
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

// skip says why a check does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// failure is what a check panics with in the middle of a run that cannot go on.
type failure struct{ error }

// run makes one check, and returns a failure that it panics with as its error.
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

// some is a share of the seeds, one at least.
func (s suite) some(one int) int { return max(1, s.o.Seeds/one) }

// byzantine tells whether faulty processes may lie.
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

// broadcast asks a process to broadcast what nobody else does.
func broadcast(at parley.ID, k int, when parley.Tick) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: parley.Carried, Body: fmt.Appendf(nil, "%d.%d", at, k)}}
}
