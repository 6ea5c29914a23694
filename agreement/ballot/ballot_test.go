package ballot_test

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/agreement/ballot"
)

// seeker is the smallest machine around an instance: it chooses its own name.
type seeker struct {
	parley.Base
	in      *ballot.Instance
	self    parley.ID
	decided []byte // scratch: in the current clause
}

func newSeeker(self parley.ID, n int) *seeker {
	p := &seeker{self: self}
	p.in = ballot.NewInstance(self, parley.Everyone(n), p)
	return p
}

func (p *seeker) Report() []byte                { return nil }
func (p *seeker) Choose([]ballot.Report) []byte { return []byte{byte('a' + p.self)} }
func (p *seeker) Enough([]ballot.Report) bool   { return true }
func (p *seeker) State(v *parley.Vars)          { p.in.State(v) }
func (p *seeker) Decided(_ *parley.Step, _ parley.ID, v []byte) {
	p.decided = append(p.decided, v...)
}

// quiet is a host that is never used.
type quiet struct{}

func (quiet) Choose(int) int                        { return 0 }
func (quiet) Sign(parley.ID, []byte) []byte         { return nil }
func (quiet) Verify(parley.ID, []byte, []byte) bool { return false }
func (quiet) Refused(parley.ID, parley.ID, string)  {}

// post is a system of seekers; tests deliver their messages one by one.
type post struct {
	t     *testing.T
	procs []*seeker
	log   [][][]byte // records, by process
	sent  []parley.Effect
}

func newPost(t *testing.T, n int) *post {
	p := &post{t: t, log: make([][][]byte, n)}
	for id := range parley.ID(n) {
		p.procs = append(p.procs, newSeeker(id, n))
	}
	return p
}

// do runs a clause and keeps its sends and log records.
func (p *post) do(who parley.ID, clause func(s *parley.Step, in *ballot.Instance)) {
	s := &parley.Step{Self: who, N: len(p.procs), Host: quiet{}}
	clause(s, p.procs[who].in)
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpSend:
			p.sent = append(p.sent, e)
		case parley.OpAppend:
			p.log[who] = append(p.log[who], e.Msg.Body)
		}
	}
}

func (p *post) propose(who parley.ID) {
	p.do(who, func(s *parley.Step, in *ballot.Instance) { in.Propose(s) })
}

func (p *post) restart(who parley.ID) {
	p.procs[who] = newSeeker(who, len(p.procs))
	for _, rec := range p.log[who] {
		if !p.procs[who].in.Replay(rec) {
			p.t.Fatalf("process %d does not know its record %x", who, rec)
		}
	}
}

// deliver delivers the oldest message of a kind from one process to another.
func (p *post) deliver(kind parley.Kind, from, to parley.ID) {
	p.t.Helper()
	p.do(to, func(s *parley.Step, in *ballot.Instance) { in.Receive(s, from, p.take(kind, from, to)) })
}

func (p *post) find(kind parley.Kind, from, to parley.ID) int {
	return slices.IndexFunc(p.sent, func(e parley.Effect) bool {
		return e.Msg.Kind == kind && e.From == from && e.To == to
	})
}

func (p *post) take(kind parley.Kind, from, to parley.ID) parley.Msg {
	p.t.Helper()
	i := p.find(kind, from, to)
	if i < 0 {
		p.t.Fatalf("%d has sent nothing of kind %d to %d; on their way are %v", from, kind, to, p.sent)
	}
	m := p.sent[i].Msg
	p.sent = slices.Delete(p.sent, i, i+1)
	return m
}

func (p *post) lose() { p.sent = nil }

// round sends ask from process who to the given others, and their answers back.
func (p *post) round(ask, answer parley.Kind, who parley.ID, others ...parley.ID) {
	p.t.Helper()
	for _, q := range others {
		p.deliver(ask, who, q)
		p.deliver(answer, q, who)
	}
}

func (p *post) decided(want ...string) {
	p.t.Helper()
	for id, q := range p.procs {
		v, _ := q.in.Decision()
		if string(v) != want[id] || string(q.decided) != want[id] {
			p.t.Errorf("process %d decided %q and told of %q, expected %q", id, v, q.decided, want[id])
		}
	}
}

// "v := av of the greatest ab": every later ballot proposes a value that a majority
// accepted; if several were accepted, the value of the highest ballot counts.
func TestGreatestAccepted(t *testing.T) {
	p := newPost(t, 5)
	// Ballot 1 of 0: only 0 and 1 accept its value a.
	p.propose(0)
	p.round(ballot.Prepare, ballot.Promise, 0, 1, 2)
	p.deliver(ballot.Accept, 0, 1)
	p.lose()
	// Ballot 1 of 4, which is higher: 2, 3 and 4, which have accepted nothing, take part.
	p.propose(4)
	p.round(ballot.Prepare, ballot.Promise, 4, 2, 3)
	p.deliver(ballot.Accept, 4, 3)
	p.lose()
	// Process 2 receives promises from both.
	p.propose(2)
	p.round(ballot.Prepare, ballot.Promise, 2, 3, 1)
	p.round(ballot.Accept, ballot.Accepted, 2, 0, 1)
	p.decided("", "", "e", "", "")
}

// "The proposer decides the v it remembered, never its own acceptor's av", which may
// be an older value if its acceptor has promised a higher ballot since.
func TestRemembered(t *testing.T) {
	p := newPost(t, 5)
	p.propose(0) // ballot 5: a is accepted by 0
	p.round(ballot.Prepare, ballot.Promise, 0, 3, 4)
	p.lose()
	p.propose(1) // ballot 6: b is accepted by 1
	p.round(ballot.Prepare, ballot.Promise, 1, 3, 4)
	p.lose()
	p.propose(0) // ballot 10
	p.deliver(ballot.Prepare, 0, 1)
	p.deliver(ballot.Prepare, 0, 3)
	p.propose(2)
	p.take(ballot.Prepare, 2, 0)
	p.propose(2) // ballot 12
	p.round(ballot.Prepare, ballot.Promise, 2, 0)
	p.deliver(ballot.Promise, 1, 0)
	p.deliver(ballot.Promise, 3, 0)
	p.round(ballot.Accept, ballot.Accepted, 0, 1, 3, 4)
	p.decided("b", "", "", "", "")
	p.deliver(ballot.Decision, 0, 1)
	p.decided("b", "b", "", "", "")
}

// "b < promised -> REFUSE(promised)", for PREPARE and for ACCEPT, and the refused
// owner's next ballot is above.
func TestRefuse(t *testing.T) {
	p := newPost(t, 3)
	p.propose(0)
	p.propose(2)
	p.take(ballot.Prepare, 2, 1)
	p.propose(2) // ballot 8
	p.round(ballot.Prepare, ballot.Promise, 2, 1)
	p.round(ballot.Prepare, ballot.Refuse, 0, 1)
	p.lose()
	p.propose(0)
	if b := p.take(ballot.Prepare, 0, 1).Seq; b != 9 {
		t.Errorf("after the refusal for ballot 8 process 0 starts ballot %d, expected 9", b)
	}
}

// "A restarted owner never reuses a ballot": its own promise is in the log before
// PREPARE leaves.
func TestBallotsAreNotReused(t *testing.T) {
	p := newPost(t, 3)
	var used []uint64
	for range 4 {
		p.propose(1)
		used = append(used, p.take(ballot.Prepare, 1, 0).Seq)
		p.lose()
		p.restart(1)
	}
	if want := []uint64{4, 7, 10, 13}; !slices.Equal(used, want) {
		t.Errorf("ballots %v were used, expected %v", used, want)
	}
}

// Promises and accepted values survive a crash.
func TestRestart(t *testing.T) {
	p := newPost(t, 3)
	p.propose(0)
	p.round(ballot.Prepare, ballot.Promise, 0, 1)
	p.deliver(ballot.Accept, 0, 1)
	p.lose()
	p.restart(1)
	p.restart(0)
	p.propose(2) // ballot 5
	p.round(ballot.Prepare, ballot.Promise, 2, 1)
	p.round(ballot.Accept, ballot.Accepted, 2, 1)
	p.decided("", "", "a")
	p.restart(2)
	if v, decided := p.procs[2].in.Decision(); !decided || string(v) != "a" {
		t.Errorf("a decision did not outlive a crash: %q", v)
	}
}

// "decided -> send DECIDE(v)" to every process that asks, and the owner is notified once.
func TestDecidedTells(t *testing.T) {
	p := newPost(t, 3)
	p.propose(0)
	p.round(ballot.Prepare, ballot.Promise, 0, 1)
	p.round(ballot.Accept, ballot.Accepted, 0, 1)
	p.lose()
	p.propose(2)
	p.round(ballot.Prepare, ballot.Decision, 2, 0)
	p.lose()
	p.propose(1)
	p.deliver(ballot.Prepare, 1, 2)
	p.deliver(ballot.Decision, 2, 1)
	p.decided("a", "a", "a")
	again := parley.Msg{Kind: ballot.Decision, Body: []byte("a")}
	p.do(1, func(s *parley.Step, in *ballot.Instance) { in.Receive(s, 0, again) })
	p.decided("a", "a", "a")
}

// clerk chooses from the reports, and waits for all of them.
type clerk struct {
	seeker
	wants int
	asked int
}

func (c *clerk) Report() []byte                { c.asked++; return fmt.Appendf(nil, "%d", c.asked) }
func (c *clerk) Enough(r []ballot.Report) bool { return len(r) >= c.wants }
func (c *clerk) Choose(reports []ballot.Report) []byte {
	var v []byte
	for _, r := range reports {
		v = fmt.Appendf(v, "%d:%s ", r.From, r.Body)
	}
	return v
}

// "|promises| >= majority and enough(promisers)", and the value is chosen from the
// reports, in the order of IDs; a report is fixed at the first promise.
func TestReports(t *testing.T) {
	clerks := make([]*clerk, 4)
	for id := range clerks {
		clerks[id] = &clerk{seeker: seeker{self: parley.ID(id)}, wants: 4}
		clerks[id].in = ballot.NewInstance(parley.ID(id), parley.Everyone(4), clerks[id])
	}
	step := func(who int) *parley.Step { return &parley.Step{Self: parley.ID(who), N: 4, Host: quiet{}} }
	s := step(3)
	clerks[3].in.Propose(s)
	clerks[3].in.Propose(s)
	asked := s.Effects[len(s.Effects)-2]
	answers := make([]parley.Msg, 3)
	for _, id := range []int{2, 0} {
		q := step(id)
		clerks[id].in.Receive(q, 3, s.Effects[0].Msg)
		clerks[id].in.Receive(q, 3, asked.Msg)
		answers[id] = q.Effects[len(q.Effects)-1].Msg
	}
	s = step(3)
	clerks[3].in.Receive(s, 2, answers[2])
	clerks[3].in.Receive(s, 0, answers[0])
	if len(s.Effects) != 0 {
		t.Fatalf("it goes on without enough reports: %v", s.Effects)
	}
	clerks[3].wants = 3
	clerks[3].in.Reconsider(s)
	for _, e := range s.Effects {
		if e.Op == parley.OpSend && string(e.Msg.Body) != "0:1 2:1 3:1 " {
			t.Errorf("the choice is %q", e.Msg.Body)
		}
	}
	if len(s.Effects) != 4 {
		t.Errorf("ACCEPT to three others and a record were expected: %v", s.Effects)
	}
}

// Messages that no member of the instance would send are refused.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		from parley.ID
		m    parley.Msg
	}{
		{3, parley.Msg{Kind: ballot.Prepare, Seq: 3}},
		{1, parley.Msg{Kind: ballot.Prepare, Seq: 3}},
		{0, parley.Msg{Kind: ballot.Prepare, Seq: 0}},
		{0, parley.Msg{Kind: ballot.Prepare, Seq: 3 << 60}},
		{0, parley.Msg{Kind: ballot.Prepare, Seq: 3, Body: []byte("x")}},
		{1, parley.Msg{Kind: ballot.Accept, Seq: 3, Body: []byte("x")}},
		{1, parley.Msg{Kind: ballot.Decision, Seq: 3, Body: []byte("x")}},
		{1, parley.Msg{Kind: ballot.Refuse, Seq: 1 << 60}},
		{1, parley.Msg{Kind: ballot.Last + 1}},
		{1, parley.Msg{}},
	} {
		h := &refusals{}
		p := newSeeker(2, 3)
		s := &parley.Step{Self: 2, N: 3, Host: h}
		p.in.Receive(s, c.from, c.m)
		if h.n != 1 || len(s.Effects) > 0 {
			t.Errorf("%v from %d: refused %d times, effects %v", c.m, c.from, h.n, s.Effects)
		}
	}
}

type refusals struct {
	quiet
	n int
}

func (r *refusals) Refused(parley.ID, parley.ID, string) { r.n++ }

// A faulty process uses no ballots up: there is always a higher one, which processes that it did not reach accept too.
func TestBallotsAreNotUsedUp(t *testing.T) {
	const highest = 1 << 48
	for _, c := range []struct{ far, step uint64 }{
		{highest, 3}, {highest - 1, 3}, {highest + 1<<20, 3}, {highest, 1<<44 - 1}, // these are multiples of 3
	} {
		p := newPost(t, 3)
		liars := c.far - c.far%3 + 1 // of process 1
		for range 3 {
			p.do(0, func(s *parley.Step, in *ballot.Instance) {
				in.Receive(s, 1, parley.Msg{Kind: ballot.Prepare, Seq: liars})
				in.Receive(s, 1, parley.Msg{Kind: ballot.Refuse, Seq: 1<<63 - 1})
			})
			liars += c.step
		}
		p.propose(0)
		p.round(ballot.Prepare, ballot.Promise, 0, 2)
		p.round(ballot.Accept, ballot.Accepted, 0, 2)
		p.decided("a", "", "")
	}
}

// A strict process accepts only in ballots that it has promised.
func TestStrict(t *testing.T) {
	p := newPost(t, 3)
	p.procs[1].in.Strict()
	p.do(1, func(s *parley.Step, in *ballot.Instance) {
		in.Receive(s, 0, parley.Msg{Kind: ballot.Accept, Seq: 3, Body: []byte("x")})
		in.Receive(s, 0, parley.Msg{Kind: ballot.Prepare, Seq: 6})
		in.Receive(s, 0, parley.Msg{Kind: ballot.Accept, Seq: 9, Body: []byte("x")})
		if in.Took([]byte("x")) {
			t.Error("accepted without a promise")
		}
		in.Receive(s, 0, parley.Msg{Kind: ballot.Accept, Seq: 6, Body: []byte("x")})
		if !in.Took([]byte("x")) || in.Took([]byte("y")) {
			t.Error("not accepted after the promise")
		}
	})
}

// A strict process that missed PREPARE, or could not vote then, asks for it on ACCEPT, and takes part.
func TestStrictAsksForPrepare(t *testing.T) {
	p := newPost(t, 3)
	for _, q := range p.procs {
		q.in.Strict()
	}
	p.propose(0)
	p.take(ballot.Prepare, 0, 1)
	p.round(ballot.Prepare, ballot.Promise, 0, 2)
	p.take(ballot.Accept, 0, 2) // lost
	p.deliver(ballot.Accept, 0, 1)
	p.deliver(ballot.Refuse, 1, 0)
	p.deliver(ballot.Prepare, 0, 1)
	p.deliver(ballot.Accept, 0, 1)
	p.deliver(ballot.Accepted, 1, 0)
	p.decided("a", "", "")
}
