// Package run simulates runs of protocols and judges them. It makes one run, makes runs with many seeds (a sweep),
// and shrinks a run that breaks a promise.
//
// A [Spec] determines a run: the protocol, the faulty processes and their behavior, the initial values, the events,
// and the seed. Everything that the Spec leaves open is drawn from the seed. So the same Spec makes the same run,
// event by event:
//
//	result, err := run.Spec{
//		Protocol: eig.New(problem.Instance{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated),
//		Faulty:   map[parley.ID]faulty.Behavior{2: faulty.TwoFaced},
//		Values:   map[parley.ID][]byte{0: []byte("1")},
//		Seed:     1,
//	}.Simulate() // handle err
//	for _, v := range result.Judge() {
//		fmt.Printf("%s: %s\n", v.Promise.Property, v.Outcome())
//	}
//
// [Sweep] runs a Spec with many seeds. [Minimize] removes all events and faults from a failing run that are not
// necessary to break the same promise.
package run

import (
	"fmt"
	"slices"

	"parley"
	"parley/faulty"
	"parley/internal/lists"
	"parley/sim"
	"parley/trace"
)

// Spec specifies a run. If only Protocol is set, the run has no faults.
type Spec struct {
	Protocol parley.Protocol
	// Faulty holds the behavior of each faulty process, except processes that crash only because of the Plan.
	Faulty map[parley.ID]faulty.Behavior
	// Values are the initial values of the processes in Protocol.Proposers. A process without an initial value
	// proposes an empty value. A proposal in Plan.Requests replaces the value.
	Values map[parley.ID][]byte
	// Seed determines delays, random choices, lies and everything that Plan leaves open.
	Seed uint64
	// Sign makes the signatures of a run from its seed. nil means sim.Ideal.
	Sign func(seed uint64) sim.Signer
	Plan Plan
	// Processes, if not nil, is called before each run. It returns the function that makes the machines of this run in
	// place of Protocol.New, and the function that is called when the run has ended. It is for machines outside
	// this program, such as child processes.
	Processes func() (hire func(parley.ID) parley.Machine, end func())
	// Name returns the name of a process in verdicts. nil means process 0, process 1, ...
	Name func(parley.ID) string
}

// Draw returns the spec with all open events of its plan drawn from the seed.
func (s Spec) Draw() Spec {
	s.Plan = s.Plan.Draw(s.Protocol, s.Seed)
	return s
}

// Signer returns the signer of the run.
func (s Spec) Signer() sim.Signer {
	if s.Sign == nil {
		return sim.Ideal(s.Seed)
	}
	return s.Sign(s.Seed)
}

// Options returns the options of the run for the simulator.
func (s Spec) Options() sim.Options {
	s = s.Draw()
	opt := s.Plan.options(s.Protocol, s.Seed)
	opt.Faulty, opt.Signer = s.Faulty, s.Signer()
	var proposals []sim.Request
	for id := range s.Protocol.Proposers.All() {
		if slices.ContainsFunc(opt.Requests, func(q sim.Request) bool { return q.At == id && q.Msg.Kind == parley.Propose }) {
			continue
		}
		proposals = append(proposals, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: s.Values[id]}})
	}
	opt.Requests = append(proposals, opt.Requests...)
	return opt
}

// Liars returns the processes that are faulty from the beginning.
func (s Spec) Liars() parley.Set {
	who, _ := faulty.Cast(s.Faulty)
	return who
}

// Down returns the processes to which nothing is promised: the faulty processes, and the processes that crash
// for good in the drawn plan.
func (s Spec) Down() parley.Set {
	all := s.Liars()
	for _, c := range s.Plan.Crashes {
		if c.Back == 0 {
			all.Add(c.At)
		}
	}
	return all
}

// Header returns the header of the run's trace, without the arguments and names of a command.
func (s Spec) Header(facts trace.Facts) trace.Header {
	_, facts.Worst = faulty.Cast(s.Faulty)
	return trace.Header{
		Protocol: s.Protocol.Name, N: s.Protocol.N, M: s.Protocol.M, Seed: s.Seed, Facts: facts,
		Faulty: lists.Each(s.Down().All(), func(id parley.ID) int { return int(id) }),
	}
}

// Check returns an error if the spec names a process that the protocol does not have, or a behavior that has
// no meaning in the protocol.
func (s Spec) Check() error {
	// order: any error will do
	for id, how := range s.Faulty {
		if int(id) >= s.Protocol.N {
			return fmt.Errorf("faulty process %d: there are %d, from 0", id, s.Protocol.N)
		}
		if err := how.Suits(s.Protocol); err != nil {
			return fmt.Errorf("process %d: %w", id, err)
		}
	}
	if len(s.Faulty) >= s.Protocol.N {
		return fmt.Errorf("all %d processes are faulty: nothing is promised to any", s.Protocol.N)
	}
	return nil
}

// Result is a simulated run.
type Result struct {
	Spec    Spec // drawn
	Log     *trace.Log
	Facts   trace.Facts // facts that no event of the log shows
	History *parley.History
	// GivenUp reports that the plan's maximum number of steps ended the run although more was due.
	GivenUp bool
	machine func(parley.ID) parley.Machine
}

// Simulate simulates the run. It returns an error if the spec is invalid.
func (s Spec) Simulate() (*Result, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	s = s.Draw()
	opt := s.Options()
	opt.Log = &trace.Log{Keep: true}
	defer s.hire(&opt)()
	done := sim.Run(opt)
	done.History.Naming = s.Name
	return &Result{
		Spec: s, Log: opt.Log, Facts: done.Facts(), History: &done.History, GivenUp: done.Stats.OutOfSteps,
		machine: done.Machine,
	}, nil
}

// hire has Processes make the machines of a run. It returns the function to call when the run has ended.
func (s Spec) hire(opt *sim.Options) (end func()) {
	if s.Processes == nil {
		return func() {}
	}
	opt.Protocol.New, end = s.Processes()
	return end
}

// Judge checks every property of the protocol against the run.
func (r *Result) Judge() []parley.Verdict {
	p := r.Spec.Protocol
	return parley.Judge(p, r.Facts.RunConditions(p, r.History), r.History)
}

// Tree returns the information tree of a process. It panics if the protocol has none.
func (r *Result) Tree(id parley.ID) parley.Tree { return r.Spec.Protocol.Tree(r.machine(id)) }
