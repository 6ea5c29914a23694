package draw

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
)

// Tree is an information tree to draw, with the root at the top and the ranks below one another.
type Tree struct {
	parley.Tree
	reading.TreeOptions
	// Filled has the event by which the value of a node arrived, by round and sender; it may be nil.
	Filled map[string]uint64
}

func (t Tree) values() []string {
	l := layTree(t.Tree, t.TreeOptions)
	return l.values()
}

func (t Tree) picture(inks scene.Palette, above int) picture {
	l := layTree(t.Tree, t.TreeOptions)
	l.filled = t.Filled
	l.place(above)
	return l.draw(inks)
}

// treeLayout is a tree during layout.
type treeLayout struct {
	reading.TreeOptions
	survey *reading.Survey
	root   *reading.Node
	whole  bool
	form   form
	boxes  []treeBox
	width  int
	height int
	left   int               // width of the names of the ranks
	filled map[string]uint64 // the event by which the value of a node arrived, by round and sender
	tops   []int

	outvoted bool // some node's output is not its parent's
}

// form is one way to lay out a tree: the widths of the boxes of each rank, and the arrangement of siblings without
// children.
type form struct {
	wide  []int // by rank
	small int   // width of the boxes in a stack
	// high is the number of siblings without children below one another; 0: side by side.
	high int
	// brief boxes in a stack have only the last step of the path and the output.
	brief bool
	gap   int // between adjacent boxes
}

// treeBox is a node with its position.
type treeBox struct {
	n             *reading.Node
	rank          int
	x, y          int
	width, height int
	stacked       bool
	parent        int // index in boxes; -1 for the root
}

const (
	boxHeight   = 40
	stackHeight = 22
	stackStep   = 27
	leastGap    = 10
	mostGap     = 36
	rankGap     = 40
	trunk       = 14 // left of a stack, for the line to its boxes
)

// layTree chooses which nodes of the tree to draw, and where.
func layTree(t parley.Tree, o reading.TreeOptions) treeLayout {
	o.MaxNodes = cmp.Or(o.MaxNodes, 120)
	l := treeLayout{TreeOptions: o, survey: reading.Look(t, o.Style)}
	l.left = wide("note", "rank 10") + 10
	l.root, l.whole = o.Plan(l.survey, l.fits)
	if !l.fits(l.root) { // the last plan is the root with a grid of children
		l.form.high = 1 + (len(l.root.Kids)-1)/max(1, (figureWidth-l.left)/(l.form.small+leastGap))
	}
	return l
}

// fits searches for a form in which the tree is not too wide.
func (l *treeLayout) fits(root *reading.Node) bool {
	for _, brief := range []bool{false, true} {
		for _, high := range []int{0, 5, 8, 12, 16, 20, 24} {
			l.form = form{high: high, brief: brief, gap: leastGap}
			l.sizes(root, 0)
			if l.span(root, 0) <= figureWidth-l.left {
				return true
			}
		}
	}
	return false
}

// sizes sets the widths of the boxes of each rank.
func (l *treeLayout) sizes(n *reading.Node, rank int) {
	if rank == len(l.form.wide) {
		l.form.wide = append(l.form.wide, 52)
	}
	io := wide("io", l.inOut(n))
	l.form.wide[rank] = max(l.form.wide[rank], wide("name", l.label(n))+14, io+14, wide("note", l.below(n))+4)
	if len(n.Kids) == 0 {
		if l.form.brief {
			io = wide("io", l.out(n))
		}
		if n.Rest > 0 {
			io = 0
		}
		note := 0
		if text := l.stackNote(n); text != "" {
			note = wide("note", text) + 4
		}
		l.form.small = max(l.form.small, 14+wide("name", l.stackLabel(n))+8+io+note)
	}
	for _, kid := range n.Kids {
		l.sizes(kid, rank+1)
	}
}

// stacks reports whether the children of a node are drawn below one another.
func (l *treeLayout) stacks(n *reading.Node) bool {
	grand := slices.ContainsFunc(n.Kids, func(k *reading.Node) bool { return len(k.Kids) > 0 })
	return l.form.high > 0 && len(n.Kids) > 1 && !grand
}

// span returns the width of a node with everything below it.
func (l *treeLayout) span(n *reading.Node, rank int) int {
	if len(n.Kids) == 0 {
		return l.form.wide[rank]
	}
	if l.stacks(n) {
		piles := (len(n.Kids) + l.form.high - 1) / l.form.high
		return max(l.form.wide[rank], piles*(l.form.small+trunk+l.form.gap)-l.form.gap)
	}
	sum := -l.form.gap
	for _, kid := range n.Kids {
		sum += l.span(kid, rank+1) + l.form.gap
	}
	return max(sum, l.form.wide[rank])
}

// place sets the positions of all nodes, in a picture of at least the given width. Boxes move apart if there is room.
func (l *treeLayout) place(above int) {
	for l.form.gap < mostGap && l.left+l.span(l.root, 0) < min(above, figureWidth) {
		l.form.gap++
	}
	if !l.whole {
		above = max(above, leastWidth) // for the counts
	}
	span := l.span(l.root, 0)
	l.width = max(l.left+span, above)
	if l.Title != "" {
		l.height = 34
	}
	l.put(l.root, 0, l.left+(l.width-l.left-span)/2, l.height, -1)
	if l.root.Out != nil {
		l.width = max(l.width, l.boxes[0].x+l.boxes[0].width+10+wide("note", l.rootSays()))
	}
	for _, b := range l.boxes {
		low := b.y + b.height
		if l.below(b.n) != "" && !b.stacked {
			low += 14
		}
		l.height = max(l.height, low)
	}
}

// put places a node and everything below it into a span that begins at x.
func (l *treeLayout) put(n *reading.Node, rank, x, y, parent int) {
	if rank == len(l.tops) {
		l.tops = append(l.tops, y)
	}
	at := len(l.boxes)
	own := treeBox{n: n, rank: rank, y: y, width: l.form.wide[rank], height: boxHeight, parent: parent}
	own.x = x + (l.span(n, rank)-own.width)/2
	l.boxes = append(l.boxes, own)
	next := y + boxHeight + rankGap
	if l.stacks(n) {
		for i, kid := range n.Kids {
			pile, row := i/l.form.high, i%l.form.high
			l.boxes = append(l.boxes, treeBox{
				n: kid, rank: rank + 1, stacked: true, parent: at, width: l.form.small, height: stackHeight,
				x: x + trunk + pile*(l.form.small+trunk+l.form.gap), y: next - 14 + row*stackStep,
			})
		}
		if rank+1 == len(l.tops) {
			l.tops = append(l.tops, next-22)
		}
		return
	}
	inner := -l.form.gap
	for _, kid := range n.Kids {
		inner += l.span(kid, rank+1) + l.form.gap
	}
	x += (l.span(n, rank) - inner) / 2
	for _, kid := range n.Kids {
		l.put(kid, rank+1, x, next, at)
		x += l.span(kid, rank+1) + l.form.gap
	}
}

// label returns the name of a node: its path, or the first and the last of several.
func (l *treeLayout) label(n *reading.Node) string {
	if n.Rest > 0 {
		return prose.Ellipsis + " " + prose.Number(n.Rest) + " more"
	}
	path := l.Path(n.Path, l.survey.Dotted)
	if n.Times > 1 {
		return path + prose.Ellipsis + l.Bare(n.Last[len(n.Last)-1])
	}
	return path
}

// stackLabel returns the name of a node in a stack.
func (l *treeLayout) stackLabel(n *reading.Node) string {
	if !l.form.brief || !l.survey.Dotted || n.Rest > 0 {
		return l.label(n)
	}
	step := "." + l.Bare(n.Relay())
	if n.Times > 1 {
		step += prose.Ellipsis + l.Bare(n.Last[len(n.Last)-1])
	}
	return step
}

// stackNote returns the note on a node in a stack.
func (l *treeLayout) stackNote(n *reading.Node) string {
	if l.form.brief {
		return ""
	}
	return l.below(n)
}

func (l *treeLayout) inOut(n *reading.Node) string {
	if n.Rest > 0 {
		return ""
	}
	return l.in(n) + " → " + l.out(n)
}

const valueMost = 8 // maximum characters of a value in a node

func (l *treeLayout) in(n *reading.Node) string { return prose.Cut(prose.Value(n.In), valueMost) }

func (l *treeLayout) out(n *reading.Node) string {
	if n.Out == nil {
		return "?"
	}
	return prose.Cut(prose.Value(n.Out), valueMost)
}

// below describes what is not drawn: +30, or how many siblings a node stands for.
func (l *treeLayout) below(n *reading.Node) string {
	var parts []string
	if n.Times > 1 {
		parts = append(parts, "×"+prose.Number(n.Times))
	}
	if n.Below.Nodes > 0 {
		parts = append(parts, "+"+prose.Number(n.Below.Nodes))
	}
	return strings.Join(parts, " ")
}

// values returns all drawn values.
func (l *treeLayout) values() []string {
	var out []string
	var visit func(n *reading.Node)
	visit = func(n *reading.Node) {
		for _, v := range [][]byte{n.In, n.Out} {
			if v != nil {
				out = append(out, prose.Value(v))
			}
		}
		for _, kid := range n.Kids {
			visit(kid)
		}
	}
	visit(l.root)
	slices.Sort(out)
	return slices.Compact(out)
}

// captions returns the lines below a tree that is not drawn completely.
func (l *treeLayout) captions() []string {
	if l.whole {
		return nil
	}
	var out []string
	for _, line := range l.survey.Summary(l.Style) {
		out = append(out, prose.Lines(line, columns("note", l.width))...)
	}
	return out
}

// rootSays describes the output of the root.
func (l *treeLayout) rootSays() string { return "output = " + cmp.Or(l.Root, "decision") }
