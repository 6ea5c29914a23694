package interactive

import (
	"flag"
	"fmt"
	"strings"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/lockstep"
)

// Agreement makes a Byzantine agreement on the value of the instance's Source.
type Agreement func(in problem.Instance) lockstep.Protocol

// agreements are the agreements of this module by name, with the default first.
var agreements = []struct {
	name string
	over Agreement
}{
	{"eig", eig.Rounds},
	{"om", om.Rounds},
	{"sm", func(in problem.Instance) lockstep.Protocol { return sm.Rounds(sm.Config{Instance: in}) }},
	{"phaseking", func(in problem.Instance) lockstep.Protocol {
		return FromSource(in, phaseking.Rounds(phaseking.Config{Instance: in}))
	}},
}

// Names returns the names that [Over] knows.
func Names() []string {
	var out []string
	for _, a := range agreements {
		out = append(out, a.name)
	}
	return out
}

// Over returns the agreement of this module with the given name. Phase king, which is a consensus, gets a first round
// in which the source announces its value. The agreement with signed messages is for one run. Runs that share keys
// need their own functions, with a different Session of sm.Config for each run.
func Over(name string) (Agreement, error) {
	for _, a := range agreements {
		if a.name == name {
			return a.over, nil
		}
	}
	return nil, fmt.Errorf("unknown agreement %q: allowed are %s", name, strings.Join(Names(), ", "))
}

// Flags declares the flags of an instance and --over, the name of the agreement. A flag that is not given takes its
// value from c, with one exception: without the flag m, m is the largest number of faults that n processes tolerate
// with the chosen agreement.
func Flags(fs *flag.FlagSet, c *Config, bound func(c Config, n, m int) error) func(*Config, parley.Naming) error {
	given := *c
	usual := given.parts()[0].Name
	name := fs.String("over", usual, "algorithm that "+
		"agrees on each entry of the vector: `"+strings.Join(Names(), "|")+"`")
	chosen := func() (Config, error) {
		if *name == usual {
			return given, nil
		}
		over, err := Over(*name)
		return Config{given.Instance, over}, err
	}
	instance := problem.Flags(fs, &c.Instance, func(n int) int {
		c, err := chosen()
		m := max(n-2, 0)
		for err == nil && m > 0 && bound(c, n, m) != nil {
			m--
		}
		return m
	})
	return func(c *Config, naming parley.Naming) error {
		over, err := chosen()
		if err != nil {
			return &parley.FlagError{Flag: "over", Err: err}
		}
		c.Over = over.Over
		return instance(&c.Instance, naming)
	}
}
