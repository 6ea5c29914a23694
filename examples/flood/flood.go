package main

import (
	"fmt"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
)

// value is the only kind of message. Seq: the round. Body: the source's value.
const value parley.Kind = 1

// flood is agreement on the value of process 0 despite crashes. A process that has the value sends it to
// all, once; after the last round every process decides. If at most m processes crash, m+1 rounds are
// enough, because at least one of these rounds has no crash.
func flood(n, m, rounds int) parley.Protocol {
	const source = 0
	return lockstep.Of(lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: "flood", Title: "agreement by flooding", Paper: "folklore",
			Faults: parley.CrashFaults, Kinds: []string{"", "VALUE"}, N: n, M: m,
			Proposers: parley.SetOf(source), Properties: problem.Byzantine(source), Bound: bound,
			Promises: func(a parley.RunConditions) []parley.Promise {
				return problem.Promises(a, bound, "in one of m+1 rounds no process crashes")
			},
		},
		Last: rounds - 1,
		New:  func(parley.ID) lockstep.Rounds { return &process{last: rounds - 1} },
	}, lockstep.Simulated)
}

// bound returns an error unless two correct processes remain to agree with each other.
func bound(n, m int) error {
	if m <= n-2 {
		return nil
	}
	return fmt.Errorf("two of %d processes must stay correct: at most m = %d may crash", n, n-2)
}

// process is the state of one process.
type process struct {
	last      int
	value     []byte
	has, told bool // it has the value; it has sent it
}

// Request gives the source its value.
func (p *process) Request(_ *parley.Step, m parley.Msg) { p.value, p.has = m.Body, true }

// Emit sends the value to all, once.
func (p *process) Emit(s *parley.Step, round int) {
	if p.has && !p.told {
		p.told = true
		s.SendAll(parley.Msg{Kind: value, Seq: uint64(round), Body: p.value})
	}
}

// Absorb takes the value from another process.
func (p *process) Absorb(_ *parley.Step, _ int, _ parley.ID, m parley.Msg) {
	if !p.has {
		p.value, p.has = m.Body, true
	}
}

// Close decides after the last round: on the value if the process has it, otherwise on an empty value.
func (p *process) Close(s *parley.Step, round int) {
	if round == p.last {
		s.Deliver(0, parley.Msg{Kind: parley.Decide, Body: p.value})
	}
}

// State visits every variable, so that the explorer can save and load the process.
func (p *process) State(v *parley.Vars) {
	v.Bytes("value", &p.value)
	v.Bool("has", &p.has)
	v.Bool("told", &p.told)
}
