package cluster

import (
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

// Algorithm is one by which nodes agree on the value of one of them.
type Algorithm uint8

// The algorithms.
const (
	EIG       Algorithm = iota // exponential information gathering: n > 3m, m+1 rounds
	OM                         // oral messages, the recursion: n > 3m, m+1 rounds
	SM                         // signed messages: n >= m+2, m+1 rounds
	PhaseKing                  // short messages: n > 3m, 3m+4 rounds
)

var algorithms = [...]string{"eig", "om", "sm", "phaseking"}

func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// ParseAlgorithm reads what String writes.
func ParseAlgorithm(text string) (Algorithm, error) {
	for i, name := range algorithms {
		if name == text {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("algorithm %q: allowed are %s", text, strings.Join(algorithms[:], ", "))
}

// Most is how many liars n nodes tolerate by the algorithm's theorem, at most as many as
// a cluster agrees in spite of: 4.
func (a Algorithm) Most(n int) int {
	if a == SM {
		return max(0, min(n-2, mostLiars))
	}
	return max(0, min(problem.MostOral(n), mostLiars))
}

// What a cluster agrees on, and among how many. Messages, and the memory that a liar can
// have others use, grow like n to the power of m.
const (
	MaxValue  = problem.MaxValue // bytes
	mostNodes = 13
	mostLiars = 4
	// smallValue is the largest value, in bytes, of information trees that are large: a
	// liar can put another one on every leaf.
	smallValue = 32
)

// Agreements come in streams: one for each algorithm, m and source, with a channel of its
// own. There is another one for each algorithm and m in which all nodes are sources.
type stream struct {
	algorithm Algorithm
	m         int
	source    parley.ID // or everybody
}

// everybody is the source of the streams in which all nodes are.
const everybody parley.ID = 15

// Streams have the channels from firstStream to lastStream.
const (
	firstStream = 2048
	lastStream  = 4095
)

func (t stream) channel() uint32 {
	return firstStream + (uint32(t.algorithm)<<7 | uint32(t.m)<<4 | uint32(t.source))
}

// streamOf is the stream with a channel. Whether it makes sense is a matter of check.
func streamOf(channel uint32) stream {
	x := channel - firstStream
	return stream{algorithm: Algorithm(x >> 7), m: int(x >> 4 & 7), source: parley.ID(x & 15)}
}

func (t stream) all() bool { return t.source == everybody }

// oral tells whether processes relay to each other what others said, value by value.
func (t stream) oral() bool { return t.algorithm == EIG || t.algorithm == OM }

// check tells why there is no such stream among n nodes.
func (t stream) check(n int) error {
	switch most := t.algorithm.Most(n); {
	case int(t.algorithm) >= len(algorithms):
		return fmt.Errorf("there is no %v: there are %s", t.algorithm, strings.Join(algorithms[:], ", "))
	case n < 2:
		return errors.New("one node has nobody to agree with")
	case n > mostNodes:
		return fmt.Errorf("%d nodes: at most %d agree, for their messages grow like n to the power of m", n, mostNodes)
	case t.m > most, t.m < min(1, most):
		return fmt.Errorf("m = %d: %d nodes tolerate at most %d liars with %v, and at least %d are allowed",
			t.m, n, most, t.algorithm, min(1, most))
	case !t.all() && int(t.source) >= n:
		return fmt.Errorf("there is no node %d among %d", t.source, n)
	case t.all() && t.oral() && t.m > 2:
		return fmt.Errorf("all nodes at once agree in spite of m = %d with phaseking or sm, but not with %v, "+
			"whose messages are too many", t.m, t.algorithm)
	}
	return nil
}

// name is what the disk, people and signatures know a stream by.
func (t stream) name() string {
	source := "all"
	if !t.all() {
		source = t.source.String()
	}
	return fmt.Sprintf("agree/%v/%d/%s", t.algorithm, t.m, source)
}

// limit is the largest value, in bytes.
func (t stream) limit() int {
	if t.oral() && t.m > 2 {
		return smallValue
	}
	return MaxValue
}

// frameLimit is more than the largest frame that a correct node sends, in bytes.
func (t stream) frameLimit(n int) int {
	const head = 64
	size := head + MaxValue // one value
	switch {
	case t.oral():
		paths := 1 // of a round, from one node, at most
		for k := 2; k <= t.m; k++ {
			paths *= max(n-k, 1)
		}
		size = head + paths*(t.limit()+head)
	case t.algorithm == SM:
		size = 2 * (head + MaxValue + (t.m+1)*(head+8)) // two chains
	}
	if t.all() {
		size *= n
	}
	return size
}

// nothing is the default of all agreements: what stands for the value of a node that was
// asked for none. No value that anybody asks for may be the same.
var nothing = []byte("\x00nothing\x00")

// rounds is the protocol of one slot.
func (t stream) rounds(n int) lockstep.Protocol {
	in := problem.Instance{N: n, M: t.m, Source: t.source, Default: nothing}
	over := func(in problem.Instance) lockstep.Protocol {
		switch t.algorithm {
		case OM:
			return om.Rounds(in)
		case SM:
			return sm.Rounds(sm.Config{Instance: in, Relay: sm.RelayTwo})
		case PhaseKing:
			return interactive.FromSource(in, phaseking.Rounds(phaseking.Config{Instance: in}))
		}
		return eig.Observed(in)
	}
	if !t.all() {
		return over(in)
	}
	in.Source = 0
	return interactive.Rounds(interactive.Config{Instance: in, Over: over})
}

// oversized tells whether a message relays a value over the limit.
func (t stream) oversized(n int, e parley.Env, m parley.Msg) bool {
	in := problem.Instance{N: n, M: t.m, Source: t.source, Default: nothing}
	items := om.Items(in, m)
	if t.algorithm == EIG {
		items = eig.Items(in, e, m)
	}
	for _, v := range items {
		if len(v) > t.limit() {
			return true
		}
	}
	return false
}
