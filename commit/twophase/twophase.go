// Package twophase is two-phase commit, with presumed abort and cooperative
// termination.
//
// The problem is atomic commitment, see package problem. Process 0 coordinates and
// votes by beginning; the others are its participants.
//
// The model: processes crash, and those that come back find their log as it was.
// Messages may be lost, doubled, late and out of order. What is promised for that is
// uniform: atomicity, commit validity and stability hold in every run. What is not
// promised is an end: a participant that has voted yes while the coordinator is down,
// or out of reach, asks the others, and is blocked if they know no more than it does.
// It says so, and never aborts by itself. n processes send 3(n-1) messages if nothing
// fails; the acknowledgements by which the coordinator may forget are not among them.
//
// Why it works: a participant logs its yes before it says it, and from then on does
// what the coordinator decided. The coordinator commits only if it has heard a yes of
// all, and logs that before it says so: commit is thus known to the log of one
// process before anyone commits. What the log of the coordinator does not know is
// aborted (presumed abort), so that an abort needs neither a record nor an
// acknowledgement. That presumption is wrong of a transaction that was committed and
// forgotten, so the coordinator forgets when all participants have acknowledged
// that commit is in their logs: then nobody is left who would have to ask.
//
// Source: Bernstein, Hadzilacos and Goodman (1987), section 7.4; presumed abort is
// from Mohan, Lindsay and Obermarck (1986), section 3.
package twophase

import (
	"fmt"

	"parley"
	"parley/commit/problem"
)

// The kinds of messages. Fields that are not named are not used.
const (
	VoteRequest parley.Kind = iota + 1 // the coordinator asks for a vote
	Vote                               // to the coordinator. Value: 1 yes, 0 no
	Decision                           // from the coordinator. Value: 1 commit, 0 abort
	Ack                                // to the coordinator: commit is in my log
	Ask                                // what do you know?
	Answer                             // Value: the problem.State of who says it
)

// coordinator is the process that coordinates.
const coordinator parley.ID = 0

// recordEnd is in the log of the coordinator: all have acknowledged. Presumed abort has no record for its abort.
const recordEnd = "end"

// wait is the one timer. What it waits for depends on the state.
const wait parley.Timer = 0

// process is one process.
type process struct {
	parley.Base
	c    Config
	self parley.ID

	// Durable.
	state problem.State // Initial, Uncertain, Committed or Aborted
	ended bool          // at the coordinator: committed, and nothing of that is left to be known

	// Volatile.
	voted   bool       // the vote has been given. At the coordinator: it has begun
	asked   bool       // the coordinator has asked for it
	yes     parley.Set // at the coordinator: whose yes has come
	crossed parley.Set // at the coordinator: who was told to abort while its vote was under way
	acked   parley.Set // at the coordinator: who has acknowledged commit
	asking  bool       // the others have been asked what they know
	blocked bool       // and none of them knew; that has been said
}

// Request is the vote of this process. That of the coordinator begins the transaction.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	yes, ok := problem.Given(s, m, p.voted || p.ended || p.state != problem.Initial)
	if !ok {
		return
	}
	p.voted = true
	switch {
	// The coordinator sends a VOTE-REQ to all participants.
	case p.self == coordinator && yes:
		s.SendAll(parley.Msg{Kind: VoteRequest})
		s.SetTimer(wait, p.c.Votes)
	case p.self == coordinator:
		p.abort(s, p.self)
	case !yes:
		p.no(s)
	case p.asked:
		p.vote(s)
	// A participant that has not been asked by then may abort.
	default:
		s.SetTimer(wait, 3*p.c.Delta)
	}
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // suspicions and the like: timers do
		return
	case !words.Fits(m):
		s.Refuse(from, "fields that are not used")
		return
	}
	switch {
	case m.Kind == Ask:
		p.answer(s, from)
	case m.Kind == Answer && p.self != coordinator:
		p.learn(s, from, problem.State(m.Value))
	case m.Kind == Vote && p.self == coordinator:
		p.collect(s, from, m.Value == 1)
	case m.Kind == Ack && p.self == coordinator:
		p.end(s, from)
	case m.Kind == VoteRequest && from == coordinator:
		p.requested(s)
	case m.Kind == Decision && from == coordinator:
		p.learn(s, from, problem.OfBit(m.Value).Reached())
	default:
		s.Refuse(from, "message that this process does not get, or not from there")
	}
}

// requested: a participant is asked for its vote.
func (p *process) requested(s *parley.Step) {
	switch {
	case p.state == problem.Initial && p.voted:
		p.vote(s)
	case p.state == problem.Initial:
		p.asked = true
	// The request has come twice, or after this process aborted by itself.
	case p.state == problem.Uncertain:
		s.Send(coordinator, parley.Msg{Kind: Vote, Value: 1})
	case p.state == problem.Aborted:
		s.Send(coordinator, parley.Msg{Kind: Vote, Value: 0})
	default:
		s.Refuse(coordinator, "request for a vote after the decision")
	}
}

// vote says yes: the record of it is durable before the vote leaves. From here on
// this process cannot decide by itself.
func (p *process) vote(s *parley.Step) {
	p.state = problem.Uncertain
	s.Append([]byte(problem.RecordYes))
	s.Send(coordinator, parley.Msg{Kind: Vote, Value: 1})
	s.SetTimer(wait, 3*p.c.Delta)
}

// no: who votes no aborts at once. It needs no record: without one, a process that
// comes back aborts.
func (p *process) no(s *parley.Step) {
	if p.asked {
		s.Send(coordinator, parley.Msg{Kind: Vote, Value: 0})
	}
	p.decide(s, problem.Abort)
}

// collect takes in a vote at the coordinator. One that comes after the decision is
// answered with it, commit if the log says so, else abort; but not one that crosses
// with the ABORT that was sent there.
func (p *process) collect(s *parley.Step, from parley.ID, yes bool) {
	switch {
	case p.state == problem.Initial && !p.ended && !p.voted:
		s.Refuse(from, "vote that was not asked for")
	case p.crossed.Has(from):
		p.crossed.Remove(from)
	case p.state != problem.Initial || p.ended:
		if yes {
			s.Send(from, parley.Msg{Kind: Decision, Value: p.known().Bit()})
		}
	// One no: abort, and tell all but those who have voted no.
	case !yes:
		p.abort(s, from)
	// All have said yes: force a commit record, then send COMMIT to all.
	default:
		p.yes.Add(from)
		if p.yes.Len() == s.N-1 {
			p.decide(s, problem.Commit)
			p.announce(s)
		}
	}
}

// abort: the coordinator aborts and tells all but the process given.
func (p *process) abort(s *parley.Step, but parley.ID) {
	others := parley.Everyone(s.N).Minus(parley.SetOf(p.self, but))
	p.crossed = others.Minus(p.yes)
	p.decide(s, problem.Abort)
	s.SendTo(others, parley.Msg{Kind: Decision, Value: problem.Abort.Bit()})
}

// announce: the coordinator sends COMMIT to all who have not acknowledged it, again
// and again.
func (p *process) announce(s *parley.Step) {
	s.SendTo(parley.Everyone(s.N).Minus(p.acked), parley.Msg{Kind: Decision, Value: problem.Commit.Bit()})
	s.SetTimer(wait, 4*p.c.Delta)
}

// end: when commit is in all logs the coordinator forgets it. From then on whoever
// asks, with a message that was under way for long, hears abort, and has decided.
func (p *process) end(s *parley.Step, from parley.ID) {
	if p.state != problem.Committed {
		s.Refuse(from, "acknowledgement that nobody waits for")
		return
	}
	p.acked.Add(from)
	if p.acked.Len() == s.N-1 {
		p.ended, p.state, p.acked, p.yes = true, problem.Initial, parley.Set{}, parley.Set{}
		s.Append([]byte(recordEnd))
		s.Compact()
		s.StopTimer(wait)
	}
}

// learn takes in what another process knows, if this one waits for an outcome. A
// commit is acknowledged whenever the coordinator says it: it waits for that.
func (p *process) learn(s *parley.Step, from parley.ID, said problem.State) {
	switch known := said.Outcome(); {
	case p.state == problem.Uncertain:
		p.terminate(s, said)
	case known == problem.Undecided: // an answer that came too late
	case p.state == problem.Initial && known == problem.Abort:
		p.decide(s, problem.Abort)
	case p.state == problem.Initial:
		s.Refuse(from, "commit without the yes of this process")
	case known != p.state.Outcome():
		s.Refuse(from, "other than what is decided")
	case known == problem.Commit && from == coordinator:
		s.Send(coordinator, parley.Msg{Kind: Ack})
	}
}

// terminate: a process that is uncertain decides if the state of another one lets it.
func (p *process) terminate(s *parley.Step, said problem.State) {
	switch o := Terminate([]problem.State{p.state, said}); o {
	case problem.Commit:
		p.decide(s, o)
		s.Send(coordinator, parley.Msg{Kind: Ack})
	case problem.Abort:
		p.decide(s, o)
	}
}

// decide: the record is durable before the decision leaves, to above or to others.
// Presumed abort spares the coordinator the record of an abort, and a participant
// that has not said yes.
func (p *process) decide(s *parley.Step, o problem.Outcome) {
	switch {
	case o == problem.Commit:
		s.Append([]byte(problem.RecordCommitted))
	case p.state == problem.Uncertain:
		s.Append([]byte(problem.RecordAborted))
	}
	p.state = o.Reached()
	p.yes, p.asking, p.blocked = parley.Set{}, false, false
	s.StopTimer(wait)
	s.Deliver(p.self, o.Decided(coordinator))
}

// answer tells what this process knows. The coordinator says nothing while it waits
// for votes: the decision will come. Another one that has not voted yes is asked by
// one that has, and aborts for its sake.
func (p *process) answer(s *parley.Step, from parley.ID) {
	waiting := p.state == problem.Initial && !p.ended
	switch {
	case p.self == coordinator && waiting:
		return
	case p.self == coordinator:
		s.Send(from, parley.Msg{Kind: Decision, Value: p.known().Bit()})
		return
	case waiting:
		p.no(s)
	}
	s.Send(from, parley.Msg{Kind: Answer, Value: uint64(p.state)})
}

// known is the outcome by the coordinator's log, once it does not wait for votes:
// what it says nothing of is aborted.
func (p *process) known() problem.Outcome {
	if p.state == problem.Committed {
		return problem.Commit
	}
	return problem.Abort
}

func (p *process) Timeout(s *parley.Step, _ parley.Timer) {
	switch {
	case p.ended:
	case p.self == coordinator && p.state == problem.Committed:
		p.announce(s)
	// The coordinator waits for votes: it may abort.
	case p.self == coordinator && p.state == problem.Initial:
		p.abort(s, p.self)
	// A participant waits for the request to vote: it may abort.
	case p.state == problem.Initial:
		p.no(s)
	// It waits for the decision: it may not, and asks the others.
	case p.state == problem.Uncertain:
		if p.asking && !p.blocked {
			p.blocked = true
			s.Indicate(parley.Msg{Kind: problem.Blocked})
		}
		p.ask(s)
	}
}

// ask begins the cooperative termination protocol, or repeats it.
func (p *process) ask(s *parley.Step) {
	p.asking = true
	s.SendAll(parley.Msg{Kind: Ask})
	s.SetTimer(wait, 4*p.c.Delta)
}

// Start. After a crash the log says how far this process had come.
func (p *process) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	for _, r := range s.Log {
		if !p.replay(string(r.Body)) {
			panic(fmt.Sprintf("twophase: process %d does not know its log: %q in state %s", s.Self, r.Body, p.state))
		}
	}
	switch {
	case p.ended:
	// It has not voted yes, or the coordinator has not committed: abort.
	case p.state == problem.Initial:
		p.decide(s, problem.Abort)
	case p.state == problem.Uncertain:
		p.ask(s)
	// It is not known whether the crash came before or after the delivery.
	default:
		s.Deliver(p.self, p.state.Outcome().Decided(coordinator))
		if p.self == coordinator && p.state == problem.Committed {
			p.announce(s)
		}
	}
}

// replay takes the next record of the log, and tells whether it is one. The coordinator has no record of its yes.
func (p *process) replay(record string) bool {
	switch {
	case record == problem.RecordCommitted && p.state == problem.Initial && p.self == coordinator:
		p.state = problem.Committed
	case record == recordEnd && p.state == problem.Committed:
		p.state, p.ended = problem.Initial, true
	default:
		return p.state.Replay(record)
	}
	return true
}

// State visits every variable.
func (p *process) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "state", &p.state)
		v.Bool("ended", &p.ended)
	})
	v.Bool("voted", &p.voted)
	v.Bool("asked", &p.asked)
	v.Set("yes", &p.yes)
	v.Set("crossed", &p.crossed)
	v.Set("acked", &p.acked)
	v.Bool("asking", &p.asking)
	v.Bool("blocked", &p.blocked)
}
