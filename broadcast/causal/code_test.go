package causal_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
)

func message(sender parley.ID, life, seq uint64) causal.Message {
	return causal.Message{Sender: sender, Life: life, Seq: seq, Body: fmt.Appendf(nil, "%d.%d.%d", sender, life, seq)}
}

func bundle(seq uint64, all ...causal.Message) parley.Msg {
	return parley.Msg{Kind: causal.Bundle, Value: 1, Seq: seq, Body: causal.Pack(all)}
}

func stamped(seq uint64, vector ...causal.Count) parley.Msg {
	return parley.Msg{Kind: causal.Stamped, Value: 1, Seq: seq,
		Body: causal.AppendStamp(nil, vector, fmt.Append(nil, seq))}
}

func TestCodecs(t *testing.T) {
	all := []causal.Message{message(2, 1, 1), message(0, 300, 70000), {Sender: 1, Life: 1, Seq: 1}}
	if have, err := causal.Unpack(causal.Pack(all), 3); err != nil || !reflect.DeepEqual(have, all) {
		t.Error(have, err)
	}
	vector := []causal.Count{{0, 1, 1}, {0, 3, 1 << 60}, {2, 1, 1}}
	b := causal.AppendStamp(nil, vector, []byte("pay"))
	if have, payload, err := causal.ReadStamp(b, 3); err != nil || !reflect.DeepEqual(have, vector) || string(payload) != "pay" {
		t.Error(have, string(payload), err)
	}
	for i := range b[:len(b)-3] {
		if _, _, err := causal.ReadStamp(b[:i], 3); err == nil {
			t.Errorf("%d bytes are a vector", i)
		}
	}
	packed := causal.Pack(all[:1])
	for i := range packed {
		if _, err := causal.Unpack(packed[:i], 3); err == nil {
			t.Errorf("%d bytes are a bundle", i)
		}
	}
}

// Malformed messages are refused and change nothing.
func TestRefused(t *testing.T) {
	piggy, vector := causal.Config{N: 3, Window: 4}, causal.Config{N: 3, Window: 4, Form: causal.Vector}
	inner := func(m parley.Msg) parley.Msg {
		return parley.Msg{Kind: causal.Bundle, Value: 1, Seq: 1, Body: parley.AppendMsg(nil, 0, m)}
	}
	for i, c := range []struct {
		config causal.Config
		from   parley.ID
		m      parley.Msg
		why    string
	}{
		{piggy, 1, stamped(1), "no message of a broadcast"},
		{piggy, 3, bundle(1, message(1, 1, 1)), "no message of a broadcast"},
		{piggy, 1, parley.Msg{Kind: causal.Bundle, Value: 1}, "no message of a broadcast"},
		{piggy, 1, parley.Msg{Kind: causal.Bundle, Value: 1, Seq: 1, Origin: 1}, "no message of a broadcast"},
		{piggy, 1, parley.Msg{Kind: 3, Value: 1}, "no message of a broadcast"},
		{piggy, 1, bundle(1), "bundle of nothing"},
		{piggy, 1, bundle(1, message(3, 1, 1)), "bundle with something that is no message"},
		{piggy, 1, bundle(1, message(1, 0, 1)), "bundle with something that is no message"},
		{piggy, 1, bundle(1, message(1, 1, 0)), "bundle with something that is no message"},
		{piggy, 1, inner(parley.Msg{Kind: 2, Value: 1, Seq: 1}), "bundle with something that is no message"},
		{piggy, 1, parley.Msg{Kind: causal.Bundle, Value: 1, Seq: 1, Body: []byte{1, 1, 1, 1, 1, 0}}, "bundle with something that is no message"},
		{piggy, 1, parley.Msg{Kind: causal.Bundle, Value: 1, Seq: 1, Body: []byte{0, 1}}, parley.ErrShort.Error()},
		{piggy, 1, parley.Msg{Kind: causal.Bundle, Seq: 1, Body: causal.Pack([]causal.Message{message(1, 1, 1)})},
			"message of a life long past"},
		{piggy, 1, bundle(2, message(1, 1, 1)), "message that is not the next of its sender"},

		{vector, 1, bundle(1, message(1, 1, 1)), "no message of a broadcast"},
		{vector, 3, stamped(1), "no message of a broadcast"},
		{vector, 1, stamped(0), "no message of a broadcast"},
		{vector, 1, parley.Msg{Kind: causal.Stamped, Value: 1, Seq: 1}, parley.ErrShort.Error()},
		{vector, 1, stamped(1, causal.Count{3, 1, 1}), parley.ErrRange.Error()},
		{vector, 1, stamped(1, causal.Count{2, 0, 1}), "vector out of order"},
		{vector, 1, stamped(1, causal.Count{2, 1, 0}), "vector out of order"},
		{vector, 1, stamped(1, causal.Count{2, 1, 1}, causal.Count{0, 1, 1}), "vector out of order"},
		{vector, 1, stamped(1, causal.Count{2, 1, 1}, causal.Count{2, 1, 1}), "vector out of order"},
		{vector, 1, stamped(1, causal.Count{2, 2, 1}, causal.Count{2, 1, 1}), "vector out of order"},
		{vector, 1, stamped(1, causal.Count{1, 1, 1}), "vector with a place for its own message"},
		{vector, 1, stamped(1, causal.Count{2, 1, 5}), "vector far ahead"},
		{vector, 1, stamped(1, causal.Count{2, 1, 1<<64 - 1}), "vector far ahead"},
		{vector, 1, stamped(5), "message past the window"},
		{vector, 1, stamped(1<<64 - 1), "message past the window"},
		{vector, 1, parley.Msg{Kind: causal.Stamped, Seq: 1, Body: []byte{0}}, "message of a life long past"},
	} {
		h := newHall(c.config)
		before := parley.Save(h.machines[0], 0, nil)
		h.receive(0, c.from, c.m)
		known := bytes.Equal(before, parley.Save(h.machines[0], 0, nil))
		// The machine may remember that an incarnation exists.
		if !slices.Equal(h.refused, []string{c.why}) || len(h.log[0]) > 0 || !known && len(parley.Save(h.machines[0], 0, nil)) > len(before)+8 {
			t.Errorf("case %d: %v, delivered %v", i, h.refused, h.log[0])
		}
	}
	for _, config := range []causal.Config{piggy, vector} {
		h := newHall(config)
		h.receive(0, 1, parley.Msg{Kind: parley.Suspect, Origin: 2})
		if len(h.refused) > 0 {
			t.Error("an indication is refused")
		}
		if h.do(0, func(m parley.Machine, s *parley.Step) { m.Request(s, parley.Msg{Kind: parley.Propose}) }); len(h.refused) != 1 {
			t.Error("a request that is no broadcast")
		}
	}
}

// With vector clocks the layer beneath delivers a message once: another copy is refused, whether the first
// one waits or was delivered.
func TestVectorDuplicates(t *testing.T) {
	h := newHall(causal.Config{N: 3, Form: causal.Vector})
	h.receive(0, 1, stamped(2))
	h.receive(0, 1, stamped(2))
	h.receive(0, 1, stamped(1))
	h.receive(0, 1, stamped(1))
	h.receive(0, 1, stamped(2))
	want := []string{"message that waits already", "message delivered before", "message delivered before"}
	if !slices.Equal(h.refused, want) || !slices.Equal(h.log[0], []string{"1", "2"}) {
		t.Error(h.refused, h.log[0])
	}
}

// At most a window of messages of an incarnation waits, and a vector may be a window ahead. All waiting
// messages are delivered, and released, as soon as what they count is delivered.
func TestVectorWindow(t *testing.T) {
	h := newHall(causal.Config{N: 3, Form: causal.Vector, Window: 4})
	for seq := uint64(1); seq <= 6; seq++ {
		h.receive(0, 1, stamped(seq, causal.Count{2, 1, min(seq, 4)}))
	}
	if !slices.Equal(h.refused, []string{"message past the window", "message past the window"}) {
		t.Error(h.refused)
	}
	for _, c := range []struct {
		seq  uint64
		want int
	}{{2, 0}, {1, 4}, {4, 4}, {3, 8}} { // 2 and 4 wait themselves
		if h.receive(0, 2, stamped(c.seq)); len(h.log[0]) != c.want {
			t.Errorf("after number %d: %v", c.seq, h.log[0])
		}
	}
	if size := len(parley.Save(h.machines[0], 0, nil)); size > 40 {
		t.Errorf("%d bytes are left", size)
	}
}

// A message waits for exactly as many messages as its vector counts, of each incarnation separately.
func TestVectorCounts(t *testing.T) {
	h := newHall(causal.Config{N: 3, Form: causal.Vector})
	h.receive(0, 1, stamped(1, causal.Count{2, 1, 1}, causal.Count{2, 2, 2}))
	second := func(seq uint64) parley.Msg {
		m := stamped(seq)
		m.Value = 2
		return m
	}
	for _, c := range []struct {
		m    parley.Msg
		want int
	}{{second(1), 1}, {second(2), 2}, {stamped(1), 4}} {
		if h.receive(0, 2, c.m); len(h.log[0]) != c.want {
			t.Errorf("after %v: %v", c.m, h.log[0])
		}
	}
	h.broadcast(0, "own")
	vector, payload, err := causal.ReadStamp(h.sent[0][0].Body, 3)
	if want := []causal.Count{{1, 1, 1}, {2, 1, 1}, {2, 2, 2}}; err != nil || string(payload) != "own" || !slices.Equal(vector, want) {
		t.Error(vector, string(payload), err)
	}
	h.receive(0, 0, h.sent[0][0])
	h.broadcast(0, "another") // has no place for its own incarnation
	if vector, _, _ = causal.ReadStamp(h.sent[0][1].Body, 3); len(vector) != 3 {
		t.Error(vector)
	}
}

// A place for a forgotten incarnation delays nothing: it counts as completely delivered.
func TestVectorForgottenLife(t *testing.T) {
	h := newHall(causal.Config{N: 3, Form: causal.Vector})
	for life := uint64(1); life <= problem.MaxLives+1; life++ {
		m := stamped(1)
		m.Value = life
		h.receive(0, 2, m)
	}
	n := len(h.log[0])
	h.receive(0, 1, stamped(1, causal.Count{2, 1, 1}))
	h.receive(0, 1, stamped(2, causal.Count{2, problem.MaxLives + 2, 1})) // one that is not yet known does
	if n != problem.MaxLives+1 || len(h.log[0]) != n+1 {
		t.Error(h.log[0])
	}
}

// After a piggybacked message whose predecessor is missing, and after a bundle that is not the sender's next,
// nothing of that sender is delivered; other senders are not affected.
func TestPiggybackGap(t *testing.T) {
	h := newHall(causal.Config{N: 3})
	h.receive(0, 1, bundle(1, message(2, 1, 1), message(2, 1, 3), message(1, 1, 1)))
	h.receive(0, 1, bundle(2, message(1, 1, 1)))
	h.receive(0, 2, bundle(1, message(2, 1, 2)))
	h.receive(0, 2, bundle(3, message(2, 1, 3)))
	h.receive(0, 2, bundle(2, message(2, 1, 3)))
	if want := []string{"2.1.1", "2.1.2"}; !slices.Equal(h.log[0], want) || len(h.refused) != 4 {
		t.Error(h.log[0], h.refused)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []causal.Config{{}, {N: 257}, {N: 3, Most: -2}, {N: 3, Window: -1}, {N: 3, Form: 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", c)
				}
			}()
			causal.New(c)
		}()
	}
	for _, c := range []struct {
		args        []string
		flag, title string
	}{
		{[]string{"-n", "5", "-form", "vector"}, "", "vector clocks"},
		{[]string{"-n", "5", "-uniform"}, "", "piggybacked"},
		{[]string{"-n", "0"}, "n", ""},
		{[]string{"-form", "pigeon"}, "form", ""},
	} {
		fs := flag.NewFlagSet("", flag.PanicOnError)
		remake := causal.Tower(causal.Piggyback, diffusion.Config{N: 4}).Flags(fs)
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		p, err := remake(nil)
		var why *parley.FlagError
		if c.flag != "" && (!errors.As(err, &why) || why.Flag != c.flag) ||
			c.flag == "" && (err != nil || p.N != 5 || !bytes.Contains([]byte(p.Title), []byte(c.title))) {
			t.Errorf("%v: %v, %s", c.args, err, p.Title)
		}
	}
}

func TestPromises(t *testing.T) {
	for _, form := range []causal.Form{causal.Piggyback, causal.Vector} {
		p := causal.Tower(form, diffusion.Config{N: 5, Uniform: true})
		a := parley.RunConditions{N: 5, M: 2, Faulty: 2}
		for _, property := range p.Properties {
			found := 0
			for _, promise := range p.Promises(a) {
				if promise.Property == property.Name {
					found++
					if promise.Because == "" || promise.Holds != (property.Mode != parley.Sometimes) {
						t.Errorf("%s: %+v", form, promise)
					}
				}
			}
			if found != 1 {
				t.Errorf("%s: %d promises of %s", form, found, property.Name)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	explain := causal.New(causal.Config{N: 3}).Explain
	name := func(id parley.ID) string { return "P" + id.String() }
	second := stamped(4, causal.Count{0, 2, 7}, causal.Count{1, 1, 1})
	for _, c := range []struct {
		m    parley.Msg
		want []string
	}{
		{bundle(1, message(1, 1, 2), message(0, 3, 1)), []string{"P1#2 1.1.2", "P0.3#1 0.3.1"}},
		{bundle(1), []string{"bundle of nothing"}},
		{stamped(7), []string{"#7 7"}},
		{second, []string{"#4 4 after P0.2#7, P1#1"}},
		{parley.Msg{Kind: causal.Stamped}, []string{parley.ErrShort.Error()}},
	} {
		if have := slices.Collect(explain(parley.Env{}, c.m, name)); !slices.Equal(have, c.want) {
			t.Error(have)
		}
	}
}
