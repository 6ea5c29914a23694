package atomic_test

import (
	"crypto/sha256"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
)

// clone returns a copy of the world.
func (w *world) clone() *world {
	c := *w
	c.machines = nil
	for id := range parley.ID(len(w.machines)) {
		m := w.p.New(id)
		if !parley.Load(m, 0, parley.Save(w.machines[id], 0, nil)) {
			w.t.Fatal("a machine is not loaded")
		}
		c.machines = append(c.machines, m)
	}
	c.links = nil
	for _, from := range w.links {
		links := slices.Clone(from)
		for to := range links {
			links[to] = slices.Clip(links[to])
		}
		c.links = append(c.links, links)
	}
	c.told = slices.Clone(w.told)
	c.step.Effects = nil
	c.history.Requests = slices.Clone(w.history.Requests)
	c.history.Deliveries = slices.Clone(w.history.Deliveries)
	return &c
}

// key stands for all that can make a difference from now on, and for what was
// delivered where.
func (w *world) key() [32]byte {
	b := problem.AppendSet(nil, w.down)
	for id, m := range w.machines {
		b = problem.AppendSet(parley.Save(m, 0, b), w.told[id])
		for _, text := range w.delivered(parley.ID(id)) {
			b = append(append(b, text...), 1)
		}
		for _, link := range w.links[id] {
			b = append(b, byte(len(link)))
			for _, m := range link {
				b = parley.AppendMsg(b, 0, m)
			}
		}
	}
	return sha256.Sum256(b)
}

// explorer goes through all runs of a world.
type explorer struct {
	t       *testing.T
	crashes int
	seen    map[[32]byte]bool
	ends    int
	broken  int // ends in which uniform total order does not hold
}

// explore takes every step that there is: what is oldest on a link arrives, a
// process crashes and loses what it has on all links but what is for a set, a crash
// is told of when nothing of the crashed process is on its way.
func (x *explorer) explore(w *world) {
	k := w.key()
	if x.seen[k] {
		return
	}
	x.seen[k] = true
	n := parley.ID(len(w.machines))
	over := true
	next := func(step func(c *world)) {
		over = false
		c := w.clone()
		step(c)
		if len(c.history.Deliveries) > len(w.history.Deliveries) {
			if err := c.check(problem.Integrity, problem.TotalOrder); err != nil {
				x.t.Fatal(err)
			}
		}
		x.explore(c)
	}
	for from := range n {
		for to := range n {
			switch {
			case len(w.links[from][to]) > 0 && w.down.Has(to):
				w.links[from][to] = nil
			case len(w.links[from][to]) > 0:
				next(func(c *world) { c.receive(from, to) })
			case w.down.Has(from) && !w.down.Has(to) && !w.told[to].Has(from):
				next(func(c *world) { c.suspect(to, from) })
			}
		}
		if w.down.Has(from) || w.down.Len() == x.crashes {
			continue
		}
		for kept := range 1 << n {
			next(func(c *world) {
				c.crash(from, func(to parley.ID, sent int) int {
					if kept>>to&1 == 1 {
						return sent
					}
					return 0
				})
			})
		}
	}
	if over {
		x.ends++
		w.history.Over = true
		if err := w.check(promised...); err != nil {
			x.t.Fatal(err)
		}
		if w.check(problem.UniformTotalOrder) != nil {
			x.broken++
		}
	}
}

// All runs of small systems, with crashes at any time in which each link keeps all or
// nothing of what is on it: what is promised holds in each. With two crashes in a
// system of three the form is seen not to be uniform. (One message to four processes
// and two crashes: 571,725 states, the same.)
func TestExhaustive(t *testing.T) {
	two := func(w *world) { w.cast(0, "a", 0, 1, 2); w.cast(1, "b", 0, 1, 2) }
	overlapping := func(w *world) { w.cast(0, "a", 0, 1, 2); w.cast(1, "b", 1, 2) }
	three := func(w *world) { two(w); w.cast(2, "c", 0, 1, 2) }
	for name, c := range map[string]struct {
		crashes               int
		casts                 func(w *world)
		states, ends, uniform int
	}{
		"two messages, one crash":          {1, two, 9206, 227, 0},
		"overlapping sets and two crashes": {2, overlapping, 14290, 2418, 27},
		"three messages":                   {0, three, 3046, 19, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			c.casts(w)
			x := explorer{t: t, crashes: c.crashes, seen: make(map[[32]byte]bool)}
			x.explore(w)
			if len(x.seen) != c.states || x.ends != c.ends || x.broken != c.uniform {
				t.Errorf("%d states, %d ends, %d of them not uniform, and not %d, %d and %d",
					len(x.seen), x.ends, x.broken, c.states, c.ends, c.uniform)
			}
		})
	}
}
