package audit

import (
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// whole judges a machine that is one instance of its protocol.
func (e *evidence) whole(c *Channel) {
	if e.p.Timing == parley.Synchronous && e.round > 0 {
		e.last = e.p.M
		slots := e.frames().slots
		c.Slots = len(slots)
		for _, s := range slots {
			e.facts.Network.Lost = e.facts.Network.Lost || s.network.Lost
			e.facts.Network.Late = e.facts.Network.Late || s.network.Late
		}
	} else {
		e.held = parley.Set{}
	}
	failed := union(union(e.w.Liars, e.crashed), e.held)
	a := e.assumptions(failed, e.facts)
	always, finally := e.p, e.p
	of := func(mode ...parley.Mode) (out []parley.Property) {
		for _, p := range e.p.Properties {
			if slices.Contains(mode, p.Mode) {
				out = append(out, p)
			}
		}
		return out
	}
	always.Properties, finally.Properties = of(parley.Always, parley.Sometimes), of(parley.Eventually)
	h := *e.h
	h.Faulty = union(failed, e.unknown)
	h.Deliveries = e.witnessed()
	judged := parley.Judge(always, a, &h)
	h.Requests, h.Deliveries = e.settled(h.Requests, h.Deliveries)
	judged = append(judged, parley.Judge(finally, a, &h)...)
	slices.SortStableFunc(judged, func(a, b parley.Verdict) int { return e.place(a) - e.place(b) })
	c.Verdicts = tally(c.Verdicts, judged, "")
	c.Unjudged = len(e.h.Requests) - len(h.Requests)
}

// place is where the protocol has a property.
func (e *evidence) place(v parley.Verdict) int {
	return slices.IndexFunc(e.p.Properties, func(p parley.Property) bool { return p.Name == v.Property.Name })
}

// cast is a payload of a sender.
type cast struct {
	from    parley.ID
	payload string
}

// castOf is what a request or a delivery is about.
func (e *evidence) castOf(h *parley.Happening) cast {
	if h.Msg.Kind == problem.CarryTo {
		if _, payload, err := problem.Decode(h.Msg, e.h.N); err == nil {
			return cast{h.From, string(payload)}
		}
	}
	return cast{h.From, string(h.Msg.Body)}
}

// witnessed are the deliveries that can be judged: not those of nodes of which events are
// missing, and not those of payloads whose broadcast may not have been written down.
func (e *evidence) witnessed() []parley.Happening {
	asked := make(map[cast]bool)
	for i := range e.h.Requests {
		asked[e.castOf(&e.h.Requests[i])] = true
	}
	return slices.DeleteFunc(slices.Clone(e.h.Deliveries), func(d parley.Happening) bool {
		return e.unknown.Has(d.At) || e.partial.Has(d.From) && !asked[e.castOf(&d)]
	})
}

// settled leaves out what began shortly before a correct node ended: it need not have come
// to its end everywhere.
func (e *evidence) settled(requests, deliveries []parley.Happening) (q, d []parley.Happening) {
	horizon := e.end - e.settle
	began := make(map[cast]parley.Tick)
	for _, list := range [][]parley.Happening{requests, deliveries} {
		for i := range list {
			key := e.castOf(&list[i])
			if when, known := began[key]; !known || list[i].When < when {
				began[key] = list[i].When
			}
		}
	}
	keep := func(list []parley.Happening) (out []parley.Happening) {
		for i := range list {
			if began[e.castOf(&list[i])] <= horizon {
				out = append(out, list[i])
			}
		}
		return out
	}
	return keep(requests), keep(deliveries)
}
