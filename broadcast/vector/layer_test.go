package vector

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/views"
	"parley/membership/group"
)

// bench is one member of a view of three, and its refusals.
type bench struct {
	parley.Host
	*layer
	step parley.Step
	why  []string
}

func (b *bench) Refused(_, _ parley.ID, why string) { b.why = append(b.why, why) }

var three = group.View{Number: 1, Members: parley.SetOf(0, 1, 2)}

func newBench(t *testing.T, self parley.ID, c Config) *bench {
	t.Helper()
	c.N = 3
	c, err := c.checked()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{layer: newLayer(c, self, 3)}
	b.step = parley.Step{Self: self, N: 3, Host: b}
	b.Install(&b.step, nil, three)
	return b
}

// ask broadcasts a payload at a level.
func (b *bench) ask(level Level, payload string) (sent []parley.Msg, delivered []string) {
	return b.after(func() {
		b.Request(&b.step, parley.Msg{Kind: parley.Carried, Value: uint64(level), Body: []byte(payload)})
	})
}

// hear receives a message, which must show no gap.
func (b *bench) hear(from parley.ID, m parley.Msg) (sent []parley.Msg, delivered []string) {
	return b.after(func() {
		if b.Receive(&b.step, from, m) {
			panic(fmt.Sprintf("a gap before %+v", m))
		}
	})
}

// after returns what a clause sent, each message once, and delivered.
func (b *bench) after(clause func()) (sent []parley.Msg, delivered []string) {
	b.step.Effects = b.step.Effects[:0]
	clause()
	for _, e := range b.step.Effects {
		switch {
		case e.Op == parley.OpDeliver:
			delivered = append(delivered, string(e.Msg.Body))
		case e.Op == parley.OpSend && (len(sent) == 0 || e.Msg.Kind != sent[len(sent)-1].Kind || e.Msg.Seq != sent[len(sent)-1].Seq):
			sent = append(sent, e.Msg)
		}
	}
	return sent, delivered
}

// data is a message of a sender; holds and after are by process.
func data(level Level, seq uint64, holds, after []uint64, payload string) parley.Msg {
	m := parley.Msg{Kind: Data, Seq: seq, Value: uint64(level)}
	m.Body = views.AppendVector(nil, three.Members, holds)
	if after != nil {
		m.Body = views.AppendVector(m.Body, three.Members, after)
	}
	m.Body = append(m.Body, payload...)
	return m
}

func ack(holds ...uint64) parley.Msg {
	return parley.Msg{Kind: Ack, Body: views.AppendVector(nil, three.Members, holds)}
}

// Each level waits for what it promises, and for nothing else.
func TestLevels(t *testing.T) {
	b := newBench(t, 0, Config{})
	for i, c := range []struct {
		from parley.ID
		m    parley.Msg
		want []string
	}{
		{1, data(Uniform, 1, []uint64{0, 1, 0}, nil, "uniform"), nil},
		{1, data(Reliable, 2, []uint64{0, 2, 0}, nil, "reliable"), []string{"reliable"}},
		{1, data(FIFO, 3, []uint64{0, 3, 0}, nil, "fifo"), nil},
		// which its sender has broadcast after it delivered the reliable one
		{2, data(Causal, 1, []uint64{0, 2, 1}, []uint64{0, 2, 0}, "causal"), []string{"uniform", "fifo", "causal"}},
	} {
		if _, delivered := b.hear(c.from, c.m); !slices.Equal(delivered, c.want) {
			t.Errorf("message %d: %q is delivered", i+1, delivered)
		}
	}
	// A causal message counts what its sender has delivered, even a message that overtook another.
	b = newBench(t, 0, Config{})
	b.hear(1, data(Uniform, 1, []uint64{0, 1, 0}, nil, "uniform"))
	b.hear(1, data(Reliable, 2, []uint64{0, 2, 0}, nil, "reliable"))
	sent, _ := b.ask(Causal, "causal")
	vec, rest, _ := views.ReadVector(nil, sent[0].Body)
	need, payload, ok := views.ReadVector(nil, rest)
	if !ok || !slices.Equal(vec, []uint64{1, 2, 0}) || !slices.Equal(need, []uint64{0, 2, 0}) || string(payload) != "causal" {
		t.Errorf("it holds %d, comes after %d: %q", vec, need, payload)
	}
}

// A missing message is noticed by the next message, and by an acknowledgement.
func TestGaps(t *testing.T) {
	for _, m := range []parley.Msg{data(Reliable, 2, []uint64{0, 2, 0}, nil, "second"), ack(0, 1, 0)} {
		b := newBench(t, 0, Config{})
		if !b.Receive(&b.step, 1, m) {
			t.Errorf("no gap before %+v", m)
		}
	}
}

// Malformed messages are refused and change nothing.
func TestRefused(t *testing.T) {
	b := newBench(t, 0, Config{Window: 4})
	b.ask(FIFO, "own")
	before := parley.Save(holder{b.layer}, 0, nil)
	short := data(Reliable, 1, []uint64{0, 1, 0}, nil, "")
	short.Body = short.Body[:2]
	origin := ack(0, 0, 0)
	origin.Origin = 1
	for i, m := range []parley.Msg{
		{Kind: Ack + 1}, origin, short,
		data(Causal+1, 1, []uint64{0, 1, 0}, nil, "no level"), data(0, 1, []uint64{0, 1, 0}, nil, "no level"),
		data(Reliable, 0, []uint64{0, 0, 0}, nil, "no number"), data(Reliable, 1, []uint64{0, 2, 0}, nil, "another count"),
		data(Causal, 1, []uint64{0, 1, 0}, []uint64{0, 1, 0}, "after itself"),
		data(Causal, 1, []uint64{0, 1, 0}, []uint64{0, 0, 5}, "far ahead"),
		ack(2, 0, 0), // of messages that were not sent
	} {
		b.why = nil
		if sent, delivered := b.hear(1, m); len(b.why) != 1 || len(sent)+len(delivered) > 0 {
			t.Errorf("message %d: refused %q, sent %v, delivered %q", i, b.why, sent, delivered)
		}
	}
	if !bytes.Equal(parley.Save(holder{b.layer}, 0, nil), before) {
		t.Error("the state has changed")
	}
	b.why = nil
	if b.ask(Causal+1, "no level"); len(b.why) != 1 {
		t.Error("a request of no level")
	}
}

// holder embeds a layer in a machine.
type holder struct{ *layer }

func (holder) Start(*parley.Step)                            {}
func (h holder) Receive(*parley.Step, parley.ID, parley.Msg) {}

// No more own messages than the window are in flight, and no more wait than the queue has room for; each
// message that all members hold makes room for one.
func TestWindow(t *testing.T) {
	c := Config{Window: 2, Level: Reliable}
	c.Queue = 3
	b := newBench(t, 0, c)
	for k := range 7 {
		sent, delivered := b.ask(0, fmt.Sprint(k))
		if want := k < 2; (len(sent) == 1) != want || (len(delivered) == 1) != want {
			t.Errorf("request %d: sent %v, delivered %q", k, sent, delivered)
		}
	}
	if !slices.Equal(b.why, []string{"too many requests for the window", "too many requests for the window"}) || b.Oldest() != 1 {
		t.Errorf("%q, oldest %d", b.why, b.Oldest())
	}
	if sent, _ := b.hear(1, ack(2, 0, 0)); len(sent) != 0 {
		t.Errorf("%v", sent)
	}
	if sent, delivered := b.hear(2, ack(1, 0, 0)); len(sent) != 1 || !slices.Equal(delivered, []string{"2"}) || b.Oldest() != 2 {
		t.Errorf("%v, %q, oldest %d", sent, delivered, b.Oldest())
	}
}

// An acknowledgement waits for more messages to acknowledge, but not of level Uniform, nor when half of the
// sender's window waits for it.
func TestHold(t *testing.T) {
	b := newBench(t, 0, Config{Window: 4, Hold: 100})
	acks := func(seq uint64, level Level) bool {
		sent, _ := b.hear(1, data(level, seq, []uint64{0, seq, 0}, nil, "m"))
		return len(sent) == 1 && sent[0].Kind == Ack
	}
	for i, c := range []struct {
		level Level
		want  bool
	}{{Reliable, false}, {Reliable, true}, {Uniform, true}, {FIFO, false}} {
		if have := acks(uint64(i+1), c.level); have != c.want {
			t.Errorf("message %d of level %s is acknowledged at once: %t", i+1, c.level, have)
		}
	}
	if sent, _ := b.after(func() { b.Timeout(&b.step, 1) }); len(sent) != 1 || sent[0].Kind != Ack {
		t.Errorf("when it is time: %v", sent)
	}
}

// A joiner begins where its sponsor is: it does not deliver again a message that overtook another, and
// delivers with the cut what its sponsor waited for.
func TestJoiner(t *testing.T) {
	sponsor, joiner := newBench(t, 0, Config{}), newBench(t, 1, Config{})
	sponsor.hear(2, data(Reliable, 1, []uint64{0, 0, 1}, nil, "first"))
	sponsor.hear(2, data(Uniform, 2, []uint64{0, 0, 2}, nil, "uniform"))
	sponsor.hear(2, data(Reliable, 3, []uint64{0, 0, 3}, nil, "overtook"))
	sponsor.hear(2, data(FIFO, 4, []uint64{0, 0, 4}, nil, "fifo"))
	if !joiner.Restore(sponsor.Snapshot()) {
		t.Fatal("the snapshot cannot be read")
	}
	cut := sponsor.Cut([][]byte{sponsor.Report(), []byte("nonsense")})
	next := group.View{Number: 2, Members: parley.SetOf(0, 1)}
	for _, b := range []*bench{sponsor, joiner} {
		_, delivered := b.after(func() { b.Install(&b.step, cut, next) })
		if !slices.Equal(delivered, []string{"uniform", "fifo"}) {
			t.Errorf("member %d delivers %q", b.Self, delivered)
		}
	}
	for _, bad := range [][]byte{nil, {0, 0}, append(sponsor.Snapshot(), 0), {0, 1, 0, 0, 0, 0, 0}, {1, 1, 1, 0, 0, 0, 0}} {
		if joiner.Restore(bad) {
			t.Errorf("%x is a snapshot", bad)
		}
	}
	for _, bad := range [][]byte{{1}, {1, 3, 1, 1, 0}, {1, 0, 0, 1, 0}, {1, 0, 1, 5, 0}, {1, 0, 1, 1, 2, 0}, {1, 0, 1, 4, 0}, {0, 0}} {
		if joiner.Reads(bad) {
			t.Errorf("%x is a cut", bad)
		}
	}
}

// A restarted sponsor delivers again what it delivered before its crash, and its joiner, which has none of it,
// delivers the same by the cut.
func TestJoinerOfRestarted(t *testing.T) {
	c := Config{Config: group.Config{Durable: true}}
	before := newBench(t, 0, c)
	var records [][]byte
	for _, m := range []parley.Msg{
		data(Reliable, 1, []uint64{0, 0, 1}, nil, "a"), data(Uniform, 2, []uint64{0, 0, 2}, nil, "b"),
		data(Reliable, 3, []uint64{0, 0, 3}, nil, "c"), data(FIFO, 4, []uint64{0, 0, 4}, nil, "d"),
	} {
		before.hear(2, m)
		for _, e := range before.step.Effects {
			if e.Op == parley.OpAppend {
				records = append(records, e.Msg.Body)
			}
		}
	}
	sponsor, joiner := newBench(t, 0, c), newBench(t, 1, c)
	for _, r := range records {
		if !sponsor.Replay(r) {
			t.Fatalf("%x cannot be replayed", r)
		}
	}
	sponsor.hear(2, data(Reliable, 5, []uint64{0, 0, 5}, nil, "e")) // delivered once, after the restart
	if !joiner.Restore(sponsor.Snapshot()) {
		t.Fatal("the snapshot cannot be read")
	}
	cut := sponsor.Cut([][]byte{sponsor.Report()})
	next := group.View{Number: 2, Members: parley.SetOf(0, 1)}
	for _, b := range []*bench{sponsor, joiner} {
		_, delivered := b.after(func() { b.Install(&b.step, cut, next) })
		slices.Sort(delivered)
		if !slices.Equal(delivered, []string{"a", "b", "c", "d"}) {
			t.Errorf("member %d delivers %q", b.Self, delivered)
		}
	}
}
