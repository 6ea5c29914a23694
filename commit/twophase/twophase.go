// Package twophase implements two-phase commit, with two additions. Presumed abort: if the coordinator does not know
// a transaction, the transaction counts as aborted. Cooperative termination: participants ask each other for the
// outcome.
//
// The problem is atomic commitment (package problem). Process 0 is the coordinator: it begins the transaction,
// which also counts as its yes. The others are its participants.
//
// The model: processes crash, and processes that restart find their log intact. Messages may be lost, duplicated,
// late and out of order. Atomicity, commit validity and stability hold in every run, and are uniform. Termination is
// not promised. If a participant has voted yes, and the coordinator is down or unreachable, the participant asks the
// other participants. If none of them knows the outcome, the participant is blocked, and indicates this. After its
// yes, a participant never aborts by its own decision. If nothing fails, n processes send 3(n-1) messages, not
// counting the acknowledgements that let the coordinator forget the transaction.
//
// Why it works: a participant logs its yes before it sends the yes, and from then on follows the coordinator's
// decision. The coordinator commits only if all have voted yes. It logs the commit before it sends the decision, so
// the commit is durable before any process commits.
//
// A transaction that is not in the coordinator's log counts as aborted (presumed abort). So an abort needs neither a
// record nor an acknowledgement. But if the coordinator forgot a committed transaction, the rule would give a wrong
// answer about this transaction. So the coordinator forgets a committed transaction only when all participants have
// acknowledged that the commit is in their logs. After that no participant asks.
//
// Source: Bernstein, Hadzilacos and Goodman (1987), section 7.4. Presumed abort is from Mohan, Lindsay and Obermarck
// (1986), section 3.
package twophase

import (
	"fmt"

	"parley"
	"parley/commit/problem"
)

// The kinds of messages. Fields that are not named are unused.
const (
	VoteRequest parley.Kind = iota + 1 // the coordinator asks for a vote
	Vote                               // to the coordinator. Value: 1 yes, 0 no
	Decision                           // from the coordinator. Value: 1 commit, 0 abort
	Ack                                // to the coordinator: commit is in my log
	Ask                                // what do you know?
	Answer                             // Value: the problem.State of the sender
)

// coordinator is the process that coordinates.
const coordinator parley.ID = 0

// recordEnd in the coordinator's log means that all have acknowledged. With presumed abort there is no record
// for an abort.
const recordEnd = "end"

// wait is the only timer. Its meaning depends on the state.
const wait parley.Timer = 0

// process is the machine of one process.
type process struct {
	parley.Base
	c    Config
	self parley.ID

	// Durable.
	state problem.State // Initial, Uncertain, Committed or Aborted
	ended bool          // at the coordinator: committed and forgotten

	// Volatile.
	voted   bool       // the vote is there. At the coordinator: it has begun
	asked   bool       // the coordinator has asked for it
	yes     parley.Set // at the coordinator: participants whose yes has arrived
	crossed parley.Set // at the coordinator: participants that were sent an abort while their vote was in flight
	acked   parley.Set // at the coordinator: participants that have acknowledged commit
	asking  bool       // the others were asked what they know
	blocked bool       // none of them knew, and that was indicated
}

// Request handles the vote of this process. The coordinator's vote begins the transaction.
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
	// A participant that is not asked by then may abort.
	default:
		s.SetTimer(wait, 3*p.c.Delta)
	}
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // a suspicion, for example: timers suffice
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

// requested handles the request for a participant's vote.
func (p *process) requested(s *parley.Step) {
	switch {
	case p.state == problem.Initial && p.voted:
		p.vote(s)
	case p.state == problem.Initial:
		p.asked = true
	// The request has arrived twice, or after this process aborted by itself.
	case p.state == problem.Uncertain:
		s.Send(coordinator, parley.Msg{Kind: Vote, Value: 1})
	case p.state == problem.Aborted:
		s.Send(coordinator, parley.Msg{Kind: Vote, Value: 0})
	default:
		s.Refuse(coordinator, "request for a vote after the decision")
	}
}

// vote votes yes: the record is durable before the vote leaves. From here on this process cannot decide by
// itself.
func (p *process) vote(s *parley.Step) {
	p.state = problem.Uncertain
	s.Append([]byte(problem.RecordYes))
	s.Send(coordinator, parley.Msg{Kind: Vote, Value: 1})
	s.SetTimer(wait, 3*p.c.Delta)
}

// no votes no, and aborts at once. That needs no record: without one, a process that restarts aborts.
func (p *process) no(s *parley.Step) {
	if p.asked {
		s.Send(coordinator, parley.Msg{Kind: Vote, Value: 0})
	}
	p.decide(s, problem.Abort)
}

// collect handles a vote at the coordinator. It answers a yes that arrives after the decision with the
// decision: commit if the log says so, otherwise abort. A vote that crossed with an ABORT to the same
// participant gets no answer.
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
	// One no: abort, and notify all but those who have voted no.
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

// abort aborts at the coordinator, and notifies all except the given process.
func (p *process) abort(s *parley.Step, but parley.ID) {
	others := parley.Everyone(s.N).Minus(parley.SetOf(p.self, but))
	p.crossed = others.Minus(p.yes)
	p.decide(s, problem.Abort)
	s.SendTo(others, parley.Msg{Kind: Decision, Value: problem.Abort.Bit()})
}

// announce sends COMMIT to all that have not acknowledged it, repeatedly.
func (p *process) announce(s *parley.Step) {
	s.SendTo(parley.Everyone(s.N).Minus(p.acked), parley.Msg{Kind: Decision, Value: problem.Commit.Bit()})
	s.SetTimer(wait, 4*p.c.Delta)
}

// end forgets a commit when it is in all logs. From then on the coordinator answers abort to a message that
// was in flight for long; its sender has already decided.
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

// learn handles what another process knows, if this one waits for an outcome. It acknowledges every commit
// from the coordinator, which waits for that.
func (p *process) learn(s *parley.Step, from parley.ID, said problem.State) {
	switch known := said.Outcome(); {
	case p.state == problem.Uncertain:
		p.terminate(s, said)
	case known == problem.Undecided: // a late answer
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

// terminate decides at an uncertain process, if the state of another one permits it.
func (p *process) terminate(s *parley.Step, said problem.State) {
	switch o := Terminate([]problem.State{p.state, said}); o {
	case problem.Commit:
		p.decide(s, o)
		s.Send(coordinator, parley.Msg{Kind: Ack})
	case problem.Abort:
		p.decide(s, o)
	}
}

// decide makes the record durable before the decision leaves. With presumed abort neither the coordinator nor
// a participant without a yes needs a record of an abort.
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

// answer sends what this process knows. The coordinator sends nothing while it waits for votes: the decision
// will follow. A participant that has not voted yes aborts, so that the uncertain process that asks can abort
// too.
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

// known returns the outcome by the coordinator's log, once it no longer waits for votes: what is not in the
// log is aborted.
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

// ask begins or repeats the cooperative termination protocol.
func (p *process) ask(s *parley.Step) {
	p.asking = true
	s.SendAll(parley.Msg{Kind: Ask})
	s.SetTimer(wait, 4*p.c.Delta)
}

// Start restores the state from the log after a crash.
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
	// This process has not voted yes, or the coordinator has not committed: abort.
	case p.state == problem.Initial:
		p.decide(s, problem.Abort)
	case p.state == problem.Uncertain:
		p.ask(s)
	// The crash may have come before or after the delivery.
	default:
		s.Deliver(p.self, p.state.Outcome().Decided(coordinator))
		if p.self == coordinator && p.state == problem.Committed {
			p.announce(s)
		}
	}
}

// replay applies the next record of the log, and returns whether it is valid. The coordinator has no record of
// its yes.
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

// show shows what a process that has voted yes waits for.
func (p *process) show(shown *parley.Shown) {
	switch {
	case p.self == coordinator && p.voted && p.state == problem.Initial && !p.ended:
		missing := parley.Everyone(p.c.N).Minus(p.yes)
		missing.Remove(p.self)
		shown.Derive(problem.Waits("the votes of " + shown.List(missing)))
	case p.state != problem.Uncertain:
	case p.asking:
		shown.Derive(problem.Waits("a process that knows the decision of " + shown.Called(coordinator)))
	default:
		shown.Derive(problem.Waits("the decision of " + shown.Called(coordinator)))
	}
}

func (p *process) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil {
		p.show(shown)
	}
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
