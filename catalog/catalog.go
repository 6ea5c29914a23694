// Package catalog is the one list of all protocols, each with an instance to
// start from.
package catalog

import (
	"flag"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/lockstep"
	"parley/membership/watch"
)

// All returns every protocol, in the order in which they are best learnt.
func All() []parley.Protocol {
	when := lockstep.Simulated
	return []parley.Protocol{
		eig.New(instance(7, 2), when),
		om.New(instance(4, 1), when),
		sm.New(sm.Config{Instance: instance(4, 2)}, when),
		interactive.New(interactive.Config{Instance: instance(4, 1)}, when),
		consensus.New(consensus.Config{Instance: instance(4, 1)}, when),
		consensus.NewAgreement(consensus.Config{Instance: instance(4, 1)}, when),
		phaseking.New(phaseking.Config{Instance: instance(7, 2)}, when),
		diffusion.New(diffusion.Config{N: 4}),
		named("fifo", "FIFO broadcast over diffusion", fifo.Tower(diffusion.Config{N: 4})),
		named("causal", "causal broadcast over FIFO", causal.Tower(causal.Piggyback, diffusion.Config{N: 4})),
		watch.New(watch.Config{N: 4, Rounds: 3}, when),
	}
}

// named calls a stack by a short name.
func named(name, title string, p parley.Protocol) parley.Protocol {
	p.Name, p.Title = name, title
	if flags := p.Flags; flags != nil {
		p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
			build := flags(fs)
			return func(naming parley.Naming) (parley.Protocol, error) {
				made, err := build(naming)
				return named(name, title, made), err
			}
		}
	}
	return p
}

func instance(n, m int) problem.Instance {
	return problem.Instance{N: n, M: m, Default: []byte("0")}
}
