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

// catchUp is upon coming to a view by what others said: they are asked again, for what they
// sent of that view before they were believed was dropped, and a ballot may be under way.
func (g *machine) catchUp(s *parley.Step) {
	for id := range g.claims {
		if g.claimed(id) {
			g.send(s, parley.ID(id), parley.Msg{Kind: Ask})
		}
	}
}

// claimed tells whether a process said how the present view came about before this one knew.
func (g *machine) claimed(id int) bool {
	return g.claims[id].view == g.view.Number && bytes.Equal(g.claims[id].value, g.founding)
}

// teller returns a member of the view that did.
func (g *machine) teller() (id parley.ID, found bool) {
	for id := range g.claims {
		if g.claimed(id) && g.view.Members.Has(parley.ID(id)) {
			return parley.ID(id), true
		}
	}
	return 0, false
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

// sane tells whether a correct process could have chosen a view, by what every voter knows. The
// view has a majority of all processes. Each of its members was in the view before, or has joined.
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

// renamed is upon a view in which the votes of another disk count for this process, that it never
// asked with. As it has been a member since it came back, and its own counted, no other process has
// that disk: a liar has said so, and without this process there may be no majority. So it goes by
// that name. One that came back and was no member since may be an old copy, and does not.
func (g *machine) renamed(d decision) {
	if g.steady && g.disks[g.self] == g.disk && d.disks[g.self] > g.disk {
		g.disk = d.disks[g.self]
	}
}

// patience is how long a member waits at most between two tries. A liar makes tries fail, and when
// it is gone the next one must come soon.
func (g *machine) patience(rank int) parley.Tick {
	if g.c.Liars == 0 {
		return 64 * g.c.Wait
	}
	return 4*g.c.Wait + parley.Tick(rank)*g.c.Stagger
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

// misnamed tells whether the last view that this process knows of takes its requests to join for old ones. One
// that names it as it asked has let it in, and INSTALL is on its way.
func (g *machine) misnamed() bool {
	return g.c.Liars > 0 && candidate{g.self, g.disks[g.self], g.lives[g.self]}.after(g.own())
}

// correct tells a process how the view came about if its request to join looks older than its namesake in
// the view. A liar may have asked in its name, with a later disk. A process that has lost everything does not
// know that number; once it knows it, it takes a higher one.
func (g *machine) correct(s *parley.Step, j parley.ID) {
	if g.c.Liars == 0 || g.founding == nil {
		return
	}
	g.foundingTo(s, j)
}

func (g *machine) claimState(v *parley.Vars) {
	if g.c.Liars == 0 {
		asked := g.asked != parley.Set{}
		if v.Bool("asked", &asked); v.Loading() && !asked {
			g.asked = parley.Set{}
		} else if v.Loading() {
			g.asked = parley.SetOf(g.self)
		}
		return
	}
	v.Bool("steady", &g.steady)
	v.Set("asked", &g.asked)
	parley.PerProcess(v, "claims", g.claims, func(_ parley.ID, c *claim) {
		parley.Num(v, "view", &c.view)
		v.Bytes("value", &c.value)
		parley.Num(v, "times", &c.times)
		v.Bool("fresh", &c.fresh)
	})
}
