package draw

import (
	"fmt"
	"strings"

	"parley"
)

// TreeOptions say how an information tree looks.
type TreeOptions struct {
	Style
	// Title stands above the tree, if there is one.
	Title string
	// Root says in pictures what the output of the root is; the decision if "".
	Root string
	// MaxNodes is how many nodes are drawn, 64 if 0. A bigger tree is collapsed:
	// siblings in a row that look alike are one line, subtrees of a single value
	// are one line, and what is deeper is counted by rank and value.
	MaxNodes int
	// MaxDepth is the deepest rank that is drawn; any if 0.
	MaxDepth int
}

func (o TreeOptions) root() string {
	if o.Root == "" {
		return "output = decision"
	}
	return "output = " + o.Root
}

func (o TreeOptions) nodes() int {
	if o.MaxNodes == 0 {
		return 64
	}
	return max(o.MaxNodes, 4)
}

// Tree writes an information tree, a node a line: its path, what came along it
// (in) and what the process makes of it (out, a question mark before the
// decision). At most 200,000 nodes of it are looked at.
func Tree(t parley.Tree, o TreeOptions) string {
	s := look(t, o.Style)
	root, whole := plan(&s, o.Faulty, o.nodes(), o.MaxDepth, func(*node) bool { return true })
	p := treeText{TreeOptions: o, dotted: s.dotted}
	p.lines(root, "", "")
	out := p.align()
	if o.Title != "" {
		var title []string
		for _, line := range fold(o.Title, o.width()) {
			title = append(title, o.paint(bold, line))
		}
		out = append(title, out...)
	}
	if !whole {
		out = append(out, "")
		for _, line := range s.summary(o.Style) {
			out = append(out, fold(line, o.width())...)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// treeText gathers the lines of a tree.
type treeText struct {
	TreeOptions
	dotted bool
	rows   []treeRow
}

type treeRow struct {
	branch, label string
	faulty        bool
	in, out, rest string
}

// lines adds the line of a node and those of its children. first is what stands
// before the node itself and other before what is beneath it.
func (p *treeText) lines(n *node, first, other string) {
	if n.rest > 0 {
		p.rows = append(p.rows, treeRow{branch: first, label: ellipsis + " " + Number(n.rest) + " more"})
		return
	}
	row := treeRow{branch: first, label: p.path(n.path, p.dotted), rest: n.note()}
	row.in, row.out = p.value(n.in), p.output(n.out)
	row.faulty = p.Faulty.Has(n.relay())
	if n.times > 1 {
		row.label += " " + ellipsis + " " + p.path(n.last, p.dotted) + "  " + Number(n.times) + " nodes"
	}
	p.rows = append(p.rows, row)
	for i, kid := range n.kids {
		if i < len(n.kids)-1 {
			p.lines(kid, other+"├─ ", other+"│  ")
		} else {
			p.lines(kid, other+"└─ ", other+"   ")
		}
	}
}

func (o TreeOptions) output(v []byte) string {
	if v == nil {
		return "?"
	}
	return o.value(v)
}

// note says what is beneath a node and not drawn.
func (n *node) note() string {
	switch {
	case n.below.nodes == 0:
		return ""
	case n.below.alike && n.times > 1:
		return "each with " + Number(n.below.nodes) + " below, all the same"
	case n.below.alike:
		return Number(n.below.nodes) + " below, all the same"
	case n.times > 1:
		return "each with " + Number(n.below.nodes) + " below"
	}
	return Number(n.below.nodes) + " below"
}

// align sets the columns of the lines. Where there is no room the beginning of
// the path goes, which the branches tell anyway.
func (p *treeText) align() []string {
	left, in, out := 0, 1, 1
	for _, r := range p.rows {
		left = max(left, columns(r.branch+r.label))
		in, out = max(in, columns(r.in)), max(out, columns(r.out))
		if r.faulty {
			left = max(left, columns(r.branch+r.label)+2)
		}
	}
	const words = len("  in ") + len("  out ")
	left = min(left, max(p.width()-words-in-out, 8))
	var lines []string
	for _, r := range p.rows {
		room := left - columns(r.branch)
		label, mark := r.label, ""
		if r.faulty {
			room, mark = room-2, " "+cross
		}
		if r.in == "" {
			lines = append(lines, cut(r.branch+label, p.width()))
			continue
		}
		label = cutFront(label, max(room, 1))
		line := pad(r.branch+label+mark, left) + "  in " + pad(r.in, in) + "  out " + r.out
		if r.rest != "" && columns(line)+4+columns(r.rest) <= p.width()+max(0, columns(r.out)-out) {
			line = pad(line, columns(line)+out-columns(r.out)) + "  (" + r.rest + ")"
		}
		line = strings.TrimRight(cut(line, p.width()), " ")
		if mark != "" {
			line = strings.Replace(line, mark, " "+p.paint(red, cross), 1)
		}
		lines = append(lines, line)
	}
	return lines
}

// summary counts the ranks of a tree, by value if that is known. Of many ranks
// the first ones and the last are told.
func (s *survey) summary(style Style) []string {
	const most = 12
	var out []string
	for i, r := range s.ranks {
		if left := len(s.ranks) - most; left > 0 && i >= most-1 && i < len(s.ranks)-1 {
			if i == most-1 {
				out = append(out, Count(uint64(left), "rank more", "ranks more"))
			}
			continue
		}
		line := fmt.Sprintf("rank %d: %s", i, Count(r.nodes, "node", "nodes"))
		switch {
		case !r.counted:
			line += ", not counted by value"
		case len(r.out) == 1 && r.out[""] > 0:
			line += ": in " + style.tally(r.in)
		case r.in.equal(r.out):
			line += ": in and out " + style.tally(r.in)
		default:
			line += ": in " + style.tally(r.in) + "; out " + style.tally(r.out)
		}
		out = append(out, line)
	}
	return append(out, "in all: "+Count(s.total, "node", "nodes"))
}

// tally writes 1,204 × 1, 512 × 0. Rare values are counted together.
func (s Style) tally(t tally) string {
	const most = 4
	var parts []string
	others := uint64(0)
	all := t.values()
	for i, v := range all {
		if i >= most && len(all) > most+1 {
			others += v.n
			continue
		}
		parts = append(parts, Number(v.n)+" × "+s.value(v.v))
	}
	if others > 0 {
		parts = append(parts, Count(uint64(len(all)-most), "other value", "other values")+" "+Number(others)+" times")
	}
	return strings.Join(parts, ", ")
}
