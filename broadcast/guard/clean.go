package guard

import (
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// NoContamination is the name of the property Clean.
const NoContamination = "no contamination"

// Clean is the property that no correct process delivers a message from a wrong state. A message is from a wrong
// state if its sender never delivered something that a correct process had delivered longer than grace before the
// broadcast.
func Clean(grace parley.Tick) parley.Property {
	return parley.Property{
		Name: NoContamination, Mode: parley.Eventually,
		Says: "no correct process delivers a broadcast of a process that had missed a delivery",
		Check: func(h *parley.History) error {
			if !h.Over {
				return nil
			}
			for _, t := range Spread(h, grace) {
				if h.Correct(t.At) {
					return fmt.Errorf("%s delivered %s, which had missed %s", h.Name(t.At),
						problem.Name(h, t.From, t.Payload), problem.Name(h, t.Origin, t.Missed))
				}
			}
			return nil
		},
		Tainted: tainted(grace),
	}
}

// tainted returns the contaminated deliveries.
func tainted(grace parley.Tick) func(h *parley.History) []uint64 {
	return func(h *parley.History) (out []uint64) {
		for _, t := range Spread(h, grace) {
			out = append(out, t.Order)
		}
		return out
	}
}

// Taint is one step of contamination: process At delivered Payload of process From. Before that, From had not
// delivered the payload Missed of Origin, or had itself delivered a contaminated message.
type Taint struct {
	At, From parley.ID
	When     parley.Tick
	Payload  []byte
	Origin   parley.ID
	Missed   []byte
	Order    uint64 // of the delivery
}

// cast is a broadcast.
type cast struct {
	from    parley.ID
	payload string
}

// delivery is a broadcast, the processes that delivered it, and when the first correct one did.
type delivery struct {
	cast
	by parley.Set
	at parley.Tick
}

// deliveries returns what correct processes delivered, in the order of their first deliveries.
func deliveries(h *parley.History) (order []*delivery) {
	all, known := make(map[cast]*delivery), make(map[cast]bool)
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		from, payload, ok := problem.Delivered(d)
		if !ok {
			continue
		}
		c := cast{from, string(payload)}
		if all[c] == nil {
			all[c] = &delivery{cast: c}
		}
		all[c].by.Add(d.At)
		if h.Correct(d.At) && !known[c] {
			known[c], all[c].at = true, d.When
			order = append(order, all[c])
		}
	}
	return order
}

// Spread returns the contamination of a run, message by message, in time order. A process that delivers a
// message from a wrong state has a wrong state from then on.
func Spread(h *parley.History, grace parley.Tick) (out []Taint) {
	wrong := wrongStates(h.N, grace, deliveries(h))
	sent := make(map[cast]Taint)
	requests := h.Requests
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		for ; len(requests) > 0 && requests[0].Order < d.Order; requests = requests[1:] {
			r := &requests[0]
			if w, bad := wrong[r.At]; bad && r.When > w.When && r.Msg.Kind == parley.Carried {
				sent[cast{r.At, string(r.Msg.Body)}] = w
			}
		}
		from, payload, ok := problem.Delivered(d)
		if w, bad := sent[cast{from, string(payload)}]; ok && bad && d.At != from {
			out = append(out, Taint{d.At, from, d.When, payload, w.Origin, w.Missed, d.Order})
			if _, already := wrong[d.At]; !already {
				wrong[d.At] = Taint{When: d.When, Origin: w.Origin, Missed: w.Missed}
			}
		}
	}
	return out
}

// wrongStates returns which processes have a wrong state, since when, and which delivery they lack. The earliest
// comes first, because missing a broadcast of such a process is no omission. For these broadcasts there is no
// grace: some processes may already have refused them.
func wrongStates(n int, grace parley.Tick, delivered []*delivery) map[parley.ID]Taint {
	wrong := make(map[parley.ID]Taint)
	for {
		first := Taint{At: parley.All}
		for id := range parley.ID(n) {
			if _, known := wrong[id]; known {
				continue
			}
			missed := slices.IndexFunc(delivered, func(d *delivery) bool {
				w, bad := wrong[d.from]
				return !d.by.Has(id) && (!bad || d.at+grace < w.When)
			})
			if missed < 0 {
				continue
			}
			d := delivered[missed]
			if when := d.at + grace; first.At == parley.All || when < first.When {
				first = Taint{At: id, When: when, Origin: d.from, Missed: []byte(d.payload)}
			}
		}
		if first.At == parley.All {
			return wrong
		}
		wrong[first.At] = first
	}
}
