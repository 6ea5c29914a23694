package draw

import (
	"parley"
)

// Outcome is how a run begins and ends for one process.
type Outcome struct {
	Process parley.ID
	// Starts is its initial value, or what it heard from the source; nil: none.
	Starts []byte
	// Decides is what it decides on; nil: nothing.
	Decides []byte
	// Role is what it is in the run: source, correct, faulty: twofaced.
	Role string
}

// Outcomes reads the outcome of every process off a history: what it was first
// asked to propose and what it decided first; what a faulty one decides means
// nothing and is left out. Roles are correct and faulty, with
// the name of the behaviour if there is one; with a single proposer, that one is
// the source.
func Outcomes(h *parley.History, proposers parley.Set, behaviour func(parley.ID) string) []Outcome {
	out := make([]Outcome, h.N)
	for i := range out {
		id := parley.ID(i)
		role := "correct"
		if h.Faulty.Has(id) {
			role = "faulty"
			if behaviour != nil && behaviour(id) != "" {
				role += ": " + behaviour(id)
			}
		}
		if proposers.Len() == 1 && proposers.Has(id) {
			role = "source, " + role
		}
		out[i] = Outcome{Process: id, Role: role}
	}
	for _, q := range h.Requests {
		if o := &out[q.At]; q.Msg.Kind == parley.Propose && o.Starts == nil {
			o.Starts = some(q.Msg.Body)
		}
	}
	for _, d := range h.Deliveries {
		if o := &out[d.At]; d.Msg.Kind == parley.Decide && o.Decides == nil && h.Correct(d.At) {
			o.Decides = some(d.Msg.Body)
		}
	}
	return out
}

// some is a value that is there, if only an empty one.
func some(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}

// DecisionsOptions say how the table of decisions looks.
type DecisionsOptions struct {
	Style
	// Starts is the head of the column of initial values; "starts with" if "".
	Starts string
	// Rows is how many processes are written out; 40 if 0. Beyond that, correct
	// ones in a row with the same outcome are one line.
	Rows int
}

// Decisions writes what each process started with, decided and was.
func Decisions(list []Outcome, o DecisionsOptions) string {
	most := o.Rows
	if most == 0 {
		most = 40
	}
	heads := [4]string{"process", o.Starts, "decides", "role"}
	switch {
	case o.Starts == "" && o.width() < 60:
		heads[0], heads[1] = "", "starts"
	case o.Starts == "":
		heads[1] = "starts with"
	}
	const leastRole = 4
	quarter := (o.width() - 1 - 4*frame - leastRole) / 4
	heads[1] = cut(heads[1], quarter+1)
	var rows [][4]string
	var faulty []bool
	for i := 0; i < len(list); {
		j := i + 1
		for len(list) > most && j < len(list) && same(list[i], list[j]) {
			j++
		}
		one := list[i]
		name := cut(o.name(one.Process), 2*quarter-2) + o.marked(one.Process)[len(o.name(one.Process)):]
		if j-i > 2 {
			last := o.name(list[j-1].Process)
			if name += " " + ellipsis + " " + last; columns(name) > 2*quarter {
				name = cut(o.marked(one.Process)+ellipsis+last, 2*quarter)
			}
		} else {
			j = i + 1
		}
		rows = append(rows, [4]string{name, cut(Value(one.Starts), quarter), cut(Value(one.Decides), quarter), one.Role})
		faulty = append(faulty, o.Faulty.Has(one.Process))
		i = j
	}
	room := o.width() - 1 - 4*frame // for the roles: what the other columns leave
	for c := range 3 {
		wide := columns(heads[c])
		for _, row := range rows {
			wide = max(wide, columns(row[c]))
		}
		room -= wide
	}
	var cells [4][]string
	for i, row := range rows {
		for k, line := range fold(row[3], max(room, leastRole)) {
			if k > 0 {
				row = [4]string{}
			}
			row[3] = line
			for c := range cells {
				if faulty[i] {
					row[c] = o.paint(red, row[c])
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

// same tells whether two processes have the same outcome.
func same(a, b Outcome) bool {
	return a.Role == b.Role && equal(a.Starts, b.Starts) && equal(a.Decides, b.Decides)
}
