package judge

import (
	"slices"
	"strings"
	"testing"
)

// lying is what three nodes deliver around a liar: a before it, what nobody judges while it speaks, c by node 2 alone,
// and then what the nodes deliver by the text, from a position that may be another for node 2.
func lying(fence bool, shift uint64, texts ...string) *Orders {
	o := NewOrders("n1", "n2", "n3")
	o.Cast("a", 0, 0)
	o.Answered("a", true, false)
	for node := range texts {
		o.Resume(node)
		o.Deliver(node, 10, "n1", "a")
	}
	o.Unhear()
	for node := range texts {
		o.Deliver(node, 11+uint64(node), "n2", "made up")
	}
	for _, payload := range []string{"c", "d", "e"} {
		o.Cast(payload, 0, 0)
		o.Answered(payload, true, false)
	}
	o.Deliver(2, 14, "n1", "c")
	if fence {
		o.Cast("|", 0, 0)
		o.Build("|")
	}
	for node, text := range texts {
		for i, payload := range strings.Split(text, "") {
			at := uint64(20 + i)
			if node == 2 {
				at += shift
			}
			o.Deliver(node, at, "n1", payload)
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
		o.Fenced()
		first := o.wrong
		if c.fenced != "" {
			if first == nil || !strings.Contains(first.Error(), c.fenced) {
				t.Errorf("%q: %v, not %q", c.texts, first, c.fenced)
			}
			continue
		}
		o.end(40)
		err := o.Settle()
		if (err == nil) != (c.judge == "") || err != nil && !strings.Contains(err.Error(), c.judge) {
			t.Errorf("%q: %v, not %q", c.texts, err, c.judge)
		}
	}
}

// Nodes that number the fence otherwise than most are found. Heard again, they are heard from the next fence on alone.
func TestNextFence(t *testing.T) {
	o := lying(true, 3, "c|", "c|", "|")
	if got := o.Fences(); !slices.Equal(got, []uint64{21, 21, 23}) {
		t.Fatalf("the fence is at %d", got)
	}
	if other := Strangers(o.Fences()); !slices.Equal(other, []int{2}) {
		t.Errorf("%v number otherwise than most", other)
	}
	o.Unhear()
	o.Deliver(2, 21, "n1", "|") // as it is told by the others now
	o.Cast("||", 0, 0)
	o.Build("||")
	for node := range 3 {
		if at := o.Resume(node); at != 11 {
			t.Errorf("node %d is listened to from %d on", node, at)
		}
		o.Deliver(node, 30, "n1", "||")
	}
	if other := Strangers(o.Fences()); other != nil {
		t.Errorf("%v number otherwise than most", other)
	}
	if at := o.Resume(2); at != 31 {
		t.Errorf("it is listened to from %d on", at)
	}
	o.Gap(2)
	if n := o.Gaps(); n != 1 {
		t.Errorf("%d gaps: nothing may be missed any more", n)
	}
}

// What can not be read from the old position on, while a liar may have spoken, is no gap: it is listened to what comes.
func TestLostToALiar(t *testing.T) {
	o := lying(false, 0, "c", "c", "d")
	o.Gap(1)
	if from, n := o.Resume(1), o.Gaps(); from != 0 || n != 0 {
		t.Errorf("it is listened to from %d on; %d gaps", from, n)
	}
}
