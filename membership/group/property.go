package group

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// The names of the properties of views.
const (
	ViewAgreement = "view agreement"
	ViewOrder     = "view order"
	ViewSynchrony = "view synchrony"
)

// Properties returns the properties of views. They cover all processes, including those that crash later or
// are excluded.
func Properties() []parley.Property {
	return []parley.Property{
		{
			Name: ViewAgreement, Mode: parley.Always,
			Says: "if two processes install views with the same number, these views have the same " +
				"members",
			Check:   viewAgreement,
			Vacuous: func(h *parley.History) string { return unchanged(h, 2) },
		},
		{
			Name: ViewOrder, Mode: parley.Always,
			Says:    "a process installs only views that contain it, in the order of their numbers",
			Check:   viewOrder,
			Vacuous: func(h *parley.History) string { return unchanged(h, 1) },
		},
		{
			Name: ViewSynchrony, Mode: parley.Always,
			Says: "if two processes install the same two consecutive views, they deliver the same messages " +
				"between these views, apart from messages that are not addressed to both processes",
			Check:   func(h *parley.History) error { return viewSynchrony(h, false) },
			Vacuous: asynchronous,
		},
	}
}

// InLives returns the given properties. In durable mode it replaces integrity by a property of each single
// incarnation. A process that joins counts as another incarnation, because it continues at the position of its
// sponsor. The sponsor may have restarted, so it may not know which of its messages it had delivered before.
func InLives(c Config, properties []parley.Property) []parley.Property {
	for i := range properties {
		p := &properties[i]
		if !c.Durable || p.Name != problem.Integrity {
			continue
		}
		check := p.Check
		p.Check = func(h *parley.History) error {
			lives := *h
			lives.Restarts = slices.Clone(h.Restarts)
			for _, e := range h.Indications {
				if e.Msg.Kind == SnapshotInstalled {
					lives.Restarts = append(lives.Restarts, e)
				}
			}
			slices.SortFunc(lives.Restarts, func(a, b parley.ExternalEvent) int { return cmp.Compare(a.Order, b.Order) })
			return check(&lives)
		}
	}
	return properties
}

// Synchrony returns view synchrony for broadcasts without a common order: all processes deliver the same
// messages between two views, but each in its own order.
func Synchrony() parley.Property {
	return parley.Property{
		Name: ViewSynchrony, Mode: parley.Always,
		Says: "if two processes install the same two consecutive views, they deliver the same messages " +
			"between these views, in any order",
		Check:   func(h *parley.History) error { return viewSynchrony(h, true) },
		Vacuous: asynchronous,
	}
}

// installed is a view that a process installed, and what it delivered before the next one.
type installed struct {
	at        parley.ID
	number    uint64
	body      []byte
	follows   bool // directly after the previous view, in the same incarnation
	delivered []delivered
}

// delivered is a delivery within a view.
type delivered struct {
	from    parley.ID
	payload string
}

// views returns the views of each process, in order.
func views(h *parley.History) [][]installed {
	out := make([][]installed, h.N)
	fresh := make([]bool, h.N) // whether the process began another incarnation after its last view
	i, d, r := 0, 0, 0
	for i < len(h.Indications) || d < len(h.Deliveries) || r < len(h.Restarts) {
		next := func(list []parley.ExternalEvent, at int) uint64 {
			if at < len(list) {
				return list[at].Order
			}
			return 1<<64 - 1
		}
		oi, od, or := next(h.Indications, i), next(h.Deliveries, d), next(h.Restarts, r)
		switch {
		case or < oi && or < od:
			fresh[h.Restarts[r].At] = true
			r++
		case oi < od:
			e := &h.Indications[i]
			i++
			switch e.Msg.Kind {
			case Excluded, SnapshotInstalled:
				fresh[e.At] = true
			case parley.View:
				all := out[e.At]
				out[e.At] = append(all, installed{
					at: e.At, number: e.Msg.Seq, body: e.Msg.Body, follows: len(all) > 0 && !fresh[e.At],
				})
				fresh[e.At] = false
			}
		default:
			e := &h.Deliveries[d]
			d++
			if from, payload, ok := problem.Delivered(e); ok && len(out[e.At]) > 0 && !fresh[e.At] {
				last := &out[e.At][len(out[e.At])-1]
				last.delivered = append(last.delivered, delivered{from, string(payload)})
			}
		}
	}
	return out
}

func viewAgreement(h *parley.History) error {
	first := make(map[uint64]installed)
	for _, all := range views(h) {
		for _, v := range all {
			before, known := first[v.number]
			if !known {
				first[v.number] = v
			} else if !bytes.Equal(before.body, v.body) {
				return fmt.Errorf("view %d has other members at %s than at %s", v.number, h.Name(v.at), h.Name(before.at))
			}
		}
	}
	return nil
}

func viewOrder(h *parley.History) error {
	for _, all := range views(h) {
		for i, v := range all {
			members, rest, err := parley.ReadSet(v.body, h.N)
			if err != nil || len(rest) > 0 || !members.Has(v.at) {
				return fmt.Errorf("%s installs view %d, but is not a member of it", h.Name(v.at), v.number)
			}
			if v.follows && v.number != all[i-1].number+1 {
				return fmt.Errorf("%s installs view %d after view %d", h.Name(v.at), v.number, all[i-1].number)
			}
		}
	}
	return nil
}

// receivers returns the addressees of each message that was broadcast.
func receivers(h *parley.History) map[delivered]parley.Set {
	out := make(map[delivered]parley.Set)
	for _, q := range h.Requests {
		if to, payload, err := problem.Decode(q.Msg, h.N); err == nil {
			out[delivered{q.At, string(payload)}] = to
		}
	}
	return out
}

// ended returns, by the number of the next view, the views that processes left for it.
func ended(h *parley.History) map[uint64][]*installed {
	out := make(map[uint64][]*installed)
	for _, all := range views(h) {
		for i := range all {
			if i > 0 && all[i].follows {
				out[all[i].number] = append(out[all[i].number], &all[i-1])
			}
		}
	}
	return out
}

// unchanged returns a reason if fewer than the given number of processes install a view after the first,
// which is configured. For more than one process it must be the same view.
func unchanged(h *parley.History, processes int) string {
	count := make(map[uint64]int)
	for _, all := range views(h) {
		var seen []uint64
		for _, v := range all {
			if v.number > 1 && !slices.Contains(seen, v.number) {
				seen = append(seen, v.number)
				count[v.number]++
			}
		}
	}
	for _, n := range count { // order: one is looked for
		if n >= processes {
			return ""
		}
	}
	if processes == 1 {
		return "no process installs a view after the first"
	}
	return "no two processes install the same view after the first"
}

// asynchronous returns a reason if, for no two processes that go from one view to the next, either delivered
// in between a message that was addressed to both.
func asynchronous(h *parley.History) string {
	to := receivers(h)
	for _, list := range ended(h) { // order: one is looked for
		for i, a := range list {
			for _, b := range list[:i] {
				for _, d := range slices.Concat(a.delivered, b.delivered) {
					if a.at != b.at && to[d].Has(a.at) && to[d].Has(b.at) {
						return ""
					}
				}
			}
		}
	}
	return "no two processes deliver anything between the same two views"
}

// viewSynchrony compares what was delivered in a view by the processes that installed the next one directly
// after it.
func viewSynchrony(h *parley.History, anyOrder bool) error {
	receivers := receivers(h)
	both := func(v *installed, other parley.ID) (out []delivered) {
		for _, d := range v.delivered {
			if to := receivers[d]; to.Has(v.at) && to.Has(other) {
				out = append(out, d)
			}
		}
		if anyOrder {
			slices.SortFunc(out, func(a, b delivered) int {
				return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.payload, b.payload))
			})
		}
		return out
	}
	ended := ended(h)
	// order: any violation will do; the processes of one view are in order
	for number, list := range ended {
		for _, v := range list[1:] {
			a, b := both(list[0], v.at), both(v, list[0].at)
			if len(a) != len(b) {
				return fmt.Errorf("in view %d %s delivered %d messages and %s %d", number-1,
					h.Name(list[0].at), len(a), h.Name(v.at), len(b))
			}
			for k := range a {
				if a[k] != b[k] {
					return fmt.Errorf("in view %d the message at place %d is %q at %s and %q at %s", number-1, k+1,
						a[k].payload, h.Name(list[0].at), b[k].payload, h.Name(v.at))
				}
			}
		}
	}
	return nil
}

// Promises returns which properties of views hold under the conditions of a run.
func Promises(a parley.RunConditions) []parley.Promise {
	holds, because := true, "any two majorities of all processes share a process, and each process votes once"
	if a.Network.Doubled || a.Network.Reordered {
		holds, because = false, "a link doubled messages or changed their order"
	}
	var out []parley.Promise
	for _, property := range Properties() {
		out = append(out, parley.Promise{Property: property.Name, Holds: holds, Because: because})
	}
	return out
}
