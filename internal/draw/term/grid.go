package term

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"parley/internal/draw/prose"
)

// grid is a table that folds: if it is too wide for a line, groups of columns
// stand in several tables one below the other, each with the head of its
// columns and with the leading columns repeated.
type grid struct {
	over   string   // stands over the head of all groups; may be empty
	lead   []column // repeated at the left of each table
	groups []group
}

// group is one column, or several that are not to be parted and share a head.
type group struct {
	head    string // over more than one column
	columns []column
}

// column is one column: each cell is one line.
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

// frame is what the border and the blanks around one column take.
const frame = 3

func (g group) width() int { return g.lack() + g.inner() + frame*len(g.columns) }

func (g group) inner() int {
	w := 0
	for _, c := range g.columns {
		w += c.width()
	}
	return w
}

// lack is how much wider the columns of a group must be to carry its head. The
// library would see to it, but not in a way that can be foreseen.
func (g group) lack() int {
	if len(g.columns) < 2 {
		return 0
	}
	return max(prose.Width(g.head)-g.inner(), 0)
}

// roomFor is the width that is left for a single column beside the leading ones.
func (g grid) roomFor(width int) int { return max(width-g.leading()-1-frame, 1) }

func (g grid) leading() int { return group{columns: g.lead}.width() }

// render writes the table or tables. Cells must fit (see roomFor).
func (g grid) render(width int) string {
	room := width - 1 - g.leading()
	var out []string
	for _, part := range split(parted(g.groups, room), room) {
		out = append(out, g.one(part))
	}
	return strings.Join(out, "\n")
}

// parted takes groups that are too wide for a line apart after all.
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

// split puts groups side by side as far as there is room, in tables of about
// the same number of groups.
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

// fill takes at most so many groups for a table, and no more than there is room.
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

// one writes a single table.
func (g grid) one(groups []group) string {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)

	var over, heads, subs table.Row
	all := append([]column(nil), g.lead...)
	for _, c := range g.lead {
		over, heads, subs = append(over, ""), append(heads, ""), append(subs, c.head)
	}
	grouped, wide := false, 0
	for _, group := range groups {
		grouped = grouped || len(group.columns) > 1
		wide += group.inner() + group.lack()
		for i, c := range group.columns {
			if i == len(group.columns)-1 {
				c.head = prose.Pad(c.head, c.width()+group.lack())
			}
			over, heads, subs = append(over, g.over), append(heads, group.head), append(subs, c.head)
			all = append(all, c)
		}
	}
	if last := len(subs) - 1; wide < prose.Width(g.over) {
		subs[last] = prose.Pad(all[last].head, all[last].width()+prose.Width(g.over)-wide)
	}
	merge := table.RowConfig{AutoMerge: true, AutoMergeAlign: text.AlignLeft}
	if g.over != "" {
		w.AppendHeader(over, merge)
	}
	if grouped {
		w.AppendHeader(heads, merge)
	}
	w.AppendHeader(subs)

	height := 0
	var configs []table.ColumnConfig
	for i, c := range all {
		height = max(height, len(c.cells))
		align := text.AlignLeft
		if c.right {
			align = text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	w.SetColumnConfigs(configs)
	for i := range height {
		row := make(table.Row, len(all))
		for j, c := range all {
			row[j] = ""
			if i < len(c.cells) {
				row[j] = c.cells[i]
			}
		}
		w.AppendRow(row)
	}
	return w.Render() + "\n"
}
