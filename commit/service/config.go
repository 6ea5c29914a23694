package service

import (
	"cmp"

	"parley"
	"parley/commit/problem"
)

// Config is what all processes know beforehand. All but Forgot and First must be the same at
// all of them.
type Config struct {
	// N is the number of processes.
	N int
	// Majority decides each transaction by majorities of its members, package quorum; otherwise
	// it is decided in two phases, package twophase.
	Majority bool
	// Delta is what a message takes at most, in ticks of a process's clock, with what its
	// receiver needs to act on it; 0 stands for 1000.
	Delta parley.Tick
	// Votes is how long a participant may take for its vote; 0 stands for 2 Deltas.
	Votes parley.Tick
	// Open is a quarter of the number of transactions that a process holds for one coordinator;
	// 0 stands for 4096.
	Open int
	// Remember is how many finished transactions a process remembers; 0 stands for 16384.
	Remember int
	// Compact is after how many records the state replaces them; 0 stands for 4096.
	Compact int
	// Forgot tells that what this process knew before a crash is lost.
	Forgot bool
	// First is the least number of a transaction of this process in this life. It must be greater
	// than the number of every one that it began in an earlier life, even of those that its log
	// says nothing of. 0 stands for a number made of the life of the process.
	First uint64
}

func (c Config) withDefaults() Config {
	c.Delta = cmp.Or(c.Delta, 1000)
	c.Votes = cmp.Or(c.Votes, 2*c.Delta)
	c.Open, c.Remember, c.Compact = cmp.Or(c.Open, 4096), cmp.Or(c.Remember, 16384), cmp.Or(c.Compact, 4096)
	return c
}

// Check tells what is wrong with it.
func (c Config) Check() error {
	const longest = parley.Tick(1) << 40
	return cmp.Or(parley.CheckN(c.N, 1), problem.CheckDelta(c.Delta, longest))
}

// New returns the protocol.
func New(c Config) parley.Protocol {
	c = c.withDefaults()
	return parley.Protocol{
		Name: "transactions", Title: "any number of transactions, each with a name and members of its own",
		Paper: "lecture, remarks on atomic commitment; transactions side by side are Parley's own",
		N:     c.N, M: c.N - 1, Faults: parley.CrashFaults, Serves: true, Kinds: c.kinds(),
		Relies: parley.ModelAssumptions{Delay: c.Delta, FIFO: true},
		Size:   c.size, Explain: c.explain,
		New: func(self parley.ID) parley.Machine { return newMachine(c, self) },
	}
}
