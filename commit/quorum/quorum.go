// Package quorum is commit by majorities: atomic commitment that survives a network
// which parts. The side with more than half of the processes goes on; the other waits.
//
// The problem is atomic commitment, see package problem. Every process votes; process
// 0 asks for the votes, and others take over when it does not.
//
// The bound: asynchronous messages, crash faults, n >= 2m+1. Messages may be lost,
// doubled, late and out of order, and suspicions may be wrong. Processes that come
// back find their log as it was. Atomicity, commit validity and stability hold in
// every run, and are uniform. Everybody decides once a majority is up and connected,
// and its ballots are left alone for as long as one takes. A process that cannot
// reach a majority is blocked, and says so. n processes send 5(n-1) messages if
// nothing fails, which is what three phases cost.
//
// The outcome is the decision of one ballot instance, see package ballot: PREPARE
// asks for the votes, and the report that comes with each promise is the vote. The
// owner of a ballot waits for the votes of all, but not for ever: a majority is
// enough to go on. If it has a yes of every single process it proposes to commit, and
// otherwise to abort.
//
// Why it works: there is one decision, whatever number of processes ask for it, so no
// two can differ. Commit is proposed only by one that has heard all say yes. Nobody
// decides alone, not even to abort: an uncertain process does not have to know what
// the coordinator was about to do, only what a majority accepted.
//
// Source: the idea is that of Gray and Lamport (2006), "Consensus on transaction
// commit", in its simplest form: one instance and not one for each vote. It has one
// message delay more than theirs.
package quorum

import (
	"fmt"

	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
)

// began is the process that asks first.
const began parley.ID = 0

// The timers, and the longest that one is set for.
const (
	votes   parley.Timer = iota + 1 // the owner of a ballot waits for votes
	again                           // until the next ballot
	hold                            // somebody has asked for a vote that is not there yet
	forever parley.Tick  = 1 << 55
)

// process is one process.
type process struct {
	c     Config
	self  parley.ID
	synod *ballot.Instance

	// Durable.
	yes bool // its vote, if it is yes

	// Volatile.
	voted     bool        // the vote has been given, or is not waited for any more
	asked     parley.ID   // whose PREPARE waits for the vote; All: nobody's
	ballot    uint64      // and which
	suspected parley.Set  // who may have crashed
	enough    bool        // the own ballot waits for votes no longer
	heard     parley.Set  // who has said anything since the last own ballot
	wait      parley.Tick // until the next own ballot; 0: none is planned
	blocked   bool        // no majority can be reached; that has been said
}

// Request is the vote of this process. A yes is durable before it is said.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	yes, ok := problem.Given(s, m, p.voted || p.decided())
	if !ok {
		return
	}
	p.voted, p.yes = true, yes
	if yes {
		s.Append([]byte(problem.RecordYes))
	}
	p.begin(s)
	p.release(s)
}

// begin: the process of the lowest rank that is not suspected asks for the votes at
// once; the process of rank r if there is no decision after a time that grows with r.
func (p *process) begin(s *parley.Step) {
	p.wait = p.c.Votes + (first+parley.Tick(p.self)*stagger)*p.c.Delta
	if p.lowest() {
		p.propose(s)
	}
	p.rest(s)
}

// rest waits for the decision.
func (p *process) rest(s *parley.Step) {
	if !p.decided() {
		s.SetTimer(again, p.wait)
		p.wait = min(2*p.wait, forever)
	}
}

// propose starts a ballot: its PREPARE asks for the votes.
func (p *process) propose(s *parley.Step) {
	p.enough, p.heard = false, parley.SetOf(p.self)
	p.synod.Propose(s)
	if p.synod.Started() {
		s.SetTimer(votes, p.c.Votes+patience*p.c.Delta)
	}
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == parley.Suspect:
		p.suspect(s, m.Origin)
	case m.Kind >= parley.Local:
	case misfit(m):
		s.Refuse(from, "value that is no outcome")
	// It is asked for its vote, and does not have it yet.
	case m.Kind == ballot.Prepare && !p.voted && !p.decided():
		p.asked, p.ballot = from, m.Seq
		s.SetTimer(hold, p.c.Votes)
	default:
		p.suspected.Remove(from)
		p.heard.Add(from)
		p.synod.Receive(s, from, m)
	}
}

// release answers the PREPARE that has waited for the vote.
func (p *process) release(s *parley.Step) {
	if from := p.asked; from != parley.All {
		p.asked = parley.All
		s.StopTimer(hold)
		p.Receive(s, from, parley.Msg{Kind: ballot.Prepare, Seq: p.ballot})
	}
}

// suspect: a detector says that a process has crashed. That may make this one the
// lowest, or be what a ballot waits for.
func (p *process) suspect(s *parley.Step, q parley.ID) {
	before := p.lowest()
	if q == p.self || !p.suspected.Add(q) {
		return
	}
	if !before && p.lowest() && p.voted && !p.decided() {
		p.propose(s)
	}
	p.synod.Reconsider(s)
}

// lowest tells whether all processes of a lower rank are suspected.
func (p *process) lowest() bool {
	return parley.Everyone(int(p.self)).Minus(p.suspected) == parley.Set{}
}

func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	if p.decided() {
		return
	}
	switch t {
	// A vote that does not come in time is a no.
	case hold:
		p.voted = true
		p.release(s)
	// The votes of a majority will have to do.
	case votes:
		p.enough = true
		p.synod.Reconsider(s)
	case again:
		if p.synod.Started() && 2*p.heard.Len() <= s.N && p.yes && !p.blocked {
			p.blocked = true
			s.Indicate(parley.Msg{Kind: problem.Blocked})
		}
		p.propose(s)
		p.rest(s)
	}
}

// Report is the vote, as it goes with this process's promise.
func (p *process) Report() []byte {
	if p.yes {
		return []byte("yes")
	}
	return []byte("no")
}

// Enough: the votes of all that are not suspected, until it has waited for long.
func (p *process) Enough(reports []ballot.Report) bool {
	var reporters parley.Set
	for _, r := range reports {
		reporters.Add(r.From)
	}
	return p.enough || parley.Everyone(p.c.N).Minus(p.suspected).Minus(reporters) == parley.Set{}
}

// Choose: commit if every single process has said yes, else abort.
func (p *process) Choose(reports []ballot.Report) []byte {
	for _, r := range reports {
		if string(r.Body) != "yes" {
			return []byte(problem.Abort.String())
		}
	}
	if len(reports) < p.c.N {
		return []byte(problem.Abort.String())
	}
	return []byte(problem.Commit.String())
}

// Decided: the ballots have an outcome. Their records are not needed any more.
func (p *process) Decided(s *parley.Step, _ parley.ID, value []byte) {
	p.asked, p.blocked = parley.All, false
	s.StopTimer(again)
	s.StopTimer(votes)
	s.StopTimer(hold)
	s.Deliver(p.self, problem.ReadOutcome(value).Decided(began))
	s.Compact()
}

func (p *process) decided() bool {
	_, decided := p.synod.Decision()
	return decided
}

// Start: a process that comes back knows its yes, what it promised and what it
// accepted. If it does not know the outcome it asks for it; a vote that is not in its
// log is a no.
func (p *process) Start(s *parley.Step) {
	for _, r := range s.Log {
		switch {
		case string(r.Body) == problem.RecordYes:
			p.yes = true
		// What its log does not say any more, others rely on.
		case !p.synod.Replay(r.Body):
			panic(fmt.Sprintf("quorum: process %d does not know its record %q", s.Self, r.Body))
		}
	}
	if value, decided := p.synod.Decision(); decided {
		s.Deliver(p.self, problem.ReadOutcome(value).Decided(began))
	} else if s.Restart {
		p.voted = true
		p.begin(s)
	}
}

// State visits every variable.
func (p *process) State(v *parley.Vars) {
	v.Durable(func() { v.Bool("yes", &p.yes) })
	v.Bool("voted", &p.voted)
	v.ID("asked", &p.asked)
	parley.Num(v, "asked ballot", &p.ballot)
	v.Set("suspected", &p.suspected)
	v.Bool("enough", &p.enough)
	v.Set("heard", &p.heard)
	parley.Num(v, "wait", &p.wait)
	v.Bool("blocked", &p.blocked)
	v.Machine("ballot", p.synod)
	if value, decided := p.synod.Decision(); decided && problem.ReadOutcome(value) == problem.Undecided {
		v.Fail() // damaged: no other value is ever decided
	}
}
