package group_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/group"
)

// all lets some periods pass at the processes that are up.
func (p *post) all(periods int, who ...parley.ID) {
	for range periods {
		p.settle(who...)
		p.period(500, who...)
	}
	p.settle(who...)
}

// shrunk returns a durable group of three in which 2 is excluded, and 0 and 1 have continued.
func shrunk(t *testing.T) *post {
	t.Helper()
	p := newPost(t, group.Config{N: 3, Durable: true, Return: true})
	p.deliver(0, "a", 0, 1, 2)
	p.suspected(2, 0, 1)
	p.down(2)
	p.cast(1, "b")
	p.all(8, 0, 1)
	p.down(2)
	p.expect(1, "1:a; 2:b; view 2 [0 1]")
	return p
}

// More than half of all processes continue, with whatever they have after a restart: at least one of them was
// in the last view, and has all that was delivered.
func TestAnyMajorityContinues(t *testing.T) {
	for _, alone := range []parley.ID{0, 1} {
		p := shrunk(t)
		p.down(0)
		p.down(1)
		p.restart(alone)
		p.restart(2)
		p.heard(alone)
		p.all(60, alone, 2)
		p.cast(2, "c")
		p.all(4, alone, 2)
		p.expect(alone, fmt.Sprintf("suspects %d; view 3 [%d 2]; 3:c", 1-alone, alone))
	}
}

// A process that lost its disk does not count: it may have been the one that knew what the others do not.
// When both others are up, it is admitted, and counts from then on.
func TestLostDiskDoesNotCount(t *testing.T) {
	p := shrunk(t)
	p.down(0)
	p.down(1)
	p.restart(2)
	p.logs[0], p.state[0] = nil, nil
	p.restart(0)
	p.heard(0)
	p.heard(2)
	p.all(100, 0, 2)
	p.expect(0, "")
	p.expect(2, "suspects 0; suspects 1")
	p.restart(1)
	p.all(100, 0, 1, 2)
	p.cast(0, "c")
	p.all(4, 0, 1, 2)
	for id := range parley.ID(3) {
		if said := p.said[id]; len(said) == 0 || said[len(said)-1] != "3:c" {
			t.Errorf("process %d says %q", id, said)
		}
	}
	p.down(1) // now 0 and 2 are a majority
	for range 30 {
		p.suspect(0, 1)
		p.suspect(2, 1)
		p.all(1, 0, 2)
	}
	p.down(1)
	p.cast(2, "d")
	p.all(4, 0, 2)
	if said := p.said[0]; said[len(said)-1] != "4:d" {
		t.Errorf("process 0 says %q", said)
	}
}

// A process in no view votes from its disk: its promises hold after a restart. No process votes with another
// disk than the one that was admitted.
func TestVotesOutside(t *testing.T) {
	prepare := letter{epoch: 2, msg: parley.Msg{Kind: ballot.Prepare, Seq: 9}}
	p := shrunk(t)
	p.restart(2)
	p.down(2)
	p.put(0, 2, prepare) // of a view that it does not know
	p.sent(2, 0, group.DecisionQuery)
	p.settle(0, 2)
	p.put(0, 2, prepare)
	p.sent(2, 0, ballot.Promise)
	p.down(2)
	p.restart(2)
	p.down(2)
	p.put(1, 2, letter{epoch: 2, msg: parley.Msg{Kind: ballot.Prepare, Seq: 7}})
	p.sent(2, 1, ballot.Refuse)

	p = shrunk(t)
	p.logs[2], p.state[2] = nil, nil
	p.restart(2)
	p.down(2)
	p.put(0, 2, prepare)
	p.settle(0, 2)
	p.put(0, 2, prepare)
	p.sent(2, 0)
}

// No view has less than a majority of all: of five, at least three.
func TestNoViewBelowMajority(t *testing.T) {
	p := newPost(t, group.Config{N: 5})
	for _, gone := range [][]parley.ID{{4, 3}, {2}} {
		for _, id := range gone {
			for at := range parley.ID(2) {
				p.suspect(at, id)
			}
		}
		for range 60 {
			for _, id := range gone {
				p.suspect(0, id)
				p.suspect(1, id)
			}
			p.settle(0, 1)
			if gone[0] == 4 {
				p.settle(0, 1, 2)
			} else {
				p.down(2)
			}
			p.period(500, 0, 1, 2)
		}
	}
	p.expect(0, "view 2 [0 1 2]; suspects 2")
}

// A process in no view keeps the last view that it learned, with its vote, across a restart.
func TestFollowsFromTheLog(t *testing.T) {
	p := shrunk(t)
	p.restart(2)
	p.put(0, 2, letter{epoch: 2, msg: parley.Msg{Kind: group.Beat}})
	p.settle(0, 2) // it learns of view 2, is excluded and asks to join
	p.expect(2, "1:a; view 1 [0 1 2]; out 0")
	p.lose(2, 0)
	p.lose(2, 1)
	p.heard(0)
	p.suspect(0, 1)
	p.lose(0, 2)
	p.put(2, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.DecisionQuery}})
	p.sent(0, 2, ballot.Decision, ballot.Prepare)
	p.lose(0, 2)
	p.settle(0, 1)
	p.expect(0, "view 3 [0 1]")
	p.arrive(0, 2, len(p.links[0][2]))
	p.lose(2, 0)
	p.put(0, 2, letter{epoch: 3, msg: parley.Msg{Kind: ballot.Prepare, Seq: 9}})
	p.sent(2, 0, ballot.Promise)
	p.down(2)
	p.restart(2)
	p.down(2)
	p.put(1, 2, letter{epoch: 3, msg: parley.Msg{Kind: ballot.Prepare, Seq: 7}})
	p.sent(2, 1, ballot.Refuse)
}

// A process that has joined is a member from then on, whenever it crashes.
func TestJoinedFromTheLog(t *testing.T) {
	p := joiner(t, group.Config{Durable: true})
	p.arrive(1, 3, 1)
	p.deliver(0, "c", 0, 1, 2)
	p.settle(1, 3)
	p.changes(1, 0, 1, 2)
	p.settle(1, 3)
	p.deliver(0, "d", 0, 1, 2, 3)
	p.expect(3, "restored 2 ; 3:c; view 2 [0 1 2 3]; 4:d")
	p.restart(3)
	p.expect(3, "restored 2 ; 3:c; view 2 [0 1 2 3]")
	p.settle(0, 1, 2, 3)
	p.period(500, 3)
	p.period(13_000, 3)
	p.settle(0, 1, 2, 3)
	p.expect(3, "4:d; view 3 [0 1 2 3]")
}

// A process that voted on the end of a view before it was in it has reported, and continues in the next one.
func TestJoinsFrozen(t *testing.T) {
	p := joiner(t, group.Config{})
	p.arrive(1, 3, 1)
	p.arrive(3, 1, 1)
	p.changes(1, 0, 1, 2)
	for len(p.kinds(1, 3)) > 1 {
		p.arrive(1, 3, 1) // all but INSTALL
	}
	p.lose(0, 3)
	p.suspect(0, 2)
	p.arrive(0, 3, 1)
	p.sent(3, 0, ballot.Promise)
	p.arrive(1, 3, 1)
	p.expect(3, "restored 2 ; view 2 [0 1 2 3]")
	p.cast(1, "c")
	p.arrive(1, 3, 1)
	for _, l := range p.links[3][1] {
		if l.path > 0 {
			t.Errorf("it acknowledges in a view on whose end it has voted: %v", l)
		}
	}
}
