package reading

import (
	"cmp"
	"slices"

	"parley"
)

// TreeOptions configure the drawing of an information tree.
type TreeOptions struct {
	Style
	// Of is the owner of the tree.
	Of parley.ID
	// Title is written above the tree, if there is one.
	Title string
	// Root describes the output of the root in pictures; "" means the decision.
	Root string
	// MaxNodes is the maximum number of nodes drawn; 64 if 0. A bigger tree is collapsed: adjacent equal siblings are
	// one line, subtrees with a single value are one line, and deeper nodes are counted by rank and value.
	MaxNodes int
}

// Node is a node of an information tree for drawing. It may stand for several adjacent siblings, or for the rest of
// them.
type Node struct {
	Path    []parley.ID
	In, Out []byte
	inner   bool // it has children, drawn or not
	Kids    []*Node
	Below   Beneath // the nodes below it that are not drawn
	// Last is the path of the last of several siblings with the same input, output and number of nodes below; Times
	// is their number.
	Last  []parley.ID
	Times uint64
	// Rest is the number of omitted siblings; all other fields are then empty.
	Rest uint64
}

// InputVotes reports whether the input of a node is also the vote of the owner of the tree. In OM(m) the owner is none
// of the node's children.
func (n *Node) InputVotes(owner parley.ID) bool {
	votes := len(n.Kids) > 0 && n.In != nil && !slices.Contains(n.Path, owner)
	for _, kid := range n.Kids {
		if kid.Rest > 0 {
			continue
		}
		last := kid.Relay()
		if kid.Times > 1 {
			last = kid.Last[len(kid.Last)-1]
		}
		votes = votes && (owner < kid.Relay() || owner > last)
	}
	return votes
}

// run is the number of adjacent equal siblings from which on they are drawn as one.
const run = 3

// planner decides which nodes of a tree are drawn.
type planner struct {
	s     *Survey
	mark  parley.Set // faulty processes: none of them stands for others
	depth int        // ranks to draw
	whole bool       // nothing is collapsed
	lines int        // nodes that may still be drawn
}

// Plan chooses the nodes to draw: all of them if there are at most MaxNodes; otherwise as many ranks as there is room
// for, with equal siblings and subtrees of one value drawn as one; otherwise the root and its first children. fits
// may refuse a plan, except the last.
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
			continue // each of these is drawn, with children below it
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

// open plans the children of a node at the given rank.
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

// fold draws the last siblings as one if they are enough and equal.
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

// alike reports whether two siblings without drawn children look the same.
func (p *planner) alike(a, b *Node) bool {
	return len(a.Kids) == 0 && len(b.Kids) == 0 && a.inner == b.inner &&
		p.mark.Has(a.Relay()) == p.mark.Has(b.Relay()) &&
		Equal(a.In, b.In) && Equal(a.Out, b.Out) && a.Below == b.Below
}

// cut omits the last children of the root.
func (p *planner) cut(root *Node, most int) {
	keep := max(most-2, 1)
	rest := uint64(0)
	for _, kid := range root.Kids[keep:] {
		rest += kid.Times
	}
	root.Kids = append(root.Kids[:keep], &Node{Rest: rest})
}

// Relay returns the process that sent the value of the node.
func (n *Node) Relay() parley.ID { return n.Path[len(n.Path)-1] }
