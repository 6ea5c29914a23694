package conform

import (
	"encoding/json"
	"math"
	"slices"
	"sync"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/eig/sliced"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/internal/conform/form"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// boundsCase checks counts and limits.
type boundsCase struct {
	head
	N int `json:"n"`
	M int `json:"m"`
}

type boundsExpect struct {
	EIGSent     []uint64        `json:"eig_sent_per_lieutenant"`
	EIGMessages []uint64        `json:"eig_messages_per_round"`
	EIGTotal    *uint64         `json:"eig_total"`
	EIGReceived *uint64         `json:"eig_received_per_lieutenant"`
	OMMessages  []uint64        `json:"om_messages_per_round"`
	OMTotal     *uint64         `json:"om_total"`
	OMReceived  *uint64         `json:"om_received_per_lieutenant"`
	PerRank     []uint64        `json:"tree_nodes_per_rank"`
	Nodes       *uint64         `json:"tree_nodes"`
	Leaves      *uint64         `json:"tree_leaves"`
	Rounds      *int            `json:"rounds"`
	Possible    *bool           `json:"oral_possible"`
	MostOral    *int            `json:"max_oral_faults"`
	LeastOral   *int            `json:"min_n_oral"`
	LeastSigned *int            `json:"min_n_signed"`
	SMMessages  []uint64        `json:"sm_honest_messages_per_round"`
	OMBits      json.RawMessage `json:"om_payload_bits"`
}

func bounds(c boundsCase, want boundsExpect, report reporter) {
	if c.N < 2 || c.N > parley.MaxProcesses || c.M < 0 || c.M > parley.MaxProcesses {
		fail("n = %d and m = %d: allowed are n of 2 to %d and m of 0 to %[3]d", c.N, c.M, parley.MaxProcesses)
	}
	report("rounds", want.Rounds, eig.Cost(c.N, c.M).Rounds)
	report("oral_possible", want.Possible, problem.OralBound(c.N, c.M) == nil)
	report("max_oral_faults", want.MostOral, most(c.N, problem.OralBound))
	report("min_n_oral", want.LeastOral, least(c.M, problem.OralBound))
	report("min_n_signed", want.LeastSigned, least(c.M, problem.SignedBound))
	c.counts(want, report)
}

// counts compares the costs of the algorithms. Each is measured when it is first needed.
func (c boundsCase) counts(want boundsExpect, report reporter) {
	in := problem.Instance{N: c.N, M: c.M, Default: []byte("0")}
	e := sync.OnceValue(func() measured { return measure(eig.New(in, lockstep.Simulated)) })
	o := sync.OnceValue(func() measured { return measure(om.New(in, lockstep.Simulated)) })
	s := sync.OnceValue(func() measured { return measure(sm.New(sm.Config{Instance: in}, lockstep.Simulated)) })
	list := func(key string, want []uint64, got func() []uint64) {
		if want != nil {
			counts := c.count(key, got)
			report(key, byRound(want, counts), counts)
		}
	}
	number := func(key string, want *uint64, got func() uint64) {
		if want != nil {
			report(key, want, c.count(key, func() []uint64 { return []uint64{got()} })[0])
		}
	}
	bits, allBits := want.omBits()
	list("eig_sent_per_lieutenant", want.EIGSent, func() []uint64 { return e().byOne })
	list("eig_messages_per_round", want.EIGMessages, func() []uint64 { return e().messages })
	number("eig_total", want.EIGTotal, func() uint64 { return sum(e().messages) })
	number("eig_received_per_lieutenant", want.EIGReceived, func() uint64 { return sum(e().toOne) })
	list("om_messages_per_round", want.OMMessages, func() []uint64 { return o().messages })
	number("om_total", want.OMTotal, func() uint64 { return sum(o().messages) })
	number("om_received_per_lieutenant", want.OMReceived, func() uint64 { return sum(o().toOne) })
	list("om_payload_bits", bits, func() []uint64 { return o().bits })
	number("om_payload_bits", allBits, func() uint64 { return sum(o().bits) })
	list("sm_honest_messages_per_round", want.SMMessages, func() []uint64 { return s().messages })
	// A lieutenant receives every path once: its tree has as many nodes.
	list("tree_nodes_per_rank", want.PerRank, func() []uint64 { return e().toOne })
	number("tree_nodes", want.Nodes, func() uint64 { return c.tree().Nodes })
	number("tree_leaves", want.Leaves, func() uint64 { return c.tree().Leaves })
}

// tooMany stands for a count that does not fit in 64 bits, as in parley.Traffic.
const tooMany = math.MaxUint64

// count returns counts, or fails if there is nothing to count or a count does not fit in 64 bits.
func (c boundsCase) count(key string, got func() []uint64) []uint64 {
	if c.M > c.N-2 {
		fail("expect: %s: with m = %d of n = %d there is nothing to count: allowed are 0 to n-2", key, c.M, c.N)
	}
	counts := got()
	if slices.Contains(counts, tooMany) {
		fail("expect: %s: with n = %d and m = %d this does not fit in 64 bits", key, c.N, c.M)
	}
	return counts
}

// tree returns the number of nodes of a lieutenant's tree.
func (c boundsCase) tree() sliced.Size {
	size, fits := sliced.Count(c.N, c.M)
	if !fits && size.Nodes == 0 { // otherwise only the number of deliveries is too large
		return sliced.Size{Nodes: tooMany, Leaves: tooMany}
	}
	return size
}

// omBits reads the expected bits of OM's messages: a list has one number for each round, and a number is the total.
func (want boundsExpect) omBits() (byRound []uint64, all *uint64) {
	switch {
	case want.OMBits == nil:
	case want.OMBits[0] == '[':
		check("expect: om_payload_bits", form.Strict(want.OMBits, &byRound))
	default:
		check("expect: om_payload_bits", form.Strict(want.OMBits, &all))
	}
	return byRound, all
}

// most returns the largest m that a bound allows for n, and least the smallest n for m.
func most(n int, bound func(n, m int) error) int {
	m := 0
	for bound(n, m+1) == nil {
		m++
	}
	return m
}

func least(m int, bound func(n, m int) error) int {
	n := 1
	for bound(n, m) != nil {
		n++
	}
	return n
}

// measured is what an honest run sends, by round.
type measured struct {
	messages, bits []uint64 // of all processes
	byOne          []uint64 // that the first lieutenant sends
	toOne          []uint64 // that the first lieutenant receives, including own copies
}

func newMeasured(rounds int) measured {
	list := func() []uint64 { return make([]uint64, rounds) }
	return measured{list(), list(), list(), list()}
}

func sum(list []uint64) uint64 {
	var all parley.Traffic
	for _, n := range list {
		all = all.Plus(parley.Traffic{Messages: n})
	}
	return all.Messages
}

// fewEnough is the maximum number of messages, and of frames with them, for which a run is made. Beyond that the
// theorem gives the counts; tests compare them with runs.
const fewEnough = 200_000

// measure counts what the protocol sends with source 0 and no faulty process.
func measure(p parley.Protocol) measured {
	cost := p.Cost(p.N, p.M)
	frames := uint64(p.N * (p.N - 1) * cost.Rounds)
	if max(cost.Total().Messages, frames) > fewEnough {
		return ofTheorem(p, cost)
	}
	return ofRun(p, cost.Rounds)
}

func ofTheorem(p parley.Protocol, cost parley.Cost) measured {
	m := newMeasured(cost.Rounds)
	for r, t := range cost.PerRound {
		m.messages[r], m.bits[r], m.toOne[r] = t.Messages, t.Bits, t.Messages
		if t.Messages != tooMany {
			m.toOne[r] /= uint64(p.N - 1)
		}
		if r > 0 {
			m.byOne[r] = m.toOne[r]
		}
	}
	return m
}

func ofRun(p parley.Protocol, rounds int) measured {
	m := newMeasured(rounds)
	log := &trace.Log{Keep: true}
	given := requests(p.N, map[parley.ID]string{0: "1"})
	run := sim.Run(sim.Options{Protocol: p, Log: log, Measure: true, Requests: given})
	for r, t := range run.Stats.Sent {
		m.messages[r], m.bits[r] = t.Messages, t.Bits
	}
	const one parley.ID = 1
	for _, e := range log.Events {
		r := e.Msg.Seq
		env := parley.Env{From: e.At, To: e.Peer, Path: e.Path}
		switch {
		case e.At != one:
		case e.Op == trace.Send && e.Peer == parley.All:
			m.byOne[r] += p.Size(env, e.Msg).Messages * uint64(p.N-1)
		case e.Op == trace.Send:
			m.byOne[r] += p.Size(env, e.Msg).Messages
		case e.Op == trace.Keep:
			m.byOne[r] += p.Size(env, e.Msg).Messages
			m.toOne[r] += p.Size(env, e.Msg).Messages
		case e.Op == trace.Receive:
			env.From, env.To = e.Peer, e.At
			m.toOne[r] += p.Size(env, e.Msg).Messages
		}
	}
	return m
}
