package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/agreement/ballot"
	"parley/membership/group"
)

// compacted returns a group of three in durable mode whose state is on disk as of the last period of process
// 0.
func compacted(t *testing.T) *post {
	t.Helper()
	p := newPost(t, group.Config{N: 3, Durable: true, Compact: 1})
	p.deliver(0, "a", 0, 1, 2)
	return p
}

// A ballot ends with its owner's crash. If the state on disk let it continue, the process would count
// promises from before the crash and propose a second value under one ballot number.
func TestBallotEndsWithItsOwner(t *testing.T) {
	p := compacted(t)
	p.suspect(0, 2) // PREPARE
	p.period(500, 0)
	if len(p.logs[0]) > 0 || len(p.state[0]) == 0 {
		t.Fatal("the log was not compacted")
	}
	p.arrive(0, 1, 1)
	p.arrive(1, 0, len(p.links[1][0])) // PROMISE: the value is the view of 0 and 1
	p.arrive(0, 1, len(p.links[0][1])) // ACCEPT
	p.lose(1, 0)
	p.restart(0)
	p.arrive(0, 2, 1) // sent before the crash
	p.arrive(2, 0, len(p.links[2][0]))
	p.lose(0, 1)
	if k := p.kinds(0, 2); slices.Contains(k[1:], ballot.Accept) {
		t.Errorf("after the restart it proposes again under the old number: %v", k)
	}
}

// A restarted process does not resend what waited in the sender when the state was written and was sent
// afterwards: the log records that.
func TestQueueEndsWithItsOwner(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Durable: true, Compact: 1})
	for i := range 66 { // the window is 64
		p.cast(0, fmt.Sprintf("m%d", i))
	}
	p.period(500, 0)
	p.settle(0, 1, 2)
	p.restart(0)
	p.all(30, 0, 1, 2)
	var last []string
	for _, text := range p.said[1] {
		if strings.HasSuffix(text, ":m65") {
			last = append(last, text)
		}
	}
	if len(last) != 1 {
		t.Errorf("a message is delivered as %q", last)
	}
}

// A member that is alone decides on the next view, and delivers what it holds, in the step in which it asks
// for one. The state must not replace the log in that step: a crash in the middle of it would lose the
// deliveries.
func TestNothingDeliveredIsCompacted(t *testing.T) {
	p := newPost(t, group.Config{N: 1, Durable: true, Compact: 1})
	p.cast(0, "a")
	p.restart(0)
	p.cast(0, "b")
	p.period(500, 0) // "a state that replaces..." is an error of the post
	p.period(500, 0)
	if len(p.state[0]) == 0 {
		t.Error("the log was never compacted")
	}
	p.expect(0, "1:a; view 1 [0]; 1:a; view 2 [0]; 2:b")
}

// A process that finds in its log that a later view excludes it does not resume as a member.
func TestExcludedJoinsAgain(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Durable: true})
	p.suspect(0, 2)
	p.settle(0, 1)
	p.arrive(0, 2, len(p.links[0][2]))
	p.expect(2, "out 0")
	p.lose(2, 1)
	p.restart(2)
	p.period(500, 2)
	p.sent(2, 1, group.Join)
	p.expect(2, "view 1 [0 1 2]")
}

// A restarted process indicates the position after which it delivers again: the log has only later
// deliveries.
func TestResumesBehindAPosition(t *testing.T) {
	p := newPost(t, group.Config{N: 1, Durable: true, Compact: 1})
	p.restart(0)
	p.expect(0, "view 1 [0]") // all deliveries so far
	p.period(500, 0)
	p.cast(0, "a")
	p.cast(0, "b")
	p.period(500, 0) // now the state has replaced the log
	p.cast(0, "c")
	p.heard(0)
	p.restart(0)
	p.period(500, 0)
	p.expect(0, "resumed 2; 3:c; view 3 [0]")
}
