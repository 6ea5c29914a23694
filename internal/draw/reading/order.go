package reading

import (
	"cmp"
	"slices"

	"parley"
	"parley/trace"
)

// Sequences are what each process passes up, in its order: deliveries, with indications and restarts between them.
type Sequences struct {
	Rows  [][]Passed // by process
	Items []Item     // what is passed up, in the order of its first appearance
	// Delivered reports that some item is a delivery.
	Delivered bool
}

// Item is what processes deliver or indicate.
type Item struct {
	From      parley.ID // the sender of a delivery
	Text      string
	Delivered bool
}

// Passed is an item at one process.
type Passed struct {
	Item  int
	Time  parley.Tick
	Event uint64
	Says  string
}

// Sequence reads what each process passes up. Decisions and corners of clocks are shown otherwise, and so are steps of
// decisions that all take alike. It returns false if nothing is left.
func Sequence(p parley.Protocol, events []trace.Event, s Style) (out Sequences, ok bool) {
	words := Words{s, p}
	out.Rows = make([][]Passed, p.N)
	known := make(map[Item]int)
	for _, e := range events {
		if int(e.At) >= p.N {
			continue
		}
		var item Item
		switch {
		case e.Op == trace.Deliver && e.Msg.Kind != parley.Decide && !shownElsewhere(p, e.Msg):
			item = Item{e.Peer, words.passed(e), true}
		case e.Op == trace.Indicate && !shownElsewhere(p, e.Msg), e.Op == trace.Restart:
			item = Item{Text: words.Does(e)}
		default:
			continue
		}
		at, seen := known[item]
		if !seen {
			at = len(out.Items)
			known[item] = at
			out.Items = append(out.Items, item)
		}
		out.Rows[e.At] = append(out.Rows[e.At], Passed{at, e.Time, e.ID, words.Does(e)})
		out.Delivered = out.Delivered || item.Delivered
		ok = ok || e.Op != trace.Restart
	}
	return out, ok
}

// passed describes a delivery by its payload, which is the same at all processes; other fields may be a position.
func (w Words) passed(e trace.Event) string {
	if len(e.Msg.Body) > 0 {
		return w.carried(e.Msg.Body)
	}
	return w.Payload(e.Path, e.Msg)
}

// shownElsewhere reports whether a delivery or indication is part of another picture.
func shownElsewhere(p parley.Protocol, m parley.Msg) bool {
	if p.Clock != nil {
		_, corner := p.Clock.Corner(m)
		return corner
	}
	return p.Progress != nil && p.Progress(m, false) != parley.Progress{}
}

// OneOrder reports whether any two of the given processes deliver what both deliver in the same order.
func (s *Sequences) OneOrder(among parley.Set) bool {
	for a := range among.All() {
		for b := range among.All() {
			if cmp.Compare(a, b) >= 0 {
				continue
			}
			first, second := s.delivered(a), s.delivered(b)
			if !slices.Equal(common(first, second), common(second, first)) {
				return false
			}
		}
	}
	return true
}

// Same reports whether all of the given processes deliver the same in the same order.
func (s *Sequences) Same(among parley.Set) bool {
	var first []int
	n := 0
	for id := range among.All() {
		mine := s.delivered(id)
		if n++; n == 1 {
			first = mine
		}
		if !slices.Equal(first, mine) {
			return false
		}
	}
	return true
}

// delivered returns the deliveries of a process.
func (s *Sequences) delivered(id parley.ID) (out []int) {
	for _, c := range s.Rows[id] {
		if s.Items[c.Item].Delivered {
			out = append(out, c.Item)
		}
	}
	return out
}

// common returns what of one list is in another one, in the order of the first.
func common(of, other []int) (out []int) {
	in := make(map[int]bool)
	for _, x := range other {
		in[x] = true
	}
	for _, x := range of {
		if in[x] {
			out = append(out, x)
		}
	}
	return out
}
