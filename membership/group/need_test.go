package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/group"
)

// These tests check when a member asks for another view, and when it does not.

// asks reports whether a member has sent PREPARE to another.
func (p *post) asks(from, to parley.ID) bool {
	return slices.Contains(p.kinds(from, to), ballot.Prepare)
}

// "Own message undelivered for T": the missing message may have been the last one of a link that broke. A
// member asks for nothing while there is progress, nor after it was paused: it does not know what it missed.
func TestStuck(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	for i := range 20 {
		p.cast(0, fmt.Sprint(i))
		p.settle(0, 1, 2)
		p.period(500, 0, 1, 2)
	}
	p.settle(0, 1, 2)
	if got := p.heard(0); strings.Contains(got, "view") {
		t.Fatalf("a view change for nothing: %q", got)
	}
	p.cast(0, "x")
	p.lose(0, 2)
	p.settle(0, 1, 2)
	p.period(9000, 0)
	if p.asks(0, 1) {
		t.Fatal("a member that was paused asks for a view at once")
	}
	p.all(11, 0, 1, 2)
	p.expect(0, "21:x; view 2 [0 1 2]")
}

// "The lowest-ranked member that I do not suspect; later ranks after their retry time",
// which doubles.
func TestRetry(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	p.suspect(1, 2)
	begin := p.now
	var when []parley.Tick
	for range 110 {
		for id := range parley.ID(4) {
			if id != 1 {
				p.put(id, 1, letter{epoch: 1, msg: parley.Msg{Kind: group.Beat}})
			}
		}
		p.suspect(1, 2)
		p.period(500, 1)
		if p.asks(1, 0) {
			when = append(when, p.now-begin)
		}
		p.lose(1, 0)
	}
	if want := []parley.Tick{7000, 21000, 49000}; !slices.Equal(when, want) {
		t.Errorf("rank 1 asks at %v, expected %v", when, want)
	}
}

// "An answer clears a suspicion before the decision; nothing does after it."
func TestAnswerClears(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	p.suspect(0, 3)
	p.put(3, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Beat}})
	p.settle(0, 1, 2)
	p.expect(0, "") // it waits for 3
	p.settle(0, 1, 2, 3)
	p.expect(0, "view 2 [0 1 2 3]")
}

// A member that was suspected for its silence and has reported is in the next view, and is not suspected in
// it for its earlier silence.
func TestReportClears(t *testing.T) {
	p := newPost(t, group.Config{N: 3})
	for range 3 {
		p.period(500, 0)
		p.put(1, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Beat}})
	}
	p.loseAll(0)
	p.put(1, 0, letter{epoch: 1, msg: parley.Msg{Kind: group.Beat}})
	p.period(500, 0)
	p.arrive(0, 2, 2)
	p.arrive(2, 0, 1) // its report, the only sign of life
	p.settle(0, 1)
	p.expect(0, "suspects 2; view 2 [0 1 2]")
	p.period(500, 0)
	if p.asks(0, 1) {
		t.Error("it is suspected again, or still")
	}
}

// While frozen, a member keeps a bounded number of requests.
func TestQueueIsBounded(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Queue: 2})
	p.suspect(0, 2)
	for i := range 3 {
		p.cast(0, fmt.Sprint(i))
	}
	p.expect(0, "refused: too many requests for the next view")
	p.settle(0, 1)
	p.expect(1, "view 2 [0 1]; 1:0; 2:1")
}

// "Send DECIDE(v, value) to all": every process that receives it sends it.
func TestDecisionIsRelayed(t *testing.T) {
	p := newPost(t, group.Config{N: 4})
	p.suspect(0, 3)
	p.settle(0, 1, 2)
	if k := p.kinds(1, 3); !slices.Contains(k, ballot.Decision) {
		t.Errorf("a member that hears of a decision tells the others %v", k)
	}
	// In memory mode nothing is on disk: a process that crashes does not resume.
	if len(p.logs[0])+len(p.logs[1]) > 0 {
		t.Errorf("records %v and %v", p.logs[0], p.logs[1])
	}
}

// A member does not inform others of what they know: their messages were long in transit. A heartbeat of the
// previous view has crossed the decision that ended it.
func TestOldMessages(t *testing.T) {
	p := newPost(t, group.Config{N: 5})
	p.suspect(0, 4)
	p.settle(0, 1, 2, 3)
	beat := letter{epoch: 1, msg: parley.Msg{Kind: group.Beat}}
	p.loseAll(0)
	if p.put(1, 0, beat); len(p.kinds(0, 1)) > 0 {
		t.Errorf("a sign of life of a moment ago is answered %v", p.kinds(0, 1))
	}
	p.suspect(0, 3)
	p.settle(0, 1, 2)
	p.lose(0, 1)
	p.now += 3000
	if p.put(1, 0, beat); len(p.kinds(0, 1)) > 0 {
		t.Errorf("an old message of a member is answered %v", p.kinds(0, 1))
	}
}

// bell is a layer that sets a timer in view 1, and has no messages.
type bell struct{ rung int }

func (b *bell) Install(s *parley.Step, _ []byte, next group.View) {
	if next.Number == 1 {
		s.SetTimer(7, 100)
	}
}
func (b *bell) Timeout(*parley.Step, parley.Timer)                     { b.rung++ }
func (b *bell) Request(*parley.Step, parley.Msg)                       {}
func (b *bell) Receive(*parley.Step, parley.ID, parley.Msg) (gap bool) { return false }
func (b *bell) Waiting() bool                                          { return false }
func (b *bell) Report() []byte                                         { return nil }
func (b *bell) Cut([][]byte) []byte                                    { return nil }
func (b *bell) Snapshot() []byte                                       { return nil }
func (b *bell) Restore([]byte) bool                                    { return true }
func (b *bell) Reads([]byte) bool                                      { return true }
func (b *bell) State(v *parley.Vars)                                   { parley.Num(v, "rung", &b.rung) }

// A timer of a layer ends with the view that it was set in, and does nothing while the member is frozen.
func TestTimersEndWithTheirView(t *testing.T) {
	var bells []*bell
	c := group.Config{N: 3}
	p := newPostOf(t, c, group.New(c, group.LayerSpec{Name: "bell", New: func(parley.ID, int) group.Layer {
		bells = append(bells, &bell{})
		return bells[len(bells)-1]
	}}))
	ring := func(at parley.ID) int {
		p.step(at, &parley.Step{Path: 1}, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 7) })
		return bells[at].rung
	}
	if n := ring(1); n != 1 {
		t.Errorf("rung %d times", n)
	}
	p.suspect(0, 2)
	if n := ring(0); n != 0 {
		t.Error("it rings in a member that has reported")
	}
	p.arrive(0, 2, 1)
	p.arrive(2, 0, 1)
	p.settle(0, 1, 2)
	p.expect(2, "view 2 [0 1 2]")
	if n := ring(2); n != 0 {
		t.Error("it rings in a view in which it was not set")
	}
}
