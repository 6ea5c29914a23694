package term

import (
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// Tree returns an information tree, one line for each node: its path, the value received along it (in) and the
// process's result (out, a question mark before the decision). It visits at most 200,000 nodes.
func Tree(t parley.Tree, o reading.TreeOptions) string {
	s := reading.Look(t, o.Style)
	root, whole := o.Plan(s, func(*reading.Node) bool { return true })
	p := treeText{TreeOptions: o, dotted: s.Dotted}
	p.lines(root, "", "")
	out := strings.Join(p.align(), "\n") + "\n"
	if o.Title != "" {
		out = heading(o.Style, o.Title) + out
	}
	if !whole {
		out += "\n" + prose.Fold(strings.Join(s.Summary(o.Style), "\n"), o.Columns()) + "\n"
	}
	return out
}

// treeText collects the lines of a tree.
type treeText struct {
	reading.TreeOptions
	dotted bool
	rows   []treeRow
}

type treeRow struct {
	branch, label string
	faulty        bool
	in, out, rest string
}

// lines adds the lines of a node and of its children. first is the prefix of the node itself, and other that of its
// children.
func (p *treeText) lines(n *reading.Node, first, other string) {
	if n.Rest > 0 {
		p.rows = append(p.rows, treeRow{branch: first, label: prose.Ellipsis + " " + prose.Number(n.Rest) + " more"})
		return
	}
	row := treeRow{branch: first, label: p.Path(n.Path, p.dotted), rest: note(n)}
	row.in, row.out = p.Value(n.In), p.output(n.Out)
	row.faulty = p.Faulty.Has(n.Relay())
	if n.Times > 1 {
		row.label += " " + prose.Ellipsis + " " + p.Path(n.Last, p.dotted) + "  " + prose.Number(n.Times) + " nodes"
	}
	p.rows = append(p.rows, row)
	kids := p.withOwn(n)
	for i, kid := range kids {
		if kid.own {
			p.own(n, other, i == len(kids)-1)
			continue
		}
		kid := kid.Node
		if i < len(kids)-1 {
			p.lines(kid, other+"├─ ", other+"│  ")
		} else {
			p.lines(kid, other+"└─ ", other+"   ")
		}
	}
}

// voter is a child of a node, or the owner of the tree, whose vote is what it received itself.
type voter struct {
	*reading.Node
	own bool
}

// withOwn returns the drawn children of a node. If the node's input is the vote of the owner of the tree, that is added
// in its place.
func (p *treeText) withOwn(n *reading.Node) (all []voter) {
	lacks := n.InputVotes(p.Of)
	for _, kid := range n.Kids {
		if lacks && (kid.Rest > 0 || kid.Relay() > p.Of) {
			all, lacks = append(all, voter{own: true}), false
		}
		all = append(all, voter{Node: kid})
	}
	if lacks {
		all = append(all, voter{own: true})
	}
	return all
}

// own adds the line of the owner's own vote at a node.
func (p *treeText) own(n *reading.Node, other string, last bool) {
	branch := other + "├─ "
	if last {
		branch = other + "└─ "
	}
	path := append(slices.Clone(n.Path), p.Of)
	row := treeRow{branch: branch, label: p.Path(path, p.dotted), in: p.Value(n.In), rest: "own vote"}
	row.out = row.in
	p.rows = append(p.rows, row)
}

func (p *treeText) output(v []byte) string {
	if v == nil {
		return "?"
	}
	return p.Value(v)
}

// note describes the nodes below a node that are not drawn.
func note(n *reading.Node) string {
	switch {
	case n.Below.Nodes == 0:
		return ""
	case n.Below.Alike && n.Times > 1:
		return "each with " + prose.Number(n.Below.Nodes) + " below, all the same"
	case n.Below.Alike:
		return prose.Number(n.Below.Nodes) + " below, all the same"
	case n.Times > 1:
		return "each with " + prose.Number(n.Below.Nodes) + " below"
	}
	return prose.Number(n.Below.Nodes) + " below"
}

// align aligns the columns of the lines. If there is no room, it cuts the beginning of the path, which the branches
// show anyway.
func (p *treeText) align() []string {
	left, in, out := 0, 1, 1
	for _, r := range p.rows {
		left = max(left, prose.Width(r.branch+r.label))
		in, out = max(in, prose.Width(r.in)), max(out, prose.Width(r.out))
		if r.faulty {
			left = max(left, prose.Width(r.branch+r.label)+2)
		}
	}
	const words = len("  in ") + len("  out ")
	left = min(left, max(p.Columns()-words-in-out, 8))
	var lines []string
	for _, r := range p.rows {
		room := left - prose.Width(r.branch)
		label, mark := r.label, ""
		if r.faulty {
			room, mark = room-2, " "+reading.Cross
		}
		if r.in == "" {
			lines = append(lines, prose.Cut(r.branch+label, p.Columns()))
			continue
		}
		label = prose.CutFront(label, max(room, 1))
		line := prose.Pad(r.branch+label+mark, left) + "  in " + prose.Pad(r.in, in) + "  out " + r.out
		if r.rest != "" && prose.Width(line)+4+prose.Width(r.rest) <= p.Columns()+max(0, prose.Width(r.out)-out) {
			line = prose.Pad(line, prose.Width(line)+out-prose.Width(r.out)) + "  (" + r.rest + ")"
		}
		line = strings.TrimRight(prose.Cut(line, p.Columns()), " ")
		if mark != "" {
			line = strings.Replace(line, mark, " "+paint(p.Style, red, reading.Cross), 1)
		}
		lines = append(lines, line)
	}
	return lines
}
