// Package catalog is the one list of all protocols, each with an instance to
// start from.
package catalog

import (
	"parley"
	"parley/agreement/eig"
	"parley/lockstep"
)

// All returns every protocol, in the order in which they are best learnt.
func All() []parley.Protocol {
	zero := []byte("0")
	return []parley.Protocol{
		eig.New(eig.Config{N: 7, M: 2, Default: zero}, lockstep.Simulated),
	}
}
