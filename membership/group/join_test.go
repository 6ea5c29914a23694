package group_test

import (
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/group"
)

// joiner returns a group of three with a fourth process that has asked 1 to join.
// Two messages were delivered before.
func joiner(t *testing.T, c group.Config) *post {
	t.Helper()
	c.N, c.Initial = 4, parley.SetOf(0, 1, 2)
	p := newPost(t, c)
	p.deliver(0, "a", 0, 1, 2)
	p.deliver(2, "b", 0, 1, 2)
	p.heard(0)
	p.expect(1, "1:a; 2:b")
	p.arrive(3, 1, 1) // JOIN
	return p
}

// joinsAnew checks that process 3 has given up its sponsor, and asks process 2 as another incarnation.
func (p *post) joinsAnew(after string) {
	p.t.Helper()
	if l := p.lose(3, 2); len(l) != 1 || l[0].msg.Kind != group.Join || l[0].msg.Seq != 2 {
		p.t.Errorf("%s it sends %v", after, l)
	}
}

// The way into a view: SNAPSHOT, what the sponsor delivers meanwhile, INSTALL, the cut. Then the joiner is a
// member like all others.
func TestJoin(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.deliver(0, "c", 0, 1, 2)
	p.arrive(1, 3, 1)
	p.cast(2, "d")
	p.arrive(2, 1, 1) // in the cut
	p.arrive(3, 1, 1) // READY
	p.changes(1, 0, 1, 2)
	p.expect(3, "")
	p.settle(1, 3)
	p.expect(3, "restored 2 ; 3:c; 4:d; view 2 [0 1 2 3]")
	p.deliver(3, "e", 0, 1, 2, 3)
	p.expect(3, "5:e")
	p.heard(2)
	p.deliver(2, "f", 0, 1, 2, 3)
	p.expectOf("6:f", 2, 3)
}

// The group asks for the state above it, and the answer must be of the present position.
func TestState(t *testing.T) {
	p := joiner(t, group.Config{State: true})
	p.expect(1, "wanted 2 for 3")
	p.deliver(0, "c", 0, 1, 2)
	p.ask(1, parley.Msg{Kind: group.State, Seq: 2, Body: []byte("ab")})
	p.expect(1, "3:c; wanted 3 for 3")
	p.ask(1, parley.Msg{Kind: group.State, Seq: 3, Body: []byte("abc")})
	p.settle(1, 3)
	p.changes(1, 0, 1, 2)
	p.settle(1, 3)
	p.expect(3, "restored 3 abc; view 2 [0 1 2 3]")
}

// A member helps all that ask it to join, even after it has reported: the view may be unable to end without
// them.
func TestLearners(t *testing.T) {
	p := newPost(t, group.Config{N: 5, Initial: parley.SetOf(0, 1, 2)})
	p.arrive(3, 1, 1)
	p.arrive(4, 1, 1)
	p.settle(1, 3, 4)
	p.changes(1, 0, 1, 2)
	p.settle(1, 3, 4)
	p.expectOf("restored 0 ; view 2 [0 1 2 3 4]", 3, 4)

	p = newPost(t, group.Config{N: 4, Initial: parley.SetOf(0, 1, 2)})
	p.suspect(0, 2)
	p.arrive(0, 1, 1)
	p.arrive(3, 1, 1)
	p.settle(1, 3) // READY: it asks for a view that includes the learner
	p.settle(0, 1, 2)
	p.settle(1, 3)
	p.expect(3, "restored 0 ; view 2 [0 1 2 3]")
	// A process that gets no answer asks another one, as another incarnation.
	p = newPost(t, group.Config{N: 4, Initial: parley.SetOf(0, 1, 2)})
	p.lose(3, 1)
	p.period(4000, 3)
	p.joinsAnew("after that")
}

// "From its sponsor only: FORWARD or INSTALL whose position is not its own -> give up, take a new
// incarnation, join again"; and DECIDE makes no joiner a member.
func TestJoinerIsStrict(t *testing.T) {
	caught := func() *post {
		p := joiner(t, group.Config{})
		p.arrive(1, 3, 1)
		p.arrive(3, 1, 1)
		p.period(500, 1)
		p.period(7500, 1)
		return p
	}
	p := caught()
	p.deliver(0, "c", 0, 1, 2)
	p.settle(0, 2, 3)
	l := p.lose(1, 3)
	if len(l) == 0 || l[len(l)-1].msg.Kind != group.Install {
		t.Fatalf("the sponsor sent %v", l)
	}
	install := l[len(l)-1]
	p.put(2, 3, install) // not from the sponsor
	p.expect(3, "")
	size := int(install.msg.Body[0])
	p.put(1, 3, letter{epoch: 1, msg: parley.Msg{Kind: ballot.Decision, Body: install.msg.Body[1 : 1+size]}})
	p.expect(3, "")
	other := install
	other.msg.Value++ // to another incarnation
	p.put(1, 3, other)
	p.expect(3, "")
	p.lose(3, 2)
	other = install
	other.msg.Seq++
	p.put(1, 3, other)
	p.expect(3, "")
	p.joinsAnew("after an INSTALL of another position")

	p = joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.deliver(0, "c", 0, 1, 2)
	p.lose(1, 3)
	p.lose(3, 2)
	p.deliver(0, "d", 0, 1, 2)
	p.arrive(1, 3, 1)
	p.joinsAnew("after a FORWARD of another position")
}

// "Replay buffered messages of v+1": others may be in the view before the joiner, which misses none of their
// messages.
func TestEarlyMessages(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.arrive(3, 1, 1)
	p.changes(1, 0, 1, 2)
	p.cast(0, "c")
	p.deliver(2, "d", 0, 1, 2)
	p.settle(0, 2, 3)
	p.expect(3, "")
	p.settle(1, 3)
	p.settle(0, 1, 2, 3)
	p.expect(3, "restored 2 ; view 2 [0 1 2 3]; 3:c; 4:d")
}

// A restarted member is another incarnation: the old one leaves with the view that the new one enters.
func TestReturn(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.deliver(0, "a", 0, 1, 2)
	p.loseAll(2)
	p.restart(2)
	p.arrive(2, 1, 1)
	p.settle(0, 1, 2)
	p.period(8000, 1)
	p.settle(0, 1, 2)
	p.expect(2, "1:a; restored 1 ; view 2 [0 1 2]")
	p.expect(1, "1:a; view 2 [0 1 2]")
	// Messages of the old incarnation that are left on the links have no effect.
	p.put(2, 0, letter{epoch: 1, path: 1, msg: parley.Msg{Kind: 1, Seq: 9, Value: 9, Body: []byte{0, 0, 9, 'x'}}})
	p.deliver(2, "b", 0, 1, 2)
	p.expect(0, "1:a; view 2 [0 1 2]; 2:b")
}

// In durable mode a process resumes from its log: frozen, with all that it holds.
func TestResume(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Durable: true})
	p.deliver(0, "a", 0, 1, 2)
	p.cast(0, "b")
	p.arrive(0, 1, 1) // only 1 has it, acknowledges it, and crashes; so does 0, for good
	for id := range parley.ID(3) {
		p.heard(id)
		p.loseAll(id)
	}
	p.restart(1)
	p.expect(1, "view 1 [0 1 2]")
	p.suspect(2, 0)
	p.cast(1, "c")
	p.period(500, 1)
	p.period(9000, 1)
	p.settle(1, 2)
	p.period(3000, 1) // 0 does not answer
	p.settle(1, 2)
	p.expect(2, "2:b; view 2 [1 2]; 3:c")
	p.expect(1, "1:a; 2:b; view 2 [1 2]; 3:c")
	// Restart again: it delivers everything again, in the same views as before.
	p.restart(1)
	p.expect(1, "view 1 [0 1 2]; 1:a; 2:b; view 2 [1 2]")
}

// A sponsor whose learner has joined with the help of another needs no view for it.
func TestLearnerOfAnother(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.lose(3, 1) // READY is late
	p.period(40_000, 3)
	p.settle(2, 3) // JOIN, as another incarnation, with the help of 2
	p.period(500, 2)
	p.period(10_000, 2)
	p.put(3, 1, letter{epoch: 1, msg: parley.Msg{Kind: group.Ready, Seq: 1}})
	p.settle(0, 1, 2, 3)
	p.expect(3, "restored 2 ; view 2 [0 1 2 3]")
	p.all(40, 0, 1, 2, 3)
	p.expect(3, "")
}

// "Learner not in next: forward the cut as usual, then INSTALL (it only moves the learner to view v+1)": the
// report does not name a learner that has not caught up.
func TestTakenAlong(t *testing.T) {
	p := newPost(t, group.Config{N: 5, Initial: parley.SetOf(0, 1, 2, 3)})
	p.deliver(0, "a", 0, 1, 2, 3)
	p.heard(1)
	p.arrive(4, 1, 1)
	p.cast(3, "b")
	p.arrive(3, 1, 1)
	p.suspect(0, 3)
	p.settle(0, 1, 2)
	p.expect(1, "2:b; view 2 [0 1 2]")
	p.arrive(1, 4, len(p.links[1][4]))
	p.deliver(1, "c", 0, 1, 2)
	p.expect(4, "")
	p.settle(1, 4)
	p.changes(1, 0, 1, 2)
	p.deliver(0, "d", 0, 1, 2, 4)
	p.expect(4, "restored 1 ; 2:b; 3:c; view 3 [0 1 2 4]; 4:d")
}

// "A member is (id, incarnation)": if the old incarnation has reported, it is in the next view, and the new
// one is not.
func TestOldIncarnation(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.suspect(0, 1)
	p.arrive(0, 2, 1) // PREPARE, and 2 reports
	p.restart(2)
	p.arrive(2, 1, 1) // JOIN
	p.arrive(1, 2, 1) // SNAPSHOT
	p.arrive(0, 1, 1)
	p.arrive(1, 0, 1)
	p.arrive(2, 0, 1) // the old one's report
	p.settle(0, 1)
	p.arrive(0, 2, len(p.links[0][2]))
	p.settle(0, 1)
	p.expect(1, "view 2 [0 1 2]")
	p.settle(1, 2)
	p.expect(2, "")
	p.period(8000, 1)
	p.settle(0, 1, 2)
	p.period(8000, 1)
	p.settle(0, 1, 2)
	if got := p.heard(2); got != "restored 0 ; view 3 [0 1 2]" {
		t.Errorf("the new incarnation says %q", got)
	}
}

// A sponsor that leaves moves its learner to the next view before it stops.
func TestSponsorLeaves(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.cast(0, "c")
	p.arrive(0, 1, 1) // in the cut
	p.arrive(3, 1, 1) // READY
	p.ask(1, parley.Msg{Kind: group.Leave})
	p.changes(1, 0, 1, 2)
	p.expect(1, "out 1")
	p.settle(1, 3)
	p.expect(3, "restored 2 ; 3:c; view 2 [0 2 3]")
}

// Two processes join at once, each with its own sponsor, in one view. A sponsor drops a learner that is
// silent.
func TestTwoJoin(t *testing.T) {
	p := newPost(t, group.Config{N: 5, Initial: parley.SetOf(0, 1, 2)})
	p.arrive(3, 1, 1)
	p.arrive(4, 1, 1)
	p.period(4000, 4) // not answered, it asks 2
	p.settle(1, 3)
	p.settle(2, 4)
	p.changes(1, 0, 1, 2)
	p.settle(1, 3)
	p.settle(2, 4)
	p.expectOf("restored 0 ; view 2 [0 1 2 3 4]", 3, 4)

	p = newPost(t, group.Config{N: 5, Initial: parley.SetOf(0, 1, 2)})
	p.arrive(3, 1, 1)
	p.lose(1, 3)
	p.period(500, 1)
	p.period(8000, 1)
	p.cast(0, "a")
	if p.settle(0, 1, 2); len(p.kinds(1, 3)) > 0 {
		t.Errorf("a learner that is silent is sent %v", p.kinds(1, 3))
	}
}

// Late messages of a process that asks to join, or has asked as another incarnation, change nothing.
func TestLateJoin(t *testing.T) {
	p := joiner(t, group.Config{})
	join := letter{msg: parley.Msg{Kind: group.Join, Seq: 1, Value: 2}}
	if p.put(3, 1, join); len(p.kinds(1, 3)) != 1 {
		t.Errorf("who has been answered is answered %v", p.kinds(1, 3))
	}
	p.put(3, 1, letter{msg: parley.Msg{Kind: group.Ready, Seq: 9}})
	p.period(500, 1)
	p.period(7500, 1)
	if p.asks(1, 0) {
		t.Error("another incarnation is ready, and the sponsor asks for a view")
	}
	p.settle(1, 3)
	p.changes(1, 0, 1, 2)
	p.settle(1, 3)
	p.expect(3, "restored 2 ; view 2 [0 1 2 3]")
	p.loseAll(0)
	if p.put(3, 0, join); len(p.kinds(0, 3)) > 0 || p.asks(0, 1) {
		t.Errorf("the request of a member to join is answered %v", p.kinds(0, 3))
	}
}

// A leaving member helps no process to join, and a joiner may leave.
func TestLeaveAndJoin(t *testing.T) {
	p := newPost(t, group.Config{N: 4, Initial: parley.SetOf(0, 1, 2)})
	p.ask(1, parley.Msg{Kind: group.Leave})
	p.arrive(3, 1, 1)
	p.sent(1, 3)
	p.ask(3, parley.Msg{Kind: group.Leave})
	p.expect(3, "out 1")
	p.lose(3, 2)
	if p.period(9000, 3); len(p.lose(3, 2)) > 0 {
		t.Error("it asks again")
	}
}

// A joiner that has caught up waits longer for a sponsor that has nothing to send. Its log of incarnations
// does not grow.
func TestPatience(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	if p.period(39_000, 3); len(p.kinds(3, 2)) > 0 {
		t.Error("it gives its sponsor up at once")
	}
	for life := range 5 {
		if p.period(41_000, 3); len(p.logs[3]) > 0 {
			t.Fatalf("in life %d the log has %d records", life+2, len(p.logs[3]))
		}
	}
	if l := p.lose(3, 2); len(l) == 0 || l[0].msg.Seq != 2 {
		t.Errorf("it sends %v", l)
	}
}
