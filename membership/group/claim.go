package group

import (
	"bytes"
	"slices"

	"parley"
)

// What this process believes although some processes may send wrong contents by accident ([Config].Liars).
// Majorities decide how views end, but a process learns of that from one process, and a process that learns
// of a later view gives up what it had. So one message is not enough, unless this process has accepted the
// same itself: either more than Liars processes must say it, or one must say the same in several periods,
// each time it is asked. The latter is slower, and is the only way if the others are down.

// claims holds what processes say about how later views came about.
type claims struct {
	liars int
	of    []claim    // by process; nil without Liars
	asked parley.Set // in this period, about missed decisions
}

// claim is what a process last reported: how a view came about.
type claim struct {
	view  uint64
	value []byte
	times int  // in how many periods; it is asked again in each
	fresh bool // said in this period
}

// claimPeriods is in how many periods a single process must say the same to be believed.
const claimPeriods = 3

func newClaims(n, liars int) claims {
	x := claims{liars: liars}
	if liars > 0 {
		x.of = make([]claim, n)
	}
	return x
}

// believes records what a process says about how a view came about, and reports whether to believe it.
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
	return voices > x.liars || c.times >= claimPeriods
}

// who returns the processes that said that a view came about by value.
func (x *claims) who(view uint64, value []byte) (all parley.Set) {
	for id := range x.of {
		if c := &x.of[id]; c.view == view && bytes.Equal(c.value, value) {
			all.Add(parley.ID(id))
		}
	}
	return all
}

// ask reports whether to ask a process what ended the view: once in a period, and without liars only one
// process.
func (x *claims) ask(id parley.ID) bool {
	if x.liars == 0 && x.asked != (parley.Set{}) {
		return false
	}
	return x.asked.Add(id)
}

// again begins a period in the given view. It returns the processes that say that there is a later one.
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
	if x.liars == 0 { // all that matters is whether a process was asked
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
