package term

import (
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// mostDecisions is the maximum number of processes with separate lines. Beyond it, adjacent correct processes with
// the same outcome share a line.
const mostDecisions = 40

// Decisions returns a table of each process's initial value, decision and role.
func Decisions(list []reading.Outcome, o reading.Style) string {
	heads := [4]string{"process", "starts with", "decides", "role"}
	if o.Columns() < 60 {
		heads[0], heads[1] = "", "starts"
	}
	const leastRole = 4
	quarter := (o.Columns() - 1 - 4*frame - leastRole) / 4
	var rows [][4]string
	var faulty []bool
	for i := 0; i < len(list); {
		j := i + 1
		for len(list) > mostDecisions && j < len(list) && same(list[i], list[j]) {
			j++
		}
		one := list[i]
		name := prose.Cut(o.Called(one.Process), 2*quarter-2) + o.Marked(one.Process)[len(o.Called(one.Process)):]
		if j-i > 2 {
			last := o.Called(list[j-1].Process)
			if name += " " + prose.Ellipsis + " " + last; prose.Width(name) > 2*quarter {
				name = prose.Cut(o.Marked(one.Process)+prose.Ellipsis+last, 2*quarter)
			}
		} else {
			j = i + 1
		}
		starts, decides := prose.Cut(prose.Value(one.Starts), quarter), prose.Cut(prose.Value(one.Decides), quarter)
		rows = append(rows, [4]string{name, starts, decides, one.Role})
		faulty = append(faulty, o.Faulty.Has(one.Process))
		i = j
	}
	room := o.Columns() - 1 - 4*frame // for the roles: the remaining width
	for c := range 3 {
		wide := prose.Width(heads[c])
		for _, row := range rows {
			wide = max(wide, prose.Width(row[c]))
		}
		room -= wide
	}
	var cells [4][]string
	for i, row := range rows {
		for k, line := range prose.Lines(row[3], max(room, leastRole)) {
			if k > 0 {
				row = [4]string{}
			}
			row[3] = line
			for c := range cells {
				if faulty[i] {
					row[c] = paint(o, red, row[c])
				}
				cells[c] = append(cells[c], row[c])
			}
		}
	}
	var g grid
	for c := range cells {
		g.groups = append(g.groups, group{columns: []column{{head: heads[c], cells: cells[c]}}})
	}
	return g.one(g.groups)
}

// same reports whether two processes have the same outcome.
func same(a, b reading.Outcome) bool {
	return a.Role == b.Role && reading.Equal(a.Starts, b.Starts) && reading.Equal(a.Decides, b.Decides)
}
