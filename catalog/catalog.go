// Package catalog lists all protocols of this module, and gives an example configuration of each.
package catalog

import (
	"parley"
	"parley/agreement/ballot"
	"parley/agreement/consensus"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
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
	"parley/broadcast/timestamp"
	"parley/broadcast/vector"
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
	"parley/membership/watch"
)

// All returns every protocol, in a good order for learning them.
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
		tetra.New(tetra.Config{N: 4, M: 1}),
		worded(stream.New(stream.Config{Key: stream.Key{M: 1}, N: 4, Window: 64}, stream.Simulated), ofStream),

		meshed(diffusion.Config{N: 4}),
		named("uniform", "reliable broadcast by diffusion, which delivers a message when a majority has it",
			diffusion.New(diffusion.Config{N: 5, Uniform: true})),
		detecting(named("forwarding", "reliable broadcast along a tree, with takeover from crashed processes",
			forwarding.New(forwarding.Config{N: 7}))),
		costing(named("fifo", "FIFO broadcast over diffusion", fifo.Tower(diffusion.Config{N: 4}))),
		costing(named("causal", "causal broadcast over FIFO broadcast",
			causal.Tower(causal.Piggyback, diffusion.Config{N: 4}))),
		guardTower(4),
		detecting(atomic.New(atomic.Config{N: 4, Detector: true})),
		inViews(vector.New(vector.Config{Config: group.Config{N: 4}})),
		inViews(atomic.InViews(group.Config{N: 4})),
		inViews(timestamp.New(timestamp.Config{Config: group.Config{N: 4}})),
		bracha.New(bracha.Config{N: 4, M: 1}),
		byzantine.New(byzantine.Config{N: 4, M: 1}),

		watch.New(watch.Config{N: 4, Rounds: 3}, when),
		worded(detector.New(detector.Config{N: 4, Beats: 8}), ofDetector),
		worded(expel.New(expel.Config{N: 4, M: 1}), ofExpulsion),
		views(group.Config{N: 4}),
		ballot.New(ballot.Config{N: 5, M: 2}),
		worded(named("convergence", "clock synchronization by interactive convergence",
			convergence.New(convergence.Config{N: 4, M: 1, Resyncs: 4})), ofClock),
		worded(dated.New(dated.Config{Config: convergence.Config{N: 4, M: 1, Resyncs: 4}}), ofDate),

		worded(twophase.New(twophase.Config{N: 4}), ofCommit),
		worded(threephase.New(threephase.Config{N: 4}), ofCommit),
		worded(quorum.New(quorum.Config{N: 5, M: 2}), ofCommit),
		agreed.New(agreed.Config{N: 4, M: 1}, when),
		worded(transactions.Tower(transactions.Config{N: 4}, parley.Set{}), ofTransactions),
		worded(ordered.Tower(ordered.Config{N: 4, M: 1, Delta: 10_000}), ofTransactions),

		newsOver("news-fifo", fifoOrder, 3),
		newsOver("news", causalOrder, 3),
		bankOver("bank-causal", causalOrder, 2),
		bankOver("bank", totalOrder, 3),
	}
}

func instance(n, m int) problem.Instance {
	return problem.Instance{N: n, M: m, Default: []byte("0")}
}
