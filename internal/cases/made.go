package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/agreement/ballot"
	"parley/agreement/consensus"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	agree "parley/agreement/problem"
	"parley/agreement/sm"
	"parley/agreement/stream"
	"parley/broadcast/atomic"
	"parley/broadcast/bracha"
	"parley/broadcast/byzantine"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/forwarding"
	"parley/broadcast/guard"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/clock/convergence"
	"parley/clock/dated"
	"parley/commit/agreed"
	"parley/commit/ordered"
	"parley/commit/quorum"
	transactions "parley/commit/service"
	"parley/commit/threephase"
	"parley/commit/twophase"
	"parley/lockstep"
	"parley/membership/detector"
	"parley/membership/expel"
	"parley/membership/group"
	"parley/replica/bank"
	"parley/replica/service"
	"parley/stack"
)

// settings are the numbers and words behind the name of a protocol.
type settings struct {
	given map[string]string
	err   error
}

// number returns a setting, or what holds without it.
func (s *settings) number(name string, otherwise int) int {
	text, ok := s.given[name]
	if !ok {
		return otherwise
	}
	delete(s.given, name)
	n, err := strconv.Atoi(text)
	if err != nil {
		s.err = err
	}
	return n
}

// is tells whether a word is given.
func (s *settings) is(name string) bool {
	_, ok := s.given[name]
	delete(s.given, name)
	return ok
}

// members reads a set such as P1,P2.
func (s *settings) members(name string) (set parley.Set) {
	text, ok := s.given[name]
	delete(s.given, name)
	if !ok {
		return set
	}
	set, err := readProcesses(text)
	if err != nil {
		s.err = err
	}
	return set
}

func (s *settings) tick(name string) parley.Tick { return parley.Tick(s.number(name, 0)) }

// protocol makes a protocol of words such as "ballot n=3 m=1".
func protocol(text string) (parley.Protocol, error) {
	f := strings.Fields(text)
	if len(f) == 0 {
		return parley.Protocol{}, fmt.Errorf("which protocol?")
	}
	s := settings{given: make(map[string]string)}
	for _, one := range f[1:] {
		name, value, _ := strings.Cut(one, "=")
		s.given[name] = value
	}
	n := s.number("n", 3)
	p, known := agreements(f[0], n, &s)
	if !known {
		p, known = broadcasts(f[0], n, &s)
	}
	if !known {
		p, known = others(f[0], n, &s)
	}
	switch {
	case !known:
		return p, fmt.Errorf("no such protocol")
	case s.err != nil:
		return p, s.err
	case len(s.given) > 0:
		return p, fmt.Errorf("%v are settings of another protocol", s.given)
	}
	return p, nil
}

// agreements are the protocols in rounds.
func agreements(name string, n int, s *settings) (parley.Protocol, bool) {
	when := lockstep.Simulated
	when.Early = s.is("early")
	in := func() agree.Instance { return agree.Instance{N: n, M: s.number("m", 1), Default: []byte("0")} }
	switch name {
	case "eig":
		return eig.New(in(), when), true
	case "om":
		return om.New(in(), when), true
	case "sm":
		return sm.New(sm.Config{Instance: in()}, when), true
	case "interactive":
		return interactive.New(interactive.Config{Instance: in()}, when), true
	case "consensus":
		c := consensus.Config{Instance: in()}
		if s.is("median") {
			c.Rule = consensus.Median
		}
		return consensus.New(c, when), true
	case "phaseking":
		c := phaseking.Config{Instance: in()}
		if s.is("two-round") {
			c.Form = phaseking.TwoRound
		}
		return phaseking.New(c, when), true
	case "stream":
		c := stream.Config{Key: stream.Key{M: s.number("m", 1)}, N: n, Window: s.number("window", 2)}
		if s.is("sm") {
			c.Algorithm = stream.SM
		}
		if s.is("names") {
			c.Source = stream.Everyone
		}
		of := stream.Simulated
		of.Early = when.Early
		return stream.New(c, of), true
	case "agreed":
		return agreed.New(agreed.Config{N: n, M: s.number("m", 1)}, when), true
	}
	return parley.Protocol{}, false
}

// broadcasts are those without views.
func broadcasts(name string, n int, s *settings) (parley.Protocol, bool) {
	beneath := func() diffusion.Config { return diffusion.Config{N: n, Uniform: s.is("uniform")} }
	switch name {
	case "diffusion":
		p := diffusion.New(beneath())
		if s.is("also") {
			p.Properties = append(p.Properties, problem.Of(problem.UniformAgreement)...)
		}
		return p, true
	case "fifo":
		return fifo.Tower(beneath()), true
	case "causal":
		return causal.Tower(causal.Piggyback, beneath()), true
	case "causal-vector":
		return causal.Tower(causal.Vector, beneath()), true
	case "guard":
		return stack.New(diffusion.New(beneath()), fifo.New(fifo.Config{N: n}),
			guard.New(guard.Config{N: n, Bound: s.tick("bound")})), true
	case "forwarding":
		return forwarding.New(forwarding.Config{
			N: n, Fanout: s.number("fanout", 0), Window: s.number("window", 0), Notice: s.is("notice"),
		}), true
	case "bracha":
		return bracha.New(bracha.Config{N: n, M: s.number("m", 0)}), true
	case "atomic":
		return atomic.New(atomic.Config{N: n, Detector: true}), true
	}
	return parley.Protocol{}, false
}

// others are views and what stands on them, ballots and commit.
func others(name string, n int, s *settings) (parley.Protocol, bool) {
	delta := func() parley.Tick { return s.tick("delta") }
	switch name {
	case "views":
		return group.New(views(n, s)), true
	case "expel":
		return expel.New(expel.Config{N: n, M: s.number("m", 0)}), true
	case "atomic-views":
		return atomic.InViews(views(n, s)), true
	case "timestamp":
		return timestamp.New(timestamp.Config{
			Window: s.number("window", 0), Hold: s.tick("hold"), Config: views(n, s),
		}), true
	case "dated":
		c := dated.Config{Given: true, Date: hours(s.given["dates"])}
		delete(s.given, "dates")
		c.Config = convergence.Config{N: n, M: s.number("m", (n-1)/3), Resyncs: s.number("resyncs", 1)}
		return dated.New(c), true
	case "bank":
		return replicated(views(n, s), s.is("compares")), true
	case "ballot":
		return ballot.New(ballot.Config{N: n, M: s.number("m", (n-1)/2)}), true
	case "twophase":
		return twophase.New(twophase.Config{N: n, Delta: delta()}), true
	case "threephase":
		return threephase.New(threephase.Config{N: n, Delta: delta()}), true
	case "ordered":
		return orderedTower(n, s), true
	case "quorum":
		return quorum.New(quorum.Config{N: n, M: s.number("m", (n-1)/2), Delta: delta()}), true
	case "transactions":
		c := transactions.Config{
			N: n, Majority: s.is("majority"), Delta: delta(), Compact: s.number("compact", 0), Remember: s.number("remember", 0),
		}
		return transactions.Tower(c, parley.Everyone(n)), true
	}
	return parley.Protocol{}, false
}

// orderedTower is transactions on an order that one process makes, or on one that tolerates liars if that is said.
func orderedTower(n int, s *settings) parley.Protocol {
	c := ordered.Config{N: n, M: s.number("m", 1), Compact: s.number("compact", 0)}
	if !s.is("byzantine") {
		return ordered.Tower(c, nil)
	}
	c.Delta = 4000
	return ordered.Tower(c, func(n, m int) parley.Protocol {
		return byzantine.New(byzantine.Config{N: n, M: m, Final: true}, lockstep.Called)
	})
}

// hours are wall clocks that stand at an hour of one digit a process.
func hours(digits string) func(parley.ID, parley.Tick) int64 {
	return func(self parley.ID, _ parley.Tick) int64 {
		if int(self) >= len(digits) {
			return 0
		}
		return int64(digits[self]-'0') * int64(time.Hour)
	}
}

// replicated is the lecture's bank account on the total order of a view, and its copies are compared in each if that is
// said.
func replicated(c group.Config, compares bool) parley.Protocol {
	c.State = true
	order := timestamp.New(timestamp.Config{Config: c})
	above := service.Config{
		N: c.N, New: func() service.Application { return bank.New() },
		Order: []string{timestamp.OneSequence}, Transfer: true, Beneath: order.Promises,
	}
	if compares {
		above.Liars, above.Piece = 1, 1<<16
	}
	return stack.New(order, service.New(above))
}

// views are those of a group whose own detector suspects nobody unless its timeout is
// given: whoever is suspected is so by the model.
func views(n int, s *settings) group.Config {
	return group.Config{
		N: n, M: s.number("m", 0), Initial: s.members("initial"),
		Detector: detector.Config{
			Period: parley.Tick(s.number("period", 10_000)), Timeout: parley.Tick(s.number("timeout", 1<<30)), Again: 1,
		},
		Flush: s.tick("flush"), Wait: s.tick("wait"), Return: s.is("return"), Durable: s.is("durable"),
		Compact: s.number("compact", 0), Queue: s.number("queue", 0),
	}
}
