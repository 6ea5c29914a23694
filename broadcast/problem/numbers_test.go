package problem_test

import (
	"cmp"
	"fmt"
	"testing"

	"parley"
	"parley/broadcast/problem"
)

// counted is a machine that consists only of a set of numbers.
type counted struct {
	parley.Base
	problem.Numbers
}

func (c *counted) State(v *parley.Vars) { c.Numbers.State(v, "numbers") }

// A set has the numbers that were added in any order, and ranges that touch are joined.
func TestNumbers(t *testing.T) {
	var c counted
	for i, x := range []struct {
		add  uint64
		is   string
		next uint64
	}{
		{4, "[{4 4}]", 1}, {3, "[{3 4}]", 1}, {6, "[{3 4} {6 6}]", 1}, {3, "[{3 4} {6 6}]", 1},
		{1, "[{1 1} {3 4} {6 6}]", 2}, {7, "[{1 1} {3 4} {6 7}]", 2}, {2, "[{1 4} {6 7}]", 5}, {9, "[{1 4} {6 7} {9 9}]", 5},
		{8, "[{1 4} {6 9}]", 5},
	} {
		had := c.Has(x.add)
		if c.Add(x.add) == had || !c.Has(x.add) || fmt.Sprint(c.Numbers) != x.is || c.Next() != x.next {
			t.Errorf("%d: with %d, which was in it: %t, it is %v, and %d is missing", i, x.add, had, c.Numbers, c.Next())
		}
	}
	saved, fresh := parley.Save(&c, 0, nil), counted{}
	if !parley.Load(&fresh, 0, saved) || fmt.Sprint(fresh) != fmt.Sprint(c) {
		t.Errorf("saved as %x, loaded as %v", saved, fresh)
	}
	for range 2 {
		if c.Fill(1); fmt.Sprint(c.Numbers) != "[{1 9}]" {
			t.Errorf("without gaps it is %v", c.Numbers)
		}
	}
}

// numbered is an element of a list.
type numbered struct {
	seq  uint64
	text string
}

func (n numbered) Compare(seq uint64) int { return cmp.Compare(n.seq, seq) }

// A list holds one element of each key, in the order of keys, whatever the order of insertion.
func TestSorted(t *testing.T) {
	var l problem.Sorted[uint64, numbered]
	for _, x := range []numbered{{3, "c"}, {1, "a"}, {2, "b"}, {3, "again"}} {
		if at, fresh := l.Put(x.seq, x); at.seq != x.seq || fresh != (x.text != "again") {
			t.Errorf("%v: %v, new: %t", x, *at, fresh)
		}
	}
	l.Drop(2)
	l.Drop(7)
	if fmt.Sprint(l) != "[{1 a} {3 c}]" || l.At(2) != nil || l.At(3).text != "c" {
		t.Error(l)
	}
}

// A property gives the reason why it demands nothing of a run.
func TestVacuous(t *testing.T) {
	for _, c := range []struct{ property, story, says string }{
		{"validity", "x0 0:a", "no correct process broadcasts anything"}, {"validity", "0:a", ""},
		{"agreement", "x0 0:a 0<0:a", "no correct process delivers anything"}, {"agreement", "0:a 1<0:a", ""},
		{"uniform agreement", "0:a", "nothing is delivered"}, {"uniform agreement", "x0 0:a 0<0:a", ""},
		{"total order", "0:a 1<0:a 2<0:a", "no two processes deliver the same two messages"},
		{"total order", "0:a 0:b 1<0:a 2<0:a 1<0:b 2<0:b", ""},
		{"uniform prefix", "0:a 1<0:a", "no two processes deliver the same message"},
		{"FIFO order", "0:a 1<0:a", "no process delivers the second message of a sender"}, {"FIFO order", "0:a 0:b 1<0:a 1<0:b", ""},
		{"causal order", "0:a 1<0:a", "no delivered message depends on another message"},
		{"causal order", "0:a 1<0:a 1:b 2<1:b", ""}, {"causal order", "1<0:lie", "no delivered message depends on another message"},
	} {
		if have := problem.Of(c.property)[0].Vacuous(story(c.story)); have != c.says {
			t.Errorf("%s of %s: %q", c.property, c.story, have)
		}
	}
}
