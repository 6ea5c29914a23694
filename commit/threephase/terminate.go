package threephase

import (
	"parley"
	"parley/commit/problem"
)

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == parley.Suspect:
		p.suspect(s, m.Origin)
		return
	case m.Kind >= parley.Local:
		return
	case !words.Fits(m):
		s.Refuse(from, "fields that are not used")
		return
	}
	switch {
	case m.Kind == VoteRequest && from == first:
		p.requested(s)
	case m.Kind == Vote && p.self == first:
		p.collect(s, from, m.Value == 1)
	case m.Kind == Precommit:
		p.prepared(s, from)
	case m.Kind == Ack:
		p.acknowledged(s, from)
	case m.Kind == Decision:
		p.told(s, from, problem.OfBit(m.Value))
	case m.Kind == Elect || m.Kind == StateRequest || m.Kind == Ask:
		p.called(s, from, m.Kind)
	case m.Kind == Report:
		p.reported(s, from, problem.State(m.Value))
	case m.Kind == CameBack:
		p.cameBack(s, from)
	default:
		s.Refuse(from, "message that this process does not get, or not from there")
	}
}

// called handles a message of a process that waits for the outcome. If this process knows the outcome, or has
// not voted and so can abort, it answers with that.
func (p *process) called(s *parley.Step, from parley.ID, kind parley.Kind) {
	if p.state == problem.Initial {
		p.no(s)
	}
	switch o := p.state.Outcome(); {
	case o != problem.Undecided:
		s.Send(from, parley.Msg{Kind: Decision, Value: o.Bit()})
	case kind == Elect && p.undecided() && p.leader < p.self:
		p.lead(s)
	case kind == StateRequest && p.undecided():
		p.report(s, from)
	case kind == Ask && p.back:
		s.Send(from, parley.Msg{Kind: CameBack})
	}
}

// suspect handles a detector's suspicion.
func (p *process) suspect(s *parley.Step, q parley.ID) {
	if q == p.self || !p.suspected.Add(q) {
		return
	}
	switch {
	case p.state == problem.Initial && q == first && p.self != first:
		p.no(s)
	case !p.undecided():
	case p.phase == voting && p.waiting.Has(q):
		p.conclude(s, problem.Abort)
	case p.waiting.Has(q):
		p.arrived(s, q)
	case q == p.leader:
		p.elect(s)
	}
}

// elect handles a crash of the coordinator. The next process that has not crashed must coordinate. This
// process notifies it, because it may not know yet, or coordinates if it is that process.
func (p *process) elect(s *parley.Step) {
	p.next()
	if p.leader == p.self {
		p.lead(s)
		return
	}
	s.Send(p.leader, parley.Msg{Kind: Elect})
	p.follow(s)
}

// lead begins the termination protocol: a new coordinator asks all processes that are up for their states. All
// processes before it have crashed.
func (p *process) lead(s *parley.Step) {
	p.suspected = p.suspected.Plus(parley.Everyone(int(p.self)))
	p.leader, p.reports = p.self, append(p.reports[:0], p.reached())
	to := p.others()
	if to == (parley.Set{}) {
		p.terminate(s)
		return
	}
	p.await(s, polling, to)
	s.SendTo(to, parley.Msg{Kind: StateRequest})
}

// report sends the state to a new coordinator. From then on this process ignores older coordinators.
func (p *process) report(s *parley.Step, from parley.ID) {
	if from < p.leader {
		s.Refuse(from, "question of a coordinator that was given up")
		return
	}
	p.leader = from
	s.Send(from, parley.Msg{Kind: Report, Value: uint64(p.reached())})
	p.follow(s)
}

// reported handles a state at the coordinator.
func (p *process) reported(s *parley.Step, from parley.ID, state problem.State) {
	if p.phase != polling || !p.waiting.Has(from) {
		s.Refuse(from, "state that nobody waits for")
		return
	}
	p.reports = append(p.reports, state)
	p.arrived(s, from)
}

// terminate applies the termination rule to the states of all processes that are up.
func (p *process) terminate(s *parley.Step) {
	o := Terminate(p.reports)
	p.reports = p.reports[:0]
	if o == problem.Abort {
		p.conclude(s, o)
		return
	}
	// One process is precommitted: all must be, before any commits. Those that already are get PRECOMMIT
	// again, so that they know that this process is running.
	p.prepare(s)
}

func (p *process) Timeout(s *parley.Step, _ parley.Timer) {
	switch {
	case p.back && p.state == problem.Uncertain:
		if !p.blocked {
			p.blocked = true
			s.Indicate(parley.Msg{Kind: problem.Blocked})
		}
		p.ask(s)
	case p.state == problem.Initial:
		p.no(s)
	case !p.undecided():
	// A missing vote is a no. Otherwise a process that does not answer has crashed.
	case p.phase == voting:
		p.conclude(s, problem.Abort)
	case p.phase != none:
		late := p.waiting
		p.suspected = p.suspected.Plus(late)
		for id := range late.All() {
			p.arrived(s, id)
		}
	default:
		p.elect(s)
	}
}

// cameBack handles total failure: if all processes have crashed and restarted after their yes, and none has a
// decision in its log, then no process ever decided, and none is left that takes part in termination. All
// abort.
func (p *process) cameBack(s *parley.Step, from parley.ID) {
	if !p.back || p.state != problem.Uncertain {
		s.Refuse(from, "answer to nothing")
		return
	}
	p.alsoBack.Add(from)
	if p.alsoBack.Len() == p.n-1 {
		p.decide(s, problem.Abort)
	}
}
