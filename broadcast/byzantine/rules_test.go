package byzantine

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/agreement/tetra"
)

// What a process says in the slot that it has delivered is durable, too.
func TestLastSlotIsDurable(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	x.request(0, "a")
	x.deliver(all...)
	for _, id := range []parley.ID{0, 2, 3} {
		x.say(id, 1, parley.Msg{Kind: tetra.Wish, Seq: 1, Value: 1 << viewShift})
	}
	if p := x.procs[1]; p.last.number != 1 || p.last.in.View() != 1 {
		t.Fatalf("in slot %d it is in view %d", p.last.number, p.last.in.View())
	}
	x.restart(1, 1)
	if p := x.procs[1]; p.last.number != 1 || p.last.in.View() != 1 {
		t.Errorf("after a restart it is in view %d of slot %d", p.last.in.View(), p.last.number)
	}
}

// A process takes part in a slot until a quorum has decided it. Then it tells the decision to those who ask.
func TestClosed(t *testing.T) {
	x := newScript(t, Config{})
	x.request(0, "a")
	x.deliver(all...)
	p := x.procs[1]
	vouch := parley.Msg{Kind: tetra.Vouch, Seq: 2, Body: make([]byte, 32)}
	wish := parley.Msg{Kind: tetra.Wish, Seq: 1, Value: 1 << viewShift}
	x.say(0, 1, vouch)
	x.say(0, 1, wish)
	if p.last.closed {
		t.Error("two processes of four close a slot")
	}
	x.say(2, 1, vouch)
	x.say(0, 1, wish)
	if !p.last.closed {
		t.Error("three processes of four do not close a slot")
	}
	x.flight = nil
	x.say(3, 1, wish)
	if len(x.flight) != 1 || x.flight[0].to != 3 || x.flight[0].m.Kind != tetra.Decided || len(x.flight[0].m.Body) != 32 {
		t.Errorf("it answers %v", x.flight)
	}
}

// Messages of a slot that is far ahead are not kept. When the slot begins, the process asks their sender to repeat
// them.
func TestAsksWhatItLost(t *testing.T) {
	for ahead := range uint64(2) {
		x := newScript(t, Config{})
		x.say(3, 1, parley.Msg{Kind: tetra.Vouch, Seq: 2 + ahead, Body: make([]byte, 32)})
		others := func(l letter) bool { return l.m.Kind == tetra.Wish && l.to != 3 }
		asks := func() bool {
			return slices.ContainsFunc(x.flight, func(l letter) bool {
				return l.m.Kind == tetra.Wish && l.m.Value == 1 && l.to == 3
			})
		}
		x.request(0, "a")
		x.deliver(all...)
		for _, l := range []parley.ID{0, 2, 3} {
			x.lose(l)
		}
		x.request(0, "b")
		asked := false
		x.deliverIf(func(l letter) bool { asked = asked || asks(); return !asked && l.to != 3 })
		if slices.ContainsFunc(x.flight, others) {
			t.Error("it asks processes of which it lost nothing")
		}
		x.deliver(all...)
		if asked != (ahead == 1) {
			t.Errorf("a message of slot %d is early, and the process asks: %v", 2+ahead, asked)
		}
	}
}

// A process was down while the others spoke in two slots. They tell it what they decided in the first slot. It then asks
// them to repeat what they said in the second one.
func TestAsksAfterItWasTold(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	x.request(0, "a")
	x.deliver(0, 2, 3)
	x.request(0, "b")
	x.deliver(0, 2)
	x.lose(3)
	x.restart(1, 1)
	x.deliverIf(func(l letter) bool {
		return (l.from == 1 || l.to == 1) && l.m.Seq < 2 && (l.m.Kind <= tetra.Decided || l.m.Kind >= Batch && l.m.Kind <= Cut)
	})
	if p := x.procs[1]; p.cur.number != 2 || !slices.ContainsFunc(x.flight, func(l letter) bool {
		return l.from == 1 && l.m.Kind == tetra.Wish && l.m.Seq == 2 && l.m.Value == 1
	}) {
		t.Errorf("it is in slot %d, and sends %v", p.cur.number, x.flight)
	}
	x.settle(all...)
	x.demand("b", all...)
}

// A process takes over a checkpoint only if m+1 processes tell it alike, and if it gets no further otherwise.
func TestOneCheckpoint(t *testing.T) {
	x := newScript(t, Config{})
	l := newLedger(x.c)
	l.total = 7
	snapshot := parley.Msg{Kind: Snapshot, Seq: 5, Body: l.encode()}
	vouch := parley.Msg{Kind: tetra.Vouch, Seq: 2, Body: make([]byte, 32)}
	x.say(0, 1, vouch)
	x.say(3, 1, vouch)
	x.say(3, 1, snapshot)
	x.say(3, 1, snapshot)
	looks := func() {
		for range 2 * skipAfter {
			x.fire(1, lookTimer)
		}
	}
	looks()
	l.total = 8
	x.say(0, 1, parley.Msg{Kind: Snapshot, Seq: 5, Body: l.encode()})
	looks()
	if p := x.procs[1]; p.cur.number != 1 {
		t.Fatalf("it believes one process, and is in slot %d", p.cur.number)
	}
	if x.fire(1, lookTimer); x.timers[1][lookTimer] {
		t.Error("it looks around for ever")
	}
	x.say(2, 1, snapshot)
	looks()
	if p := x.procs[1]; p.cur.number != 6 || p.total != 7 || len(x.told[1]) != 2 || x.told[1][0].Seq != 7 ||
		x.told[1][1].Kind != Admitted {
		t.Errorf("it is in slot %d after %d requests, and indicates %v", p.cur.number, p.total, x.told[1])
	}
	if x.procs[1].cur.in.Backed(vouch.Body) {
		t.Error("messages of slot 2 count in slot 6")
	}
}

// A process takes over the first checkpoint that m+1 processes tell, so that it skips as little as possible.
func TestFirstCheckpoint(t *testing.T) {
	p := newProcess(Config{N: 4, M: 1}.withDefaults(), 3)
	for q, slots := range [][]uint64{{3, 9}, {6, 9}, {6, 9}} {
		for _, slot := range slots {
			p.peers[q].snapshots = append(p.peers[q].snapshots, parley.Msg{Seq: slot})
		}
	}
	for now, want := range map[uint64]uint64{1: 6, 6: 6, 7: 9} { // order: each is judged alone
		if m, ok := p.peers.common(now, 1); !ok || m.Seq != want {
			t.Errorf("in slot %d it takes over %d, %v, and not %d", now, m.Seq, ok, want)
		}
	}
}

// A process that restarts a little behind delivers everything, although the others also tell checkpoints.
func TestKeepsUp(t *testing.T) {
	x := newScript(t, Config{Durable: true, Checkpoint: 2})
	for k := range 3 {
		x.request(0, fmt.Sprint(k))
		x.deliver(0, 1, 3)
	}
	x.restart(2, 1)
	x.deliverIf(func(l letter) bool { return l.from == 2 || l.m.Kind == Snapshot })
	if !x.timers[2][lookTimer] {
		t.Error("it does not look around")
	}
	for range skipAfter {
		x.fire(2, lookTimer)
	}
	x.deliver(all...)
	skips := slices.ContainsFunc(x.told[2], func(m parley.Msg) bool { return m.Kind == Skipped })
	if got := fmt.Sprint(x.delivered[2]); got != "[0 1 2]" || skips {
		t.Errorf("it delivers %s, and indicates %v", got, x.told[2])
	}
}

// View 0 is eight times as long as slots usually take, within bounds. Slots that fail have no influence.
func TestUsual(t *testing.T) {
	p := newProcess(Config{N: 4, M: 1, Least: 1000, Most: 5000}.withDefaults(), 1)
	if p.wait() != 1000 {
		t.Errorf("at first, view 0 takes %d", p.wait())
	}
	p.cur.began = 100
	p.judge(p.cur, false, 5000)
	p.cur.timing = true
	p.judge(p.cur, true, 5000)
	if p.usual != 0 {
		t.Error("slots without a timer, or without a decision, count")
	}
	for range 100 {
		p.judge(p.cur, false, 500)
	}
	if p.usual < 390 || p.usual > 400 || p.wait() != 8*p.usual {
		t.Errorf("slots take 400, and usually %d; view 0 takes %d", p.usual, p.wait())
	}
	p.usual = 2000
	if p.wait() != 5000 {
		t.Errorf("view 0 takes %d", p.wait())
	}
}

// A source sends its next batch when the one before is ordered, or in the cut of the owner. If it is in no cut, the
// source waits until it can fill a batch.
func TestNextBatch(t *testing.T) {
	x := newScript(t, Config{Batch: 1000, Queue: 10_000, Flight: 6000})
	last := func() uint64 { return x.procs[1].lanes[1].tip().number }
	x.request(1, "one")
	x.request(1, "two")
	if last() != 1 {
		t.Errorf("it sends batch %d", last())
	}
	x.deliverIf(func(l letter) bool { return l.to == 0 && l.m.Kind == Batch })
	x.deliverIf(func(l letter) bool { return l.to == 1 && l.m.Kind == tetra.Proposal })
	if last() != 2 {
		t.Errorf("its batch is in the cut of the owner, and it sends batch %d", last())
	}
	x.request(0, "of the owner")
	if got := len(x.procs[0].cur.cuts); got != 1 {
		t.Errorf("the owner proposes %d cuts", got)
	}
	x.request(1, "three")
	if last() != 2 {
		t.Errorf("it sends batch %d", last())
	}
	for range 9 {
		x.request(1, string(make([]byte, 900)))
	}
	if l := &x.procs[1].lanes[1]; last() < 4 || l.size > 6000+perBatch+x.c.longest() {
		t.Errorf("it sends batch %d, and %d bytes are in flight", last(), l.size)
	}
}

// Noise of m processes does not start the timer of a slot.
func TestNoise(t *testing.T) {
	x := newScript(t, Config{})
	noise := parley.Msg{Kind: tetra.Vouch, Seq: 1, Body: make([]byte, 32)}
	x.say(3, 1, noise)
	if x.timers[1][viewTimer] {
		t.Error("one process starts the timer")
	}
	x.say(3, 1, parley.Msg{Kind: tetra.Wish, Seq: 2, Value: 1})
	x.say(2, 1, parley.Msg{Kind: tetra.Wish, Seq: 2, Value: 1})
	if x.timers[1][viewTimer] || x.procs[1].peers.speakers(1) != 1 {
		t.Error("requests to repeat count")
	}
	x.say(2, 1, noise)
	if !x.timers[1][viewTimer] {
		t.Error("two processes do not start the timer")
	}
}

// A process that lost its state says nothing in a slot until it is admitted, not even when its new life owns the slot.
func TestJoinerIsSilent(t *testing.T) {
	x := newScript(t, Config{Tenure: 1})
	x.request(1, "a")
	x.deliver(all...)
	x.restart(2, 1)
	spoke := func(l letter) bool { return l.from == 2 && l.m.Kind < tetra.Decided }
	x.request(0, "b")
	admitted := uint64(0)
	for range 2000 {
		if len(x.flight) == 0 { // all timers run out
			for _, id := range all {
				x.fire(id, viewTimer)
				x.fire(id, lookTimer)
			}
		}
		if len(x.flight) == 0 {
			break
		}
		l := x.flight[0]
		x.flight = x.flight[1:]
		x.say(l.from, l.to, l.m)
		if p := x.procs[2]; p.member && admitted == 0 {
			admitted = p.cur.number
		}
		for _, l := range x.flight {
			if spoke(l) && (admitted == 0 || l.m.Seq < admitted) {
				t.Fatalf("it takes part from slot %d on, and says %+v", admitted, l.m)
			}
		}
	}
	if admitted == 0 {
		t.Error("it is not admitted")
	}
	x.request(2, "c")
	x.settle(all...)
	x.demand("c", all...)
	if l := x.procs[0].lanes[2]; l.life != 1 {
		t.Errorf("its lane has life %d", l.life)
	}
}

// A process that lost its state asks to be admitted until it is.
func TestKnocksAgain(t *testing.T) {
	x := newScript(t, Config{})
	x.restart(2, 1)
	for range 3 {
		if !slices.ContainsFunc(x.flight, func(l letter) bool { return l.m.Kind == Knock && l.m.Seq == 1 && l.m.Value == 1 }) {
			t.Error("it does not ask")
		}
		x.flight = nil
		x.fire(2, lookTimer)
	}
}

// What is older than the last two checkpoints is forgotten.
func TestForgets(t *testing.T) {
	x := newScript(t, Config{Checkpoint: 2, Durable: true})
	for k := range 20 {
		x.request(0, fmt.Sprint(k))
		x.deliver(all...)
	}
	for id, p := range x.procs {
		if len(p.past) > 4 || len(p.lanes[0].chain) > 4 || len(p.checks) != 2 || p.dropped != p.checks[0].slot {
			t.Errorf("process %d keeps %d slots, %d batches and %d checkpoints; %d slots are forgotten", id, len(p.past),
				len(p.lanes[0].chain), len(p.checks), p.dropped)
		}
		if len(x.logs[id]) > 60 {
			t.Errorf("the log of process %d has %d records", id, len(x.logs[id]))
		}
	}
}

// A process that lost its state was admitted in one life, and lost its state again. Then it takes part only after its
// new life is admitted.
func TestTwoLives(t *testing.T) {
	x := newScript(t, Config{})
	x.request(1, "a")
	x.restart(2, 1)
	x.settle(all...)
	x.restart(2, 5)
	x.deliverIf(func(l letter) bool { return l.m.Kind != Knock })
	p := x.procs[2]
	if p.lanes[2].life != 1 || p.member {
		t.Errorf("its lane has life %d, and it takes part: %v", p.lanes[2].life, p.member)
	}
	x.settle(all...)
	x.request(2, "b")
	x.settle(all...)
	if x.demand("b", all...); x.procs[0].lanes[2].life != 2 || x.procs[0].lanes[2].name != 5 {
		t.Errorf("admission %d is of life %d", x.procs[0].lanes[2].life, x.procs[0].lanes[2].name)
	}
}

// A faulty process asks to be admitted in a life as far ahead as possible, several times. Once it is repaired, it is
// admitted in its next life.
func TestRepaired(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	for k := range uint64(3) {
		for _, id := range []parley.ID{0, 1, 3} {
			x.say(2, id, parley.Msg{Kind: Knock, Seq: k + 1, Value: mostLife - 1 - k})
		}
		x.settle(0, 1, 3)
	}
	if l := x.procs[0].lanes[2]; l.life != 3 {
		t.Fatalf("%d lives of the faulty process are admitted", l.life)
	}
	x.lose(2)
	x.logs[2], x.saved[2] = nil, nil
	x.restart(2, 7)
	x.settle(all...)
	x.request(2, "repaired")
	x.settle(all...)
	x.demand("repaired", all...)
}
