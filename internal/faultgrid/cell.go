package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"parley"
	"parley/sim"
)

// cell is the result of a protocol under a kind of fault.
type cell struct {
	shows  []string // the kinds of fault that must occur
	wants  []demand
	faults map[string]uint64

	runs, received, delivered uint64
	promised                  uint64 // runs in which something was promised
	broke                     uint64 // runs that broke a property that was not promised
	broken                    map[string]uint64
	seen, unseen              map[string]bool // properties of mode Sometimes; unseen: where one is promised
	violated                  uint64          // runs that broke a promise
	breaches                  []breach        // the first few of these
}

// kept is the maximum number of breaches kept for a cell.
const kept = 3

// newCell returns a cell without runs.
func newCell(r *row, col *column) *cell {
	return &cell{
		shows: col.shown(), wants: demanded(r.protocol.Name, col.name),
		faults: make(map[string]uint64), broken: make(map[string]uint64),
		seen: make(map[string]bool), unseen: make(map[string]bool),
	}
}

// try makes the runs of a cell with the seeds from first on.
func try(r *row, col *column, first, seeds uint64, memory *sim.Sim) *cell {
	c := newCell(r, col)
	for seed := first; seed < first+seeds; seed++ {
		t := newTrial(r, col, seed)
		out := t.run(memory)
		for _, b := range c.add(&out) {
			if len(c.breaches) == kept {
				break
			}
			b.seed, b.again = seed, args(t.spec)
			if !slices.ContainsFunc(c.breaches, func(x breach) bool { return x.property == b.property }) {
				t.minimize(&b)
			}
			c.breaches = append(c.breaches, b)
		}
	}
	return c
}

// add counts one run, and returns the promises that it broke.
func (c *cell) add(out *outcome) []breach {
	c.runs++
	c.received += out.Received
	c.delivered += out.delivered
	// order: sums
	for kind, n := range out.Faults {
		c.faults[kind] += n
	}
	promised, broke := false, false
	for _, v := range out.Verdicts {
		if v.Property.Mode == parley.Sometimes {
			c.seen[v.Property.Name] = c.seen[v.Property.Name] || v.Broken == nil
			c.unseen[v.Property.Name] = c.unseen[v.Property.Name] || v.Violated()
			continue
		}
		promised = promised || v.Promise.Holds
		if v.Broken != nil && !v.Promise.Holds {
			c.broken[v.Property.Name]++
			broke = true
		}
	}
	if promised {
		c.promised++
	}
	if broke {
		c.broke++
	}
	list := out.breaches()
	if len(list) > 0 {
		c.violated++
	}
	return list
}

// missing returns the faults that should have occurred and did not, the properties that should have been seen and
// were not, and the properties that should have been broken and were not.
func (c *cell) missing() (faults, sights, breaks []string) {
	for _, kind := range c.shows {
		if c.faults[kind] == 0 {
			faults = append(faults, kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.unseen)) {
		if c.unseen[name] && !c.seen[name] {
			sights = append(sights, name)
		}
	}
	for _, d := range c.wants {
		if c.broken[d.property] == 0 {
			breaks = append(breaks, d.property)
		}
	}
	return faults, sights, breaks
}

// verdict returns the verdict on the cell in one or two words, and whether it is as required.
func (c *cell) verdict() (word string, ok bool) {
	faults, sights, breaks := c.missing()
	switch {
	case c.violated > 0:
		return "VIOLATED", false
	case len(faults) > 0:
		return "NO FAULT", false
	case c.delivered == 0 || len(sights) > 0:
		return "NOTHING", false
	case len(breaks) > 0:
		return "NOT FOUND", false
	case c.broke > 0:
		return fmt.Sprintf("broke %d", c.broke), true
	case c.promised == 0:
		return "held*", true
	}
	return "held", true
}

// why says what is wrong with a cell, one line for each reason.
func (c *cell) why() (lines []string) {
	faults, sights, breaks := c.missing()
	for _, kind := range faults {
		lines = append(lines, "no "+kind)
	}
	if c.delivered == 0 {
		lines = append(lines, "nothing was delivered")
	}
	for _, name := range sights {
		lines = append(lines, name+" was never seen")
	}
	for _, name := range breaks {
		lines = append(lines, name+" was to be broken, and was not")
	}
	return lines
}

// grid is a grid with its results.
type grid struct {
	rows  []row
	cols  []column
	cells [][]*cell // by row and column
}

// fill makes all runs, on all cores. done is called after each cell.
func fill(rows []row, cols []column, first, seeds uint64, done func()) grid {
	g := grid{rows, cols, make([][]*cell, len(rows))}
	type place struct{ r, c int }
	places := make(chan place)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			memory := new(sim.Sim)
			for at := range places {
				r := &g.rows[at.r]
				g.cells[at.r][at.c] = try(r, &g.cols[at.c], first, r.seeds(seeds), memory)
				done()
			}
		})
	}
	for r := range rows {
		g.cells[r] = make([]*cell, len(cols))
	}
	for c := range cols {
		for r := range rows {
			places <- place{r, c}
		}
	}
	close(places)
	wait.Wait()
	return g
}
