package term

import (
	"slices"
	"strings"

	"parley/internal/draw/prose"
)

// grid is a table that folds: if it is too wide for a line, it becomes several tables below one another. Each has a
// part of the column groups with their heads, and repeats the leading columns.
type grid struct {
	over   string   // above the heads of all groups; may be empty
	lead   []column // repeated at the left of each table
	groups []group
}

// group is one column, or several that should stay together and share a head.
type group struct {
	head    string // above several columns
	columns []column
}

// column is one column. Each cell is one line.
type column struct {
	head  string
	cells []string
	right bool
}

func (c column) width() int {
	w := prose.Width(c.head)
	for _, cell := range c.cells {
		w = max(w, prose.Width(cell))
	}
	return w
}

// frame is the width of the border and the blanks around one column.
const frame = 3

func (g group) width() int { return g.lack() + g.inner() + frame*len(g.columns) }

func (g group) inner() int {
	w := 0
	for _, c := range g.columns {
		w += c.width()
	}
	return w
}

// lack returns by how much the columns of a group must be widened for its head.
func (g group) lack() int {
	if len(g.columns) < 2 {
		return 0
	}
	return max(prose.Width(g.head)-g.inner(), 0)
}

// roomFor returns the remaining width for a single column next to the leading ones.
func (g grid) roomFor(width int) int { return max(width-g.leading()-1-frame, 1) }

func (g grid) leading() int { return group{columns: g.lead}.width() }

// render returns the table or tables. Cells must fit (see roomFor).
func (g grid) render(width int) string {
	room := width - 1 - g.leading()
	var out []string
	for _, part := range split(parted(g.groups, room), room) {
		out = append(out, g.one(part))
	}
	return strings.Join(out, "\n")
}

// parted splits groups that are too wide for a line.
func parted(groups []group, room int) []group {
	var out []group
	for _, g := range groups {
		if len(g.columns) == 1 || g.width() <= room {
			out = append(out, g)
			continue
		}
		for _, c := range g.columns {
			c.head = prose.Cut(g.head+" "+c.head, max(room-frame, 1))
			out = append(out, group{columns: []column{c}})
		}
	}
	return out
}

// split distributes groups over as few tables as possible, with about the same number of groups in each.
func split(groups []group, room int) [][]group {
	greedy := fill(groups, room, len(groups))
	if len(greedy) <= 1 {
		return greedy
	}
	each := (len(groups) + len(greedy) - 1) / len(greedy)
	if even := fill(groups, room, each); len(even) == len(greedy) {
		return even
	}
	return greedy
}

// fill fills tables with at most the given number of groups, as far as there is room.
func fill(groups []group, room, most int) [][]group {
	var out [][]group
	taken, used := 0, 0
	for i, g := range groups {
		if i > taken && (used+g.width() > room || i-taken == most) {
			out = append(out, groups[taken:i])
			taken, used = i, 0
		}
		used += g.width()
	}
	return append(out, groups[taken:])
}

// cell is text in one column or, in a head, over several.
type cell struct {
	text  string
	right bool
	over  []int // the widths of its columns
}

func (c cell) width() int {
	w := -frame
	for _, one := range c.over {
		w += one + frame
	}
	return w
}

// one returns a single table.
func (g grid) one(groups []group) string {
	all, wide, grouped := slices.Clone(g.lead), 0, false
	for _, group := range groups {
		grouped = grouped || len(group.columns) > 1
		wide += group.inner() + group.lack()
		all = append(all, group.columns...)
		last := &all[len(all)-1]
		last.head = prose.Pad(last.head, last.width()+group.lack())
	}
	if last := &all[len(all)-1]; wide < prose.Width(g.over) {
		last.head = prose.Pad(last.head, last.width()+prose.Width(g.over)-wide)
	}
	widths, height := make([]int, len(all)), 0
	for i, c := range all {
		widths[i], height = c.width(), max(height, len(c.cells))
	}
	row := func(of func(c column) string) (out []cell) {
		for i, c := range all {
			out = append(out, cell{of(c), c.right, widths[i : i+1]})
		}
		return out
	}
	plain := row(func(c column) string { return c.head })
	heads := [][]cell{plain}
	lead := row(func(column) string { return "" })[:len(g.lead)]
	if grouped {
		over, at := slices.Clone(lead), len(lead)
		for _, group := range groups {
			n := len(group.columns)
			if n == 1 {
				widths[at] = max(widths[at], prose.Width(group.head))
			}
			over = append(over, cell{group.head, n == 1 && all[at].right, widths[at : at+n]})
			at += n
		}
		heads = slices.Insert(heads, 0, over)
	}
	if g.over != "" {
		heads = slices.Insert(heads, 0, append(lead, cell{text: g.over, over: widths[len(lead):]}))
	}
	lines := []string{rule("┌┬┐", heads[0])}
	for _, head := range heads {
		lines = append(lines, line(head))
	}
	lines = append(lines, rule("├┼┤", plain))
	for i := range height {
		lines = append(lines, line(row(func(c column) string {
			if i < len(c.cells) {
				return c.cells[i]
			}
			return ""
		})))
	}
	return strings.Join(append(lines, rule("└┴┘", plain)), "\n") + "\n"
}

// line returns a line of cells.
func line(cells []cell) string {
	out := "│"
	for _, c := range cells {
		if c.right {
			c.text = strings.Repeat(" ", max(c.width()-prose.Width(c.text), 0)) + c.text
		}
		out += " " + prose.Pad(c.text, c.width()) + " │"
	}
	return out
}

// rule returns a line between cells, with its joints: left, between the cells, and right.
func rule(joints string, cells []cell) string {
	joint := []rune(joints)
	var parts []string
	for _, c := range cells {
		parts = append(parts, strings.Repeat("─", c.width()+2))
	}
	return string(joint[0]) + strings.Join(parts, string(joint[1])) + string(joint[2])
}
