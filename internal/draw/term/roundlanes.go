package term

import (
	"cmp"
	"fmt"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/trace"
)

// rowsOfMessage is the maximum number of messages written beside the line of one sender; the rest is counted.
const rowsOfMessage = 6

// rounds sets the rows of a protocol in rounds: what each process sends in a round, and between the rounds what
// happens to processes.
func (d *diagram) rounds(p parley.Protocol, events []trace.Event, moments []reading.Moment) {
	all := reading.Gather(p, events, reading.Gathering{Style: d.o.Style, Rows: rowsOfMessage})
	begins := make(map[int]uint64)
	for _, e := range events {
		if number, is := reading.RoundOf(p, e); is && begins[number] == 0 {
			begins[number] = e.ID
		}
	}
	for i := range moments {
		m := &moments[i]
		for len(all) > 0 && begins[all[0].Number] < m.ID {
			d.round(all[0])
			all = all[1:]
		}
		if !m.Message() {
			d.add(d.signed(m))
		}
	}
	for _, r := range all {
		d.round(r)
	}
}

// round adds the rows of one round.
func (d *diagram) round(r reading.Round) {
	scale := cmp.Or(r.Title, fmt.Sprintf("round %d", r.Number))
	for i := 0; i < len(r.Said); {
		// What one process sends with one content, whatever becomes of it, is one row.
		line, said := row{at: []parley.ID{r.Said[i].From}, sign: "●"}, r.Said[i]
		var fates []string
		for ; i < len(r.Said) && r.Said[i].From == said.From && sameContent(r.Said[i], said); i++ {
			one := r.Said[i]
			sign := ""
			if one.Total == 0 || one.Fate != reading.Arrives {
				sign = lossSign
			}
			for _, to := range one.To {
				if to != one.From {
					line.heads = append(line.heads, head{to: to, sign: sign})
				}
			}
			if one.Fate != reading.Arrives {
				fates = append(fates, one.Fate.String()+" "+d.o.List(one.To))
			}
		}
		if len(line.heads) == 0 {
			continue
		}
		line.scale, scale = scale, ""
		line.says = d.wordsOf(said)
		if len(fates) > 0 {
			line.says += ", " + strings.Join(fates, ", ")
		}
		line.red = said.Lie || said.Total == 0
		if said.Total == 0 {
			line.sign, line.silent = "", true
		}
		d.add(line)
	}
}

func sameContent(a, b reading.Said) bool {
	return a.Total == b.Total && a.Lie == b.Lie && strings.Join(a.Rows, "\n") == strings.Join(b.Rows, "\n")
}

// wordsOf returns what a process says in a round.
func (d *diagram) wordsOf(s reading.Said) string {
	if s.Total == 0 {
		return reading.Silence
	}
	text := strings.Join(s.Rows, " ")
	if s.Lie {
		text = "a lie: " + text
	}
	if left := s.Total - uint64(len(s.Rows)); left > 0 {
		text += fmt.Sprintf(" and %s more", prose.Number(left))
	}
	return text
}
