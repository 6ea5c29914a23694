package service

import (
	"cmp"

	"parley"
	"parley/commit/problem"
)

// Config holds what all processes know beforehand. All fields except Forgot and First must be identical at all
// of them.
type Config struct {
	// N is the number of processes.
	N int
	// Majority decides each transaction by majorities of its members (package quorum). Otherwise it is decided
	// in two phases (package twophase).
	Majority bool
	// Delta is the longest time that a message takes, including the receiver's time to act on it, in ticks of
	// a process's clock. 0 means 1000.
	Delta parley.Tick
	// Votes is how long a participant may take to vote. 0 means 2 Delta.
	Votes parley.Tick
	// Open is a quarter of the maximum number of transactions that a process holds for one coordinator. 0 means 4096.
	Open int
	// Remember is how many finished transactions a process remembers. 0 means 16384.
	Remember int
	// Compact is the number of log records after which a checkpoint replaces them. 0 means 4096.
	Compact int
	// Forgot states that this process lost what it knew before a crash.
	Forgot bool
	// First is the lowest number of a transaction that this process begins in this incarnation. It must exceed
	// the numbers of all transactions that the process began in earlier incarnations, including those that are
	// not in its log. 0 means a number derived from the incarnation.
	First uint64
}

func (c Config) withDefaults() Config {
	c.Delta = cmp.Or(c.Delta, 1000)
	c.Votes = cmp.Or(c.Votes, 2*c.Delta)
	c.Open, c.Remember, c.Compact = cmp.Or(c.Open, 4096), cmp.Or(c.Remember, 16384), cmp.Or(c.Compact, 4096)
	return c
}

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	const longest = parley.Tick(1) << 40
	return cmp.Or(parley.CheckN(c.N, 1), problem.CheckDelta(c.Delta, longest))
}

// New returns the protocol.
func New(c Config) parley.Protocol {
	c = c.withDefaults()
	return parley.Protocol{
		Name: "transactions", Title: "any number of transactions, each with its own name and participants",
		Paper: "lecture, remarks on atomic commitment; transactions side by side are Parley's own",
		N:     c.N, M: c.N - 1, Faults: parley.CrashFaults, Serves: true, Kinds: c.kinds(),
		Relies: parley.ModelAssumptions{Delay: c.Delta, FIFO: true},
		Size:   c.size, Explain: c.explain,
		New: func(self parley.ID) parley.Machine { return newMachine(c, self) },
	}
}
