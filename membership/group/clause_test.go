package group_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/group"
)

// A view change without further faults: the next view excludes a suspected and silent member, and the
// survivors deliver what they hold before it.
func TestViewChange(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.cast(2, "a")
	p.arrive(2, 0, 1) // 1 does not get it, and 2 crashes
	p.suspected(2, 0, 1)
	p.settle(0, 1)
	p.expectOf("1:a; view 2 [0 1]", 0, 1)
	p.deliver(1, "b", 0, 1)
	p.expectOf("2:b", 0, 1)
}

// "While frozen: ignore all data messages and acks of the view; deliver nothing;
// queue requests from above."
func TestFrozen(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.suspect(0, 1)
	p.arrive(0, 2, 1) // PREPARE: 2 reports
	p.lose(2, 0)
	p.cast(1, "a")
	p.arrive(1, 2, 1)
	p.cast(2, "b")
	if l := append(p.lose(2, 1), p.lose(2, 0)...); len(l) > 0 {
		t.Errorf("a member that has reported still sends %v", l)
	}
	p.expect(2, "")
	// The next ballot finds the report as it was: a is not in it.
	p.lose(1, 0)
	p.suspect(2, 0)
	p.suspect(2, 1)
	p.period(9000, 2)
	p.period(5000, 2)
	p.lose(0, 2)
	p.settle(0, 2)
	p.expect(2, "view 2 [0 2]; 1:b")
}

// "A reporter is alive: keep it although suspected."
func TestReporterIsKept(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	p.suspect(0, 3)
	p.arrive(0, 3, 1)
	p.arrive(3, 0, 1) // its report is the first to come
	p.settle(0, 1, 2, 3)
	p.expectOf("view 2 [0 1 2 3]", 0, 3)
}

// "Every member that I do not suspect is in S, or the flush timer ran out."
func TestFlush(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	p.suspect(0, 3)
	p.arrive(0, 1, 1)
	p.arrive(0, 2, 1)
	p.arrive(1, 0, 1)
	p.expect(0, "")
	p.arrive(2, 0, 1) // a majority, and all that are not suspected
	p.settle(0, 1, 2)
	p.expect(0, "view 2 [0 1 2]")

	p = newPost(t, group.Config{N: 4})
	p.suspect(0, 3)
	p.arrive(0, 1, 1)
	p.arrive(0, 3, 1)
	p.arrive(1, 0, 1)
	p.arrive(3, 0, 1) // 2 is not suspected, and does not answer
	for range 4 {
		p.period(500, 0, 1, 3)
		p.put(2, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Beat}})
		p.settle(0, 1, 3)
		p.expect(0, "")
	}
	p.period(500, 0)
	p.settle(0, 1, 3)
	p.expect(0, "view 2 [0 1 3]")
}

// "u = v-1: send DECIDE(u, founding decision)": a process that missed how its view ended learns it when it
// next sends anything; an idle one by its heartbeats.
func TestMissedDecision(t *testing.T) {
	for _, excluded := range []bool{false, true} {
		p := newPost(t, group.Config{N: 4})
		p.suspect(0, 3)
		if !excluded {
			p.arrive(0, 3, 1)
			p.arrive(3, 0, 1)
		}
		p.settle(0, 1, 2)
		p.expect(1, map[bool]string{true: "view 2 [0 1 2]", false: "view 2 [0 1 2 3]"}[excluded])
		p.down(3)
		p.period(500, 3)
		p.now += 3000
		p.arrive(3, 1, 1)
		p.settle(1, 3)
		p.heard(1)
		p.expect(3, map[bool]string{true: "out 0", false: "view 2 [0 1 2 3]"}[excluded])
	}
}

// A process that sends a message of a much earlier view learns how the present one came about, and stops for
// good if it is no member.
func TestSkipped(t *testing.T) {
	p := newPost(t, group.Config{N: 5})
	p.suspect(0, 4)
	p.settle(0, 1, 2, 3)
	p.suspect(0, 3)
	p.settle(0, 1, 2)
	p.expect(0, "view 2 [0 1 2 3]; view 3 [0 1 2]")
	p.lose(0, 4)
	p.period(500, 4)
	p.now += 3000
	p.arrive(4, 0, 1)
	p.sent(0, 4, ballot.Decision)
	p.settle(0, 4)
	p.expect(4, "out 0")
	p.loseAll(4)
	p.cast(4, "x")
	p.period(500, 4)
	p.put(0, 4, letter{epoch: 3, msg: parley.Msg{Kind: ballot.Prepare, Seq: 10}})
	p.put(0, 4, letter{epoch: 1, path: 1, msg: parley.Msg{Kind: 1, Seq: 1, Value: 1, Body: make([]byte, 4)}})
	p.expect(4, "")
	for to := range parley.ID(4) {
		if l := p.lose(4, to); len(l) > 0 {
			t.Errorf("an excluded process still sends %v", l)
		}
	}
}

// "u > v: send ASK(v) to q and drop", once a period.
func TestAsk(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	p.suspect(0, 3)
	p.arrive(0, 2, 1)
	p.arrive(2, 0, 1)
	p.settle(0, 1)
	p.arrive(0, 2, 1)
	p.arrive(2, 0, 1)
	p.settle(0, 1) // the decision is lost in transit to 2
	p.lose(0, 2)
	p.lose(1, 2)
	p.cast(1, "a")
	p.cast(1, "b")
	p.arrive(1, 2, 2)
	p.sent(2, 1, group.DecisionQuery)
	p.settle(0, 1, 2)
	// What it dropped is a gap now, which leads to a view change.
	p.deliver(1, "c", 0, 1, 2)
	p.period(500, 2)
	p.period(9000, 2)
	p.settle(0, 1, 2)
	p.expect(2, "view 2 [0 1 2]; 1:a; 2:b; 3:c; view 3 [0 1 2]")
}

// A minority stalls, and so does half of a view.
func TestMinority(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	for _, pair := range [][2]parley.ID{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {3, 0}, {3, 1}} {
		p.suspect(pair[0], pair[1])
	}
	for range 100 {
		p.settle(0, 1)
		p.settle(2, 3)
		p.period(500, 0, 1, 2, 3)
	}
	for id := range parley.ID(4) {
		if got := p.heard(id); slices.Contains(p.said[id], "view 2") || got == "" || got[:8] != "suspects" {
			t.Errorf("process %d says %q", id, got)
		}
	}
}

// "Request leave": the next view excludes the process, which indicates that it left.
func TestLeave(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.cast(0, "a")
	p.ask(0, parley.Msg{Kind: group.Leave})
	p.settle(0, 1, 2)
	p.expect(0, "out 1")
	p.expect(1, "1:a; view 2 [1 2]")
	p.deliver(2, "b", 1, 2)
	p.expect(1, "2:b")
}

// A message of the old view from a member that has not yet learned that it ended shows that the member is
// alive.
func TestOldViewIsASignOfLife(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	p.suspect(0, 2)
	p.arrive(0, 2, 1)
	p.arrive(2, 0, 1)
	p.arrive(0, 1, 1)
	p.arrive(1, 0, 1)
	p.settle(0, 2)
	p.expect(0, "view 2 [0 1 2]")
	for range 10 {
		p.period(500, 0, 1, 2)
		p.settle(0, 2)
		p.arrive(1, 0, len(p.links[1][0])) // what ended view 1 is still in transit to 1
	}
	p.expect(0, "")
	p.lose(1, 0)
	p.all(10, 0, 2)
	if got := p.heard(0); !strings.HasPrefix(got, "suspects 1; view 3 [0 2]") {
		t.Errorf("when it is silent process 0 says %q", got)
	}
}
