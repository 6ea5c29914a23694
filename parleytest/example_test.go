package parleytest_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// FloodSet is a user's protocol: consensus under crashes. In each of m+1 rounds every process sends all
// others the values it knows, and at the end it decides on the smallest. In one of the m+1 rounds no
// process crashes, and after that round all know the same values.
func FloodSet(n, m int) parley.Protocol { return lockstep.Of(floodSet(n, m), lockstep.Simulated) }

func floodSet(n, m int) lockstep.Protocol {
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: "floodset", Title: "consensus by flooding", N: n, M: m,
			Kinds:     []string{"", "VALUE"},
			Faults:    parley.CrashFaults,
			Proposers: parley.Everyone(n),
			Properties: []parley.Property{{
				Name: "agreement", Says: "no two processes decide differently", Check: agreement,
			}, {
				Name: "termination", Says: "every correct process decides", Mode: parley.Eventually, Check: termination,
			}, {
				Name: "mixed", Says: "both values are proposed", Mode: parley.Sometimes, Check: mixed,
			}},
			Rename: func(_ parley.Env, m parley.Msg, _ []parley.ID) parley.Msg { return m },
			Size:   func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
			Cost: func(n, m int) parley.Cost {
				most := parley.Traffic{Messages: uint64(2 * n * (n - 1))} // each process sends each value at most once
				return parley.Cost{Rounds: m + 1, PerRound: slices.Repeat([]parley.Traffic{most}, m+1), AtMost: true}
			},
		},
		Last: m,
		New:  func(parley.ID) lockstep.Rounds { return &flooding{last: m} },
	}
}

// flooding is one process. A message of kind 1 is one value, in its Body.
type flooding struct {
	last  int
	known [][]byte // sorted
	fresh [][]byte // known, and not yet sent
}

func (p *flooding) learn(value []byte) {
	if i, known := slices.BinarySearchFunc(p.known, value, slices.Compare[[]byte]); !known {
		p.known = slices.Insert(p.known, i, value)
		p.fresh = append(p.fresh, value)
	}
}

func (p *flooding) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose {
		p.learn(m.Body)
	}
}

func (p *flooding) Emit(s *parley.Step, _ int) {
	for _, value := range p.fresh {
		s.SendAll(parley.Msg{Kind: 1, Body: value})
	}
	p.fresh = nil
}

func (p *flooding) Absorb(s *parley.Step, _ int, from parley.ID, m parley.Msg) {
	if m.Kind != 1 || len(m.Body) != 1 {
		s.Refuse(from, "not a value")
		return
	}
	p.learn(m.Body)
}

func (p *flooding) Close(s *parley.Step, r int) {
	if r == p.last && len(p.known) > 0 {
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: p.known[0]})
	}
}

func (p *flooding) State(v *parley.Vars) {
	each := func(_ int, value *[]byte) { v.Bytes("value", value) }
	parley.Slice(v, "known", &p.known, each)
	parley.Slice(v, "fresh", &p.fresh, each)
}

func agreement(h *parley.History) error {
	for _, d := range h.Deliveries {
		if first := h.Deliveries[0]; !bytes.Equal(d.Msg.Body, first.Msg.Body) {
			return fmt.Errorf("%d decides %s, and %d decides %s", first.At, first.Msg.Body, d.At, d.Msg.Body)
		}
	}
	return nil
}

func termination(h *parley.History) error {
	var decided parley.Set
	for _, d := range h.Deliveries {
		decided.Add(d.At)
	}
	for id := range parley.Everyone(h.N).Minus(h.Faulty).Minus(decided).All() {
		return fmt.Errorf("%d does not decide", id)
	}
	return nil
}

func mixed(h *parley.History) error {
	for _, q := range h.Requests {
		if !bytes.Equal(q.Msg.Body, h.Requests[0].Msg.Body) {
			return nil
		}
	}
	return errors.New("all propose the same")
}

// TestFloodSet is all that a designer writes to test it.
func TestFloodSet(t *testing.T) {
	parleytest.Suite(t, FloodSet(5, 2), parleytest.Options{
		Beyond: []parleytest.Beyond{{Protocol: FloodSet(5, 0), Faulty: 1}},
	})
}

func FuzzFloodSet(f *testing.F) { parleytest.Fuzz(f, FloodSet(4, 1)) }

// Example runs the protocol once with a crash in the middle of a broadcast, and then runs all checks on it.
func Example() {
	p := FloodSet(4, 1)
	s := sim.Run(sim.Options{
		Protocol: p,
		Requests: []sim.Request{
			{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("0")}},
			{At: 1, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}},
			{At: 2, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}},
			{At: 3, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}},
		},
		// Steps: 1 is Start, 2 the request, 3 the beginning of round 0.
		Crashes: []sim.Crash{{At: 0, Step: 3, Effects: 1}},
	})
	for _, d := range s.History.Deliveries {
		fmt.Printf("process %d decides %s\n", d.At, d.Msg.Body)
	}
	fmt.Println(parleytest.Check(p, parleytest.Options{Seeds: 30}))
	// Output:
	// process 1 decides 0
	// process 2 decides 0
	// process 3 decides 0
	// <nil>
}
