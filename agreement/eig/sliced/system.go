// Package sliced simulates whole systems that agree by exponential information gathering (EIG): all processes at
// once, in synchronous rounds, with oral (unsigned) messages and binary values. An adversary chooses the messages
// of the faulty processes. Use this package for large sweeps. Package eig has the machine of one process.
//
// The problem. One of n processes, the source, sends a value to the n-1 others, its lieutenants. Validity: if the
// source is correct, every correct lieutenant decides on its value. Agreement: all correct lieutenants decide on
// the same value. With m faulty processes, both properties hold whenever n > 3m. This package also simulates
// systems with n <= 3m: it accepts any number of faults, and computes the decisions from the messages.
//
// The algorithm has the two stages of the article (docs/explanation/sources.md). First stage: in round 0 the source
// sends its value. Each value has a path, which names the processes that the value has passed through. In each round
// r from 1 to m, a lieutenant relays every value of round r-1 whose path does not contain the lieutenant, and appends
// its name to the path. It relays to all lieutenants, including itself and the lieutenants on the path, but not to
// the source. A missing value counts as the default.
//
// Second stage: each lieutenant resolves its tree of values from the leaves up. The output of a leaf is its input. If
// more than half of the children of another node have the same output, this is also the output of the node. Otherwise
// its output is the default. The output of the root is the decision.
//
// The representation. The trees of all lieutenants are stored as one tree, because a correct sender sends the same
// value to all receivers. Each node of the tree holds a word, in which bit r is the value that lieutenant r holds
// at this node. If the relay is correct, all bits of the word are equal. If the relay is faulty, the adversary
// chooses the word. Bit-sliced counters compute the majority for all lieutenants at once.
//
// Two engines compute the same decisions:
//
//   - [System.Levels] keeps the whole tree, so that you can inspect every node. Its memory grows with the tree.
//   - [System.DepthFirst] visits the nodes one after another, and needs only a few KiB of memory per worker. At each
//     faulty relay it asks the adversary for the lies.
//
// # Decisions
//
// The engines for whole systems are a package of their own. An engine simulates all processes in one tree, with one
// bit per receiver, and uses several cores. Motive: a protocol package must have no goroutines. Cost: EIG is
// implemented twice. A test compares the decisions of both implementations.
package sliced

import "fmt"

// System is a system of N processes that gathers information in rounds 0..M. The lieutenants are all processes except
// the source, in the order of their IDs. A set of lieutenants is a word with one bit per lieutenant index, 0..N-2.
type System struct {
	N, M         int    // processes; faults that the rounds are meant for
	Source       int    // process id, 0..N-1
	Faulty       uint64 // the faulty lieutenants, any number of them
	SourceFaulty bool
	Value        uint64 // 0 or 1: the value of the source
	Default      uint64 // 0 or 1: decided on a tie
}

// Validate returns nil if the engines can run the system, and otherwise an error that says what is allowed.
func (s System) Validate() error {
	switch {
	case s.N < 2 || s.N > maxLieutenants+1:
		return fmt.Errorf("n = %d processes: allowed are 2 to %d", s.N, maxLieutenants+1)
	case s.M < 0 || s.M > maxFaults:
		return fmt.Errorf("m = %d faults: allowed are 0 to %d", s.M, maxFaults)
	case s.N < s.M+2:
		return fmt.Errorf("n = %d processes with m = %d: n must be at least m+2 = %d", s.N, s.M, s.M+2)
	case s.Source < 0 || s.Source >= s.N:
		return fmt.Errorf("source %d: allowed are process ids 0 to %d", s.Source, s.N-1)
	case s.Faulty&^s.everyone() != 0:
		return fmt.Errorf("faulty set %#x: allowed are the bits of lieutenants 0 to %d", s.Faulty, s.N-2)
	case s.Value > 1:
		return fmt.Errorf("value %d: allowed are 0 and 1", s.Value)
	case s.Default > 1:
		return fmt.Errorf("default %d: allowed are 0 and 1", s.Default)
	}
	return nil
}

// check panics if Validate returns an error: callers of the engines validate first.
func (s System) check() {
	if err := s.Validate(); err != nil {
		panic("sliced: invalid system: " + err.Error())
	}
}

// Lieutenant returns the lieutenant index of a process, -1 for the source.
func (s System) Lieutenant(process int) int {
	switch {
	case process == s.Source:
		return -1
	case process > s.Source:
		return process - 1
	}
	return process
}

// Correct returns the set of correct lieutenants.
func (s System) Correct() uint64 { return s.everyone() &^ s.Faulty }

func (s System) everyone() uint64 { return everyone(s.N - 1) }

// order returns what the source sends each lieutenant in round 0.
func (s System) order(l Liar) uint64 {
	if s.SourceFaulty {
		return l(0, s.Value)
	}
	return broadcast(s.Value)
}

// thresholds returns, for each rank above the leaves, how many ones among its children's outputs
// make a node's output a one.
func (s System) thresholds() (need [maxFaults]int) {
	for k := range s.M {
		need[k] = threshold(s.N-1-k, s.Default)
	}
	return need
}
