package draw

import (
	"fmt"
	"slices"
	"strings"

	"parley"
)

// RoundsOptions say how tables of messages look.
type RoundsOptions struct {
	Style
	// Rows is how many rows of one content are shown; 12 if 0. The rest is counted.
	Rows int
	// ByReceiver writes a line for each receiver, Dest and Msg, as the article's
	// Table 1 does. Otherwise receivers that are told the same stand together,
	// as in Table 2.
	ByReceiver bool
	// Receivers is how many receivers of one sender are written out ByReceiver;
	// 12 if 0. The rest is counted.
	Receivers int
}

func (o RoundsOptions) rows() int {
	if o.Rows == 0 {
		return 12
	}
	return o.Rows
}

func (o RoundsOptions) receivers() int {
	if o.Receivers == 0 {
		return 12
	}
	return o.Receivers
}

const silence = "(silent)"

// Rounds writes a table for each round, with a column for each sender and below
// it what the sender sends. What a faulty process tells nobody but itself is
// left out.
func Rounds(rounds []Round, o RoundsOptions) string {
	var out []string
	faulty, silent := false, false
	for _, r := range rounds {
		r.Said = slices.DeleteFunc(slices.Clone(r.Said), func(s Said) bool {
			return o.Faulty.Has(s.From) && len(s.To) == 1 && s.To[0] == s.From
		})
		out = append(out, o.round(r))
		for _, said := range r.Said {
			faulty = faulty || o.Faulty.Has(said.From)
			silent = silent || said.Total == 0
		}
	}
	if faulty {
		legend := cross + " faulty"
		if silent {
			legend += "\n" + silence + ": nothing came where something was due"
		}
		out = append(out, Fold(legend, o.width())+"\n")
	}
	return strings.Join(out, "\n")
}

// round writes one table under its caption.
func (o RoundsOptions) round(r Round) string {
	caption, common := o.caption(r)
	g := grid{over: "Sender"}
	for i := 0; i < len(r.Said); {
		j := i
		for j < len(r.Said) && r.Said[j].From == r.Said[i].From {
			j++
		}
		mine := r.Said[i:j]
		i = j
		room := g.roomFor(o.width())
		if o.ByReceiver {
			room -= frame
		}
		head := cut(o.name(mine[0].From), room)
		if o.Faulty.Has(mine[0].From) {
			head = o.paint(red, cut(o.name(mine[0].From), room-2)+" "+cross)
		}
		if o.ByReceiver {
			dest, msg := o.byReceiver(mine, room)
			g.groups = append(g.groups, group{head, []column{dest, msg}})
		} else {
			cells := o.byContent(mine, room, common)
			g.groups = append(g.groups, group{head, []column{{head: head, cells: cells}}})
		}
	}
	var lines []string
	for _, line := range fold(caption, o.width()) {
		lines = append(lines, o.paint(bold, line))
	}
	text := strings.Join(lines, "\n") + "\n"
	if len(g.groups) == 0 {
		return text
	}
	return text + g.render(o.width())
}

// caption says who sends to whom and tells whether all send to the same
// processes, so that it need not be said in each column.
func (o RoundsOptions) caption(r Round) (text string, common bool) {
	title := titleOf(r.Title, fmt.Sprintf("Round %d", r.Number))
	var from []parley.ID
	receivers := make(map[parley.ID]parley.Set)
	for _, said := range r.Said {
		if !slices.Contains(from, said.From) {
			from = append(from, said.From)
		}
		to := receivers[said.From]
		for _, id := range said.To {
			to.Add(id)
		}
		receivers[said.From] = to
	}
	if len(from) == 0 {
		return title + ": nothing is sent", true
	}
	to := receivers[from[0]]
	for _, id := range from {
		if !o.Faulty.Has(id) {
			to = receivers[id]
			break
		}
	}
	if len(from) == 1 {
		return title + ": " + o.name(from[0]) + " sends to " + o.list(slices.Collect(to.All())), true
	}
	same, others := true, true
	whole := to
	for _, id := range from {
		whole.Add(id)
	}
	for _, id := range from {
		mine, rest := receivers[id], receivers[id]
		if o.Faulty.Has(id) { // what a liar tells itself is not shown
			if to.Has(id) {
				mine.Add(id)
			}
			rest.Remove(id)
		}
		same = same && mine == to
		others = others && !rest.Has(id)
		rest.Add(id)
		others = others && rest == whole
	}
	switch {
	case same && slices.ContainsFunc(from, to.Has):
		return title + ": each sends to " + o.list(slices.Collect(to.All())) + ", itself included", true
	case same:
		return title + ": each sends to " + o.list(slices.Collect(to.All())), true
	case others:
		return title + ": each sends to all others of " + o.list(slices.Collect(whole.All())), true
	}
	return title, false
}

// byContent is the column of one sender, a block for each content. The receivers
// are named if they are not the caption's.
func (o RoundsOptions) byContent(mine []Said, room int, common bool) []string {
	wide := 0
	for _, said := range mine {
		for _, row := range said.shown(o.rows()) {
			wide = max(wide, columns(row))
		}
	}
	var cells []string
	for i, said := range mine {
		if i > 0 {
			cells = append(cells, "")
		}
		if len(mine) > 1 || !common {
			to := "to " + o.list(said.To) + ":"
			cells = append(cells, fold(to, min(room, max(wide, 16)))...)
		}
		cells = append(cells, o.rowsOf(said, room)...)
	}
	return cells
}

// byReceiver is the two columns of one sender, a receiver after the other.
func (o RoundsOptions) byReceiver(mine []Said, room int) (dest, msg column) {
	dest.head, msg.head = "Dest", "Msg"
	type told struct {
		to   parley.ID
		said Said
	}
	var all []told
	for _, said := range mine {
		for _, to := range said.To {
			all = append(all, told{to, said})
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return int(a.to) - int(b.to) })
	for i, one := range all {
		if i == o.receivers() {
			dest.cells = append(dest.cells, ellipsis)
			msg.cells = append(msg.cells, Number(uint64(len(all)-i))+" more")
			break
		}
		dest.cells = append(dest.cells, cut(o.name(one.to), max(room/3, 4)))
		rows := o.rowsOf(one.said, room-min(max(room/3, 4), columns(o.name(one.to))))
		msg.cells = append(msg.cells, rows...)
		for len(dest.cells) < len(msg.cells) {
			dest.cells = append(dest.cells, "")
		}
	}
	return dest, msg
}

// shown returns the rows that are shown.
func (s Said) shown(most int) []string { return s.Rows[:min(most, len(s.Rows))] }

// rowsOf returns the lines for what is said: a row on one line, or on three at
// most if it is too wide, and the count of those left out.
func (o RoundsOptions) rowsOf(said Said, room int) []string {
	const most = 3
	if said.Total == 0 {
		return []string{o.paint(red, cut(silence, room))}
	}
	var cells []string
	for _, row := range said.shown(o.rows()) {
		lines := fold(row, room)
		if len(lines) > most {
			lines = append(lines[:most-1], cut(lines[most-1]+lines[most], room))
		}
		cells = append(cells, lines...)
	}
	if left := said.Total - uint64(len(said.shown(o.rows()))); left > 0 {
		cells = append(cells, o.paint(dim, cut(ellipsis+" "+Number(left)+" more", room)))
	}
	return cells
}
