package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// Diagram is a message diagram: a lifeline for each process from left to right,
// an arrow for each message, and the rounds side by side.
type Diagram struct {
	reading.Style
	Title, Subtitle string
	// Lives are the lifelines, from top to bottom.
	Lives  []reading.Outcome
	Arrows []Arrow
	// MaxArrows is how many arrows are drawn one by one; 400 if 0. Beyond that
	// there is one for each sender and round, with a count.
	MaxArrows int
}

// Arrow is a message from one process to another, or its own copy if they are
// the same.
type Arrow struct {
	Round        int
	Title        string // of the round, if not Round 2
	From, To     parley.ID
	Label        string         // what is said
	Values       reading.Shares // the values that are said, in order, if they are known
	Lie          bool           // not what the sender honestly would have said
	Missing      bool           // it should have come and did not
	reading.Span                // when it was under way
	// Count is how many messages of the paper the arrow is; 0 stands for 1.
	Count uint64
}

// Arrows makes arrows of what was said. A single row is the label; of several
// there is only the number.
func Arrows(rounds []reading.Round) []Arrow {
	var out []Arrow
	for _, r := range rounds {
		for _, said := range r.Said {
			a := Arrow{
				Round: r.Number, Title: r.Title, From: said.From, Values: said.Values, Lie: said.Lie,
				Missing: said.Total == 0, Count: said.Total,
			}
			switch {
			case said.Total == 1 && len(said.Rows) == 1:
				a.Label = said.Rows[0]
			case said.Total > 1:
				a.Label = "×" + prose.Number(said.Total)
			}
			for _, to := range said.To {
				a.To, a.Span = to, said.Spans[to]
				out = append(out, a)
			}
		}
	}
	return out
}

func (a Arrow) count() uint64 { return max(a.Count, 1) }

// slot is what one process sends in one round.
type slot struct {
	from   parley.ID
	arrows []Arrow
}

// common returns what all others are told whom anything reaches, if they are
// told the same. For a slot of which nothing came it is the first arrow.
func (s slot) common() (a Arrow, alike bool) {
	a = s.arrows[0]
	for _, b := range s.arrows {
		switch {
		case b.Missing || b.From == b.To && a.From != a.To:
		case a.Missing || a.From == a.To:
			a = b
		case a.Label != b.Label || !slices.Equal(a.Values, b.Values):
			return a, false
		}
	}
	return a, true
}

// band is one round: its senders in the order of their lifelines.
type band struct {
	round int
	slots []slot
}

func (b band) title() string {
	return cmp.Or(b.slots[0].arrows[0].Title, fmt.Sprintf("Round %d", b.round))
}

func (b band) messages() uint64 {
	sum := uint64(0)
	for _, s := range b.slots {
		for _, a := range s.arrows {
			if !a.Missing {
				sum = reading.Sum(sum, a.count())
			}
		}
	}
	return sum
}

// bands sorts the arrows by round and sender. Arrows from or to processes
// without a lifeline are left out.
func (d Diagram) bands(rows map[parley.ID]int) []band {
	type place struct{ round, row int }
	slots := make(map[place]*slot)
	var places []place
	for _, a := range d.Arrows {
		row, from := rows[a.From]
		if _, to := rows[a.To]; !from || !to {
			continue
		}
		at := place{a.Round, row}
		if slots[at] == nil {
			slots[at] = &slot{from: a.From}
			places = append(places, at)
		}
		slots[at].arrows = append(slots[at].arrows, a)
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.round != b.round {
			return a.round - b.round
		}
		return a.row - b.row
	})
	var out []band
	for _, at := range places {
		if len(out) == 0 || out[len(out)-1].round != at.round {
			out = append(out, band{round: at.round})
		}
		last := &out[len(out)-1]
		slices.SortStableFunc(slots[at].arrows, func(a, b Arrow) int { return rows[a.To] - rows[b.To] })
		last.slots = append(last.slots, *slots[at])
	}
	return out
}

// values are all values in the diagram.
func (d Diagram) values() []string {
	all := make(map[string]bool)
	for _, a := range d.Arrows {
		for _, v := range a.Values {
			if !all[v.Value] {
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
