package byzantine

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/agreement/tetra"
)

var all = []parley.ID{0, 1, 2, 3}

func has(effects []parley.Effect, op parley.Op) bool {
	return slices.ContainsFunc(effects, func(e parley.Effect) bool { return e.Op == op })
}

func sends(effects []parley.Effect, kind parley.Kind) (list []parley.Effect) {
	for _, e := range effects {
		if e.Op == parley.OpSend && e.Msg.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// A process crashes when its log has a decision, before it delivers. It restarts, and crashes again before it delivers.
// So the log must not get shorter in the step in which it delivers again.
func TestCrashWhileReplaying(t *testing.T) {
	x := newScript(t, Config{Durable: true, Checkpoint: 1})
	x.request(0, "a")
	for len(x.delivered[1]) == 0 {
		l := x.flight[0]
		x.flight = x.flight[1:]
		effects := x.step(l.to, func(p *process, s *parley.Step) { p.Receive(s, l.from, l.m) })
		if l.to != 1 || !has(effects, parley.OpDeliver) {
			x.carry(l.to, effects)
			continue
		}
		for range 2 { // it crashes as soon as its log is written
			log := slices.IndexFunc(effects, func(e parley.Effect) bool {
				return e.Op != parley.OpAppend && e.Op != parley.OpCompact
			})
			x.carry(1, effects[:log])
			x.reborn(1)
			effects = x.step(1, func(p *process, s *parley.Step) {
				s.Restart, s.Log = true, x.logs[1]
				p.Start(s)
			})
		}
		x.carry(1, effects)
		break
	}
	x.demand("a", 1)
}

// A process that was admitted crashes after it has spoken in a slot, and restarts with its disk. It must know what it
// said.
func TestAdmittedRestarts(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	x.request(1, "a")
	x.deliver(all...)
	x.logs[2] = nil
	x.restart(2, 1)
	x.settle(all...)
	if !x.procs[2].member {
		t.Fatal("it is not admitted")
	}
	x.request(0, "b")
	x.deliverIf(func(l letter) bool { return l.from == 0 && l.to == 2 && l.m.Kind <= Batch })
	p := x.procs[2]
	slot, spoke := p.cur.number, p.cur.in.Spoke()
	if !spoke {
		t.Fatal("it has not spoken")
	}
	x.restart(2, 2)
	if p := x.procs[2]; !p.member || p.cur.number != slot || !p.cur.in.Spoke() {
		t.Errorf("it spoke in slot %d; after the restart it is in slot %d, and knows that it spoke: %v", slot,
			p.cur.number, p.cur.in.Spoke())
	}
	if last := x.procs[2].last; last != nil && last.number < slot-1 {
		t.Errorf("its last slot is %d", last.number)
	}
	x.settle(all...)
	x.demand("b", all...)
}

// A process is admitted by a checkpoint. Wherever it crashes between the records, it is no member in a slot in which
// its old life may have spoken. In the slot in which it is admitted it never speaks, also after a restart.
func TestAdmittedByCheckpoint(t *testing.T) {
	x := newScript(t, Config{Durable: true, Checkpoint: 1})
	x.request(1, "a")
	x.deliver(all...)
	x.logs[2], x.saved[2] = nil, nil
	x.restart(2, 1)
	x.deliver(0, 1, 3)
	x.deliverIf(func(l letter) bool { return l.from == 2 && l.m.Kind == Knock })
	x.deliver(0, 1, 3)
	for i := range 3 {
		x.request(0, fmt.Sprint(i))
		x.deliver(0, 1, 3)
	}
	checks := x.procs[0].checks
	c := checks[len(checks)-1]
	if x.procs[0].lanes[2].life != 1 {
		t.Fatal("it is not admitted by the others")
	}
	effects := x.step(2, func(p *process, s *parley.Step) {
		p.adopt(s, parley.Msg{Seq: c.slot, Body: c.body})
		p.progress(s)
	})
	if !x.procs[2].member || has(effects, parley.OpCompact) {
		t.Fatalf("it is a member: %v; the log gets shorter: %v", x.procs[2].member, has(effects, parley.OpCompact))
	}
	if !has(effects, parley.OpStopTimer) {
		t.Error("the timer of the old slot runs")
	}
	log := x.logs[2]
	for k := range effects {
		x.logs[2] = slices.Clone(log)
		x.carry(2, effects[:k])
		x.restart(2, 2)
		if p := x.procs[2]; p.member && p.cur.number <= c.slot {
			t.Errorf("it crashes after %d effects, and is a member in slot %d", k, p.cur.number)
		}
	}
}

// The slot in which a process is admitted is closed for it, also after a restart with a state that replaced its log.
func TestSilentWhereAdmitted(t *testing.T) {
	x := newScript(t, Config{Durable: true, Checkpoint: 1})
	x.request(1, "a")
	x.deliver(all...)
	x.logs[2], x.saved[2] = nil, nil
	x.restart(2, 1)
	for len(x.flight) > 0 && !x.procs[2].member {
		l := x.flight[0]
		x.flight = x.flight[1:]
		if x.say(l.from, l.to, l.m); len(x.flight) == 0 {
			x.fire(2, lookTimer)
		}
	}
	p := x.procs[2]
	if !p.member || p.last == nil {
		t.Fatalf("member: %v, last slot: %v", p.member, p.last)
	}
	slot := p.last.number
	x.carry(2, []parley.Effect{{Op: parley.OpCompact}})
	x.flight = nil
	x.restart(2, 2)
	for _, l := range x.flight {
		if l.from == 2 && l.m.Kind <= tetra.Decided && l.m.Seq <= slot {
			t.Errorf("it was admitted in slot %d, and says %+v", slot, l.m)
		}
	}
}

// A process that takes over a checkpoint keeps its own batches, and makes no other batch of the same number.
func TestOwnBatchesAreKept(t *testing.T) {
	x := newScript(t, Config{Durable: true, Checkpoint: 1})
	x.request(0, "a")
	x.deliver(0, 1, 3)
	x.request(2, "mine")
	x.say(0, 2, parley.Msg{Kind: Batch, Body: newBatch(0, 0, tip{}, [][]byte{[]byte("a")}, nil).body})
	c := x.procs[0].checks[0]
	x.do(2, func(p *process, s *parley.Step) { p.adopt(s, parley.Msg{Seq: c.slot, Body: c.body}) })
	for _, when := range []string{"after the checkpoint", "after a restart"} {
		l := &x.procs[2].lanes[2]
		if list := l.pending(); len(list) != 1 || l.size != list[0].cost() || l.numbered(2) {
			t.Errorf("%s, %d batches with %d bytes wait", when, len(list), l.size)
		}
		if l := &x.procs[2].lanes[0]; len(l.loose)+len(l.pending()) > 0 || l.done.number != 1 {
			t.Errorf("%s, delivered batches are held", when)
		}
		x.restart(2, 1)
	}
	x.settle(all...)
	x.demand("mine", all...)
}

// Faulty processes welcome another one in any life, for any admission. The others still admit it, in the life for which
// m+1 members voted last.
func TestFalseWelcome(t *testing.T) {
	l := newLedger(Config{N: 4, M: 1}.withDefaults())
	vote := func(by parley.ID, number, name uint64) { l.tally(by, welcome{2, admission{number, name}}) }
	demand := func(number, name uint64) {
		t.Helper()
		if l.admit(); l.lanes[2].life != number || l.lanes[2].name != name {
			t.Errorf("admission %d is of life %d, and %d of life %d is expected", l.lanes[2].life, l.lanes[2].name, number, name)
		}
	}
	vote(3, mostLife, mostLife)
	vote(0, 1, 5)
	demand(0, 0)
	vote(1, 1, 5)
	demand(1, 5)
	vote(0, 3, 9)
	vote(1, 3, 9) // there was no second admission
	demand(1, 5)
	vote(3, 1, 4) // the votes of the first admission count no more
	vote(0, 2, 3)
	demand(1, 5)
	vote(0, 2, 2)
	vote(1, 2, 3)
	demand(1, 5)
	vote(1, 2, 2)
	demand(2, 2)
	l.total, l.lanes[1].requests, l.lanes[1].done = 9, 8, tip{5, digest{6}}
	l.tenure.owner, l.tenure.used, l.tenure.fails[3], l.tenure.bench = 2, 3, 1, []benched{{3, 2}}
	next := newLedger(l.c)
	if !next.decode(1, l.encode()) || !bytes.Equal(next.encode(), l.encode()) || next.lanes[2].name != 2 {
		t.Error("a checkpoint has not all that follows from the slots")
	}
}

// A faulty process asks to be admitted in ever more lives, while the batches of the others wait. Their next batches
// are not too large.
func TestManyLives(t *testing.T) {
	x := newScript(t, Config{Batch: 1000})
	x.request(1, "waits")
	for life := range uint64(1000) {
		x.say(3, 1, parley.Msg{Kind: Knock, Seq: 1, Value: life + 1})
	}
	if p := x.procs[1]; len(p.greets) != 1 || p.greets[0] != (welcome{3, admission{1, 1000}}) {
		t.Errorf("%d welcomes wait", len(p.greets))
	}
	x.settle(0, 1, 2)
	x.request(1, "next")
	x.settle(0, 1, 2)
	x.demand("next", 0, 1, 2)
}

// A process refuses batches that come too early. When their source tells them again, it requests them from the source.
// If only the source says so, it does not remember them.
func TestRefusedTooEarly(t *testing.T) {
	x := newScript(t, Config{})
	b1 := newBatch(3, 7, tip{}, [][]byte{[]byte("one")}, nil)
	b2 := newBatch(3, 7, b1.tip, [][]byte{[]byte("two")}, nil)
	x.say(3, 1, parley.Msg{Kind: Batch, Body: b1.body})
	p := x.procs[1]
	p.lanes[3].begin(7) // the others have admitted it
	x.say(3, 1, parley.Msg{Kind: Batch, Body: b2.body})
	if p.lanes[3].tip() != (tip{}) {
		t.Fatal("a batch of another life is taken")
	}
	tips := cut{{}, {}, {}, b2.tip}.encode()
	effects := x.step(1, func(p *process, s *parley.Step) { p.Receive(s, 3, parley.Msg{Kind: Tips, Body: tips}) })
	list := sends(effects, Fetch)
	if len(list) != 1 || list[0].To != 3 || list[0].Msg.Seq != 1 || !bytes.Equal(list[0].Msg.Body, b1.digest[:]) {
		t.Fatalf("it requests %+v", list)
	}
	if len(p.wants) > 0 {
		t.Error("it believes a source alone")
	}
	x.say(0, 1, parley.Msg{Kind: Batch, Body: b1.body})
	if p.lanes[3].tip() != (tip{}) {
		t.Error("it takes the batch from another process")
	}
	// m+1 processes tell the batch: then it takes what is missing from anybody.
	x.say(0, 1, parley.Msg{Kind: Tips, Body: tips})
	if len(p.wants) != 1 || p.wants[0].tip != b1.tip {
		t.Fatalf("it wants %v", p.wants)
	}
	x.say(0, 1, parley.Msg{Kind: Batch, Body: b1.body})
	if p.lanes[3].tip() != b2.tip {
		t.Error("it does not take the batch that it requested")
	}
}

// A source that has delivered a slot sends all that is allowed, and so it did before that slot. A process that has not
// delivered the slot takes it all.
func TestFullLanes(t *testing.T) {
	x := newScript(t, Config{Batch: 1000, Queue: 10_000, Flight: 4100})
	own := &x.procs[1].lanes[1]
	for range 2 {
		if own.size > 0 {
			own.advance(own.tip(), func(*batch) {})
		}
		for range 8 {
			x.request(1, string(make([]byte, 900)))
		}
		if own.size < x.c.Flight {
			t.Fatalf("%d bytes are in flight", own.size)
		}
	}
	x.deliverIf(func(l letter) bool { return l.to == 2 && l.m.Kind == Batch })
	if got := x.procs[2].lanes[1].tip(); got != own.tip() || got.number < 6 {
		t.Errorf("process 2 holds batches up to %d of %d", got.number, own.tip().number)
	}
}

// Requests of a faulty source that are empty count, because each of their deliveries takes memory.
func TestManyEmptyRequests(t *testing.T) {
	x := newScript(t, Config{Batch: 10_000, Queue: 20_000, Flight: 10_000})
	end, held := tip{}, 0
	for range 100 {
		b := newBatch(3, 0, end, make([][]byte, 1500), nil)
		end = b.tip
		x.say(3, 1, parley.Msg{Kind: Batch, Body: b.body})
	}
	for _, b := range x.procs[1].lanes[3].pending() {
		held += b.items
	}
	if most := x.c.most() / perItem; held == 0 || held > most || x.refused[notItsBatch] == 0 {
		t.Errorf("%d requests are held, at most %d are expected; refused are %v", held, most, x.refused)
	}
}

// A faulty process sends one useful cut after another. A process keeps only the first one of the owner.
func TestManyCuts(t *testing.T) {
	for _, from := range []parley.ID{0, 3} {
		x := newScript(t, Config{Durable: true})
		end := tip{}
		for k := range 100 {
			b := newBatch(3, 0, end, [][]byte{fmt.Append(nil, k)}, nil)
			end = b.tip
			x.say(3, 1, parley.Msg{Kind: Batch, Body: b.body})
			c := cut{3: b.tip}
			x.say(from, 1, parley.Msg{Kind: tetra.Proposal, Seq: 1, Body: c.encode()})
			x.say(from, 1, parley.Msg{Kind: tetra.Proposal, Seq: 1, Value: 3 << viewShift, Body: c.encode()})
		}
		if p := x.procs[1]; len(p.cur.cuts) != 1-int(min(from, 1)) {
			t.Errorf("from %d: %d cuts are kept", from, len(p.cur.cuts))
		}
		if size := len(x.logs[1]); size > 110 {
			t.Errorf("from %d: the log has %d records", from, size)
		}
	}
}

// Messages of the next slot, and checkpoints, are kept up to a size that correct processes need.
func TestLongMessages(t *testing.T) {
	x := newScript(t, Config{})
	long := make([]byte, 1<<20)
	for k := range uint64(10) {
		long[0] = byte(k)
		x.say(3, 1, parley.Msg{Kind: tetra.Vouch, Seq: 2, Body: bytes.Clone(long)})
		x.say(3, 1, parley.Msg{Kind: Snapshot, Seq: 2 + k, Body: bytes.Clone(long)})
		x.say(3, 1, parley.Msg{Kind: Answer, Seq: 0, Body: make([]byte, 200_000)})
	}
	if size := len(parley.Save(x.procs[1], 0, nil)); size > 100_000 {
		t.Errorf("the state has %d bytes", size)
	}
	for k := range uint64(10) {
		x.say(3, 1, parley.Msg{Kind: Snapshot, Seq: 2 + k, Body: []byte("short")})
	}
	if got := len(x.procs[1].peers[3].snapshots); got != 2 {
		t.Errorf("%d checkpoints of a process are kept", got)
	}
}

// An owner whose cut failed notes the lanes that few others hold, as everybody does.
func TestOwnerNotesLanes(t *testing.T) {
	x := newScript(t, Config{})
	b := newBatch(3, 0, tip{}, [][]byte{[]byte("to the owner alone")}, nil)
	x.say(3, 0, parley.Msg{Kind: Batch, Body: b.body})
	x.request(1, "waits")
	for x.procs[0].cur.number == 1 || x.procs[1].cur.number == 1 || x.procs[2].cur.number == 1 {
		x.deliver(0, 1, 2)
		for id := range parley.ID(3) {
			x.fire(id, lookTimer)
			x.fire(id, viewTimer)
		}
	}
	for id := range parley.ID(3) {
		if x.procs[id].peers[3].strict != 1+strictFor {
			t.Errorf("process %d is in slot %d, and lane 3 is strict up to slot %d", id, x.procs[id].cur.number,
				x.procs[id].peers[3].strict)
		}
	}
}

// A process knows a decision but not its batches, and all others have forgotten them and have nothing to say. It asks
// again when it looks around, and takes over a checkpoint.
func TestForgottenBatch(t *testing.T) {
	x := newScript(t, Config{Checkpoint: 1})
	x.request(1, "a")
	x.deliverIf(func(l letter) bool { return l.to != 2 || l.m.Kind != Batch })
	if _, decided := x.procs[2].cur.in.Decision(); !decided {
		t.Fatal("it has not decided")
	}
	x.lose(2)
	x.request(0, "b")
	x.deliver(0, 1, 3)
	x.lose(2)
	x.settle(0, 1, 2)
	if p := x.procs[2]; p.cur.number != 3 {
		t.Errorf("it is in slot %d", p.cur.number)
	}
	x.request(2, "c")
	x.settle(0, 1, 2)
	x.demand("c", 0, 1, 2)
}

// One process has delivered a checkpoint with the help of a faulty process, which then is silent. A second one is in
// the slot of the checkpoint, and a third one restarts far behind. Each of them knows what another one needs, so they
// get on.
func TestCheckpointOfOne(t *testing.T) {
	for _, early := range []bool{false, true} {
		x := newScript(t, Config{Durable: true, Checkpoint: 2})
		x.lose(2)
		for k := range 3 {
			x.request(0, fmt.Sprint(k))
			x.deliver(0, 1, 3)
		}
		x.request(0, "last")
		// READY of process 3 reaches process 0 alone.
		x.deliverIf(func(l letter) bool {
			return l.to != 2 && l.from != 2 && (l.to != 1 || l.from == 0 || l.m.Kind != tetra.Ready)
		})
		if a, b := x.procs[0].cur.number, x.procs[1].cur.number; a != 5 || b != 4 {
			t.Fatalf("the processes are in slots %d and %d", a, b)
		}
		x.flight = slices.DeleteFunc(x.flight, func(l letter) bool { return l.from == 3 })
		x.restart(2, 1)
		if early { // the faulty process tells the last checkpoint
			x.deliver(0, 2)
			c := x.procs[0].checks[1]
			for range 2 * skipAfter {
				x.say(3, 2, parley.Msg{Kind: Snapshot, Seq: c.slot, Body: c.body})
				x.fire(2, lookTimer)
				x.deliver(0, 2)
			}
		}
		x.settle(0, 1, 2)
		x.request(2, "z")
		x.settle(0, 1, 2)
		x.demand("z", 0, 1, 2)
	}
}

// A faulty owner proposes a fork of its lane, and then the main chain. A process that is behind needs the batches of
// both, and those who have delivered the main chain no longer hold the fork. So nobody echoes the fork.
func TestForkIsNotEchoed(t *testing.T) {
	x := newScript(t, Config{})
	fork, first := newBatch(0, 0, tip{digest: digest{9}}, [][]byte{[]byte("fork")}, nil), batchOf(0, tip{}, "first")
	x.say(0, 1, parley.Msg{Kind: Batch, Body: fork.body})
	x.say(0, 2, parley.Msg{Kind: Batch, Body: first.body})
	for slot, b := range []batch{fork, first} {
		c := newKnown(cut{b.tip, {}, {}, {}}.encode())
		for _, m := range []parley.Msg{
			{Kind: tetra.Proposal, Body: c.body}, {Kind: tetra.Echo, Body: c.digest[:]}, {Kind: tetra.Ready, Body: c.digest[:]},
		} {
			for to := range parley.ID(3) {
				m.Seq = uint64(slot) + 1
				x.say(0, max(to, 1), m)
			}
		}
		x.deliver(1, 2)
		x.fire(1, lookTimer)
		x.fire(2, lookTimer)
		x.deliver(1, 2)
	}
	x.request(1, "x")
	x.settle(1, 2, 3)
	x.demand("x", 1, 2, 3)
}

// A process requested a batch, and then its source was admitted in another life. The old batch does not belong to the
// lane any more.
func TestOldLifeIsNotRequested(t *testing.T) {
	x := newScript(t, Config{})
	old := batchOf(3, tip{}, "old")
	p := x.procs[1]
	p.lanes[3].begin(1)
	for _, from := range []parley.ID{0, 2} {
		x.say(from, 1, parley.Msg{Kind: Tips, Body: cut{3: old.tip}.encode()})
	}
	x.say(0, 1, parley.Msg{Kind: Batch, Body: old.body})
	if len(p.wants) != 1 || p.lanes[3].size > 0 {
		t.Errorf("%d batches are requested, and a batch of the old life is held: %v", len(p.wants), p.lanes[3].size > 0)
	}
}

// A faulty source sends its batch to one process only, and wishes for the end of the slot together with this process.
// Nobody else follows, so the owner, who cannot know the batch, remains the owner. If m+1 processes claim to hold the
// batch, it is different.
func TestFramedOwner(t *testing.T) {
	x := newScript(t, Config{})
	b := batchOf(3, tip{}, "to process 1 alone")
	x.say(3, 1, parley.Msg{Kind: Batch, Body: b.body})
	for to := range parley.ID(3) {
		x.say(3, to, parley.Msg{Kind: tetra.Wish, Seq: 1, Value: 1 << viewShift})
	}
	for range 20 {
		x.fire(1, lookTimer)
		x.fire(1, viewTimer)
		x.deliver(0, 1, 2)
	}
	if p := x.procs[1]; p.cur.number != 1 || p.cur.in.View() != 0 || !x.timers[1][viewTimer] {
		t.Errorf("process 1 is in view %d of slot %d, and its timer runs: %v", p.cur.in.View(), p.cur.number,
			x.timers[1][viewTimer])
	}
	x.say(3, 1, parley.Msg{Kind: Tips, Body: cut{3: b.tip}.encode()})
	x.fire(1, viewTimer)
	if !slices.ContainsFunc(x.flight, func(l letter) bool { return l.m.Kind == tetra.Wish }) {
		t.Error("m+1 processes hold a batch that waits, and process 1 does not wish for the end of the slot")
	}
}

// A faulty source sends batches, which are dropped as soon as it is admitted in another life. The logs of the others
// do not grow without end.
func TestLogIsBounded(t *testing.T) {
	x := newScript(t, Config{Durable: true, Batch: 1000, KeepBytes: 1000})
	for life := range uint64(100) {
		end := tip{}
		for range 100 {
			b := newBatch(3, life, end, [][]byte{make([]byte, 900)}, nil)
			end = b.tip
			x.say(3, 1, parley.Msg{Kind: Batch, Body: b.body})
		}
		x.procs[1].lanes[3].begin(life + 1)
	}
	size := 0
	for _, r := range x.logs[1] {
		size += len(r.Body)
	}
	if limit := x.c.log() + x.c.longest(); size > limit {
		t.Errorf("the log has %d bytes, and the limit is %d", size, limit)
	}
}
