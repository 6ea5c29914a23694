package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// RoundsOptions configure tables of messages.
type RoundsOptions struct {
	reading.Style
	// Rows is the maximum number of rows shown for each content; 12 if 0. The rest is counted.
	Rows int
}

// Rounds returns a table for each round, with a column for each sender and its messages. It omits what a faulty
// process sends only to itself.
func Rounds(rounds []reading.Round, o RoundsOptions) string {
	var out []string
	faulty, silent, late := false, false, false
	for _, r := range rounds {
		r.Said = slices.DeleteFunc(slices.Clone(r.Said), func(s reading.Said) bool {
			return o.Faulty.Has(s.From) && len(s.To) == 1 && s.To[0] == s.From
		})
		out = append(out, o.round(r))
		for _, said := range r.Said {
			faulty = faulty || o.Faulty.Has(said.From)
			silent, late = silent || said.Total == 0, late || said.Fate == reading.Late
		}
	}
	var legend []string
	if faulty {
		legend = append(legend, reading.Cross+" faulty")
	}
	if faulty && silent {
		legend = append(legend, reading.Silence+": nothing came where something was due")
	}
	if late {
		legend = append(legend, marked(reading.Late)+": it came after its round, and counts as missing")
	}
	if len(legend) > 0 {
		out = append(out, prose.Fold(strings.Join(legend, "\n"), o.Columns())+"\n")
	}
	return strings.Join(out, "\n")
}

// round returns one table with its caption.
func (o RoundsOptions) round(r reading.Round) string {
	caption, common := o.caption(r)
	g := grid{over: "Sender"}
	room := g.roomFor(o.Columns())
	for i := 0; i < len(r.Said); {
		j := i
		for j < len(r.Said) && r.Said[j].From == r.Said[i].From {
			j++
		}
		mine, from := r.Said[i:j], r.Said[i].From
		i = j
		head := prose.Cut(o.Called(from), room)
		if o.Faulty.Has(from) {
			head = paint(o.Style, red, prose.Cut(o.Called(from), room-2)+" "+reading.Cross)
		}
		g.groups = append(g.groups, group{columns: []column{{head: head, cells: o.byContent(mine, room, common)}}})
	}
	text := heading(o.Style, caption)
	if len(g.groups) == 0 {
		return text
	}
	return text + g.render(o.Columns())
}

// caption returns the senders and receivers in words. common reports whether all send to the same processes, so that
// columns need not name them.
func (o RoundsOptions) caption(r reading.Round) (text string, common bool) {
	title := cmp.Or(r.Title, fmt.Sprintf("Round %d", r.Number))
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
		return title + ": " + o.Called(from[0]) + " sends to " + o.List(slices.Collect(to.All())), true
	}
	same, others := true, true
	whole := to
	for _, id := range from {
		whole.Add(id)
	}
	for _, id := range from {
		mine, rest := receivers[id], receivers[id]
		if o.Faulty.Has(id) { // a liar's copy to itself is not shown
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
		return title + ": each sends to " + o.List(slices.Collect(to.All())) + ", itself included", true
	case same:
		return title + ": each sends to " + o.List(slices.Collect(to.All())), true
	case others:
		return title + ": each sends to all others of " + o.List(slices.Collect(whole.All())), true
	}
	return title, false
}

// byContent returns the column of one sender, with a block for each content. It names the receivers if the caption
// does not.
func (o RoundsOptions) byContent(mine []reading.Said, room int, common bool) []string {
	wide := 0
	for _, said := range mine {
		for _, row := range o.shown(said) {
			wide = max(wide, prose.Width(row))
		}
	}
	var cells []string
	for i, said := range mine {
		if i > 0 {
			cells = append(cells, "")
		}
		if len(mine) > 1 || !common {
			to := "to " + o.List(said.To) + ":"
			cells = append(cells, prose.Lines(to, min(room, max(wide, 16)))...)
		}
		cells = append(cells, o.rowsOf(said, room)...)
		if said.Fate != reading.Arrives && said.Total > 0 {
			cells = append(cells, paint(o.Style, red, prose.Cut(marked(said.Fate), room)))
		}
	}
	return cells
}

// marked returns the mark of messages that do not arrive in time.
func marked(f reading.Fate) string {
	return map[reading.Fate]string{reading.Lost: "(lost)", reading.Late: "(late)", reading.Omitted: "(omitted)"}[f]
}

// shown returns the rows to show.
func (o RoundsOptions) shown(s reading.Said) []string {
	return s.Rows[:min(cmp.Or(o.Rows, 12), len(s.Rows))]
}

// rowsOf returns the lines of a content: one for each row, or up to three if the row is too wide, and the number of
// omitted rows.
func (o RoundsOptions) rowsOf(said reading.Said, room int) []string {
	const most = 3
	if said.Total == 0 {
		return []string{paint(o.Style, red, prose.Cut(reading.Silence, room))}
	}
	var cells []string
	for _, row := range o.shown(said) {
		lines := prose.Lines(row, room)
		if len(lines) > most {
			lines = append(lines[:most-1], prose.Cut(lines[most-1]+lines[most], room))
		}
		cells = append(cells, lines...)
	}
	if left := said.Total - uint64(len(o.shown(said))); left > 0 {
		cells = append(cells, paint(o.Style, dim, prose.Cut(prose.Ellipsis+" "+prose.Number(left)+" more", room)))
	}
	return cells
}
