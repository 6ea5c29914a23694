package term

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// Deliveries returns the deliveries of each process in its order, one row for each process, with views and suspicions
// between them. Deliveries of faulty processes are included, because some services promise that even those agree.
func Deliveries(p parley.Protocol, h *parley.History, o reading.Style) string {
	words := reading.Words{Style: o, Protocol: p}
	columns := make([][]string, h.N)
	type entry struct {
		order uint64
		at    parley.ID
		text  string
	}
	var all []entry
	for _, d := range h.Deliveries {
		if d.Msg.Kind == parley.Decide {
			continue
		}
		all = append(all, entry{d.Order, d.At, words.Payload(d.Path, d.Msg)})
	}
	title := "Deliveries, in the order of each process"
	if len(all) == 0 {
		title = "What each process indicates, in its order"
	}
	if len(all)+len(h.Indications) == 0 {
		return ""
	}
	for _, d := range h.Indications {
		all = append(all, entry{d.Order, d.At, "(" + words.Indicated(d.Path, d.Msg) + ")"})
	}
	for _, d := range h.Restarts {
		all = append(all, entry{d.Order, d.At, "(restarts)"})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.order, b.order) })
	for _, e := range all {
		columns[e.at] = append(columns[e.at], e.text)
	}
	var b strings.Builder
	b.WriteString(heading(o, title))
	for id := range parley.ID(h.N) {
		text := cmp.Or(strings.Join(columns[id], ", "), "nothing")
		name := o.Marked(id) + ": "
		lines := prose.Lines(text, max(o.Columns()-len(name), 20))
		b.WriteString(name + strings.Join(lines, "\n"+strings.Repeat(" ", len(name))) + "\n")
	}
	return b.String()
}
