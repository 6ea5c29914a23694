package reading

import (
	"cmp"

	"parley"
)

// TreeOptions say how an information tree looks.
type TreeOptions struct {
	Style
	// Of is the process whose tree it is.
	Of parley.ID
	// Title stands above the tree, if there is one.
	Title string
	// Root says in pictures what the output of the root is; the decision if "".
	Root string
	// MaxNodes is how many nodes are drawn, 64 if 0. A bigger tree is collapsed:
	// siblings in a row that look alike are one line, subtrees of a single value
	// are one line, and what is deeper is counted by rank and value.
	MaxNodes int
}

// Node is a node of an information tree as it is drawn. It may stand for several
// siblings in a row, or for the rest of them.
type Node struct {
	Path    []parley.ID
	In, Out []byte
	inner   bool // it has children, drawn or not
	Kids    []*Node
	Below   Beneath // what is not drawn beneath it
	// Last is the path of the last of several siblings with the same input,
	// output and number of nodes beneath; Times is how many they are.
	Last  []parley.ID
	Times uint64
	// Rest is how many siblings are left out; everything else is then empty.
	Rest uint64
}

// run is how many siblings in a row that look alike are drawn as one.
const run = 3

// planner decides what of a tree is drawn.
type planner struct {
	s     *Survey
	mark  parley.Set // faulty processes: one does not stand for others
	depth int        // ranks that are drawn
	whole bool       // nothing is collapsed
	lines int        // nodes that may still be drawn
}

// Plan chooses the nodes to draw: all of them if they are no more than MaxNodes;
// else the deepest ranks that have room, with equal siblings and subtrees of one
// value drawn as one; else the root and the first of its children. fits may
// refuse a plan; it is not asked about the last one.
func (o TreeOptions) Plan(s *Survey, fits func(root *Node) bool) (root *Node, whole bool) {
	most := max(cmp.Or(o.MaxNodes, 64), 4)
	plan := func(depth int, whole bool) *planner {
		return &planner{s: s, mark: o.Faulty, depth: depth, whole: whole, lines: most}
	}
	depth := len(s.ranks) - 1
	if s.total <= uint64(most) {
		if root := plan(depth, true).start(); fits(root) {
			return root, true
		}
	}
	for ; depth > 1; depth-- {
		if s.alike == nil && s.upTo(depth) > uint64(most) {
			continue // each of these is drawn, with children beneath it
		}
		p := plan(depth, false)
		if root := p.start(); p.lines >= 0 && fits(root) {
			return root, false
		}
	}
	p := plan(1, false)
	root = p.start()
	if p.lines < 0 {
		p.cut(root, most)
	}
	return root, false
}

func (p *planner) start() *Node {
	path := p.s.t.Root()
	in, out, children := p.s.t.Node(path)
	root := &Node{Path: path, In: in, Out: out, inner: len(children) > 0, Times: 1}
	p.lines--
	p.open(root, children, 0)
	return root
}

// open plans the children of a node of a rank.
func (p *planner) open(n *Node, children []parley.ID, depth int) {
	if depth == p.depth {
		n.Below = p.s.below(n.Path, depth)
		return
	}
	for _, child := range children {
		if p.lines < 0 && depth > 0 {
			return
		}
		path := append(n.Path[:len(n.Path):len(n.Path)], child)
		in, out, grand := p.s.t.Node(path)
		kid := &Node{Path: path, In: in, Out: out, inner: len(grand) > 0, Times: 1}
		if below := p.s.below(path, depth+1); !p.whole && kid.inner && below.Alike {
			kid.Below = below
		} else {
			p.open(kid, grand, depth+1)
		}
		n.Kids = append(n.Kids, kid)
		p.lines--
		if !p.whole {
			p.fold(n)
		}
	}
}

// fold draws the last siblings as one if they are enough and look alike.
func (p *planner) fold(n *Node) {
	size := len(n.Kids)
	if size >= 2 && n.Kids[size-2].Times > 1 && p.alike(n.Kids[size-2], n.Kids[size-1]) {
		before := n.Kids[size-2]
		before.Last = n.Kids[size-1].Path
		before.Times++
		n.Kids = n.Kids[:size-1]
		p.lines++
		return
	}
	if size < run {
		return
	}
	first := n.Kids[size-run]
	for _, kid := range n.Kids[size-run:] {
		if kid.Times != 1 || !p.alike(first, kid) {
			return
		}
	}
	first.Last, first.Times = n.Kids[size-1].Path, run
	n.Kids = n.Kids[:size-run+1]
	p.lines += run - 1
}

// alike tells whether two siblings without drawn children look the same.
func (p *planner) alike(a, b *Node) bool {
	return len(a.Kids) == 0 && len(b.Kids) == 0 && a.inner == b.inner &&
		p.mark.Has(a.Relay()) == p.mark.Has(b.Relay()) &&
		Equal(a.In, b.In) && Equal(a.Out, b.Out) && a.Below == b.Below
}

// cut leaves out the last children of the root.
func (p *planner) cut(root *Node, most int) {
	keep := max(most-2, 1)
	rest := uint64(0)
	for _, kid := range root.Kids[keep:] {
		rest += kid.Times
	}
	root.Kids = append(root.Kids[:keep], &Node{Rest: rest})
}

// Relay is who told what the node holds.
func (n *Node) Relay() parley.ID { return n.Path[len(n.Path)-1] }
