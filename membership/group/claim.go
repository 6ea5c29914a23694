package group

import (
	"bytes"
	"slices"

	"parley"
)

// What is believed of others although some may say what is wrong by chance ([Config].Liars).
// How views end is decided by majorities, but is learned from one process, and who learns of a
// later view gives up what it had. So one word is not enough for that, unless this process
// has accepted the same itself: more than Liars processes say it, or one says the same in
// several periods, each time it is asked. That is slower, and all there is if the others are down.

// claims are what processes say of how later views came about.
type claims struct {
	liars int
	of    []claim    // by process, with Liars
	asked parley.Set // in this period, for what was missed
}

// claim is how the last view that a process reported came about.
type claim struct {
	view  uint64
	value []byte
	times int  // in so many periods, asked again in each
	fresh bool // in this one
}

// insists is how often one process alone must say the same.
const insists = 3

func newClaims(n, liars int) claims {
	x := claims{liars: liars}
	if liars > 0 {
		x.of = make([]claim, n)
	}
	return x
}

// believes takes down what a process says of how a view came about, and tells whether that is
// to be believed.
func (x *claims) believes(from parley.ID, view uint64, value []byte) bool {
	if x.liars == 0 {
		return true
	}
	c := &x.of[from]
	if c.view != view || !bytes.Equal(c.value, value) {
		*c = claim{view: view, value: slices.Clone(value)}
	}
	if !c.fresh {
		c.fresh = true
		c.times++
	}
	voices := x.who(view, value).Len()
	return voices > x.liars || c.times >= insists
}

// who returns the processes that said that a view came about so.
func (x *claims) who(view uint64, value []byte) (all parley.Set) {
	for id := range x.of {
		if c := &x.of[id]; c.view == view && bytes.Equal(c.value, value) {
			all.Add(parley.ID(id))
		}
	}
	return all
}

// ask tells whether to ask a process what ended the view: once in a period, and without liars
// one process alone.
func (x *claims) ask(id parley.ID) bool {
	if x.liars == 0 && x.asked != (parley.Set{}) {
		return false
	}
	return x.asked.Add(id)
}

// again begins a period, in the given view. It returns those who say that there is a later one.
func (x *claims) again(view uint64) (later parley.Set) {
	x.asked = parley.Set{}
	for id := range x.of {
		if c := &x.of[id]; c.view > view {
			c.fresh = false
			later.Add(parley.ID(id))
		} else if c.view > 0 {
			*c = claim{}
		}
	}
	return later
}

// State visits every variable.
func (x *claims) State(v *parley.Vars) {
	if x.liars == 0 { // that somebody was asked is all that counts
		asked := x.asked != parley.Set{}
		if v.Bool("asked", &asked); v.Loading() && !asked {
			x.asked = parley.Set{}
		} else if v.Loading() {
			x.asked = parley.SetOf(0)
		}
		return
	}
	v.Set("asked", &x.asked)
	parley.PerProcess(v, "claims", x.of, func(_ parley.ID, c *claim) {
		parley.Num(v, "view", &c.view)
		v.Bytes("value", &c.value)
		parley.Num(v, "times", &c.times)
		v.Bool("fresh", &c.fresh)
	})
}
