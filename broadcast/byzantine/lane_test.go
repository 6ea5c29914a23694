package byzantine

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/agreement/tetra"
)

func batchOf(source parley.ID, after tip, requests ...string) batch {
	var list [][]byte
	for _, r := range requests {
		list = append(list, []byte(r))
	}
	return newBatch(source, 0, after, list, nil)
}

// The chain of a lane from a cut decides what is delivered, whichever fork a process holds first. A tip that leads to
// another batch than the last delivered one leaves the lane out.
func TestForks(t *testing.T) {
	a1, b1 := batchOf(3, tip{}, "a1"), batchOf(3, tip{}, "b1")
	a2, b2 := batchOf(3, a1.tip, "a2"), batchOf(3, b1.tip, "b2")
	a3, b3 := batchOf(3, a2.tip, "a3"), batchOf(3, b2.tip, "b3")
	other := batchOf(1, tip{}, "other")
	for _, order := range [][]batch{{a1, a2, b2, b1}, {b1, b2, a1, a2}, {a2, b2, b1, a1}} {
		l := newLedger(Config{N: 4, M: 1}.withDefaults())
		x := &l.lanes[3]
		for _, b := range order {
			x.add(b)
		}
		l.lanes[1].add(other)
		var got []string
		apply := func(c cut) {
			s := &parley.Step{Self: 1, N: 4, Host: deaf{}}
			l.apply(s, c, newKnown(c.encode()))
			for _, e := range s.Effects {
				got = append(got, fmt.Sprint(string(e.Msg.Body), e.Msg.Origin, e.Msg.Seq))
			}
		}
		apply(cut{{}, other.tip, {}, b2.tip})
		x.add(a3)
		x.add(b3)
		apply(cut{{}, other.tip, {}, a3.tip}) // a fork, and an old tip
		apply(cut{{}, {}, {}, b1.tip})
		apply(cut{{}, {}, {}, b3.tip})
		if want := "[other1 1 b13 1 b23 2 b33 3]"; fmt.Sprint(got) != want {
			t.Errorf("delivered %v, %s is expected", got, want)
		}
		if len(x.loose) > 0 || x.size > 0 || x.tip() != b3.tip || l.total != 4 {
			t.Errorf("%d batches are left, with %d bytes; the last one is %d", len(x.loose), x.size, x.tip().number)
		}
	}
	x := lane{}
	x.add(a1)
	x.add(a3)
	if lack, _ := x.follow(a3.tip); lack != a2.tip {
		t.Errorf("batch %d is missing", lack.number)
	}
}

// A process takes batches from their source only, one of each number, of the life of the lane, and well formed.
func TestTakes(t *testing.T) {
	good := batchOf(3, tip{}, "good")
	huge := batchOf(3, tip{}, string(make([]byte, 2000)))
	for what, m := range map[string]parley.Msg{ // order: each is judged alone
		"slot":    {Kind: Batch, Seq: 1, Body: good.body},
		"value":   {Kind: Batch, Value: 1, Body: good.body},
		"origin":  {Kind: Batch, Origin: 1, Body: good.body},
		"cut off": {Kind: Batch, Body: good.body[:len(good.body)-1]},
		"longer":  {Kind: Batch, Body: append(slices.Clip(good.body), 0)},
		"empty":   {Kind: Batch, Body: batchOf(3, tip{}).body},
		"type":    {Kind: Batch, Body: append([]byte{aCut}, good.body[1:]...)},
		"source":  {Kind: Batch, Body: batchOf(2, tip{}, "of another").body},
		"life":    {Kind: Batch, Body: newBatch(3, 1, tip{}, [][]byte{[]byte("later")}, nil).body},
		"huge":    {Kind: Batch, Body: huge.body},
	} {
		x := newScript(t, Config{Batch: 1000})
		x.say(3, 1, m)
		for id := range x.procs[1].lanes {
			if l := &x.procs[1].lanes[id]; l.size > 0 {
				t.Errorf("%s: the batch is taken", what)
			}
		}
	}
	x := newScript(t, Config{})
	x.say(3, 1, parley.Msg{Kind: Batch, Body: good.body})
	size := x.procs[1].lanes[3].size
	x.say(3, 1, parley.Msg{Kind: Batch, Body: batchOf(3, tip{}, "second").body})
	x.say(3, 1, parley.Msg{Kind: Batch, Body: good.body})
	if l := &x.procs[1].lanes[3]; size == 0 || l.size != size {
		t.Errorf("%d bytes, then %d", size, l.size)
	}
}

// An owner proposes the batches of a strict lane only if 2m+1 processes claim to hold them. A lane becomes strict if
// the cut of a slot that failed has a batch of it that fewer processes claim.
func TestStrict(t *testing.T) {
	for claims := range 5 {
		p := newProcess(Config{N: 4, M: 1}.withDefaults(), 1)
		b := batchOf(3, tip{}, "b")
		p.lanes[3].add(b)
		for id := range claims {
			p.peers[id].claim = cut{3: b.tip}
		}
		p.cur.hear(0, cut{3: b.tip}.encode())
		p.judge(p.cur, true, 0)
		if strict := p.peers[3].strict == 1+strictFor; strict != (claims < 3) || p.peers[2].strict > 0 {
			t.Errorf("%d claims: strict: %v", claims, strict)
		}
		p.peers[3].strict = 10
		for slot, free := range map[uint64]bool{10: false, 11: true} { // order: each is judged alone
			if got := p.offered(3, slot) == b.tip; got != (free || claims >= 3) {
				t.Errorf("%d claims, slot %d: offered: %v", claims, slot, got)
			}
		}
	}
}

// A process does not echo a cut without new batches, or one that leaves out a lane that is overdue.
func TestUseful(t *testing.T) {
	p := newProcess(Config{N: 4, M: 1}.withDefaults(), 1)
	b2, b3 := batchOf(2, tip{}, "b2"), batchOf(3, tip{}, "b3")
	p.lanes[2].add(b2)
	p.lanes[3].add(b3)
	without, with := cut{{}, {}, {}, b3.tip}, cut{{}, {}, b2.tip, b3.tip}
	if p.useful(make(cut, 4)) || !p.useful(without) {
		t.Error("no batch is due, and exactly cuts with new batches are useful")
	}
	for id := range 3 {
		p.peers[id].claim = with
		for p.peers[2].looks = 0; p.peers[2].looks <= overdueAfter; {
			if !p.useful(without) {
				t.Fatalf("%d claims: it is overdue after %d looks", id+1, p.peers[2].looks)
			}
			if waits := p.look(); id == 0 && waits != (p.peers[2].looks > 1) {
				t.Errorf("look %d: a batch waits: %v", p.peers[2].looks, waits)
			}
		}
		if p.useful(without) != (id < 2) || !p.useful(with) {
			t.Errorf("%d claims: overdue: %v", id+1, !p.useful(without))
		}
	}
	p.lanes[2].done = b2.tip
	if p.look(); !p.useful(without) || p.peers[2].looks != 0 {
		t.Error("the lane is overdue after its batch is ordered")
	}
}

// If m+1 processes speak for a cut, a process requests the missing batches, newest first: from the process that sent
// the cut, and later from all.
func TestFetches(t *testing.T) {
	x := newScript(t, Config{})
	b1 := batchOf(3, tip{}, "one")
	b2 := batchOf(3, b1.tip, "two")
	for _, b := range []batch{b1, b2} {
		x.procs[2].lanes[3].add(b)
	}
	c := newKnown(cut{3: b2.tip}.encode())
	x.say(0, 1, parley.Msg{Kind: tetra.Proposal, Seq: 1, Body: c.body})
	x.say(0, 1, parley.Msg{Kind: tetra.Echo, Seq: 1, Body: c.digest[:]})
	if len(x.flight) > 0 {
		t.Errorf("it says %v", x.flight)
	}
	x.say(2, 1, parley.Msg{Kind: tetra.Echo, Seq: 1, Body: c.digest[:]})
	if len(x.flight) != 1 || x.flight[0].to != 0 || x.flight[0].m.Kind != Fetch {
		t.Fatalf("it does not request the batch from the owner alone: %v", x.flight)
	}
	x.flight = nil
	x.fire(1, lookTimer)
	x.deliverIf(func(l letter) bool { return l.m.Kind == Fetch && l.to == 2 || l.m.Kind == Batch && l.from == 2 })
	if p := x.procs[1]; p.lanes[3].tip() != b2.tip || !p.cur.in.Spoke() || len(p.wants) > 0 {
		t.Errorf("it holds batches up to %d, and wants %d", p.lanes[3].tip().number, len(p.wants))
	}
}

// A process that knows a decision requests the cut if it has not received it.
func TestFetchesCut(t *testing.T) {
	x := newScript(t, Config{})
	x.request(0, "a")
	x.deliverIf(func(l letter) bool { return l.m.Kind != tetra.Proposal || l.to != 1 })
	x.demand("a", all...)
}

// An answer to a request has batches down to the number that was requested, and a megabyte of them.
func TestAnswerFetch(t *testing.T) {
	x := newScript(t, Config{})
	p := x.procs[1]
	end := tip{}
	var list []batch
	for range 10 {
		b := newBatch(3, 0, end, [][]byte{make([]byte, 200<<10)}, nil)
		list, end = append(list, b), b.tip
		p.lanes[3].add(b)
	}
	for down, want := range map[uint64]int{0: 6, 1: 6, 9: 2, 10: 1, 11: 0} { // order: each is judged alone
		p.peers[2].sent = 0
		effects := x.step(1, func(p *process, s *parley.Step) {
			p.Receive(s, 2, parley.Msg{Kind: Fetch, Origin: 3, Seq: 10, Value: down, Body: list[9].digest[:]})
		})
		if got := sends(effects, Batch); len(got) != want {
			t.Errorf("batches 10 to %d are requested, and %d are sent", down, len(got))
		}
	}
	effects := x.step(1, func(p *process, s *parley.Step) {
		p.Receive(s, 2, parley.Msg{Kind: Fetch, Origin: 3, Seq: 10, Body: list[9].digest[:31]})
		p.Receive(s, 2, parley.Msg{Kind: Fetch, Origin: 3, Seq: 10, Body: list[8].digest[:]})
	})
	if got := sends(effects, Batch); len(got) > 0 {
		t.Error("it answers a request for a batch that is not here")
	}
}

// A process that believes m+1 claims requests all batches that it lacks, and not only the last one.
func TestFetchesChain(t *testing.T) {
	x := newScript(t, Config{})
	b1 := batchOf(3, tip{}, "one")
	b2 := batchOf(3, b1.tip, "two")
	for _, id := range []parley.ID{0, 2} {
		x.say(id, 1, parley.Msg{Kind: Tips, Body: cut{3: b2.tip}.encode()})
	}
	x.say(0, 1, parley.Msg{Kind: Batch, Body: b2.body})
	x.say(0, 1, parley.Msg{Kind: Batch, Body: b1.body})
	if p := x.procs[1]; p.lanes[3].tip() != b2.tip || len(p.wants) > 0 {
		t.Errorf("it holds batches up to %d, and wants %d", p.lanes[3].tip().number, len(p.wants))
	}
}

// A source that restarts sends again what is not ordered.
func TestRepeatsBatches(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	x.request(1, "a")
	for _, id := range all {
		x.lose(id)
	}
	x.restart(1, 1)
	x.deliver(all...)
	x.demand("a", all...)
}

// A process that restarts asks all sources for what is not ordered.
func TestAsksForBatches(t *testing.T) {
	x := newScript(t, Config{Durable: true})
	x.request(1, "a")
	x.restart(2, 1)
	x.deliverIf(func(l letter) bool { return l.m.Kind == Ask || l.m.Kind == Batch && l.to == 2 })
	if got := x.procs[2].lanes[1].tip(); got.number != 1 {
		t.Errorf("it holds batches up to %d", got.number)
	}
}

// In another life of its source, a lane continues after the last delivered batch.
func TestOtherLife(t *testing.T) {
	l := lane{}
	b1 := batchOf(3, tip{}, "one")
	b2 := batchOf(3, b1.tip, "two")
	for _, b := range []batch{b1, b2, batchOf(3, b2.tip, "three"), batchOf(3, b2.tip, "fork")} {
		l.add(b)
	}
	l.advance(b1.tip, func(*batch) {})
	l.begin(1)
	if l.life != 1 || l.tip() != b1.tip || l.size != 0 || len(l.loose) > 0 {
		t.Errorf("life %d, batches up to %d, %d bytes, %d loose batches", l.life, l.tip().number, l.size, len(l.loose))
	}
}

// A faulty source leaves out its first batch, and an owner proposes the last one. What a lane holds is bounded in number,
// and finding what is missing takes one search for each batch.
func TestManySmallBatches(t *testing.T) {
	x := newScript(t, Config{Batch: 1000, Flight: 4 << 20, Queue: 1 << 20})
	end := batchOf(3, tip{}, "first").tip
	for range 10_000 {
		b := batchOf(3, end, "")
		end = b.tip
		x.say(3, 1, parley.Msg{Kind: Batch, Body: b.body})
	}
	l := &x.procs[1].lanes[3]
	if got, most := len(l.loose), 2*(4<<20)/perBatch+4; got > most || got < most/2 {
		t.Fatalf("%d batches are held, and %d may be", got, most)
	}
	last := l.loose[len(l.loose)-1].tip
	if lack, _ := l.follow(last); lack.number != 1 {
		t.Errorf("batch %d is missing", lack.number)
	}
}
