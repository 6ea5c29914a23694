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

// claim is how the last view that a process told of came about.
type claim struct {
	view  uint64
	value []byte
	times int  // in so many periods, asked again in each
	fresh bool // in this one
}

// insists is how often one process alone must say the same.
const insists = 3

// believes takes down what a process says of how a view came about, and tells whether that is
// to be believed. Otherwise all are asked.
func (g *machine) believes(s *parley.Step, from parley.ID, view uint64, value []byte) bool {
	if g.c.Liars == 0 {
		return true
	}
	c := &g.claims[from]
	if c.view != view || !bytes.Equal(c.value, value) {
		*c = claim{view: view, value: slices.Clone(value)}
	}
	if !c.fresh {
		c.fresh = true
		c.times++
	}
	voices := 0
	for i := range g.claims {
		if g.claims[i].view == view && bytes.Equal(g.claims[i].value, value) {
			voices++
		}
	}
	if voices > g.c.Liars || c.times >= insists {
		return true
	}
	for id := range parley.ID(g.c.N) {
		if id != g.self {
			g.inquire(s, id)
		}
	}
	return false
}

// askAgain begins a period: those who say that there is a later view are asked again.
func (g *machine) askAgain(s *parley.Step) {
	g.asked = parley.Set{}
	for id := range g.claims {
		if c := &g.claims[id]; c.view > g.view.Number {
			c.fresh = false
			g.inquire(s, parley.ID(id))
		} else if c.view > 0 {
			*c = claim{}
		}
	}
}

// most is up to which number an incarnation or a disk is believed that was known by another.
func (g *machine) most(known uint64) uint64 {
	if g.c.Liars == 0 {
		return lives
	}
	return min(max(likely, known)+more, lives)
}

// plausible tells whether a report is one that a member of the view could give: in the life
// that it has there, of processes that can have joined.
func (g *machine) plausible(from parley.ID, r report) bool {
	if g.c.Liars == 0 {
		return true
	}
	for _, c := range r.learners {
		now := candidate{c.id, g.disks[c.id], g.lives[c.id]}
		if !c.after(now) || c.disk > g.most(now.disk) || c.life > g.most(now.life) {
			return false
		}
	}
	return g.view.Members.Has(from) && r.life == g.lives[from] && r.exclude.Minus(g.view.Members) == parley.Set{}
}

// sane tells whether a view could have been chosen by what all know who vote on it: no
// smaller than a view is, and of members which are those of before, or have joined.
func (g *machine) sane(d decision) bool {
	if g.c.Liars == 0 {
		return true
	}
	if d.next.Members.Len() < g.majority() || d.excluded.Minus(d.next.Members) != d.excluded ||
		d.excluded.Minus(g.view.Members) != (parley.Set{}) {
		return false
	}
	for id := range parley.ID(g.c.N) {
		now, then := candidate{id, g.disks[id], g.lives[id]}, candidate{id, d.disks[id], d.lives[id]}
		joins := then.disk <= g.most(now.disk) && then.life <= g.most(now.life) && then.after(now)
		switch member := d.next.Members.Has(id); {
		case !member && then.disk != now.disk, member && g.view.Members.Has(id) && then != now && !joins,
			member && !g.view.Members.Has(id) && !joins:
			return false
		}
	}
	return true
}

// outnumber takes the next incarnation, above the one that others take for this process's: a
// liar may have said that it is in a view.
func (g *machine) outnumber() {
	g.life++
	if g.c.Liars == 0 {
		return
	}
	if g.disks[g.self] > g.disk {
		g.disk = g.disks[g.self] + 1
	}
	g.life = max(g.life, g.lives[g.self]+1)
}

func (g *machine) claimState(v *parley.Vars) {
	if g.c.Liars == 0 {
		asked := g.asked != parley.Set{}
		if v.Bool("asked", &asked); v.Loading() && asked {
			g.asked = parley.SetOf(g.self)
		}
		return
	}
	v.Set("asked", &g.asked)
	parley.PerProcess(v, "claims", g.claims, func(_ parley.ID, c *claim) {
		parley.Num(v, "view", &c.view)
		v.Bytes("value", &c.value)
		parley.Num(v, "times", &c.times)
		v.Bool("fresh", &c.fresh)
	})
}
