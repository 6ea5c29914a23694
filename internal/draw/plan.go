package draw

import (
	"parley"
)

// node is a node of an information tree as it is drawn. It may stand for several
// siblings in a row, or for the rest of them.
type node struct {
	path    []parley.ID
	in, out []byte
	inner   bool // it has children, drawn or not
	kids    []*node
	below   beneath // what is not drawn beneath it
	// last is the path of the last of several siblings with the same input,
	// output and number of nodes beneath; times is how many they are.
	last  []parley.ID
	times uint64
	// rest is how many siblings are left out; everything else is then empty.
	rest uint64
}

// run is how many siblings in a row that look alike are drawn as one.
const run = 3

// planner decides what of a tree is drawn.
type planner struct {
	s     *survey
	mark  parley.Set // faulty processes: one does not stand for others
	depth int        // ranks that are drawn
	whole bool       // nothing is collapsed
	lines int        // nodes that may still be drawn
}

// plan chooses the nodes to draw: all of them if they are no more than most;
// else the deepest ranks that have room, with equal siblings and subtrees of one
// value drawn as one; else the root and the first of its children. fits may
// refuse a plan; it is not asked about the last one.
func plan(s *survey, mark parley.Set, most, depth int, fits func(root *node) bool) (root *node, whole bool) {
	deepest := len(s.ranks) - 1
	if depth <= 0 || depth > deepest {
		depth = deepest
	}
	if depth == deepest && s.total <= uint64(most) {
		p := planner{s: s, mark: mark, depth: depth, whole: true, lines: most}
		if root := p.start(); fits(root) {
			return root, true
		}
	}
	for ; depth > 1; depth-- {
		if s.alike == nil && s.upTo(depth) > uint64(most) {
			continue // each of these is drawn, with children beneath it
		}
		p := planner{s: s, mark: mark, depth: depth, lines: most}
		if root := p.start(); p.lines >= 0 && fits(root) {
			return root, false
		}
	}
	p := planner{s: s, mark: mark, depth: 1, lines: most}
	root = p.start()
	if p.lines < 0 {
		p.cut(root, most)
	}
	return root, false
}

func (p *planner) start() *node {
	path := p.s.t.Root()
	in, out, children := p.s.t.Node(path)
	root := &node{path: path, in: in, out: out, inner: len(children) > 0, times: 1}
	p.lines--
	p.open(root, children, 0)
	return root
}

// open plans the children of a node of a rank.
func (p *planner) open(n *node, children []parley.ID, depth int) {
	if depth == p.depth {
		n.below = p.s.below(n.path, depth)
		return
	}
	for _, child := range children {
		if p.lines < 0 && depth > 0 {
			return
		}
		path := append(n.path[:len(n.path):len(n.path)], child)
		in, out, grand := p.s.t.Node(path)
		kid := &node{path: path, in: in, out: out, inner: len(grand) > 0, times: 1}
		if below := p.s.below(path, depth+1); !p.whole && kid.inner && below.alike {
			kid.below = below
		} else {
			p.open(kid, grand, depth+1)
		}
		n.kids = append(n.kids, kid)
		p.lines--
		if !p.whole {
			p.fold(n)
		}
	}
}

// fold draws the last siblings as one if they are enough and look alike.
func (p *planner) fold(n *node) {
	size := len(n.kids)
	if size >= 2 && n.kids[size-2].times > 1 && p.alike(n.kids[size-2], n.kids[size-1]) {
		before := n.kids[size-2]
		before.last = n.kids[size-1].path
		before.times++
		n.kids = n.kids[:size-1]
		p.lines++
		return
	}
	if size < run {
		return
	}
	first := n.kids[size-run]
	for _, kid := range n.kids[size-run:] {
		if kid.times != 1 || !p.alike(first, kid) {
			return
		}
	}
	first.last, first.times = n.kids[size-1].path, run
	n.kids = n.kids[:size-run+1]
	p.lines += run - 1
}

// alike tells whether two siblings without drawn children look the same.
func (p *planner) alike(a, b *node) bool {
	return len(a.kids) == 0 && len(b.kids) == 0 && a.inner == b.inner &&
		p.mark.Has(a.relay()) == p.mark.Has(b.relay()) &&
		equal(a.in, b.in) && equal(a.out, b.out) && a.below == b.below
}

// cut leaves out the last children of the root.
func (p *planner) cut(root *node, most int) {
	keep := max(most-2, 1)
	rest := uint64(0)
	for _, kid := range root.kids[keep:] {
		rest += kid.times
	}
	root.kids = append(root.kids[:keep], &node{rest: rest})
}

// count is the number of nodes that are drawn as such.
func (n *node) count() int {
	sum := 1
	for _, kid := range n.kids {
		sum += kid.count()
	}
	return sum
}

// relay is who told what the node holds.
func (n *node) relay() parley.ID { return n.path[len(n.path)-1] }
