// Package quorum implements commit by majorities: atomic commitment that survives a network partition. The side
// with more than half of the processes continues, and the other side waits.
//
// The problem is atomic commitment (package problem). Every process votes. Process 0 asks for the votes. If it does
// not ask, another process takes over its role.
//
// The bound: asynchronous messages, crash faults, n >= 2m+1. Messages may be lost, duplicated, late and out of order,
// and suspicions may be wrong. Processes that restart find their log intact. Atomicity, commit validity and stability
// hold in every run, and are uniform. All processes decide if a majority is up and connected, and if for long enough no
// second ballot disturbs the active one. A process that cannot reach a majority is blocked, and indicates this. If
// nothing fails, n processes send 5(n-1) messages, as many as in three-phase commit.
//
// The outcome is the decision of one instance of package ballot. The message PREPARE of a ballot asks for the votes.
// Each process answers with a promise. The report in the promise is its vote. The owner of the ballot (the process
// that started it) waits for the votes of all processes, but only for a limited time. After that the votes of a
// majority suffice. If the owner has a yes from every process, it proposes to commit, and otherwise to abort.
//
// Why it works: there is only one decision, however many processes start ballots, so no two processes decide
// differently. A process proposes to commit only if all have voted yes. No process decides alone, not even to abort.
// So a process in doubt needs to know only which value a majority accepted, and need not ask the coordinator.
//
// Source: the idea of Gray and Lamport (2006), "Consensus on transaction commit", in its simplest form. They use one
// instance of the ballot protocol for each vote. This package uses one instance for the whole transaction, which
// takes one message delay more.
package quorum

import (
	"fmt"

	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
)

// began is the process that asks first.
const began parley.ID = 0

// The timers, and the longest time of one.
const (
	votes   parley.Timer = iota + 1 // the owner of a ballot waits for votes
	again                           // until the next ballot
	hold                            // a vote is requested and not there yet
	forever parley.Tick  = 1 << 55
)

// process is the machine of one process.
type process struct {
	c     Config
	self  parley.ID
	synod *ballot.Instance

	// Durable.
	yes bool // its vote, if it is yes

	// Volatile.
	voted     bool        // the vote is there, or no longer waited for
	asked     parley.ID   // whose PREPARE waits for the vote; All: nobody's
	ballot    uint64      // the ballot of that PREPARE
	suspected parley.Set  // processes that may have crashed
	enough    bool        // the own ballot no longer waits for votes
	heard     parley.Set  // processes that sent anything since the last own ballot
	wait      parley.Tick // until the next own ballot; 0: none is planned
	blocked   bool        // no majority is reachable, and that was indicated
}

// Request handles the vote of this process. A yes is durable before it leaves the process.
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

// begin starts the vote. The lowest process that is not suspected asks for the votes at once; process r asks
// if there is no decision after a time that grows with r.
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
	// The process is asked for its vote, and does not have it yet.
	case m.Kind == ballot.Prepare && !p.voted && !p.decided():
		p.asked, p.ballot = from, m.Seq
		s.SetTimer(hold, p.c.Votes)
	default:
		p.suspected.Remove(from)
		p.heard.Add(from)
		p.synod.Receive(s, from, m)
	}
}

// release answers the PREPARE that waited for the vote.
func (p *process) release(s *parley.Step) {
	if from := p.asked; from != parley.All {
		p.asked = parley.All
		s.StopTimer(hold)
		p.Receive(s, from, parley.Msg{Kind: ballot.Prepare, Seq: p.ballot})
	}
}

// suspect handles a detector's suspicion. It may make this process the lowest, or end the wait of a ballot.
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

// lowest reports whether all processes with a lower ID are suspected.
func (p *process) lowest() bool {
	return parley.Everyone(int(p.self)).Minus(p.suspected) == parley.Set{}
}

func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	if p.decided() {
		return
	}
	switch t {
	// A vote that is late is a no.
	case hold:
		p.voted = true
		p.release(s)
	// A majority of votes must suffice.
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

// Report returns the vote, which accompanies this process's promise.
func (p *process) Report() []byte {
	if p.yes {
		return []byte("yes")
	}
	return []byte("no")
}

// Enough reports whether all processes that are not suspected have voted, or the time for votes is over.
func (p *process) Enough(reports []ballot.Report) bool {
	var reporters parley.Set
	for _, r := range reports {
		reporters.Add(r.From)
	}
	return p.enough || parley.Everyone(p.c.N).Minus(p.suspected).Minus(reporters) == parley.Set{}
}

// Choose returns commit if every process has voted yes, otherwise abort.
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

// Decided delivers the outcome of the ballots. Their records are no longer needed.
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

// Start restores the yes, the promises and the accepted value from the log. Without a known outcome the
// process asks for it; a vote that is not in the log is a no.
func (p *process) Start(s *parley.Step) {
	for _, r := range s.Log {
		switch {
		case string(r.Body) == problem.RecordYes:
			p.yes = true
		// Other processes rely on what the log should contain.
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

// State visits every variable of the process.
func (p *process) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil && p.yes && !p.decided() {
		what := "the decision of a majority"
		if p.blocked {
			what = "a majority that it can reach"
		}
		shown.Derive(problem.Waits(what))
	}
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
