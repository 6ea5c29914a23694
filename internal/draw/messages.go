package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
)

// Diagram is a message diagram: a lifeline for each process from left to right,
// an arrow for each message, and the rounds side by side.
type Diagram struct {
	reading.Style
	// Lives are the lifelines, from top to bottom.
	Lives  []reading.Outcome
	Rounds []reading.Round
}

// mostArrows is the maximum number of separate arrows. Beyond it there is one arrow with a count for each sender and
// round.
const mostArrows = 400

// arrow is what one process sends to another in a round, or its own copy if sender and receiver are the same.
type arrow struct {
	reading.Said
	round int
	to    parley.ID
}

// missing reports whether a message was due and did not arrive.
func (a *arrow) missing() bool { return a.Total == 0 || a.Fate == reading.Lost }

// words returns the first rows and the number of the others.
func (a *arrow) words() string {
	if a.Total == 0 {
		return "did not arrive"
	}
	const most = 6
	rows := a.Rows[:min(len(a.Rows), most)]
	text := strings.Join(rows, " ")
	if left := a.Total - uint64(len(rows)); left > 0 {
		text = strings.TrimSpace(text + " and " + prose.Number(left) + " more")
	}
	if a.Lie {
		text += " (a lie)"
	}
	switch a.Fate {
	case reading.Lost:
		text += "; lost"
	case reading.Late:
		text += "; late: it arrives after its round"
	case reading.Omitted:
		text += "; omitted by its faulty receiver"
	}
	return text
}

// label returns a single row, or the number of rows if there are several.
func (a *arrow) label() string {
	switch {
	case a.Total == 1 && len(a.Rows) == 1:
		return a.Rows[0]
	case a.Total > 1:
		return "×" + prose.Number(a.Total)
	}
	return ""
}

// mark sets the arrow as the reference of marks, and describes it.
func (a *arrow) mark(s *sketch, from int, style reading.Style) {
	span := a.Spans[a.to]
	s.tip(from, fmt.Sprintf("%s to %s, round %d: %s", style.Called(a.From), style.Called(a.to), a.round, a.words()))
	s.about(from, scene.Message(a.round, a.From, a.to), span.Since, span.Until)
}

// slot has the arrows of one sender in one round.
type slot struct {
	from   parley.ID
	arrows []arrow
}

// common returns what all other processes that receive anything are sent, if that is the same. For a slot without any
// message it returns the first arrow.
func (s slot) common() (a arrow, alike bool) {
	a = s.arrows[0]
	for _, b := range s.arrows {
		switch {
		case b.missing() || b.From == b.to && a.From != a.to:
		case a.missing() || a.From == a.to:
			a = b
		case a.label() != b.label() || !slices.Equal(a.Values, b.Values):
			return a, false
		}
	}
	return a, true
}

// band is one round, with its senders in the order of their lifelines.
type band struct {
	reading.Round
	slots []slot
}

func (b band) title() string { return cmp.Or(b.Title, fmt.Sprintf("Round %d", b.Number)) }

func (b band) messages() (sum uint64) {
	for _, s := range b.slots {
		for _, a := range s.arrows {
			sum = reading.Sum(sum, a.Total)
		}
	}
	return sum
}

// bands returns the rounds with their messages. Messages from or to processes without a lifeline are omitted.
func (d Diagram) bands(rows map[parley.ID]int) (out []band) {
	for _, r := range d.Rounds {
		arrows := make(map[parley.ID][]arrow)
		for _, said := range r.Said {
			for _, to := range said.To {
				_, drawn := rows[to]
				if _, from := rows[said.From]; from && drawn {
					arrows[said.From] = append(arrows[said.From], arrow{said, r.Number, to})
				}
			}
		}
		b := band{Round: r}
		for _, l := range d.Lives {
			if mine := arrows[l.Process]; len(mine) > 0 {
				slices.SortStableFunc(mine, func(a, b arrow) int { return rows[a.to] - rows[b.to] })
				b.slots = append(b.slots, slot{l.Process, mine})
			}
		}
		if len(b.slots) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// Arrivals returns the events of the arrivals at a process, by round and sender.
func (d Diagram) Arrivals(at parley.ID) map[string]uint64 {
	out := make(map[string]uint64)
	for _, r := range d.Rounds {
		for _, said := range r.Said {
			if span, told := said.Spans[at]; told {
				out[scene.Sender(r.Number, said.From)] = span.Until
			}
		}
	}
	return out
}

// many reports whether there are too many arrows for separate drawing.
func (d Diagram) many() bool {
	n := 0
	for _, r := range d.Rounds {
		for _, said := range r.Said {
			n += len(said.To)
		}
	}
	return n > mostArrows || len(d.Lives) > mostLives
}

// values returns all values in the diagram.
func (d Diagram) values() []string {
	all := make(map[string]bool)
	for _, r := range d.Rounds {
		for _, said := range r.Said {
			for _, v := range said.Values {
				all[v.Value] = true
			}
		}
	}
	for _, l := range d.Lives {
		for _, v := range [][]byte{l.Starts, l.Decides} {
			if v != nil {
				all[prose.Value(v)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
