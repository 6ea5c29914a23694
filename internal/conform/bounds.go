package conform

import (
	"encoding/json"
	"fmt"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/eig/sliced"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// boundsCase asks for counts and limits.
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

func bounds(raw []byte, report func(key string, want, got any)) error {
	var c boundsCase
	if err := strict(raw, &c); err != nil {
		return err
	}
	var want boundsExpect
	if err := strict(c.Expect, &want); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	if c.N < 2 || c.N > parley.MaxProcesses || c.M < 0 || c.M > c.N-2 {
		return fmt.Errorf("n = %d and m = %d: allowed are n of 2 to %d and m of 0 to n-2", c.N, c.M, parley.MaxProcesses)
	}
	c.counts(want, report)
	c.limits(want, report)
	return nil
}

// counts compares what the algorithms send.
func (c boundsCase) counts(want boundsExpect, report func(key string, want, got any)) {
	in := problem.Instance{N: c.N, M: c.M, Default: []byte("0")}
	e, o, s := measure(eig.New(in, lockstep.Simulated)), measure(om.New(in, lockstep.Simulated)),
		measure(sm.New(sm.Config{Instance: in}, lockstep.Simulated))
	list := func(key string, want, got []uint64) {
		if want != nil {
			report(key, want, got)
		}
	}
	number := func(key string, want *uint64, got uint64) {
		if want != nil {
			report(key, *want, got)
		}
	}
	list("eig_sent_per_lieutenant", want.EIGSent, e.byOne)
	list("eig_messages_per_round", want.EIGMessages, e.perRound)
	number("eig_total", want.EIGTotal, e.total.Messages)
	number("eig_received_per_lieutenant", want.EIGReceived, e.toOne)
	list("om_messages_per_round", want.OMMessages, o.perRound)
	number("om_total", want.OMTotal, o.total.Messages)
	number("om_received_per_lieutenant", want.OMReceived, o.toOne)
	list("sm_honest_messages_per_round", want.SMMessages, s.perRound)
	if want.OMBits != nil {
		if want.OMBits[0] == '[' {
			report("om_payload_bits", want.OMBits, o.bits)
		} else {
			report("om_payload_bits", want.OMBits, o.total.Bits)
		}
	}
	// A lieutenant receives every path once: its tree has as many nodes.
	list("tree_nodes_per_rank", want.PerRank, e.toOneByRound)
	size, _ := sliced.Count(c.N, c.M)
	number("tree_nodes", want.Nodes, size.Nodes)
	number("tree_leaves", want.Leaves, size.Leaves)
}

// limits compares what is possible at all.
func (c boundsCase) limits(want boundsExpect, report func(key string, want, got any)) {
	if want.Rounds != nil {
		report("rounds", *want.Rounds, eig.Cost(c.N, c.M).Rounds)
	}
	if want.Possible != nil {
		report("oral_possible", *want.Possible, problem.OralBound(c.N, c.M) == nil)
	}
	if want.MostOral != nil {
		report("max_oral_faults", *want.MostOral, most(c.N, problem.OralBound))
	}
	if want.LeastOral != nil {
		report("min_n_oral", *want.LeastOral, least(c.M, problem.OralBound))
	}
	if want.LeastSigned != nil {
		report("min_n_signed", *want.LeastSigned, least(c.M, problem.SignedBound))
	}
}

// most is the largest m that a bound allows for n, and least the smallest n for m.
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

// measured is what an honest run sends.
type measured struct {
	perRound, bits []uint64
	total          parley.Traffic
	byOne          []uint64 // by round, what the first lieutenant sends
	toOneByRound   []uint64 // by round, what it receives, own copies counted
	toOne          uint64
}

// fewEnough is how many messages a run may have to be made; for more the counts
// are those of the theorem, which tests compare with runs.
const fewEnough = 200_000

// measure runs the protocol with source 0 and nobody faulty.
func measure(p parley.Protocol) measured {
	cost := p.Cost(p.N, p.M)
	rounds := make([]uint64, cost.Rounds)
	m := measured{
		perRound: messages(cost.PerRound, cost.Rounds), total: cost.Total(),
		byOne: append([]uint64{}, rounds...), toOneByRound: append([]uint64{}, rounds...), bits: rounds,
	}
	for r, t := range cost.PerRound {
		m.bits[r] = t.Bits
		lieutenants := uint64(p.N - 1)
		m.toOneByRound[r] = t.Messages / lieutenants
		m.toOne += m.toOneByRound[r]
		if r > 0 {
			m.byOne[r] = t.Messages / lieutenants
		}
	}
	if m.total.Messages > fewEnough {
		return m
	}
	log := &trace.Log{Keep: true}
	run := sim.Run(sim.Options{Protocol: p, Log: log, Measure: true, Requests: []sim.Request{
		{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}},
	}})
	m.perRound = messages(run.Stats.Sent, cost.Rounds)
	m.total = parley.Traffic{}
	for r, t := range run.Stats.Sent {
		m.total = m.total.Plus(t)
		m.bits[r] = t.Bits
	}
	m.ofOne(p, log)
	return m
}

// ofOne counts what the first lieutenant sends and receives.
func (m *measured) ofOne(p parley.Protocol, log *trace.Log) {
	clear(m.byOne)
	clear(m.toOneByRound)
	m.toOne = 0
	const one parley.ID = 1
	for _, e := range log.Events {
		r := e.Msg.Seq
		env := parley.Env{From: e.At, To: e.Peer, Path: e.Path}
		switch {
		case e.Op == trace.Send && e.At == one && e.Peer == parley.All:
			m.byOne[r] += p.Size(env, e.Msg).Messages * uint64(p.N-1)
		case e.Op == trace.Send && e.At == one:
			m.byOne[r] += p.Size(env, e.Msg).Messages
		case e.Op == trace.Keep && e.At == one:
			m.byOne[r] += p.Size(env, e.Msg).Messages
			m.toOneByRound[r] += p.Size(env, e.Msg).Messages
		case e.Op == trace.Receive && e.At == one:
			env.From, env.To = e.Peer, e.At
			m.toOneByRound[r] += p.Size(env, e.Msg).Messages
		}
	}
	for _, n := range m.toOneByRound {
		m.toOne += n
	}
}
