package service

import (
	"parley"
	"parley/commit/problem"
)

// single is the machine of a transaction with one member: its vote is the outcome.
type single struct {
	parley.Base
	committed bool
}

// Request decides by the vote.
func (a *single) Request(s *parley.Step, m parley.Msg) {
	yes, _ := problem.Vote(m.Body)
	if a.committed = yes; yes {
		s.Append([]byte("committed"))
	}
	a.decide(s)
}

// Start decides after a crash. Without a record the outcome is abort.
func (a *single) Start(s *parley.Step) {
	if s.Restart {
		a.committed = a.committed || len(s.Log) > 0
		a.decide(s)
	}
}

func (a *single) decide(s *parley.Step) {
	outcome := problem.Abort
	if a.committed {
		outcome = problem.Commit
	}
	s.Deliver(s.Self, outcome.Decided(s.Self))
}

func (a *single) State(v *parley.Vars) { v.Durable(func() { v.Bool("committed", &a.committed) }) }
