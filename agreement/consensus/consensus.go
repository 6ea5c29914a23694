// Package consensus implements consensus by interactive consistency, which is agreement on the vector of all initial
// values. [Agreement] implements Byzantine agreement by this consensus.
//
// The problem: every process has an initial value, and all correct processes must decide on the same value.
// If all correct processes have the initial value v, they must decide on v.
//
// The bound: n > 2m, and the bound of the agreement on which interactive consistency is built. For oral (unsigned)
// messages that bound is n > 3m, which implies n > 2m. Signed messages have no such bound: processes agree on the
// vector for any m. But if n <= 2m, at least half of the vector's entries may be from faulty processes.
//
// The processes agree on the vector of all initial values. Then each process computes its decision from the vector by
// a common rule. By this rule, a process decides on the value that more than half of the entries have. If no value
// has so many entries, it decides on the default value. [Median], [Minimum], [Maximum] or a rule of the caller may
// replace this rule.
//
// Why it works: the vectors of correct processes are equal, so a function of the vector has the same result at all
// of them. If all correct processes start with v, at least n-m entries are v in every vector. If n > 2m, these are
// more than half of the entries. Each process has exactly one entry, so a faulty process cannot vote twice.
//
// Source: the lecture (docs/explanation/sources.md), "The Consensus Problem" and "Relations Among the Agreement
// Problems", question 2; [Agreement] is question 3.
package consensus

import (
	"flag"
	"fmt"
	"strings"

	"parley"
	"parley/agreement/interactive"
	"parley/agreement/problem"
	"parley/lockstep"
)

// Config configures one instance. Only [Agreement] uses its Source.
type Config struct {
	problem.Instance
	// Over is the agreement on each entry of the vector; nil means eig.
	Over interactive.Agreement
	// Rule makes the decision. A Rule without a function means [Majority].
	Rule Rule
}

// New returns the protocol as machines on the given schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, func(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
		given, vector := c.rule(), vectorFlags(fs, c)
		name := fs.String("rule", given.Name,
			"`rule` that computes the decision from the vector: "+strings.Join(RuleNames(), "|"))
		fs.Lookup("source").Usage = "ignored: every `process` proposes"
		return func(c *Config, naming parley.Naming) error {
			if err := vector(c, naming); err != nil {
				return err
			}
			c.Rule = given
			var err error
			if *name != given.Name {
				if c.Rule, err = RuleOf(*name); err != nil {
					return &parley.FlagError{Flag: "rule", Err: err}
				}
			}
			return nil
		}
	}, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// NewAgreement returns [Agreement] as machines on the given schedule.
func NewAgreement(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Agreement(c), when)
	p.Flags = parley.Flags(c, vectorFlags, func(c Config) parley.Protocol { return NewAgreement(c, when) })
	return p
}

// vectorFlags declares the flags of the vector; n and m are bounded as for consensus.
func vectorFlags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	v := c.vector()
	complete := interactive.Flags(fs, &v, func(v interactive.Config, n, m int) error {
		return Rounds(Config{Instance: v.Instance, Over: v.Over}).Bound(n, m)
	})
	return func(c *Config, naming parley.Naming) error {
		own := v
		err := complete(&own, naming)
		c.Instance, c.Over = own.Instance, own.Over
		return err
	}
}

func (c Config) vector() interactive.Config {
	return interactive.Config{Instance: c.Instance, Over: c.Over}
}

func (c Config) rule() Rule {
	switch {
	case c.Rule.Of == nil:
		return Majority
	case c.Rule.Name == "":
		c.Rule.Name = "caller's rule"
	}
	return c.Rule
}

// Rounds returns the protocol at the level of rounds.
func Rounds(c Config) lockstep.Protocol {
	rule := c.rule()
	vector := interactive.Rounds(c.vector())
	p := lockstep.Derive(vector, "consensus", func(s *parley.Step, _ parley.ID, m parley.Msg) {
		entries, err := interactive.DecodeVector(m.Body)
		if err != nil {
			panic(err) // this process wrote it
		}
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: rule.Of(entries, c.Default)})
	})
	p.Title = "consensus by the " + rule.Name + " of a vector from " + vector.Title
	p.Paper = "lecture, relations among the agreement problems, question 2"
	p.Properties = rule.properties()
	p.Promises = rule.promises(vector.Promises)
	p.Bound = func(n, m int) error {
		if err := vector.Bound(n, m); err != nil {
			return err
		}
		return checkMajority(n, m)
	}
	return p
}

// checkMajority returns why consensus needs n > 2m even if the vector does not, or nil if n > 2m.
func checkMajority(n, m int) error {
	if n > 2*m {
		return nil
	}
	return fmt.Errorf("the vector is agreed on, but with n <= 2m the entries of %d faulty processes "+
		"can outvote the equal ones of %d correct: consensus needs n > 2m", m, n-m)
}

// Agreement returns Byzantine agreement on the value of the instance's Source by
// this consensus, see [interactive.FromSource]. The rule is [Majority].
func Agreement(c Config) lockstep.Protocol {
	c.Rule = Majority
	p := interactive.FromSource(c.Instance, Rounds(c))
	p.Name = "agreement"
	return p
}
