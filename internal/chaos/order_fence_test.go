package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// lying is what three nodes deliver around a liar: a before it, what nobody judges while it speaks, c by node 2 alone,
// and then what the nodes deliver by the text, from a position that may be another for node 2.
func lying(fence bool, shift uint64, texts ...string) *orders {
	o := newOrders(3)
	o.cast("a", 0, 0)
	o.answered("a", true, false)
	for node := range texts {
		o.resume(node)
		o.deliver(node, 10, nodeName(0), "a")
	}
	o.unhear()
	for node := range texts {
		o.deliver(node, 11+uint64(node), nodeName(1), "made up")
	}
	for _, payload := range []string{"c", "d", "e"} {
		o.cast(payload, 0, 0)
		o.answered(payload, true, false)
	}
	o.deliver(2, 14, nodeName(0), "c")
	if fence {
		o.cast("|", 0, 0)
		o.build("|")
	}
	for node, text := range texts {
		for i, payload := range strings.Split(text, "") {
			at := uint64(20 + i)
			if node == 2 {
				at += shift
			}
			o.deliver(node, at, nodeName(0), payload)
		}
	}
	return o
}

// From the fence on there is one order again; before it, only that all is delivered everywhere which is acknowledged.
func TestFenceOfALiar(t *testing.T) {
	for _, c := range []struct {
		texts         []string
		shift         uint64
		fenced, judge string
	}{
		{[]string{"c|de", "c|de", "|de"}, 0, "", "delivered twice"}, // node 2 has delivered c already: one position less
		{[]string{"c|de", "c|de", "|de"}, 1, "", ""},
		{[]string{"dc|e", "cd|e", "d|e"}, 1, "", ""},
		{[]string{"c|de", "-|de", "|de"}, 1, "not all have", ""},
		{[]string{"c|de", "c|ed", "|de"}, 1, "", "something else"},
		{[]string{"c|de", "c|de", "|d"}, 1, "", "has not delivered"},
	} {
		o := lying(true, c.shift, c.texts...)
		o.fenced()
		first := o.wrong
		if c.fenced != "" {
			if first == nil || !strings.Contains(first.Error(), c.fenced) {
				t.Errorf("%q: %v, not %q", c.texts, first, c.fenced)
			}
			continue
		}
		o.end(40)
		err := o.settle()
		if (err == nil) != (c.judge == "") || err != nil && !strings.Contains(err.Error(), c.judge) {
			t.Errorf("%q: %v, not %q", c.texts, err, c.judge)
		}
	}
}

// Nodes that number the fence otherwise than most are found. Heard again, they are heard from the next fence on alone.
func TestNextFence(t *testing.T) {
	o := lying(true, 3, "c|", "c|", "|")
	if got := o.fences(); !slices.Equal(got, []uint64{21, 21, 23}) {
		t.Fatalf("the fence is at %d", got)
	}
	if other := strangers(o.fences()); !slices.Equal(other, []int{2}) {
		t.Errorf("%v number otherwise than most", other)
	}
	o.unhear()
	o.deliver(2, 21, nodeName(0), "|") // as it is told by the others now
	o.cast("||", 0, 0)
	o.build("||")
	for node := range 3 {
		if at := o.resume(node); at != 11 {
			t.Errorf("node %d is listened to from %d on", node, at)
		}
		o.deliver(node, 30, nodeName(0), "||")
	}
	if other := strangers(o.fences()); other != nil {
		t.Errorf("%v number otherwise than most", other)
	}
	if at := o.resume(2); at != 31 {
		t.Errorf("it is listened to from %d on", at)
	}
	o.gap(2)
	if n := o.gaps(); n != 1 {
		t.Errorf("%d gaps: nothing may be missed any more", n)
	}
}

// What can not be read from the old position on, while a liar may have spoken, is no gap: it is listened to what comes.
func TestLostToALiar(t *testing.T) {
	o := lying(false, 0, "c", "c", "d")
	o.gap(1)
	if from, n := o.resume(1), o.gaps(); from != 0 || n != 0 {
		t.Errorf("it is listened to from %d on; %d gaps", from, n)
	}
}

// A node that lied may take twice as long as others to be well again, and the others no longer than otherwise.
func TestSlowAfterALiar(t *testing.T) {
	for _, c := range []struct {
		fault        string
		well, others time.Duration
		slow         bool
	}{
		{"kill", 9, 0, false}, {"kill", 11, 0, true}, {liarName, 19, 9, false}, {liarName, 21, 9, true}, {liarName, 9, 11, true},
	} {
		r := &run{heal: 10, events: []event{{fault: c.fault, well: wellness{tables: c.well}, others: wellness{groups: c.others}}}}
		if err := r.slow(); (err != nil) != c.slow {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// -only liar without -liar is refused, and the error names -liar. Without -only there is no liar then.
func TestLiarIsNamed(t *testing.T) {
	if _, err := choose(options{only: liarName}); err == nil || !strings.Contains(err.Error(), "-liar") {
		t.Error(err)
	}
	for _, program := range []string{"", "bin/liar.test"} {
		kinds, err := choose(options{liar: program})
		if is := slices.ContainsFunc(kinds, fault.lies); err != nil || is != (program != "") {
			t.Errorf("-liar %q: %t, %v", program, is, err)
		}
	}
}
