package main

import (
	"math/rand/v2"
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/agreement/consensus"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/sm"
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
	"parley/broadcast/vector"
	"parley/clock/convergence"
	"parley/commit/agreed"
	"parley/commit/quorum"
	"parley/commit/threephase"
	"parley/commit/twophase"
	"parley/lockstep"
	"parley/membership/detector"
	"parley/membership/group"
	"parley/run"
	"parley/stack"
)

// rows returns the protocols.
func rows() []row { return slices.Concat(agreements(), broadcasts(), ordered(), others()) }

func agreements() []row {
	when := lockstep.Simulated
	return []row{
		{protocol: called("eig", eig.New(instance(7, 2), when)), plan: rounds(3), values: bits},
		{protocol: called("om", om.New(instance(4, 1), when)), plan: rounds(2), values: bits},
		{protocol: called("sm", sm.New(sm.Config{Instance: instance(5, 1)}, when)), plan: rounds(2), values: bits,
			percent: 200},
		{protocol: called("sm-two", sm.New(sm.Config{Instance: instance(4, 2)}, when)), plan: rounds(3), values: bits,
			percent: 400},
		{protocol: called("phaseking-four", phaseking.New(phaseking.Config{Instance: instance(4, 1)}, when)),
			plan: rounds(6), values: bits},
		{protocol: called("phaseking", phaseking.New(phaseking.Config{Instance: instance(7, 2)}, when)),
			plan: rounds(9), values: bits},
		{protocol: called("interactive", interactive.New(interactive.Config{Instance: instance(4, 1)}, when)),
			plan: rounds(2), values: bits},
		{protocol: called("consensus", consensus.New(consensus.Config{Instance: instance(4, 1)}, when)),
			plan: rounds(2), values: bits},
		{protocol: called("tetra", tetra.New(tetra.Config{N: 4, M: 1, Wait: 4000})),
			plan: until(run.Plan{Random: times(4000, 8000)}, 2_000_000), values: bits},
		{protocol: called("ballot", ballot.New(ballot.Config{N: 3, M: 1})),
			plan: until(run.Plan{Random: times(4000, 8000)}, 120_000), values: names},
		// Ballots that are retried too soon always have rivals.
		{protocol: called("ballot-rivals", ballot.New(ballot.Config{N: 5, M: 2, Wait: 900, Stagger: 150})),
			plan: until(run.Plan{Random: times(6000, 4000)}, 120_000), values: names},
	}
}

func broadcasts() []row {
	// A process that has missed something shows it when it broadcasts much later.
	lasting := run.Plan{
		Workload: run.Workload{Broadcasts: 12, Within: 50_000}, Random: times(20_000, 10_000),
	}
	return []row{
		{protocol: called("diffusion", also(diffusion.New(diffusion.Config{N: 4}), problem.UniformAgreement)),
			plan: carries()},
		{protocol: called("uniform", diffusion.New(diffusion.Config{N: 5, Uniform: true})), plan: carries()},
		{protocol: called("forwarding", over(forwarding.New(forwarding.Config{N: 4}))),
			plan: until(carries(), 25_000)},
		{protocol: called("fifo", fifo.Tower(diffusion.Config{N: 4})), plan: carries()},
		{protocol: called("piggyback", causal.Tower(causal.Piggyback, diffusion.Config{N: 4})), plan: carries()},
		{protocol: called("vector", causal.Tower(causal.Vector, diffusion.Config{N: 4})), plan: carries()},
		{protocol: called("guarded", guarded(guard.Config{N: 4})), plan: lasting},
		{protocol: called("unguarded", guarded(guard.Config{N: 4, Off: true})), plan: lasting},
		{protocol: called("bracha", bracha.New(bracha.Config{N: 4, M: 1})), plan: carries()},
		{protocol: called("byzantine", byzantine.New(byzantine.Config{N: 4, M: 1})),
			plan: until(inOrder(carries()), 1_200_000)},
		{protocol: called("byzantine-durable", byzantine.New(byzantine.Config{N: 4, M: 1, Durable: true})),
			plan: until(inOrder(carries()), 1_200_000)},
	}
}

// guarded returns FIFO broadcast with the guard against contamination above it.
func guarded(c guard.Config) parley.Protocol {
	return stack.New(diffusion.New(diffusion.Config{N: c.N}), fifo.New(fifo.Config{N: c.N}), guard.New(c))
}

func ordered() []row {
	named := carries()
	named.Workload.Named = true
	long := until(inOrder(carries()), 60_000)
	longNamed := until(inOrder(named), 60_000)
	views := until(inOrder(run.Plan{Random: times(5000, 8000)}), 60_000)
	five := group.Config{N: 5}
	durable, comesBack := group.Config{N: 5, Durable: true}, group.Config{N: 5, Return: true}
	return []row{
		{protocol: called("atomic", over(atomic.New(atomic.Config{N: 4, Detector: true}))),
			plan: until(named, 25_000)},
		{protocol: called("vector-causal", vector.New(vector.Config{Config: five})), plan: long, percent: 50},
		{protocol: called("vector-uniform", vector.New(vector.Config{Config: comesBack, Level: vector.Uniform})),
			plan: long, percent: 50},
		{protocol: called("vector-durable", vector.New(vector.Config{Config: durable})), plan: long, percent: 50},
		{protocol: called("atomic-views", atomic.InViews(five)), plan: longNamed, percent: 50},
		{protocol: called("atomic-durable", atomic.InViews(group.Config{N: 4, Durable: true})),
			plan: longNamed, percent: 50},
		{protocol: called("atomic-return", atomic.InViews(group.Config{N: 4, Return: true})),
			plan: longNamed, percent: 50},
		{protocol: called("timestamp", timestamp.New(timestamp.Config{Config: five})), plan: long, percent: 50},
		{protocol: called("timestamp-durable", timestamp.New(timestamp.Config{Config: durable})), plan: long, percent: 50},
		{protocol: called("timestamp-return", timestamp.New(timestamp.Config{Config: comesBack})), plan: long, percent: 50},
		{protocol: called("group", group.New(comesBack)), plan: views, seen: installed, percent: 50},
		{protocol: listed("bank"), plan: long, commands: transfers, percent: 50},
		{protocol: listed("bank-causal", "-n", "3"), plan: carries(), commands: transfers},
	}
}

func others() []row {
	const period = 100_000
	clocks := until(run.Plan{Random: times(3*period, period)}, 5*period)
	soon := run.Plan{Random: times(5000, 5000)}
	return []row{
		{protocol: called("detector", without(detector.New(detector.Config{N: 4, Beats: 40}), detector.Detection)),
			plan: run.Plan{Random: times(8000, 5000)}, seen: indicated},
		{protocol: called("convergence", convergence.New(convergence.Config{N: 4, M: 1})), plan: clocks},
		{protocol: listed("dated"), plan: clocks},
		{protocol: called("cold-start", convergence.New(convergence.Config{N: 4, M: 1, Begin: convergence.Cold})),
			plan: clocks, values: func(_ *rand.Rand, n int) []string { return slices.Repeat([]string{"1"}, n) }},
		{protocol: called("twophase", twophase.New(twophase.Config{N: 4})), plan: until(soon, 40_000),
			values: votes, paced: true},
		{protocol: called("threephase", threephase.New(threephase.Config{N: 4})), plan: until(soon, 40_000),
			values: votes, paced: true},
		{protocol: called("quorum", quorum.New(quorum.Config{N: 5, M: 2})), plan: until(soon, 120_000),
			values: votes},
		{protocol: listed("transactions", "-n", "4"), plan: until(inOrder(soon), 60_000), values: orders("yyyy", "ynyy")},
		{protocol: called("transactions-majority", listed("transactions", "-n", "5", "--majority")),
			plan: until(inOrder(soon), 120_000), values: orders("yyyyy", "yynyy")},
		{protocol: listed("ordered"), plan: until(inOrder(soon), 1_200_000), values: orders("yyyy", "yyyn")},
		{protocol: listed("stream"), plan: rounds(6), values: bits},
		{protocol: listed("expel", "-n", "4"), plan: until(soon, 40_000), values: accused, seen: indicated},
		{protocol: called("agreed", agreed.New(agreed.Config{N: 4, M: 1}, lockstep.Simulated)), plan: rounds(2),
			values: votes},
	}
}
