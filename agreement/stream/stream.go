// Package stream runs any number of Byzantine agreements on request, many of them at the same time. Processes may
// crash, restart and be late.
//
// The problem: a stream is a sequence of agreements, called slots, which are numbered from 1. There are two kinds
// of streams.
//
// In a stream of one source, the source may request an agreement on a value at any time. In each slot, all correct
// processes that decide must decide on the same value. If the source is correct, this must be its value.
//
// In a stream of all, every process is a source, and each agreement has a name. A process requests the agreement of a
// name, and gives its value. All correct processes that request the same name must get the same vector of values. The
// vector must contain the value of each correct process that requested the name in time.
//
// The model: rounds on demand, that is, rounds that begin when a process requests them (see package lockstep). In
// each round, a process sends one frame, which contains all its messages, to every other process. Clocks run at the
// same rate, and message delays have a bound. Up to M processes are faulty: Byzantine, down or late. A process that
// has restarted, or that was disconnected, counts as faulty until it takes part again.
//
// The bound: n > 3m without signatures, or n >= m+2 with signatures, as for a single agreement. Processes can rejoin
// if n >= 2m+2 (see package mux).
//
// How it works: a slot begins with the first frame of any process. At most Window slots begin within the longest
// duration of one slot (see mux.Pipeline). A signature also covers the number of the slot.
//
// A process can detect that it was late: with at most M faulty processes, a punctual process receives frames from at
// least n-1-M others in each round. A process abstains from a slot, that is, decides nothing in the slot, in two
// cases. First, it received frames from fewer than n-1-M others in some round. Second, it did not receive frames from
// all others, and the processes did not decide its own value.
//
// In a stream of one source, a decision is delivered at once, because slots do not depend on each other. In a stream
// of all, decisions are delivered in the order of the slots. Before a name is decided, processes wait for the values
// of the others, and report when they have waited long enough. The name is decided
// by the first slot in which more than M processes report that they have waited long enough.
//
// With the algorithm Tetra, a stream of one source uses no rounds. Messages and clocks may then be late by any time: a
// slot still has at most one decision, but that may be nothing instead of the source's value. If messages are timely
// from some moment on, each slot is decided. A process keeps only the last Window slots, and does not decide the slots
// before them. A restarted process says nothing in slots in which it may have spoken.
//
// Source: each slot is an agreement of package eig, om, sm, phaseking or tetra, which names its source. Slots,
// rejoining and restarts were designed for Parley. Package mux describes slots in rounds, and rejoining.
//
// # Decisions
//
// A late process decides as the others do, or does not decide. Two rules ensure this:
//
//   - A cluster runs exponential information gathering in the form eig.Observed. In this form the source also
//     receives the values that the others relay, and computes its decision from these values.
//   - A process abstains if its frames are late and it does not receive frames from all others.
//
// Motive: a late process counts as faulty, so no theorem covers its decisions. But its clients act on its answers.
// Cost: each lieutenant (a process other than the source) also sends the values that it relays to the source, and
// each slot has some more bytes. Suppose that one node is down, and that the value of another node is late. Then
// this other node takes part in no agreement for some rounds.
//
// Rounds begin on demand, and need no common clock. Clocks may show different times, but must run at the same rate.
// If the rates of clocks differ by more than 0.3%, a node begins no agreement. Motive: the first frame announces the
// start, so no node has to know the start time beforehand. Cost: a caller that wants an agreement at a given time
// must wait for that time on the common clock.
package stream

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/lockstep"
)

// Algorithm is the algorithm by which a slot agrees on the value of one process.
type Algorithm uint8

// The algorithms.
const (
	EIG       Algorithm = iota // exponential information gathering: n > 3m, m+1 rounds
	OM                         // oral messages, the recursion: n > 3m, m+1 rounds
	SM                         // signed messages: n >= m+2, m+1 rounds
	PhaseKing                  // short messages: n > 3m, 3m+4 rounds
	Tetra                      // views instead of rounds, safe whatever the timing: n > 3m
)

var algorithms = [...]string{"eig", "om", "sm", "phaseking", "tetra"}

// Algorithms is the number of algorithms: they are 0 to Algorithms-1.
const Algorithms = Algorithm(len(algorithms))

// String returns the name of the algorithm, as on the command line.
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// ParseAlgorithm parses the result of String.
func ParseAlgorithm(text string) (Algorithm, error) {
	for i, name := range algorithms {
		if name == text {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("unknown algorithm %q: allowed are %s", text, strings.Join(algorithms[:], ", "))
}

// Most returns the largest number of faulty processes that n processes tolerate by the algorithm's
// theorem, at most MaxFaults.
func (a Algorithm) Most(n int) int {
	if a == SM {
		return max(0, min(n-2, MaxFaults))
	}
	return max(0, min(problem.MostOral(n), MaxFaults))
}

// The limits. Messages, and the memory that a faulty process can make others use, grow as n
// to the power of m.
const (
	MaxValue     = problem.MaxValue // bytes
	MaxProcesses = 13
	MaxFaults    = 4
	// smallValue is the largest value, in bytes, of information trees that are large: a faulty
	// process can put another value on every leaf.
	smallValue = 32
)

// Key identifies a stream of a system. For each algorithm and M, there is one stream for each source, and one stream
// in which all processes are sources.
type Key struct {
	Algorithm Algorithm
	M         int
	Source    parley.ID // or Everyone
}

// Everyone is the Source of a stream in which all processes are sources.
const Everyone parley.ID = 15

// String returns the algorithm, M and the source, such as eig/1/0 or sm/2/all.
func (t Key) String() string {
	source := "all"
	if !t.All() {
		source = t.Source.String()
	}
	return fmt.Sprintf("%v/%d/%s", t.Algorithm, t.M, source)
}

// All reports whether all processes are sources.
func (t Key) All() bool { return t.Source == Everyone }

// oral reports whether processes relay to each other what others sent, value by value.
func (t Key) oral() bool { return t.Algorithm == EIG || t.Algorithm == OM }

// Timed reports whether the agreements run in rounds, so that they depend on the delays of messages.
func (t Key) Timed() bool { return t.Algorithm != Tetra }

// Check returns why n processes cannot have this stream, or nil if they can.
func (t Key) Check(n int) error {
	switch most := t.Algorithm.Most(n); {
	case int(t.Algorithm) >= len(algorithms):
		return fmt.Errorf("there is no %v: there are %s", t.Algorithm, strings.Join(algorithms[:], ", "))
	case n < 2:
		return errors.New("one node has no other node to agree with")
	case n > MaxProcesses:
		return fmt.Errorf("%d nodes: at most %d agree, for their messages grow like n to the power of m", n, MaxProcesses)
	case t.M > most, t.M < min(1, most):
		return fmt.Errorf("m = %d: %d nodes tolerate at most %d liars with %v, and at least %d are allowed",
			t.M, n, most, t.Algorithm, min(1, most))
	case !t.All() && int(t.Source) >= n:
		return fmt.Errorf("there is no node %d among %d", t.Source, n)
	case t.All() && !t.Timed():
		return fmt.Errorf("%v agrees on the value of one node, not on a vector: use eig, om, sm or phaseking", t.Algorithm)
	case t.All() && t.oral() && t.M > 2:
		return fmt.Errorf("all nodes can propose at the same time with phaseking or sm although m = %d are faulty, "+
			"but not with %v, which sends too many messages", t.M, t.Algorithm)
	}
	return nil
}

// Limit returns the largest value of a slot, in bytes.
func (t Key) Limit() int {
	if (t.oral() || !t.Timed()) && t.M > 2 {
		return smallValue
	}
	return MaxValue
}

// FrameLimit returns a number of bytes that no frame of a correct process among n exceeds.
func (t Key) FrameLimit(n int) int {
	const head = 64
	size := head + MaxValue // one value
	switch {
	case t.oral():
		paths := 1 // of a round, from one process, at most
		for k := 2; k <= t.M; k++ {
			paths *= max(n-k, 1)
		}
		size = head + paths*(t.Limit()+head)
	case !t.Timed(): // a report has votes of four phases for n values and for nothing
		size = (1 + 4*(n+1)) * (t.Limit() + head)
	case t.Algorithm == SM:
		size = 2 * (head + MaxValue + (t.M+1)*(head+8)) // two chains
	}
	if t.All() {
		size *= n
	}
	return size
}

// noValue is the default of all agreements: it stands for the value of a process without a
// request.
var noValue = []byte("\x00nothing\x00")

// NoValue returns the value that stands for no value. No request may have it.
func NoValue() []byte { return bytes.Clone(noValue) }

// instance configures one slot of a stream with one source.
func (t Key) instance(n int) problem.Instance {
	return problem.Instance{N: n, M: t.M, Source: t.Source, Default: noValue}
}

// Rounds returns the protocol of one slot. The stream must be Timed.
func (t Key) Rounds(n int) lockstep.Protocol {
	in := t.instance(n)
	over := func(in problem.Instance) lockstep.Protocol {
		switch t.Algorithm {
		case OM:
			return om.Rounds(in)
		case SM:
			return sm.Rounds(sm.Config{Instance: in, Relay: sm.RelayTwo})
		case PhaseKing:
			return interactive.FromSource(in, phaseking.Rounds(phaseking.Config{Instance: in}))
		}
		return eig.Observed(in)
	}
	if !t.All() {
		return over(in)
	}
	in.Source = 0
	return interactive.Rounds(interactive.Config{Instance: in, Over: over})
}

// oversized reports whether a message relays a value over the limit.
func (t Key) oversized(n int, e parley.Env, m parley.Msg) bool {
	in := t.instance(n)
	items := om.Items(in, m)
	if t.Algorithm == EIG {
		items = eig.Items(in, e, m)
	}
	for _, v := range items {
		if len(v) > t.Limit() {
			return true
		}
	}
	return false
}
