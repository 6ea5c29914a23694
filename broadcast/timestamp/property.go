package timestamp

import (
	"bytes"
	"fmt"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/views"
	"parley/membership/group"
)

// OneSequence is the name of the strongest property.
const OneSequence = "one sequence"

// properties returns the properties of the broadcast, in addition to those of views.
func properties() []parley.Property {
	return append([]parley.Property{{
		Name: OneSequence, Mode: parley.Always,
		Says: "all processes, even if they crash or are excluded, deliver the same message at each " +
			"position; each process delivers the positions in order, and no message at two positions",
		Check: oneSequence,
		Vacuous: func(h *parley.History) string {
			for i := range h.Deliveries {
				if _, _, ok := problem.Delivered(&h.Deliveries[i]); ok {
					return ""
				}
			}
			return "nothing is delivered"
		},
	}}, problem.Of(problem.Integrity, problem.UniformTotalOrder, problem.FIFOOrder, problem.UniformAgreement,
		problem.Validity, problem.Delivery)...)
}

type broadcast struct {
	from    parley.ID
	payload string
}

// anyPosition means that the next position may be any: in durable mode a restarted process delivers again.
const anyPosition = 1<<64 - 1

// oneSequence checks the positions. Within one incarnation they increase by one, from where the process
// joined.
func oneSequence(h *parley.History) error {
	at := make(map[uint64]*parley.ExternalEvent)
	asked := make(map[broadcast]int) // number of requests that have no position yet
	for _, q := range h.Requests {
		if _, payload, err := problem.Decode(q.Msg, h.N); err == nil {
			asked[broadcast{q.At, string(payload)}]++
		}
	}
	last := make([]uint64, h.N)
	restarts, told := h.Restarts, h.Indications
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		from, payload, ok := problem.Delivered(d)
		if !ok {
			continue
		}
		for ; len(restarts) > 0 && restarts[0].Order < d.Order; restarts = restarts[1:] {
			last[restarts[0].At] = anyPosition
		}
		for ; len(told) > 0 && told[0].Order < d.Order; told = told[1:] {
			if told[0].Msg.Kind == group.SnapshotInstalled {
				last[told[0].At] = told[0].Msg.Seq
			}
		}
		place := d.Msg.Seq
		if last[d.At] != anyPosition && place != last[d.At]+1 {
			return fmt.Errorf("%s delivers position %d after position %d", h.Name(d.At), place, last[d.At])
		}
		last[d.At] = place
		first := at[place]
		if first == nil {
			at[place] = d
			b := broadcast{from, string(payload)}
			if asked[b] == 0 {
				return fmt.Errorf("%s is at position %d, and at all that it was broadcast for before",
					problem.Name(h, from, payload), place)
			}
			asked[b]--
		} else if first.From != from || !bytes.Equal(first.Msg.Body, payload) {
			return fmt.Errorf("position %d is %s at %s and %s at %s", place,
				problem.Name(h, first.From, first.Msg.Body), h.Name(first.At), problem.Name(h, from, payload), h.Name(d.At))
		}
	}
	return nil
}

// promises returns which properties hold under the conditions of a run.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	return parley.Proved(views.Promises(c.Config, a, "before a process delivers a message, every member has the "+
		"message and has reported a later time of its logical clock",
		[]string{OneSequence, problem.Integrity, problem.UniformTotalOrder}, []string{problem.FIFOOrder},
		[]string{problem.UniformAgreement, problem.Validity}), proofs)
}
