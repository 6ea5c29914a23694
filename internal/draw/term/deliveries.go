package term

import (
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// DeliveriesOptions say how the table of deliveries looks.
type DeliveriesOptions struct {
	reading.Style
	Rows int // deliveries of a process that are shown before the rest is counted; 0: all
}

// Deliveries writes what each process delivered, in its order, a row a process;
// views and suspicions stand between. What faulty processes deliver is shown too,
// for some services promise that even that agrees.
func Deliveries(p parley.Protocol, h *parley.History, o DeliveriesOptions) string {
	words := reading.Words{Style: o.Style, Protocol: p}
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
		all = append(all, entry{d.Order, d.At, "(comes back)"})
	}
	slices.SortFunc(all, func(a, b entry) int {
		if a.order < b.order {
			return -1
		}
		return 1
	})
	for _, e := range all {
		columns[e.at] = append(columns[e.at], e.text)
	}
	var b strings.Builder
	b.WriteString(paint(o.Style, bold, title) + "\n")
	for id := range parley.ID(h.N) {
		list := columns[id]
		left := 0
		if o.Rows > 0 && len(list) > o.Rows {
			left = len(list) - o.Rows
			list = list[:o.Rows]
		}
		text := strings.Join(list, ", ")
		if left > 0 {
			text += " and " + prose.Number(uint64(left)) + " more"
		}
		if text == "" {
			text = "nothing"
		}
		name := o.Marked(id) + ": "
		lines := prose.Lines(text, max(o.Columns()-len(name), 20))
		for i, line := range lines {
			if i == 0 {
				b.WriteString(name + line + "\n")
			} else {
				b.WriteString(strings.Repeat(" ", len(name)) + line + "\n")
			}
		}
	}
	return b.String()
}
