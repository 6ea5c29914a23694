package judge

import (
	"slices"
	"strings"
	"testing"
)

// lying returns the deliveries of three nodes around a liar: a before it; then nothing judged while it is active, and
// c by node 2 alone; and then the given texts, from a position that shift may change for node 2.
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

// From the fence on there is one order again. Before it, only what was acknowledged must be delivered everywhere.
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

// Nodes with another position of the fence than most are found. Afterward they are judged only from the next fence
// on.
func TestNextFence(t *testing.T) {
	o := lying(true, 3, "c|", "c|", "|")
	if got := o.Fences(); !slices.Equal(got, []uint64{21, 21, 23}) {
		t.Fatalf("the fence is at %d", got)
	}
	if other := Strangers(o.Fences()); !slices.Equal(other, []int{2}) {
		t.Errorf("%v number otherwise than most", other)
	}
	o.Unhear()
	o.Deliver(2, 21, "n1", "|") // the number that the others now report
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

// If deliveries from the old position on cannot be read while a liar may be active, that is no gap: reading continues
// with new deliveries.
func TestLostToALiar(t *testing.T) {
	o := lying(false, 0, "c", "c", "d")
	o.Gap(1)
	if from, n := o.Resume(1), o.Gaps(); from != 0 || n != 0 {
		t.Errorf("it is listened to from %d on; %d gaps", from, n)
	}
}
