package main

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/replica/keyvalue"
)

// did is an operation that was answered.
func did(client int, v verb, value string, call, end int, version uint64, answer string, position uint64) op {
	return op{
		client: client, verb: v, key: "k", value: value, call: time.Duration(call), end: time.Duration(end), known: true,
		answer: keyvalue.Answer{Status: keyvalue.Done, Version: version, Value: []byte(answer)}, position: position,
	}
}

// open is one that was never answered.
func open(client int, v verb, value string, call int) op {
	return op{client: client, verb: v, key: "k", value: value, call: time.Duration(call)}
}

func TestLinear(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []op
		want bool
	}{
		{"one after the other", []op{did(1, put, "a", 0, 1, 1, "", 1), did(2, get, "", 2, 3, 1, "a", 2)}, true},
		{"a lost write", []op{
			did(1, put, "a", 0, 1, 1, "", 1), did(1, put, "b", 2, 3, 2, "", 2), did(2, get, "", 4, 5, 1, "a", 3),
		}, false},
		{"a write done twice", []op{did(1, put, "a", 0, 1, 1, "", 1), did(2, get, "", 2, 3, 2, "a", 2)}, false},
		{"an old read", []op{
			did(1, put, "a", 0, 1, 1, "", 1), did(1, put, "b", 2, 9, 2, "", 2),
			did(2, get, "", 3, 4, 2, "b", 3), did(3, get, "", 5, 6, 1, "a", 4),
		}, false},
		{"unknown, and done", []op{open(1, put, "a", 0), did(2, get, "", 5, 6, 1, "a", 2)}, true},
		{"unknown, and not done", []op{open(1, put, "a", 0), did(2, put, "b", 5, 6, 1, "", 2), did(3, get, "", 7, 8, 1, "b", 3)}, true},
		{"unknown, and done twice", []op{open(1, put, "a", 0), did(2, get, "", 5, 6, 2, "a", 2)}, false},
		{"done before it was asked", []op{did(2, get, "", 1, 2, 1, "a", 1), did(1, put, "a", 3, 4, 1, "", 2)}, false},
	} {
		if err := linear(c.ops, nil, time.Minute); (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOrderedFinds(t *testing.T) {
	early := did(2, get, "", 5, 6, 1, "a", 3)
	for name, ops := range map[string][]op{ // order: each by itself
		"one position twice":   {did(1, put, "a", 0, 4, 1, "", 3), did(2, get, "", 1, 6, 1, "a", 3)},
		"an earlier position":  {did(1, put, "a", 0, 4, 1, "", 4), early},
		"at the same position": {did(1, put, "a", 0, 4, 1, "", 3), early},
	} {
		if ordered(ops) == nil {
			t.Errorf("%s: nothing was found", name)
		}
	}
	if err := ordered([]op{did(1, put, "a", 0, 5, 1, "", 4), early}); err != nil {
		t.Errorf("two at a time: %v", err)
	}
}

// told is what three nodes deliver of a, b and c, cast by n1; node 2 as the text says.
func told(third string) *orders {
	o := newOrders(3)
	for _, payload := range []string{"a", "b", "c"} {
		o.cast(payload, 0, 0)
		o.answered(payload, true, false)
	}
	for node, text := range []string{"abc", "abc", third} {
		o.resume(node)
		for i, payload := range strings.Split(text, "") {
			if payload == "|" {
				o.gap(node)
			} else if payload != "-" {
				o.deliver(node, uint64(10+i), nodeName(0), payload)
			}
		}
	}
	return o
}

// end has all deliver the payload with which a run ends.
func (o *orders) end(position uint64) {
	o.cast("end", 0, 0)
	o.answered("end", true, false)
	for node := range o.heard {
		o.deliver(node, position, nodeName(0), "end")
	}
}

// A run that is given up finds that nodes lag, and that is no loss.
func TestGivenUpRunOnlyLags(t *testing.T) {
	for third, ended := range map[string]bool{"a": false, "abc": true} {
		var out strings.Builder
		r := &run{out: &out, events: []event{{fault: "stop"}}, load: &load{history: new(history), orders: told(third)}}
		r.load.orders.cast("taken", 1, 0)
		r.load.orders.answered("taken", true, false)
		_ = r.judge(options{long: time.Second, bare: true, only: "stop"}, time.Second, ended, nil)
		lost, _, _ := strings.Cut(out.String(), "well within")
		if strings.Contains(lost, " NO\n") != ended { // that "taken" was delivered nowhere is known at the end alone
			t.Errorf("it has ended: %t:\n%s", ended, lost)
		}
	}
}

func TestOrdersFind(t *testing.T) {
	for text, want := range map[string]string{ // order: each by itself
		"abc": "", "ab": "n3 has not delivered", "a-c": "n3 has not delivered", "acb": "something else", "abd": "something else",
		"abcd": "never broadcast", "abca": "delivered twice",
	} {
		o := told(text)
		o.end(20)
		err := o.settle()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
	o := told("ab")
	if err := o.settle(); err != nil {
		t.Errorf("the last is still to come: %v", err)
	}
	o.deliver(2, 12, nodeName(0), "c")
	o.end(20)
	if err := o.settle(); err != nil {
		t.Errorf("it came: %v", err)
	}
	o.cast("d", 1, 0)
	o.answered("d", false, true)
	if o.deliver(2, 23, nodeName(1), "d"); o.settle() == nil {
		t.Error("what was refused is delivered, and nothing was found")
	}
}

// Who could not be listened to for some time may miss what was delivered then, and no more.
func TestOrdersKnowGaps(t *testing.T) {
	o := newOrders(2)
	for i, payload := range []string{"a", "b", "c", "d"} {
		o.cast(payload, 0, 0)
		o.resume(0)
		o.deliver(0, uint64(i+1), nodeName(0), payload)
	}
	o.resume(1)
	o.deliver(1, 1, nodeName(0), "a")
	o.gap(1)
	if at := o.resume(1); at != 0 {
		t.Fatalf("after a gap it begins at %d", at)
	}
	o.deliver(1, 3, nodeName(0), "c")
	if err := o.settle(); err != nil {
		t.Fatal(err)
	}
	o.end(5)
	if err := o.settle(); err == nil {
		t.Error("d is missing behind the gap, and nothing was found")
	}
}

// What a node has said that it delivered is delivered by all, whatever befell the node then.
func TestForgottenIsSeen(t *testing.T) {
	if err := forgotten(nil); err != nil {
		t.Error(err)
	}
	if forgotten([]cast{{node: 1, at: time.Second}}) == nil {
		t.Error("a lost payload: nothing was found")
	}
}

// Of what was delivered nothing may be missing, or be something else, when it is read again.
func TestReadAgain(t *testing.T) {
	o := newOrders(1)
	o.resume(0)
	for position, payload := range []string{"a", "b", "c"} {
		o.cast(payload, 0, 0)
		o.deliver(0, uint64(position+1), nodeName(0), payload)
	}
	read := func(payloads ...string) error {
		a := o.again()
		for i, payload := range payloads {
			a.deliver(&parleyv1.Delivery{Position: uint64(i + 1), From: nodeName(0), Payload: []byte(payload)})
		}
		return a.missing()
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

// A run in which nothing befell, or nothing was answered, is none.
func TestEnoughIsDemanded(t *testing.T) {
	o := options{long: time.Second, bare: true, only: "stop"}
	one := []event{{fault: "stop"}}
	for name, c := range map[string]struct { // order: each by itself
		events   []event
		answered int
		want     bool
	}{
		"harm and answers": {one, 100, true}, "no harm": {nil, 100, false}, "no answer": {one, 0, false},
	} {
		if err := (&run{events: c.events}).enough(o, o.long, c.answered); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimesAreChecked(t *testing.T) {
	for _, args := range []string{"-for 0s", "-for -5s", "-heal 0s", "-heal -1s"} {
		var complaint strings.Builder
		status := chaos(append(strings.Fields(args), "-bare"), io.Discard, &complaint)
		if flag, _, _ := strings.Cut(args, " "); status != 2 || !strings.Contains(complaint.String(), flag) {
			t.Errorf("%s: status %d, %s", args, status, complaint.String())
		}
	}
}

func TestGrowthIsSeen(t *testing.T) {
	var flat, grows []sample
	for i := range 60 {
		at, noise := time.Duration(i)*time.Minute, 5*math.Sin(float64(i*i))
		flat = append(flat, sample{at, [4]float64{100 + noise}})
		grows = append(grows, sample{at, [4]float64{100 + noise + float64(i)}})
	}
	if _, slope := line(flat, 0); math.Abs(slope) > 6 {
		t.Errorf("flat: %v in an hour", slope)
	}
	if begin, slope := line(grows, 0); math.Abs(slope-60) > 6 || math.Abs(begin-100) > 6 {
		t.Errorf("from %v, %v in an hour, not from 100, 60", begin, slope)
	}
}
