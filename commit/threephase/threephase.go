// Package threephase implements three-phase commit with its termination protocol. This atomic commitment never blocks
// because of a crash, if processes can distinguish a crash from a slow message.
//
// The problem is atomic commitment (package problem). Process 0 is the coordinator: it begins the transaction,
// which also counts as its yes. The others are its participants.
//
// The model: processes crash, and processes that restart find their log intact. Every message arrives within Delta.
// So a process that does not answer in time has crashed, and the timeouts of this package are an accurate detector.
// The package also accepts suspicions from a layer below. In this model no process that is up waits for a process
// that is down, however many processes crash. A process that restarts asks the others, and decides when it gets an
// answer. If all processes have crashed and none knows the outcome, they decide when all of them have restarted. If
// nothing fails, n processes send 5(n-1) messages.
//
// NOTHING is promised if messages are lost or late, if the network is partitioned, or if a live process is suspected.
// Then each of two groups may assume that the other group has crashed, and the groups may decide differently. One
// group commits because one of its processes knows that all voted yes. The other group aborts because none of its
// processes knows this. Use package quorum for such networks.
//
// Why it works: between the votes and the commit the coordinator sends PRECOMMIT, which says that all have voted yes.
// It commits when all processes that are up have acknowledged PRECOMMIT. A process is uncertain if it has voted yes
// and has received no PRECOMMIT. A process is precommitted if it has received PRECOMMIT. So no process commits while
// a process that is up is uncertain, and no process aborts after a process that is up is precommitted.
//
// When the coordinator crashes, the others elect the process with the lowest ID that is up. The elected process asks
// for the states of the others. If all of them are uncertain, no process has committed, not even a process that is
// down. Then the elected process aborts. If a process is precommitted, no process has aborted. Then the elected
// process sends PRECOMMIT to the others, and commits. A restarted process has missed some of these messages, so it
// takes no part in the election.
//
// Source: Skeen (1981), "Nonblocking commit protocols". The election, and the rule after a crash of all processes,
// are from Bernstein, Hadzilacos and Goodman (1987), section 7.5.
package threephase

import (
	"fmt"

	"parley"
	"parley/commit/problem"
)

// The kinds of messages. Fields that are not named are unused.
const (
	VoteRequest  parley.Kind = iota + 1 // the coordinator asks for a vote
	Vote                                // to the coordinator. Value: 1 yes, 0 no
	Precommit                           // all have voted yes
	Ack                                 // I am precommitted
	Decision                            // Value: 1 commit, 0 abort
	Elect                               // all processes before you have crashed: coordinate
	StateRequest                        // I coordinate now: how far are you?
	Report                              // Value: the problem.State of the sender
	Ask                                 // from a restarted process: what has been decided?
	CameBack                            // answer to Ask: I restarted too, and know no decision
)

// first is the process that coordinates as long as it is up.
const first parley.ID = 0

// wait is the only timer. Its meaning depends on the state.
const wait parley.Timer = 0

// phase is what a coordinating process waits for.
type phase uint8

const (
	none      phase = iota
	voting          // votes; phase one
	polling         // states; the termination protocol
	preparing       // acknowledgements of PRECOMMIT; phase two
)

// progress is the progress of a process with its transaction.
type progress struct {
	state problem.State // durable: Initial, Uncertain, Committed or Aborted
	ready bool          // precommitted; a log does not need that
	back  bool          // it has restarted after a crash
}

// undecided reports whether this process takes part in termination: it has voted yes, knows no outcome and has
// never crashed.
func (st *progress) undecided() bool { return !st.back && st.state == problem.Uncertain }

// reached returns the state that is sent to others.
func (st *progress) reached() problem.State {
	if st.ready {
		return problem.Precommitted
	}
	return st.state
}

// roster holds which processes are up, as far as this one knows.
type roster struct {
	n         int
	self      parley.ID
	leader    parley.ID  // the coordinator: the lowest process that has not crashed
	suspected parley.Set // processes that have crashed
}

// others returns the other processes that are not known to have crashed.
func (r *roster) others() parley.Set {
	out := parley.Everyone(r.n).Minus(r.suspected)
	out.Remove(r.self)
	return out
}

// next replaces the leader by the next process that has not crashed.
func (r *roster) next() {
	r.suspected.Add(r.leader)
	for r.leader != r.self && r.suspected.Has(r.leader) {
		r.leader = (r.leader + 1) % parley.ID(r.n)
	}
}

// pending is what a process waits for.
type pending struct {
	delta   parley.Tick
	phase   phase      // at a coordinating process
	waiting parley.Set // at a coordinating process: the processes that must answer
}

// await begins a phase of a coordinating process: it waits for an answer of each given process, for a round
// trip.
func (p *pending) await(s *parley.Step, next phase, of parley.Set) {
	p.phase, p.waiting = next, of
	s.SetTimer(wait, 2*p.delta)
}

// follow waits for the coordinator's next message: two Deltas for its own round trip and one for the message.
func (p *pending) follow(s *parley.Step) {
	p.phase, p.waiting = none, parley.Set{}
	s.SetTimer(wait, 3*p.delta)
}

// ask asks for the outcome at a process that restarted after its yes, because it does not know what it missed.
// It repeats that until a process knows; those that decide without it send it the decision, too.
func (p *pending) ask(s *parley.Step) {
	s.SendAll(parley.Msg{Kind: Ask})
	s.SetTimer(wait, 4*p.delta)
}

// process is the machine of one process.
type process struct {
	parley.Base
	progress
	roster
	pending

	voted    bool            // the vote is there. At the first coordinator: it has begun
	asked    bool            // the coordinator has asked for it
	reports  []problem.State // at a coordinating process: the states that it got
	alsoBack parley.Set      // at a restarted process: the others that have restarted
	blocked  bool            // it waits for a process that is down, and that was indicated
}

// Request handles the vote of this process. The coordinator's vote begins the transaction.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	yes, ok := problem.Given(s, m, p.voted || p.state != problem.Initial)
	if !ok {
		return
	}
	p.voted = true
	switch {
	case p.self == first && yes:
		p.begin(s)
	case p.self == first:
		p.conclude(s, problem.Abort)
	case !yes:
		p.no(s)
	case p.asked:
		p.vote(s)
	// A participant that is not asked by then may abort.
	default:
		s.SetTimer(wait, 3*p.delta)
	}
}

// begin starts phase one: the coordinator sends a VOTE-REQ to all, which is its own yes. A process that has
// crashed by then will not vote.
func (p *process) begin(s *parley.Step) {
	if p.suspected != (parley.Set{}) {
		p.conclude(s, problem.Abort)
		return
	}
	p.state = problem.Uncertain
	s.Append([]byte(problem.RecordYes))
	p.await(s, voting, p.others())
	s.SendAll(parley.Msg{Kind: VoteRequest})
}

// requested handles the request for a participant's vote.
func (p *process) requested(s *parley.Step) {
	switch {
	case p.state == problem.Initial && p.voted:
		p.vote(s)
	case p.state == problem.Initial:
		p.asked = true
	case p.state == problem.Aborted:
		s.Send(first, parley.Msg{Kind: Vote})
	default:
		s.Refuse(first, "second request for a vote")
	}
}

// vote votes yes: the record is durable before the vote leaves.
func (p *process) vote(s *parley.Step) {
	p.state = problem.Uncertain
	s.Append([]byte(problem.RecordYes))
	s.Send(first, parley.Msg{Kind: Vote, Value: 1})
	p.follow(s)
}

// no votes no, and aborts at once.
func (p *process) no(s *parley.Step) {
	if p.asked {
		s.Send(first, parley.Msg{Kind: Vote})
	}
	p.decide(s, problem.Abort)
}

// collect handles a vote. One no suffices to abort; the coordinator continues when all have voted yes.
func (p *process) collect(s *parley.Step, from parley.ID, yes bool) {
	switch {
	case p.state.Outcome() != problem.Undecided: // it crossed with the decision
	case p.phase != voting || !p.waiting.Has(from):
		s.Refuse(from, "vote that nobody waits for")
	case !yes:
		p.conclude(s, problem.Abort)
	default:
		p.arrived(s, from)
	}
}

// arrived records that an answer has arrived, or will never arrive. The phase is over when no answer is
// missing.
func (p *process) arrived(s *parley.Step, from parley.ID) {
	p.waiting.Remove(from)
	if p.waiting != (parley.Set{}) {
		return
	}
	switch p.phase {
	case voting:
		p.prepare(s)
	case polling:
		p.terminate(s)
	case preparing:
		p.conclude(s, problem.Commit)
	}
}

// prepare starts phase two: send PRECOMMIT to all that are up and wait for their acknowledgements.
func (p *process) prepare(s *parley.Step) {
	p.ready = true
	to := p.others()
	if to == (parley.Set{}) {
		p.conclude(s, problem.Commit)
		return
	}
	p.await(s, preparing, to)
	s.SendTo(to, parley.Msg{Kind: Precommit})
}

// prepared handles PRECOMMIT at a participant, and acknowledges it.
func (p *process) prepared(s *parley.Step, from parley.ID) {
	if !p.undecided() || from != p.leader {
		s.Refuse(from, "precommit of one that does not coordinate, or too late")
		return
	}
	p.ready = true
	s.Send(from, parley.Msg{Kind: Ack})
	p.follow(s)
}

// acknowledged handles an acknowledgement. Phase three begins when all that are up are precommitted.
func (p *process) acknowledged(s *parley.Step, from parley.ID) {
	if p.phase != preparing || !p.waiting.Has(from) {
		s.Refuse(from, "acknowledgement that nobody waits for")
		return
	}
	p.arrived(s, from)
}

// conclude is phase three: the coordinator decides and sends the decision to all.
func (p *process) conclude(s *parley.Step, o problem.Outcome) {
	p.decide(s, o)
	s.SendAll(parley.Msg{Kind: Decision, Value: o.Bit()})
}

// told handles another process's decision. A coordinator passes it on.
func (p *process) told(s *parley.Step, from parley.ID, o problem.Outcome) {
	switch {
	case p.state.Outcome() == o:
	case p.state.Outcome() != problem.Undecided:
		s.Refuse(from, "other than what is decided")
	case p.state == problem.Initial && o == problem.Commit:
		s.Refuse(from, "commit without the yes of this process")
	case p.phase != none:
		p.conclude(s, o)
	default:
		p.decide(s, o)
	}
}

// decide makes the record durable before the decision leaves. A process that restarts without a record aborts,
// so one that has not voted yes needs no record.
func (p *process) decide(s *parley.Step, o problem.Outcome) {
	switch {
	case o == problem.Commit:
		s.Append([]byte(problem.RecordCommitted))
	case p.state != problem.Initial:
		s.Append([]byte(problem.RecordAborted))
	}
	p.state, p.ready, p.blocked = o.Reached(), false, false
	p.phase, p.waiting, p.alsoBack = none, parley.Set{}, parley.Set{}
	s.StopTimer(wait)
	s.Deliver(p.self, o.Decided(first))
}

// Start restores the state from the log after a crash.
func (p *process) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	p.back = true
	for _, r := range s.Log {
		if !p.state.Replay(string(r.Body)) {
			panic(fmt.Sprintf("threephase: process %d does not know its log: %q in state %s", s.Self, r.Body, p.state))
		}
	}
	switch p.state {
	case problem.Initial: // it has not voted yes: abort
		p.decide(s, problem.Abort)
	case problem.Uncertain:
		p.ask(s)
	default: // the crash may have come before or after the delivery
		s.Deliver(p.self, p.state.Outcome().Decided(first))
	}
}

// show shows what a process that has voted yes waits for.
func show(p *process, shown *parley.Shown) {
	what := "the decision of " + shown.Called(p.leader)
	switch {
	case p.state != problem.Uncertain:
		return
	case p.back:
		what = "a process that knows the decision"
	case p.leader == p.self && p.phase == voting:
		what = "the votes of " + shown.List(p.waiting)
	case p.leader == p.self && p.phase == polling:
		what = "the states of " + shown.List(p.waiting)
	case p.leader == p.self && p.phase == preparing:
		what = "the acknowledgements of " + shown.List(p.waiting)
	}
	shown.Derive(problem.Waits(what))
}

func (p *process) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil {
		show(p, shown)
	}
	v.Durable(func() { parley.Num(v, "state", &p.state) })
	v.Bool("precommitted", &p.ready)
	v.Bool("voted", &p.voted)
	v.Bool("asked", &p.asked)
	v.ID("leader", &p.leader)
	v.Set("suspected", &p.suspected)
	parley.Num(v, "phase", &p.phase)
	v.Set("waiting", &p.waiting)
	parley.Slice(v, "reports", &p.reports, func(_ int, r *problem.State) { parley.Num(v, "report", r) })
	v.Bool("back", &p.back)
	v.Set("also back", &p.alsoBack)
	v.Bool("blocked", &p.blocked)
}
