package guard

import (
	"fmt"

	"parley"
	"parley/broadcast/problem"
)

// NoContamination is the name of the property Clean.
const NoContamination = "no contamination"

// Clean is the property that no correct process delivers a message from a state that
// lacks a delivery: of a process that never delivered what a correct one had delivered
// longer than grace before it broadcast.
func Clean(grace parley.Tick) parley.Property {
	return parley.Property{
		Name: NoContamination, Mode: parley.Eventually,
		Says: "no correct process delivers what was broadcast by a process that had missed a delivery",
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
	}
}

// Taint is one step of contamination: At delivered a payload of From, which had
// never delivered the payload Missed of Origin, or had itself delivered the like.
type Taint struct {
	At, From parley.ID
	When     parley.Tick
	Payload  []byte
	Origin   parley.ID
	Missed   []byte
}

// cast is a broadcast, and delivery who delivered it.
type cast struct {
	from    parley.ID
	payload string
}

type delivery struct {
	by map[parley.ID]bool
	at parley.Tick // the first one at a correct process
	ok bool
}

// Spread follows contamination through a run, message by message, in order of time.
// Whoever delivers what came from a wrong state has a wrong state from then on.
func Spread(h *parley.History, grace parley.Tick) []Taint {
	all := make(map[cast]*delivery)
	var order []cast // as first delivered by a correct process
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		from, payload, ok := problem.Delivered(d)
		if !ok {
			continue
		}
		c := cast{from, string(payload)}
		x := all[c]
		if x == nil {
			x = &delivery{by: make(map[parley.ID]bool)}
			all[c] = x
		}
		x.by[d.At] = true
		if h.Correct(d.At) && !x.ok {
			x.at, x.ok = d.When, true
			order = append(order, c)
		}
	}
	wrong := misled(h.N, grace, all, order)
	sent := make(map[cast]Taint)
	var out []Taint
	q := 0
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		for ; q < len(h.Requests) && h.Requests[q].Order < d.Order; q++ {
			r := &h.Requests[q]
			if w, bad := wrong[r.At]; bad && r.When > w.When && r.Msg.Kind == parley.Carried {
				sent[cast{r.At, string(r.Msg.Body)}] = w
			}
		}
		from, payload, ok := problem.Delivered(d)
		if w, bad := sent[cast{from, string(payload)}]; ok && bad && d.At != from {
			out = append(out, Taint{d.At, from, d.When, payload, w.Origin, w.Missed})
			if _, already := wrong[d.At]; !already {
				wrong[d.At] = Taint{When: d.When, Origin: w.Origin, Missed: w.Missed}
			}
		}
	}
	return out
}

// misled returns whose state is wrong since when, and for lack of what: the earliest
// first, for nobody misses what such a process broadcasts, the grace not waited for:
// some may have refused that already. order has what correct processes delivered.
func misled(n int, grace parley.Tick, all map[cast]*delivery, order []cast) map[parley.ID]Taint {
	wrong := make(map[parley.ID]Taint)
	for found := true; found; {
		found = false
		var who parley.ID
		var least Taint
		for id := range parley.ID(n) {
			if _, known := wrong[id]; known {
				continue
			}
			for _, c := range order {
				x := all[c]
				if w, bad := wrong[c.from]; x.by[id] || bad && x.at+grace >= w.When {
					continue
				}
				if when := x.at + grace; !found || when < least.When {
					who, least, found = id, Taint{When: when, Origin: c.from, Missed: []byte(c.payload)}, true
				}
				break
			}
		}
		if found {
			wrong[who] = least
		}
	}
	return wrong
}
