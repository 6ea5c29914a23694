package tetra

import (
	"bytes"
	"slices"
	"testing"

	"parley"
)

// script is four processes whose messages a test delivers one by one. The faulty process is nobody: the test speaks
// for it.
type script struct {
	t       *testing.T
	c       Config
	procs   []*process
	logs    [][]parley.Record
	flight  []letter
	decided []word
}

type letter struct {
	from, to parley.ID
	m        parley.Msg
}

func newScript(t *testing.T, source parley.ID) *script {
	c := Config{N: 4, M: 1, Source: source, Wait: 1000}
	x := &script{t: t, c: c, logs: make([][]parley.Record, c.N), decided: make([]word, c.N)}
	for id := range parley.ID(c.N) {
		x.procs = append(x.procs, newProcess(c, id))
	}
	return x
}

// do runs one clause of a process, and carries out its effects.
func (x *script) do(id parley.ID, clause func(p *process, s *parley.Step)) {
	s := &parley.Step{Self: id, N: x.c.N}
	clause(x.procs[id], s)
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpAppend:
			x.logs[id] = append(x.logs[id], parley.Record{Body: e.Msg.Body})
		case parley.OpSend:
			for to := range parley.ID(x.c.N) {
				if to != id && (e.To == to || e.To == parley.All) {
					x.flight = append(x.flight, letter{id, to, e.Msg})
				}
			}
		case parley.OpDeliver:
			if w := &x.decided[id]; w.said && !bytes.Equal(w.value, e.Msg.Body) {
				x.t.Errorf("process %d decides on %q, and before on %q", id, e.Msg.Body, w.value)
			}
			x.decided[id] = word{true, e.Msg.Body}
		}
	}
}

// restart crashes a process and starts it again with its log.
func (x *script) restart(id parley.ID) {
	x.procs[id] = newProcess(x.c, id)
	x.do(id, func(p *process, s *parley.Step) {
		s.Restart, s.Log = true, x.logs[id]
		p.Start(s)
	})
}

// deliver delivers all messages between these processes, and those that they cause. Messages of and to others are
// late.
func (x *script) deliver(among ...parley.ID) {
	x.deliverIf(func(l letter) bool { return slices.Contains(among, l.from) && slices.Contains(among, l.to) })
}

func (x *script) deliverIf(now func(l letter) bool) {
	for {
		at := slices.IndexFunc(x.flight, now)
		if at < 0 {
			return
		}
		l := x.flight[at]
		x.flight = slices.Delete(x.flight, at, at+1)
		x.say(l.from, l.to, l.m)
	}
}

// say delivers a message at once.
func (x *script) say(from, to parley.ID, m parley.Msg) {
	x.do(to, func(p *process, s *parley.Step) { p.Receive(s, from, m) })
}

// timeout makes processes wish for the next view.
func (x *script) timeout(ids ...parley.ID) {
	for _, id := range ids {
		x.do(id, func(p *process, s *parley.Step) { p.Timeout(s, viewTimer) })
	}
}

// vote delivers votes of a faulty process for a value, in all phases of a view.
func (x *script) vote(from, to parley.ID, view uint64, value []byte) {
	for k := range uint64(phases) {
		x.say(from, to, parley.Msg{Kind: Vote, Seq: view, Value: k + 1, Body: value})
	}
}

// enter makes a faulty process wish for a view and enter it, without a claim and without votes, and witness that
// nobody was ready.
func (x *script) enter(from parley.ID, view uint64, to ...parley.ID) {
	var none [phases][]vote
	for _, id := range to {
		x.say(from, id, parley.Msg{Kind: Wish, Seq: view})
		x.say(from, id, parley.Msg{Kind: Enter, Seq: view, Body: appendReport(nil, nil, none)})
		for q := range parley.ID(x.c.N) {
			if q != from {
				x.say(from, id, parley.Msg{Kind: Witness, Origin: q})
			}
		}
	}
}

// agree demands that all messages, when they arrive at last, lead to one decision of these processes.
func (x *script) agree(value []byte, ids ...parley.ID) {
	x.t.Helper()
	for range 3 {
		x.deliver(ids...)
		x.timeout(ids...)
	}
	x.deliver(ids...)
	for _, id := range ids {
		if !x.decided[id].is(value) {
			x.t.Errorf("process %d decided on %+v, not on %q", id, x.decided[id], value)
		}
	}
}

var a, b = []byte("a"), []byte("b")

// Process 1 decides in view 0 because process 2 was ready, and process 2 crashes. If process 2 did not know after its
// restart that it was ready, views without process 1 could decide on nothing.
func TestReadyIsDurable(t *testing.T) {
	x := newScript(t, 0) // process 0 is faulty, and is silent where nothing is said for it
	for id := range parley.ID(3) {
		x.say(0, id+1, parley.Msg{Kind: Proposal, Body: a})
	}
	x.deliverIf(func(l letter) bool { return l.m.Kind == Echo && l.to != 3 && l.to != 0 })
	x.say(0, 1, parley.Msg{Kind: Ready, Body: a})
	x.deliverIf(func(l letter) bool { return l.m.Kind == Ready && l.from == 2 && l.to == 1 })
	if !x.decided[1].is(a) {
		t.Fatal("process 1 has not decided")
	}
	x.flight = slices.DeleteFunc(x.flight, func(l letter) bool { return l.from == 2 }) // lost with its sessions
	x.restart(2)
	for view := uint64(1); view <= 2; view++ {
		x.timeout(2, 3)
		x.enter(0, view, 2, 3)
		x.deliver(2, 3)
		x.vote(0, 2, view, nil)
		x.vote(0, 3, view, nil)
		x.deliver(2, 3)
	}
	x.agree(a, 1, 2, 3)
}

// Process 1 decides on nothing in view 1 because process 3 voted in phase 4, and process 3 crashes. If process 3 did
// not know after its restart that it voted, the faulty leader of view 2 could make the others decide on the value of
// the source.
func TestVotesAreDurable(t *testing.T) {
	x := newScript(t, 0) // process 2 is faulty
	x.do(0, func(p *process, s *parley.Step) { p.Request(s, parley.Msg{Kind: parley.Propose, Body: b}) })
	x.deliverIf(func(l letter) bool { return l.m.Kind == Proposal && l.to == 3 })
	x.timeout(0, 1, 3)
	x.deliverIf(func(l letter) bool { return l.m.Kind == Wish && l.to != 2 })
	x.enter(2, 1, 1, 3)
	x.deliverIf(func(l letter) bool {
		return l.m.Kind != Echo && l.m.Kind != Vote && l.from != 0 && (l.to == 1 || l.to == 3)
	})
	x.vote(2, 1, 1, nil)
	x.vote(2, 3, 1, nil)
	x.deliverIf(func(l letter) bool {
		return l.m.Kind == Vote && l.from != 0 && (l.to == 1 || l.to == 3 && l.m.Value < phases)
	})
	if !x.decided[1].is(nil) || x.decided[3].said {
		t.Fatal("process 1 has not decided, or process 3 has")
	}
	x.flight = slices.DeleteFunc(x.flight, func(l letter) bool { return l.from == 3 })
	x.restart(3)
	x.timeout(0, 3)
	x.enter(2, 2, 0, 3)
	x.deliver(0, 3)
	for _, id := range []parley.ID{0, 3} {
		x.say(2, id, parley.Msg{Kind: Vouch, Body: b})
		x.say(2, id, parley.Msg{Kind: Proposal, Seq: 2, Body: b})
		x.vote(2, id, 2, b)
	}
	x.deliver(0, 3)
	x.vote(2, 0, 2, b)
	x.vote(2, 3, 2, b)
	x.agree(nil, 0, 1, 3)
}

// Process 2 enters view 1 without having been ready, and crashes. If it did not know the view after its restart, it
// could become ready and make process 1 decide in view 0, whereas view 1 decides on nothing.
func TestViewIsDurable(t *testing.T) {
	x := newScript(t, 0) // process 0 is faulty
	for id := range parley.ID(3) {
		x.say(0, id+1, parley.Msg{Kind: Proposal, Body: a})
	}
	x.timeout(2, 3)
	x.enter(0, 1, 2, 3)
	x.deliverIf(func(l letter) bool { return l.m.Kind != Echo && l.from >= 2 && l.to >= 2 })
	x.flight = slices.DeleteFunc(x.flight, func(l letter) bool {
		return l.from == 2 && l.m.Kind != Enter && l.m.Kind != Witness
	})
	x.restart(2)
	// Echoes and READY of view 0 arrive at processes 1 and 2.
	x.say(0, 2, parley.Msg{Kind: Echo, Body: a})
	x.say(0, 1, parley.Msg{Kind: Echo, Body: a})
	x.deliverIf(func(l letter) bool { return l.m.Kind == Echo && (l.to == 1 || l.to == 2) })
	x.say(0, 1, parley.Msg{Kind: Ready, Body: a})
	x.deliverIf(func(l letter) bool { return l.m.Kind == Ready && l.to == 1 })
	if x.decided[1].said {
		t.Errorf("process 1 decided on %q in view 0, which a quorum has left without READY", x.decided[1].value)
	}
}

// A faulty leader of a view in the far future proposes now. The proposal of the leader of this view must not be lost
// by that.
func TestProposalsOfDistantViews(t *testing.T) {
	x := newScript(t, 1) // process 0 is faulty and silent but for this; process 2 leads view 1
	for id := range parley.ID(3) {
		x.say(0, id+1, parley.Msg{Kind: Proposal, Seq: 4*1000 + 3, Body: a})
	}
	x.timeout(1, 2, 3)
	x.deliver(1, 2, 3)
	x.agree(nil, 1, 2, 3)
}
