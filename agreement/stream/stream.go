// Package stream runs consecutive Byzantine agreements on request, many at a time, among
// processes that crash, restart and are late.
//
// The problem: the source of a stream requests agreements, each on one value, at any time. A slot is one
// agreement; slots are numbered from 1. In each slot, all correct processes that decide must decide on the
// same value. If the source is correct, this must be its value. In a stream in which every process is a
// source, an agreement has a name. Correct processes that request the same name get the same vector, with the
// value of each correct process that was in time.
//
// The model: rounds on demand (see lockstep). Clocks run at the same rate, and message delays have a bound.
// Up to M processes are faulty: Byzantine, down or late. A process that restarts, or was disconnected, counts
// as faulty until it takes part again.
//
// The bound: n > 3m, or n >= m+2 with signatures, because each slot is one agreement.
// Rejoining needs n >= 2m+2, see mux.
//
// How it works: a slot begins with the first frame of any process. At most Window slots begin within the
// longest duration of one slot, see mux.Pipeline. A process can detect that it was late: with at most M
// faulty processes, a punctual process receives from n-1-M others in each round. A process abstains, that is,
// decides nothing in a slot, in two cases: it received from fewer processes in a round, or it did not receive
// from all others and its own value was not decided. Signatures cover the number of the slot.
//
// A decision of a source's stream is delivered as soon as it is made, because slots do not depend on each
// other. Vectors are handled slot by slot: a name is decided by the first slot in which more than M processes
// report that they have waited long enough.
//
// Source: a slot runs eig, om, sm or phaseking; their packages name their sources. Slots and rejoining are
// Parley's own; package mux describes them.
//
// # Decisions
//
// A late process adopts the decision of the others. In a cluster the source of an agreement by information
// gathering receives the relayed values, and decides by them (eig.Observed). A process that sends late and
// does not receive from all takes no part. In a Byzantine order, all processes send each other in every slot
// a mark, a digest of what they agreed on before. Motive: a late process counts as faulty, and no theorem
// covers its decisions. But it follows the protocol, and its clients act on its answers. Cost: one more level
// per lieutenant and agreement, and some bytes per slot. While a node is down, a node whose value is late
// takes part in no agreement for some rounds. A process compares its mark with those of n-m others, so that
// faulty processes or a diverged process cannot make the others leave. A mark that covers the end of an epoch
// says how much was delivered from each sender, but not in which order.
//
// Rounds begin on demand, and need no common clock. An agreement begins when a node requests it. Clocks need
// only run at the same rate. An offset between clocks does not matter, but a drift does: above 0.3% a node
// begins no agreement. Motive: the first frame announces the start, so no node has to know the time of the
// start beforehand. Cost: for an agreement at a set time, the caller waits for that time on the common clock
// and then requests it.
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
)

var algorithms = [...]string{"eig", "om", "sm", "phaseking"}

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

// Key identifies a stream among those of a system: there is one for each algorithm, M and
// source, and one for each algorithm and M in which all processes are sources.
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
	case t.All() && t.oral() && t.M > 2:
		return fmt.Errorf("all nodes can propose at the same time with phaseking or sm although m = %d are faulty, "+
			"but not with %v, which sends too many messages", t.M, t.Algorithm)
	}
	return nil
}

// Limit returns the largest value of a slot, in bytes.
func (t Key) Limit() int {
	if t.oral() && t.M > 2 {
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

// Rounds returns the protocol of one slot.
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
