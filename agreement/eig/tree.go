package eig

import (
	"fmt"
	"slices"

	"parley"
)

// The tree of a process is kept as received: rank r is one column for each
// lieutenant q, which holds what q said along every path of rank r-1 that does
// not contain q, in lexicographic order. The columns of a correct q are the
// bytes of its message, shared by all receivers. A path is never stored:
// the index of a node follows from its path (see rank), and an iteration over
// all paths in order meets the entries of each column in order too.
//
// In this file lieutenants are numbered 0..L-1, without the source.

func lieutenants(c Config) parley.Set {
	all := parley.Everyone(c.N)
	all.Remove(c.Source)
	return all
}

// number returns the number of a lieutenant; id is the inverse.
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

// falling returns L(L-1)...(L-k+1), the number of paths of k steps over L processes.
func falling(l, k int) int {
	f := 1
	for i := range k {
		f *= l - i
	}
	return f
}

// slots returns the number of entries of a column of rank r.
func slots(n, r int) int { return falling(n-2, r-1) }

// rank returns the index of a path among all paths of its length, in lexicographic
// order, over l lieutenants without the excepted one (-1 for none).
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

// paths iterates over the paths over l lieutenants in lexicographic order.
type paths struct {
	l    int
	used [parley.MaxProcesses]bool
	path []int
}

// each visits every path of k steps, which is in p.used and p.path.
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

// isPath reports whether a node can have this path: the source first, no process
// twice, and no more processes than rounds.
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

type tree struct {
	c       Config
	dict    dict   // the values met so far
	root    uint32 // code of the order
	columns [][]column
	width   int // bytes per code in the columns
}

// newTree makes room for the columns, which arrive with the messages.
func newTree(c Config) tree {
	t := tree{c: c, width: 1, dict: dict{c.Default}, columns: make([][]column, c.Last()+1)}
	for r := 1; r <= c.Last(); r++ {
		t.columns[r] = make([]column, c.N)
	}
	return t
}

// reset returns the tree to the state that newTree makes, and keeps its memory.
func (t *tree) reset() {
	t.root, t.width = 0, 1
	clear(t.dict)
	t.dict = append(t.dict[:0], t.c.Default)
	for _, round := range t.columns {
		clear(round)
	}
}

func (t *tree) state(v *parley.Vars) {
	parley.Slice(v, "dictionary", (*[][]byte)(&t.dict), func(_ int, b *[]byte) { v.Bytes("value", b) })
	parley.Num(v, "root", &t.root)
	parley.Num(v, "width", &t.width)
	for r := 1; r <= t.c.Last(); r++ {
		parley.PerProcess(v, fmt.Sprintf("round %d", r), t.columns[r], func(id parley.ID, col *column) {
			v.Coded("column", (*[]byte)(col), func(b []byte, perm []parley.ID) []byte {
				return renameColumn(t.c, b, t.width, r, id, perm)
			})
		})
	}
}

func (t *tree) rankColumns(r int) []column {
	return slices.Delete(slices.Clone(t.columns[r]), int(t.c.Source), int(t.c.Source)+1)
}

// gather returns what a process relays in round r: the values of its tree at rank r-1
// along all paths without itself.
func (t *tree) gather(r int, by parley.ID) column {
	if r == 1 {
		col := make(column, t.width)
		col.put(0, t.width, t.root)
		return col
	}
	out := make(column, slots(t.c.N, r)*t.width)
	self, cols := number(t.c.Source, by), t.rankColumns(r-1)
	next := make([]int, t.c.N) // the next entry of each column
	w, n := paths{l: t.c.N - 1}, 0
	w.each(r-2, func() {
		for q := range w.l {
			if w.used[q] {
				continue
			}
			if q != self && !w.used[self] {
				out.put(n, t.width, cols[q].at(next[q], t.width))
				n++
			}
			next[q]++
		}
	})
	return out
}

// view is the tree for readers; its outputs are computed once it is complete.
type view struct {
	p    *process
	outs []column // by rank, without the leaves, whose outputs are their inputs
}

func (p *process) view() parley.Tree {
	v := view{p: p}
	if p.gathers() && p.decided {
		v.outs = p.resolve()
	}
	return v
}

// Root returns the source.
func (v view) Root() []parley.ID { return []parley.ID{v.p.c.Source} }

// Node returns input, output and children of the node with the given path. For a path
// that is not in the tree it returns nothing.
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
