// Package catalog is the one list of all protocols, each with an instance to
// start from.
package catalog

import (
	"parley"
	"parley/agreement/consensus"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/lockstep"
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
	}
}

func instance(n, m int) problem.Instance {
	return problem.Instance{N: n, M: m, Default: []byte("0")}
}
