// Package threephase is three-phase commit with its termination protocol: atomic
// commitment that no crash can block, where a crash can be told from a slow message.
//
// The problem is atomic commitment, see package problem. Process 0 coordinates and
// votes by beginning; the others are its participants.
//
// The model: processes crash, and those that come back find their log as it was.
// Every message arrives within Delta, so that who does not answer in time has
// crashed: the time-outs of this package are an accurate detector, and suspicions
// from a layer beneath are believed as well. In that model no process that is up
// waits for one that is down, whatever number crashes. One that comes back asks the
// others, and decides when it hears. If all have crashed, they wait for the last of
// them. n processes send 5(n-1) messages if nothing fails.
//
// What is NOT promised: anything, if messages are lost or late, if the network
// parts, or if a process is suspected that has not crashed. Two groups that take
// each other for crashed may decide differently: one commits since it knows that all
// voted yes, and the other, where nobody knows it, aborts. For such networks there is
// package quorum.
//
// Why it works: between the votes and the commit the coordinator says PRECOMMIT, that
// all have voted yes, and commits when all that are up have acknowledged it. So
// nobody commits while somebody who is up is uncertain, and nobody aborts after
// somebody who is up is precommitted. When the coordinator crashes the others
// elect the lowest-ranked that is up. It asks for their states: if all are uncertain
// nobody, up or down, has committed, and it aborts; if one is precommitted nobody has
// aborted, and it takes the others to that state as well and commits. Who comes
// back has missed some of this, and takes no part.
//
// Source: Skeen (1981), "Nonblocking commit protocols"; Bernstein, Hadzilacos and
// Goodman (1987), section 7.5, with its election and its total failure.
package threephase

import (
	"fmt"

	"parley"
	"parley/commit/problem"
)

// The kinds of messages. Fields that are not named are not used.
const (
	VoteRequest  parley.Kind = iota + 1 // the coordinator asks for a vote
	Vote                                // to the coordinator. Value: 1 yes, 0 no
	Precommit                           // all have voted yes
	Ack                                 // I am precommitted
	Decision                            // Value: 1 commit, 0 abort
	Elect                               // all before you have crashed: coordinate
	StateRequest                        // I coordinate now: how far are you?
	Report                              // Value: the problem.State of who says it
	Ask                                 // of one that came back: what has been decided?
	CameBack                            // to such a one: so have I, and I know of nothing
)

// first is the process that coordinates as long as it is up.
const first parley.ID = 0

// wait is the one timer. What it waits for depends on the state.
const wait parley.Timer = 0

// phase is what a process that coordinates waits for.
type phase uint8

const (
	none      phase = iota
	voting          // votes; phase one
	polling         // states; the termination protocol
	preparing       // acknowledgements of PRECOMMIT; phase two
)

// standing is how far a process has come with its transaction.
type standing struct {
	state problem.State // durable: Initial, Uncertain, Committed or Aborted
	ready bool          // uncertain, and precommitted: a log has no use for that
	back  bool          // it has crashed and come back
}

// undecided tells whether this process takes part in termination: it has voted yes,
// knows no outcome and has been up all the time.
func (st *standing) undecided() bool { return !st.back && st.state == problem.Uncertain }

// reached is the state that others hear of.
func (st *standing) reached() problem.State {
	if st.ready {
		return problem.Precommitted
	}
	return st.state
}

// roster is which processes are up, as far as one of them knows.
type roster struct {
	n         int
	self      parley.ID
	leader    parley.ID  // who coordinates: the lowest that has not crashed
	suspected parley.Set // who has crashed
}

// others are those that are not known to have crashed.
func (r *roster) others() parley.Set {
	out := parley.Everyone(r.n).Minus(r.suspected)
	out.Remove(r.self)
	return out
}

// next gives up the leader for the next one that has not crashed.
func (r *roster) next() {
	r.suspected.Add(r.leader)
	for r.leader != r.self && r.suspected.Has(r.leader) {
		r.leader = (r.leader + 1) % parley.ID(r.n)
	}
}

// pending is what a process waits for.
type pending struct {
	delta   parley.Tick
	phase   phase      // of a process that coordinates
	waiting parley.Set // of a process that coordinates: who has to answer
}

// await begins a phase of a process that coordinates: it waits for an answer of each
// of the given ones, for as long as it takes to get it.
func (p *pending) await(s *parley.Step, next phase, of parley.Set) {
	p.phase, p.waiting = next, of
	s.SetTimer(wait, 2*p.delta)
}

// follow waits for what the coordinator says next. It has two deltas for its own
// questions and one for what it sends.
func (p *pending) follow(s *parley.Step) {
	p.phase, p.waiting = none, parley.Set{}
	s.SetTimer(wait, 3*p.delta)
}

// ask: a process that came back after its yes cannot tell what it missed. It asks
// until somebody knows, and those who decide without it tell it too.
func (p *pending) ask(s *parley.Step) {
	s.SendAll(parley.Msg{Kind: Ask})
	s.SetTimer(wait, 4*p.delta)
}

// process is one process.
type process struct {
	parley.Base
	standing
	roster
	pending

	voted    bool            // the vote has been given. At the first coordinator: it has begun
	asked    bool            // the coordinator has asked for it
	reports  []problem.State // of a process that coordinates: the states it was told
	alsoBack parley.Set      // of one that is back: who has told it that it is, too
	blocked  bool            // it waits for one that is down; that has been said
}

// Request is the vote of this process. That of the coordinator begins the transaction.
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
	// A participant that has not been asked by then may abort.
	default:
		s.SetTimer(wait, 3*p.delta)
	}
}

// begin, phase one: the coordinator sends a VOTE-REQ to all, and that is its own yes.
// A process that has crashed by then will not vote.
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

// requested: a participant is asked for its vote.
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

// vote says yes: the record of it is durable before the vote leaves.
func (p *process) vote(s *parley.Step) {
	p.state = problem.Uncertain
	s.Append([]byte(problem.RecordYes))
	s.Send(first, parley.Msg{Kind: Vote, Value: 1})
	p.follow(s)
}

// no: who votes no aborts at once.
func (p *process) no(s *parley.Step) {
	if p.asked {
		s.Send(first, parley.Msg{Kind: Vote})
	}
	p.decide(s, problem.Abort)
}

// collect takes in a vote. One no is enough to abort, and all yes to go on.
func (p *process) collect(s *parley.Step, from parley.ID, yes bool) {
	switch {
	case p.state.Outcome() != problem.Undecided: // it crosses with the decision
	case p.phase != voting || !p.waiting.Has(from):
		s.Refuse(from, "vote that nobody waits for")
	case !yes:
		p.conclude(s, problem.Abort)
	default:
		p.arrived(s, from)
	}
}

// arrived: what this process waits for has come from one, or will never come. When
// it has come from all the phase is over.
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

// prepare, phase two: send PRECOMMIT to all that are up and wait for their
// acknowledgements.
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

// prepared: a participant is precommitted, and acknowledges it.
func (p *process) prepared(s *parley.Step, from parley.ID) {
	if !p.undecided() || from != p.leader {
		s.Refuse(from, "precommit of one that does not coordinate, or too late")
		return
	}
	p.ready = true
	s.Send(from, parley.Msg{Kind: Ack})
	p.follow(s)
}

// acknowledged: phase three begins when all that are up are precommitted.
func (p *process) acknowledged(s *parley.Step, from parley.ID) {
	if p.phase != preparing || !p.waiting.Has(from) {
		s.Refuse(from, "acknowledgement that nobody waits for")
		return
	}
	p.arrived(s, from)
}

// conclude, phase three: the coordinator decides and tells all.
func (p *process) conclude(s *parley.Step, o problem.Outcome) {
	p.decide(s, o)
	s.SendAll(parley.Msg{Kind: Decision, Value: o.Bit()})
}

// told: another process knows the outcome. A coordinator passes it on.
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

// decide: the record is durable before the decision leaves. Without a record a
// process that comes back aborts, so that who has not voted yes needs none.
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

// Start. After a crash the log says how far this process had come.
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
	default: // it is not known whether the crash came before or after the delivery
		s.Deliver(p.self, p.state.Outcome().Decided(first))
	}
}

// State visits every variable.
func (p *process) State(v *parley.Vars) {
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
