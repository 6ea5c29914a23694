package reading

import (
	"cmp"
	"slices"
	"strconv"

	"parley"
	"parley/internal/draw/prose"
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

// Inversion is two messages that two processes deliver in different orders. First and Second are their places in the
// rows of the two processes: of the message that the first process delivers first, and of the other one.
type Inversion struct {
	First, Second [2]int
	Since         uint64 // the last of the four deliveries
}

// Inversions returns the inversions between two processes.
func (s *Sequences) Inversions(first, second parley.ID) (out []Inversion) {
	type both struct {
		first, second int
		last          uint64
	}
	var all []both
	for i, c := range s.Rows[first] {
		k := slices.IndexFunc(s.Rows[second], func(d Passed) bool { return d.Item == c.Item })
		if k >= 0 && s.Items[c.Item].Delivered {
			all = append(all, both{i, k, max(c.Event, s.Rows[second][k].Event)})
		}
	}
	for k, b := range all {
		for _, a := range all[:k] {
			if a.second > b.second {
				out = append(out, Inversion{[2]int{a.first, b.first}, [2]int{a.second, b.second}, max(a.last, b.last)})
			}
		}
	}
	return out
}

// Labels returns a label for each item, and the keys that explain labels: texts of at most longest characters are
// labels, and otherwise numbers are. There are at most most keys, and unlisted is the number of the others.
func (s *Sequences) Labels(longest, most int, style Style) (labels, keys []string, unlisted int) {
	labels = make([]string, len(s.Items))
	for _, delivered := range []bool{true, false} {
		long := slices.ContainsFunc(s.Items, func(i Item) bool {
			return i.Delivered == delivered && prose.Width(i.Text) > longest
		})
		number := 0
		for i, item := range s.Items {
			if item.Delivered != delivered {
				continue
			}
			labels[i] = item.Text
			if number++; !long {
				continue
			}
			labels[i] = strconv.Itoa(number)
			if !delivered {
				labels[i] = "(" + labels[i] + ")"
			}
			if len(keys) == most {
				unlisted++
				continue
			}
			key := labels[i] + ": " + item.Text
			if delivered {
				key += " of " + style.Called(item.From)
			}
			keys = append(keys, key)
		}
	}
	return labels, keys, unlisted
}
