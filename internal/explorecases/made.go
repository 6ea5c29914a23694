package main

import (
	"cmp"
	"errors"
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
	"parley/agreement/tetra"
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
	"parley/replica/rsm"
	"parley/stack"
)

// settings are the numbers and words after the name of a protocol.
type settings struct {
	given map[string]string
	n     int
	err   error
}

// text removes and returns a setting.
func (s *settings) text(name string) (text string, ok bool) {
	text, ok = s.given[name]
	delete(s.given, name)
	return text, ok
}

// number returns a setting, or its default.
func (s *settings) number(name string, otherwise int) int {
	text, ok := s.text(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	s.err = cmp.Or(s.err, err)
	return n
}

// is reports whether a word is given.
func (s *settings) is(name string) bool {
	_, ok := s.text(name)
	return ok
}

// members reads a set such as P1,P2.
func (s *settings) members(name string) (set parley.Set) {
	text, ok := s.text(name)
	if !ok {
		return set
	}
	set, err := readProcesses(text)
	s.err = cmp.Or(s.err, err)
	return set
}

func (s *settings) tick(name string) parley.Tick { return parley.Tick(s.number(name, 0)) }

// m returns the number of faults.
func (s *settings) m(otherwise int) int { return s.number("m", otherwise) }

func (s *settings) instance() agree.Instance {
	return agree.Instance{N: s.n, M: s.m(1), Default: []byte("0")}
}

// rounds returns the schedule of the rounds.
func (s *settings) rounds() lockstep.Schedule {
	when := lockstep.Simulated
	when.Early = s.is("early")
	return when
}

// relayed configures the broadcast below others.
func (s *settings) relayed() diffusion.Config {
	return diffusion.Config{N: s.n, Uniform: s.is("uniform")}
}

// protocol returns the protocol for words such as "ballot n=3 m=1".
func protocol(text string) (p parley.Protocol, err error) {
	f := strings.Fields(text)
	if len(f) == 0 {
		return p, errors.New("which protocol?")
	}
	s := &settings{given: make(map[string]string)}
	for _, one := range f[1:] {
		name, value, _ := strings.Cut(one, "=")
		s.given[name] = value
	}
	s.n = s.number("n", 3)
	of, known := protocols[f[0]]
	if !known {
		return p, errors.New("no such protocol")
	}
	p = of(s)
	if s.err == nil && len(s.given) > 0 {
		s.err = fmt.Errorf("%v are settings of another protocol", s.given)
	}
	return p, s.err
}

// protocols are the constructors of the list's protocols.
var protocols = map[string]func(s *settings) parley.Protocol{
	// Protocols in rounds.
	"eig": func(s *settings) parley.Protocol { return eig.New(s.instance(), s.rounds()) },
	"om":  func(s *settings) parley.Protocol { return om.New(s.instance(), s.rounds()) },
	"sm":  func(s *settings) parley.Protocol { return sm.New(sm.Config{Instance: s.instance()}, s.rounds()) },
	"interactive": func(s *settings) parley.Protocol {
		return interactive.New(interactive.Config{Instance: s.instance()}, s.rounds())
	},
	"consensus": func(s *settings) parley.Protocol {
		c := consensus.Config{Instance: s.instance()}
		if s.is("median") {
			c.Rule = consensus.Median
		}
		return consensus.New(c, s.rounds())
	},
	"phaseking": func(s *settings) parley.Protocol {
		c := phaseking.Config{Instance: s.instance()}
		if s.is("two-round") {
			c.Form = phaseking.TwoRound
		}
		return phaseking.New(c, s.rounds())
	},
	"stream": func(s *settings) parley.Protocol {
		c := stream.Config{Key: stream.Key{M: s.m(1)}, N: s.n, Window: s.number("window", 2)}
		if s.is("sm") {
			c.Algorithm = stream.SM
		}
		if s.is("names") {
			c.Source = stream.Everyone
		}
		of := stream.Simulated
		of.Early = s.is("early")
		return stream.New(c, of)
	},
	"agreed": func(s *settings) parley.Protocol { return agreed.New(agreed.Config{N: s.n, M: s.m(1)}, s.rounds()) },

	// Broadcasts without views.
	"diffusion": func(s *settings) parley.Protocol {
		p := diffusion.New(s.relayed())
		if s.is("also") {
			p.Properties = append(p.Properties, problem.Of(problem.UniformAgreement)...)
		}
		return p
	},
	"fifo":          func(s *settings) parley.Protocol { return fifo.Tower(s.relayed()) },
	"causal":        func(s *settings) parley.Protocol { return causal.Tower(causal.Piggyback, s.relayed()) },
	"causal-vector": func(s *settings) parley.Protocol { return causal.Tower(causal.Vector, s.relayed()) },
	"guard": func(s *settings) parley.Protocol {
		return stack.New(diffusion.New(s.relayed()), fifo.New(fifo.Config{N: s.n}),
			guard.New(guard.Config{N: s.n, Bound: s.tick("bound")}))
	},
	"forwarding": func(s *settings) parley.Protocol {
		return forwarding.New(forwarding.Config{
			N: s.n, Fanout: s.number("fanout", 0), Window: s.number("window", 0), Notice: s.is("notice"),
		})
	},
	"byzantine": func(s *settings) parley.Protocol {
		return byzantine.New(byzantine.Config{N: s.n, M: s.m(0), Durable: s.is("durable")})
	},
	"bracha": func(s *settings) parley.Protocol { return bracha.New(bracha.Config{N: s.n, M: s.m(0)}) },
	"atomic": func(s *settings) parley.Protocol { return atomic.New(atomic.Config{N: s.n, Detector: true}) },

	// Views and their layers, clocks, ballots and commit.
	"views":        func(s *settings) parley.Protocol { return group.New(views(s)) },
	"expel":        func(s *settings) parley.Protocol { return expel.New(expel.Config{N: s.n, M: s.m(0)}) },
	"atomic-views": func(s *settings) parley.Protocol { return atomic.InViews(views(s)) },
	"timestamp": func(s *settings) parley.Protocol {
		return timestamp.New(timestamp.Config{Window: s.number("window", 0), Hold: s.tick("hold"), Config: views(s)})
	},
	"dated": func(s *settings) parley.Protocol {
		dates, _ := s.text("dates")
		return dated.New(dated.Config{
			Given: true, Date: hours(dates),
			Config: convergence.Config{N: s.n, M: s.m((s.n - 1) / 3), Resyncs: s.number("resyncs", 1)},
		})
	},
	"bank":   func(s *settings) parley.Protocol { return replicated(views(s), s.is("compares")) },
	"ballot": func(s *settings) parley.Protocol { return ballot.New(ballot.Config{N: s.n, M: s.m((s.n - 1) / 2)}) },
	"tetra":  func(s *settings) parley.Protocol { return tetra.New(tetra.Config{N: s.n, M: s.m((s.n - 1) / 3)}) },
	"twophase": func(s *settings) parley.Protocol {
		return twophase.New(twophase.Config{N: s.n, Delta: s.tick("delta")})
	},
	"threephase": func(s *settings) parley.Protocol {
		return threephase.New(threephase.Config{N: s.n, Delta: s.tick("delta")})
	},
	"ordered": orderedTower,
	"quorum": func(s *settings) parley.Protocol {
		return quorum.New(quorum.Config{N: s.n, M: s.m((s.n - 1) / 2), Delta: s.tick("delta")})
	},
	"transactions": func(s *settings) parley.Protocol {
		return transactions.Tower(transactions.Config{
			N: s.n, Majority: s.is("majority"), Delta: s.tick("delta"), Compact: s.number("compact", 0),
			Remember: s.number("remember", 0),
		}, parley.Everyone(s.n))
	},
}

// orderedTower returns transactions on an order that one process makes, or with the setting byzantine on the order of
// package byzantine.
func orderedTower(s *settings) parley.Protocol {
	c := ordered.Config{N: s.n, M: s.m(1), Compact: s.number("compact", 0)}
	if s.is("byzantine") {
		return ordered.Tower(c)
	}
	return ordered.GivenTower(c)
}

// hours returns wall clocks that show a constant hour: one digit for each process.
func hours(digits string) func(parley.ID, parley.Tick) int64 {
	return func(self parley.ID, _ parley.Tick) int64 {
		if int(self) >= len(digits) {
			return 0
		}
		return int64(digits[self]-'0') * int64(time.Hour)
	}
}

// replicated returns the lecture's bank account on the total order of a view. If compares is true, the replicas are
// compared in each view.
func replicated(c group.Config, compares bool) parley.Protocol {
	c.State = true
	order := timestamp.New(timestamp.Config{Config: c})
	above := rsm.Config{
		N: c.N, New: func() rsm.Application { return bank.New() },
		Order: []string{timestamp.OneSequence}, Transfer: true, Beneath: order.Promises,
	}
	if compares {
		above.Liars, above.Piece = 1, 1<<16
	}
	return stack.New(order, rsm.New(above))
}

// views configures a group whose own detector suspects no process unless its timeout is given: all suspicions come
// from the model.
func views(s *settings) group.Config {
	return group.Config{
		N: s.n, M: s.m(0), Initial: s.members("initial"),
		Detector: detector.Config{
			Period: parley.Tick(s.number("period", 10_000)), Timeout: parley.Tick(s.number("timeout", 1<<30)), Again: 1,
		},
		Flush: s.tick("flush"), Wait: s.tick("wait"), Return: s.is("return"), Durable: s.is("durable"),
		Compact: s.number("compact", 0), Queue: s.number("queue", 0),
	}
}
