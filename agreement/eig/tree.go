package eig

import (
	"slices"

	"parley"
)

// The tree of a process is kept as it came: rank r is one column for each
// lieutenant q, which holds what q said along every path of rank r-1 that does
// not contain q, in lexicographic order. The columns of a correct q are the
// bytes of its message, shared by all who received it. A path is never stored:
// where a node stands follows from its path (see rank), and whoever goes through
// all paths in order meets the entries of each column in order too.
//
// Inside this file lieutenants are numbered 0..L-1, the source left out.

// lieutenants returns all processes but the source.
func lieutenants(c Config) parley.Set {
	all := parley.Everyone(c.N)
	all.Remove(c.Source)
	return all
}

// number returns the number of a lieutenant, and id the way back.
func number(source, id parley.ID) int {
	if id > source {
		return int(id) - 1
	}
	return int(id)
}

func id(source parley.ID, number int) parley.ID {
	if number >= int(source) {
		return parley.ID(number + 1)
	}
	return parley.ID(number)
}

// falling is L(L-1)...(L-k+1): how many paths of k steps L processes have.
func falling(l, k int) int {
	f := 1
	for i := range k {
		f *= l - i
	}
	return f
}

// slots is the number of entries of a column of rank r.
func slots(n, r int) int { return falling(n-2, r-1) }

// rank is the place of a path among all paths of its length, in lexicographic
// order, over l lieutenants without the one left out (-1 for none).
func rank(path []int, l, without int) int {
	if without >= 0 {
		l--
	}
	i := 0
	for j, p := range path {
		digit := p
		if without >= 0 && without < p {
			digit--
		}
		for _, before := range path[:j] {
			if before < p {
				digit--
			}
		}
		i = i*(l-j) + digit
	}
	return i
}

// paths goes through the paths over l lieutenants in lexicographic order.
type paths struct {
	l    int
	used [parley.MaxProcesses]bool
	path []int
}

// each visits every path of k steps; p.used and p.path tell which.
func (p *paths) each(k int, visit func()) {
	if k == 0 {
		visit()
		return
	}
	for q := range p.l {
		if p.used[q] {
			continue
		}
		p.used[q], p.path = true, append(p.path, q)
		p.each(k-1, visit)
		p.used[q], p.path = false, p.path[:len(p.path)-1]
	}
}

// isPath tells whether a node can have this path: the source first, no process
// twice, and no more of them than there are rounds.
func isPath(c Config, path []parley.ID) bool {
	if len(path) == 0 || len(path) > c.Last()+1 || path[0] != c.Source {
		return false
	}
	for i, id := range path {
		if int(id) >= c.N || slices.Contains(path[:i], id) {
			return false
		}
	}
	return true
}

// rankColumns returns the columns of rank r by number of lieutenant.
func (p *process) rankColumns(r int) []column {
	return slices.Delete(slices.Clone(p.columns[r]), int(p.c.Source), int(p.c.Source)+1)
}

// gather returns what this process relays in round r: what it holds at rank r-1
// along all paths without itself.
func (p *process) gather(r int) column {
	if r == 1 {
		col := make(column, p.width)
		col.put(0, p.width, p.root)
		return col
	}
	out := make(column, slots(p.c.N, r)*p.width)
	self, cols := number(p.c.Source, p.self), p.rankColumns(r-1)
	next := make([]int, p.c.N) // the entry of each column that is due
	w, n := paths{l: p.c.N - 1}, 0
	w.each(r-2, func() {
		for q := range w.l {
			if w.used[q] {
				continue
			}
			if q != self && !w.used[self] {
				out.put(n, p.width, cols[q].at(next[q], p.width))
				n++
			}
			next[q]++
		}
	})
	return out
}

// view lets the tree be walked; its outputs are computed once it is complete.
type view struct {
	p    *process
	outs []column // by rank, without the leaves, whose output is their input
}

func (p *process) view() parley.Tree {
	v := view{p: p}
	if p.gathers() && p.decided {
		v.outs = p.resolve()
	}
	return v
}

// Root is the source.
func (v view) Root() []parley.ID { return []parley.ID{v.p.c.Source} }

// Node returns input, output and children of the node with the given path. Where
// there is no such node it returns nothing.
func (v view) Node(path []parley.ID) (in, out []byte, children []parley.ID) {
	p, k := v.p, len(path)-1
	switch {
	case !isPath(p.c, path) || !p.gathers() && k > 0:
		return nil, nil, nil
	case !p.gathers():
		return p.value, p.value, nil
	}
	l := p.c.N - 1
	steps := make([]int, k)
	for i := range steps {
		steps[i] = number(p.c.Source, path[i+1])
	}
	code := p.root
	if k > 0 {
		q := steps[k-1]
		code = p.columns[k][path[k]].at(rank(steps[:k-1], l, q), p.width)
	}
	if k < p.c.Last() {
		for q := range l {
			if !slices.Contains(steps, q) {
				children = append(children, id(p.c.Source, q))
			}
		}
	}
	in = p.dict[code]
	switch {
	case v.outs == nil:
	case k == p.c.Last():
		out = in
	default:
		out = p.dict[v.outs[k].at(rank(steps, l, -1), p.width)]
	}
	return in, out, children
}
