package rsm_test

import (
	"bytes"
	"fmt"
	"testing"

	"parley"
	"parley/membership/group"
	"parley/replica/rsm"
	"parley/sim"
)

// pieces is a configuration in which every state is too long for one message.
func pieces(every uint64) rsm.Config {
	return rsm.Config{Every: every, Piece: 16, Retry: 3000}
}

// A process that crashes before it has fetched everything starts again from scratch, also in durable mode,
// where its log says that it is a member. So does a process whose source crashes.
func TestFetchCutShort(t *testing.T) {
	for seed := range uint64(200) {
		p, crashes := returning(3, pieces(0)), parley.ID(2)
		if seed%2 == 1 {
			p = durably(3, rsm.Config{Piece: 16})
		}
		if seed%4 > 1 {
			crashes = parley.ID(seed / 4 % 2) // another process, which has the state
		}
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: 160_000}
		for k := range 10 {
			opt.Requests = append(opt.Requests, ask(parley.ID(k%2), parley.Tick(100+300*k), fmt.Sprint("c", k)))
		}
		opt.Crashes = []sim.Crash{{At: 2, When: 15_000, Back: 12_000}}
		when := 27_000 + parley.Tick(seed)*100 // between the first message of the joiner and the last piece
		if crashes == 2 {
			opt.Crashes = append(opt.Crashes, sim.Crash{At: 2, When: when, Back: 3000})
		} else {
			opt.Crashes = append(opt.Crashes, sim.Crash{At: crashes, When: when + 15_000, Back: 12_000})
		}
		for q := range parley.ID(3) {
			opt.Requests = append(opt.Requests, ask(q, 120_000, fmt.Sprint("last", q)))
		}
		servesOn(t, seed, p, sim.Run(opt))
	}
}

// joins returns a replica of three that must fetch its state, and has asked for it with a mark.
func joins(t *testing.T) (b *bench, number uint64) {
	t.Helper()
	return joinsAs(t, memory())
}

func memory() rsm.Config {
	return rsm.Config{N: 3, New: account, Transfer: true, Piece: 8, Longest: 1000}
}

// joinsAs is joins with another configuration.
func joinsAs(t *testing.T, c rsm.Config) (b *bench, number uint64) {
	t.Helper()
	b = newBench(t, c, 2)
	b.receive(2, parley.Msg{Kind: group.SnapshotInstalled, Body: []byte{1}})
	b.receive(2, parley.Msg{Kind: parley.View, Seq: 4, Body: parley.AppendSet(nil, parley.Everyone(3))})
	if len(b.effects) != 2 || b.effects[0].Op != parley.OpBroadcast || b.effects[0].Msg.Kind != 5 {
		t.Fatalf("it asks for %+v", b.effects)
	}
	return b, b.effects[0].Msg.Seq
}

// holder returns a replica that has applied some commands, and its report at a mark.
func holder(t *testing.T, id parley.ID, number uint64, commands ...string) (b *bench, told parley.Msg) {
	t.Helper()
	b = newBench(t, rsm.Config{N: 3, New: account, Transfer: true, Piece: 8}, id)
	for _, command := range commands {
		b.receive(1, once(command))
	}
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	if len(b.effects) != 2 || b.effects[0].To != 2 {
		t.Fatalf("%+v", b.effects)
	}
	return b, b.effects[0].Msg
}

// fetches returns a joiner after its mark, to which both others have reported the same state, and the replica
// that it fetches from.
func fetches(t *testing.T, c rsm.Config, late ...parley.Msg) (b, from *bench, number uint64) {
	t.Helper()
	b, number = joinsAs(t, c)
	from, told := holder(t, 0, number, "deposit 5")
	_, same := holder(t, 1, number, "deposit 5")
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	for _, m := range late {
		b.receive(1, m)
	}
	b.linked(0, told)
	b.linked(1, same)
	return b, from, number
}

// once returns a command that is applied as often as it is delivered.
func once(command string) parley.Msg {
	return parley.Msg{Kind: 4, Seq: 1, Body: rsm.AppendCommand(nil, 0, 1, []byte(command))}
}

// linked delivers a message of a link to a machine.
func (b *bench) linked(from parley.ID, m parley.Msg) {
	b.do(func() { b.Receive(&b.step, from, m) })
}

// carry passes wants and pieces between a joiner and the holder of the state until the joiner asks for nothing
// more. It returns what the joiner asked for last.
func carry(b, from *bench, id parley.ID) []parley.Effect {
	for {
		var asked []parley.Msg
		for _, e := range b.effects {
			if e.Op == parley.OpSend && e.To == id {
				asked = append(asked, e.Msg)
			}
		}
		if len(asked) == 0 {
			return b.effects
		}
		var all []parley.Effect
		for _, m := range asked {
			from.linked(2, m)
			sent := from.effects
			for _, e := range sent {
				b.linked(id, e.Msg)
				all = append(all, b.effects...)
			}
		}
		b.effects = all
	}
}

// A joiner takes over a state only if more than half of the others report its hash and the bytes have that
// hash. Only then it applies what was delivered after the mark, and broadcasts held requests.
func TestFetchedStateIsThatOfTheMajority(t *testing.T) {
	b, number := joins(t)
	_, told := holder(t, 0, number, "deposit 5")
	_, lie := holder(t, 1, number, "deposit 6")
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	pack := rsm.AppendCommand(nil, 0, 1, []byte("balance"))
	if b.request(parley.Msg{Kind: rsm.Commands, Seq: 3, Body: pack}); len(b.effects) > 0 {
		t.Errorf("without its state it asks for %+v", b.effects)
	}
	b.linked(1, lie)
	if b.linked(1, lie); len(b.effects) > 0 || b.refused["a second hash of a state"] != 1 {
		t.Errorf("one of two others is no majority: %+v, %v", b.effects, b.refused)
	}
	if b.linked(0, told); len(b.effects) > 0 {
		t.Errorf("two that differ are none: %+v", b.effects)
	}
	// It asks again: now both report the same.
	b.step.Now += 20_000
	b.do(func() { b.Timeout(&b.step, 0) })
	again := b.effects[0].Msg
	if again.Kind != 5 || again.Seq == number {
		t.Fatalf("%+v", b.effects)
	}
	b.linked(1, lie)
	if b.refused["piece that nobody asked for"] != 1 {
		t.Error("what was told of an earlier mark counts")
	}
	good, told := holder(t, 0, again.Seq, "deposit 5", "deposit 1")
	twin, same := holder(t, 1, again.Seq, "deposit 5", "deposit 1")
	b.receive(1, once("deposit 1")) // before the mark: it is in the state
	b.receive(2, parley.Msg{Kind: 5, Seq: again.Seq})
	b.receive(1, once("deposit 7"))
	b.linked(0, told)
	b.linked(1, same)
	if len(b.effects) != 1 || b.effects[0].Msg.Kind != 7 {
		t.Fatalf("%+v", b.effects)
	}
	liar := b.effects[0].To
	// The source sends other bytes than it reported.
	for at := 0; b.refused["pieces of another state than it reported"] == 0; at += 8 {
		size := min(8, int(told.Body[0])-at)
		b.linked(liar, parley.Msg{Kind: 8, Seq: again.Seq, Value: uint64(at), Body: make([]byte, size)})
	}
	if len(b.effects) != 1 || b.effects[0].To == liar {
		t.Fatalf("%v, %+v", b.refused, b.effects)
	}
	carry(b, []*bench{good, twin}[1-liar], 1-liar)
	b.request(parley.Msg{Kind: rsm.Inspect})
	if got := b.effects[0].Msg.Seq; got != 3 {
		t.Errorf("it is at position %d, and 3 commands were carried out", got)
	}
	b.receive(2, parley.Msg{Kind: 4, Seq: 3, Body: pack})
	list, ok := rsm.ReadReplies(b.effects[0].Msg.Body)
	if !ok || string(list[0].Answer) != "1013" {
		t.Errorf("%+v", list)
	}
}

// Limits apply before memory is used: a joiner does not fetch a state that is too long, does not keep a piece
// that is not the next one, and gets nothing that is not kept for it.
func TestFetchLimits(t *testing.T) {
	b, number := joins(t)
	long := append([]byte{0xE9, 7}, make([]byte, 32)...) // 1001 bytes
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	b.linked(0, parley.Msg{Kind: 6, Seq: number, Body: long})
	b.linked(1, parley.Msg{Kind: 6, Seq: number, Body: long})
	if len(b.effects) != 1 || b.effects[0].Msg.Kind != rsm.Stopped {
		t.Errorf("%+v", b.effects)
	}
	b, good, number := fetches(t, memory())
	for _, m := range []parley.Msg{
		{Kind: 8, Seq: number, Value: 8, Body: make([]byte, 8)}, {Kind: 8, Seq: number, Body: make([]byte, 9)},
		{Kind: 8, Seq: number, Body: make([]byte, 7)},
	} {
		b.linked(0, m)
	}
	b.linked(1, parley.Msg{Kind: 8, Seq: number, Body: make([]byte, 8)})
	if b.refused["piece that does not follow"] != 4 {
		t.Errorf("%v", b.refused)
	}
	for from, m := range map[parley.ID]parley.Msg{1: {Kind: 7, Seq: number}, 2: {Kind: 7, Seq: number + 1}} {
		if good.linked(from, m); len(good.effects) > 0 {
			t.Errorf("node %d is given %+v", from, good.effects)
		}
	}
	if good.linked(2, parley.Msg{Kind: 7, Seq: number, Value: 1 << 30}); len(good.effects) > 0 || good.refused["asks for a state that is not kept"] != 3 {
		t.Errorf("%+v %v", good.effects, good.refused)
	}
	// It is not kept forever.
	good.step.Now += 200_000
	good.do(func() { good.Timeout(&good.step, 0) })
	if good.linked(2, parley.Msg{Kind: 7, Seq: number}); len(good.effects) > 0 {
		t.Error("a state that nobody fetches is kept")
	}
	// A message that was not broadcast is no command.
	good.linked(1, parley.Msg{Kind: 1, Value: 99, Seq: 1, Body: []byte("deposit 1")})
	if good.refused["piece that nobody asked for"] != 1 {
		t.Errorf("%v", good.refused)
	}
}

// Over a durable group the fetched state replaces the log in the step in which the replica reports that it
// serves. After a crash right after that step it is there, with what was delivered after the mark.
func TestFetchedStateReplacesTheLog(t *testing.T) {
	for _, durable := range []bool{false, true} {
		c := memory()
		c.Durable = durable
		b, good, _ := fetches(t, c, once("deposit 7"))
		carry(b, good, 0)
		if len(b.serves) != 1 || b.serves[0].Value != 1 || b.serves[0].Seq != 2 {
			t.Errorf("it tells %+v", b.serves)
		}
		if !durable {
			if b.durable >= 0 {
				t.Error("in memory it replaces a log")
			}
			continue
		}
		if b.durable != 0 {
			t.Errorf("%d words of serving before the state is durable", b.durable)
		}
		back := newBench(t, c, 2)
		if !parley.LoadDurable(back, 0, parley.SaveDurable(b, 0, nil)) {
			t.Fatal("what is durable is not loaded")
		}
		back.request(parley.Msg{Kind: rsm.Inspect})
		b.request(parley.Msg{Kind: rsm.Inspect})
		if got, want := back.effects[0].Msg, b.effects[0].Msg; got.Seq != 2 || got.Value != want.Value {
			t.Errorf("after a crash it is at %d with %x, and was at %d with %x", got.Seq, got.Value, want.Seq, want.Value)
		}
	}
}

// A joiner neither waits for a process that leaves the view nor asks it: the other members suffice at once.
func TestFetchContinuesWithoutExcludedProcess(t *testing.T) {
	out := func(b *bench, members ...parley.ID) {
		b.receive(2, parley.Msg{Kind: parley.View, Seq: 5, Body: parley.AppendSet(nil, parley.SetOf(members...))})
	}
	// One of two is excluded before it has reported.
	b, number := joins(t)
	_, told := holder(t, 0, number, "deposit 5")
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	if b.linked(0, told); len(b.effects) > 0 {
		t.Fatalf("one of two others is no majority: %+v", b.effects)
	}
	if out(b, 0, 2); len(b.effects) != 1 || b.effects[0].Msg.Kind != 7 || b.effects[0].To != 0 {
		t.Errorf("with the other one out it asks for %+v", b.effects)
	}
	// The report of an excluded process does not count.
	b, number = joins(t)
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	b.linked(0, told)
	if out(b, 1, 2); len(b.effects) > 0 {
		t.Errorf("on the word of who is out it asks for %+v", b.effects)
	}
	// The source is excluded.
	b, _, number = fetches(t, memory())
	if len(b.effects) != 1 || b.effects[0].To != 0 {
		t.Fatalf("%+v", b.effects)
	}
	b.linked(0, parley.Msg{Kind: 8, Seq: number, Body: make([]byte, 8)})
	if out(b, 1, 2); len(b.effects) != 1 || b.effects[0].To != 1 || b.effects[0].Msg.Kind != 7 || b.effects[0].Msg.Value != 8 {
		t.Errorf("with that one out it asks for %+v", b.effects)
	}
}

// The state of a fetch is saved and loaded.
func TestFetchIsSaved(t *testing.T) {
	b, number := joins(t)
	_, told := holder(t, 0, number, "deposit 5")
	b.receive(2, parley.Msg{Kind: 5, Seq: number})
	b.receive(1, parley.Msg{Kind: 1, Value: 91, Seq: 1, Body: []byte("deposit 7")})
	b.request(parley.Msg{Kind: rsm.Command, Value: 5, Seq: 1, Body: []byte("balance")})
	b.linked(0, told)
	saved := parley.Save(b, 0, nil)
	m := rsm.New(memory()).New(2)
	if !parley.Load(m, 0, saved) || !bytes.Equal(parley.Save(m, 0, nil), saved) {
		t.Error("what was saved is not loaded")
	}
}
