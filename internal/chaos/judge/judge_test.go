package judge

import (
	"strings"
	"testing"
	"time"

	"parley/replica/keyvalue"
)

// did returns an operation that was answered.
func did(client int, v Verb, value string, call, end int, version uint64, answer string, position uint64) Op {
	return Op{
		Client: client, Verb: v, Key: "k", Value: value, Call: time.Duration(call), End: time.Duration(end), Known: true,
		Answer: keyvalue.Answer{Status: keyvalue.Done, Version: version, Value: []byte(answer)}, Position: position,
	}
}

// open returns an operation that was never answered.
func open(client int, v Verb, value string, call int) Op {
	return Op{Client: client, Verb: v, Key: "k", Value: value, Call: time.Duration(call)}
}

func TestLinear(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
		want bool
	}{
		{"one after the other", []Op{did(1, Put, "a", 0, 1, 1, "", 1), did(2, Get, "", 2, 3, 1, "a", 2)}, true},
		{"a lost write", []Op{
			did(1, Put, "a", 0, 1, 1, "", 1), did(1, Put, "b", 2, 3, 2, "", 2), did(2, Get, "", 4, 5, 1, "a", 3),
		}, false},
		{"a write done twice", []Op{did(1, Put, "a", 0, 1, 1, "", 1), did(2, Get, "", 2, 3, 2, "a", 2)}, false},
		{"an old read", []Op{
			did(1, Put, "a", 0, 1, 1, "", 1), did(1, Put, "b", 2, 9, 2, "", 2),
			did(2, Get, "", 3, 4, 2, "b", 3), did(3, Get, "", 5, 6, 1, "a", 4),
		}, false},
		{"unknown, and done", []Op{open(1, Put, "a", 0), did(2, Get, "", 5, 6, 1, "a", 2)}, true},
		{"unknown, and not done", []Op{open(1, Put, "a", 0), did(2, Put, "b", 5, 6, 1, "", 2), did(3, Get, "", 7, 8, 1, "b", 3)}, true},
		{"unknown, and done twice", []Op{open(1, Put, "a", 0), did(2, Get, "", 5, 6, 2, "a", 2)}, false},
		{"done before it was asked", []Op{did(2, Get, "", 1, 2, 1, "a", 1), did(1, Put, "a", 3, 4, 1, "", 2)}, false},
	} {
		if err := Linear(c.ops, nil, time.Minute); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOrderedFinds(t *testing.T) {
	early := did(2, Get, "", 5, 6, 1, "a", 3)
	for name, ops := range map[string][]Op{ // order: the iterations are independent
		"one position twice":   {did(1, Put, "a", 0, 4, 1, "", 3), did(2, Get, "", 1, 6, 1, "a", 3)},
		"an earlier position":  {did(1, Put, "a", 0, 4, 1, "", 4), early},
		"at the same position": {did(1, Put, "a", 0, 4, 1, "", 3), early},
	} {
		if Ordered(ops) == nil {
			t.Errorf("%s: nothing was found", name)
		}
	}
	if err := Ordered([]Op{did(1, Put, "a", 0, 5, 1, "", 4), early}); err != nil {
		t.Errorf("two at a time: %v", err)
	}
}

// threeDeliver returns what three nodes deliver of a, b and c, broadcast by n1; third has the deliveries of node 2.
func threeDeliver(third string) *Orders {
	o := NewOrders("n1", "n2", "n3")
	for _, payload := range []string{"a", "b", "c"} {
		o.Cast(payload, 0, 0)
		o.Answered(payload, true, false)
	}
	for node, text := range []string{"abc", "abc", third} {
		o.Resume(node)
		for i, payload := range strings.Split(text, "") {
			if payload == "|" {
				o.Gap(node)
			} else if payload != "-" {
				o.Deliver(node, uint64(10+i), "n1", payload)
			}
		}
	}
	return o
}

// end has all nodes deliver the payload with which a run ends.
func (o *Orders) end(position uint64) {
	o.Cast("end", 0, 0)
	o.Answered("end", true, false)
	for node := range o.heard {
		o.Deliver(node, position, "n1", "end")
	}
}

func TestOrdersFind(t *testing.T) {
	for text, want := range map[string]string{ // order: the iterations are independent
		"abc": "", "ab": "n3 has not delivered", "a-c": "n3 has not delivered", "acb": "something else", "abd": "something else",
		"abcd": "never broadcast", "abca": "delivered twice",
	} {
		o := threeDeliver(text)
		o.end(20)
		err := o.Settle()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
	o := threeDeliver("ab")
	if err := o.Settle(); err != nil {
		t.Errorf("the last is still to come: %v", err)
	}
	o.Deliver(2, 12, "n1", "c")
	o.end(20)
	if err := o.Settle(); err != nil {
		t.Errorf("it came: %v", err)
	}
	o.Cast("d", 1, 0)
	o.Answered("d", false, true)
	if o.Deliver(2, 23, "n2", "d"); o.Settle() == nil {
		t.Error("what was refused is delivered, and nothing was found")
	}
}

// Whatever a faulty node broadcasts, the others must deliver at the same positions. Its own deliveries are ignored
// until it has restarted with an empty disk, and are then judged from the first position on.
func TestOrdersDistrust(t *testing.T) {
	deliver := func(o *Orders, node int, text string) {
		o.Resume(node)
		for i, payload := range strings.Split(text, "") {
			from := "n1"
			if payload == "x" || payload == "y" {
				from = "n3"
			}
			o.Deliver(node, uint64(i+1), from, payload)
		}
	}
	for _, c := range []struct {
		second, third string // what the second node and the faulty one deliver
		trusted       bool
		want          string
	}{
		{"axb", "", false, ""}, {"axb", "bbb", false, ""}, {"ayb", "", false, "something else"}, {"ab", "", false, "something else"},
		{"axb", "axb", true, ""}, {"axb", "bxb", true, "something else"}, {"axb", "ax", true, "n3 has not delivered"},
		{"axx", "", false, "something else"},
	} {
		o := NewOrders("n1", "n2", "n3")
		o.Distrust(2)
		o.Cast("a", 0, 0)
		o.Cast("b", 0, 0)
		deliver(o, 0, "axb")
		deliver(o, 1, c.second)
		if c.trusted {
			o.Trust(2)
		}
		if c.third != "" {
			deliver(o, 2, c.third)
		}
		o.end(20)
		err := o.Settle()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if n := o.Invented(); n == 0 {
			t.Errorf("%+v: %d deliveries are invented", c, n)
		}
	}
	o := NewOrders("n1", "n2")
	o.Resume(0)
	if o.Deliver(0, 1, "n2", "x"); o.Settle() == nil {
		t.Error("a payload of a correct node that it did not broadcast: nothing was found")
	}
}

// A position that a node has delivered already, or that precedes the requested ones, is found. None of them stops the
// judge.
func TestOrdersFindPositions(t *testing.T) {
	const top = ^uint64(0)
	for _, c := range []struct {
		positions []uint64
		want      string
	}{
		{[]uint64{1, 2, 3}, ""}, {[]uint64{5, 9, top}, ""}, {[]uint64{2, 2}, "position 2 comes after 2"},
		{[]uint64{7, 3}, "position 3 comes after 7"}, {[]uint64{0}, "position 0 comes after 1"},
		{[]uint64{top, 0}, "position 0 comes after 18446744073709551615"}, {[]uint64{top, top}, "comes after 18446744073709551615"},
	} {
		o := NewOrders("n1")
		o.Resume(0)
		for i, position := range c.positions {
			payload := string(rune('a' + i))
			o.Cast(payload, 0, 0)
			o.Deliver(0, position, "n1", payload)
		}
		err := o.Settle()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, not %q", c.positions, err, c.want)
		}
	}
	o := threeDeliver("abc")
	o.Gap(1)
	o.Resume(1)
	if o.Deliver(1, 2, "n1", "a"); o.wrong == nil || !strings.Contains(o.wrong.Error(), "position 2 after ") {
		t.Errorf("it begins again before where it was: %v", o.wrong)
	}
}

// A node whose subscription was interrupted may miss only what was delivered meanwhile.
func TestOrdersKnowGaps(t *testing.T) {
	o := NewOrders("n1", "n2")
	for i, payload := range []string{"a", "b", "c", "d"} {
		o.Cast(payload, 0, 0)
		o.Resume(0)
		o.Deliver(0, uint64(i+1), "n1", payload)
	}
	o.Resume(1)
	o.Deliver(1, 1, "n1", "a")
	o.Gap(1)
	if at := o.Resume(1); at != 0 {
		t.Fatalf("after a gap it begins at %d", at)
	}
	o.Deliver(1, 3, "n1", "c")
	if err := o.Settle(); err != nil {
		t.Fatal(err)
	}
	o.end(5)
	if err := o.Settle(); err == nil {
		t.Error("d is missing behind the gap, and nothing was found")
	}
}

// When deliveries are read again, none may be missing or different.
func TestReadAgain(t *testing.T) {
	o := NewOrders("n1")
	o.Resume(0)
	for position, payload := range []string{"a", "b", "c"} {
		o.Cast(payload, 0, 0)
		o.Deliver(0, uint64(position+1), "n1", payload)
	}
	read := func(payloads ...string) error {
		a := o.Again()
		for i, payload := range payloads {
			a.Deliver(uint64(i+1), "n1", payload)
		}
		return a.Missing()
	}
	if err := read("a", "b", "c"); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][]string{nil, {"a", "b"}, {"a", "c", "b"}} {
		if read(wrong...) == nil {
			t.Errorf("%q: nothing was found", wrong)
		}
	}
}

// A delivery before the position from which a node is read is found, even if it is the first one, or if everything
// before it was settled.
func TestDeliveredBeforeItsBeginning(t *testing.T) {
	o := NewOrders("n1")
	o.Resume(0)
	o.Cast("a", 0, 0)
	o.Deliver(0, 0, "n1", "a")
	if err := o.Settle(); err == nil || !strings.Contains(err.Error(), "position 0 comes after 1") {
		t.Errorf("the first: %v", err)
	}
	o = threeDeliver("abc")
	if err := o.Settle(); err != nil {
		t.Fatal(err)
	}
	o.Cast("d", 0, 0)
	o.Deliver(0, 12, "n1", "d")
	if err := o.Settle(); err == nil || !strings.Contains(err.Error(), "position 12 comes after 13") {
		t.Errorf("after what was settled: %v", err)
	}
}
