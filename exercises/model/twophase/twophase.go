// Package twophase is one process of two-phase commit, for processes that crash but do not restart.
//
// Process 0 is the coordinator, and the others are its participants. All have a vote. In the first phase the
// coordinator asks for the votes. In the second phase it sends the decision: commit if all have voted yes.
package twophase

import (
	"parley"
	"parley/commit/problem"
)

// The kinds of messages.
const (
	VoteRequest parley.Kind = iota + 1 // the coordinator asks for a vote
	Vote                               // to the coordinator. Value: 1 is yes, 0 is no
	Decision                           // from the coordinator. Value: 1 is commit, 0 is abort
)

const coordinator parley.ID = 0

// patience is how long the coordinator waits for votes, in ticks. A message takes at most 1,000.
const (
	wait     parley.Timer = 0
	patience parley.Tick  = 2000
)

// New returns the machine of a process, of n.
func New(_ int, self parley.ID) parley.Machine { return &machine{self: self} }

// machine is a process. If you add a field that changes, let State visit it.
type machine struct {
	parley.Base
	self  parley.ID
	voted bool       // this process has its vote,
	vote  bool       // which is yes
	asked bool       // at a participant: the coordinator has asked for the vote
	yes   parley.Set // at the coordinator: the processes that have voted yes
	done  bool       // this process has decided
}

// Request gives the process its vote. The coordinator then begins.
func (p *machine) Request(s *parley.Step, m parley.Msg) {
	yes, ok := problem.Given(s, m, p.voted)
	if !ok {
		return
	}
	p.voted, p.vote = true, yes
	switch {
	case p.self != coordinator:
		if p.asked {
			p.answer(s)
		}
	case yes:
		p.yes.Add(p.self)
		s.SendAll(parley.Msg{Kind: VoteRequest})
		s.SetTimer(wait, patience)
	default:
		s.SendAll(parley.Msg{Kind: Decision, Value: problem.Abort.Bit()})
		p.decide(s, problem.Abort)
	}
}

// Receive handles a message from a link.
func (p *machine) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == VoteRequest && from == coordinator:
		if p.asked = true; p.voted {
			p.answer(s)
		}
	case m.Kind == Vote && p.self == coordinator:
		p.collect(s, from, m.Value == 1)
	case m.Kind == Decision && from == coordinator:
		p.decide(s, problem.OfBit(m.Value))
	case m.Kind < parley.Local:
		s.Refuse(from, "not a message for this process")
	}
}

// answer sends the vote of a participant, which was asked for it.
func (p *machine) answer(s *parley.Step) {
	// hole: Send the vote to the coordinator. A participant that votes no knows the outcome, so it decides at once. One
	// that votes yes must wait. See decide.
	if p.done {
		return
	}
	value := uint64(0)
	if p.vote {
		value = 1
	}
	s.Send(coordinator, parley.Msg{Kind: Vote, Value: value})
	if !p.vote {
		p.decide(s, problem.Abort)
	}
	// end of hole
}

// collect takes a vote at the coordinator.
func (p *machine) collect(s *parley.Step, from parley.ID, yes bool) {
	if p.done {
		return
	}
	// hole: Decide when the outcome is certain, and send the decision to all others: one no is enough to abort, and a
	// commit needs a yes from all s.N processes. Stop the timer.
	// | _ = yes
	if yes {
		p.yes.Add(from)
		if p.yes.Len() < s.N {
			return
		}
	}
	outcome := problem.Abort
	if yes {
		outcome = problem.Commit
	}
	s.SendAll(parley.Msg{Kind: Decision, Value: outcome.Bit()})
	s.StopTimer(wait)
	p.decide(s, outcome)
	// end of hole
}

// Timeout handles the end of the coordinator's patience.
func (p *machine) Timeout(s *parley.Step, _ parley.Timer) {
	if p.done {
		return
	}
	// hole: A vote is missing, and its process may have crashed. What may the coordinator decide?
	s.SendAll(parley.Msg{Kind: Decision, Value: problem.Abort.Bit()})
	p.decide(s, problem.Abort)
	// end of hole
}

// decide announces the outcome, once.
func (p *machine) decide(s *parley.Step, o problem.Outcome) {
	if !p.done {
		p.done = true
		s.Deliver(p.self, o.Decided(coordinator))
	}
}

// State visits every field that changes. The explorer needs it to tell states apart.
func (p *machine) State(v *parley.Vars) {
	v.Bool("voted", &p.voted)
	v.Bool("vote", &p.vote)
	v.Bool("asked", &p.asked)
	v.Set("yes", &p.yes)
	v.Bool("done", &p.done)
}
