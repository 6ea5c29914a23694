package audit

import (
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// wholeJudge judges a machine that is one instance of its protocol.
type wholeJudge struct{ *evidence }

func (j wholeJudge) judge(c *Channel) {
	if j.p.Timing == parley.Synchronous && j.round > 0 {
		j.last = j.p.M
		slots := j.frames()
		c.Slots = len(slots)
		for _, s := range slots {
			j.facts.Network.Lost = j.facts.Network.Lost || s.network.Lost
			j.facts.Network.Late = j.facts.Network.Late || s.network.Late
		}
	} else {
		j.held = parley.Set{}
	}
	failed := union(union(j.w.Liars, j.crashed), j.held)
	a := j.assumptions(failed, j.facts)
	always, finally := j.p, j.p
	of := func(mode ...parley.Mode) (out []parley.Property) {
		for _, p := range j.p.Properties {
			if slices.Contains(mode, p.Mode) {
				out = append(out, p)
			}
		}
		return out
	}
	always.Properties, finally.Properties = of(parley.Always, parley.Sometimes), of(parley.Eventually)
	h := *j.h
	h.Faulty = union(failed, j.unknown)
	h.Deliveries = j.witnessed()
	judged := parley.Judge(always, a, &h)
	h.Requests, h.Deliveries = j.settled(h.Requests, h.Deliveries)
	judged = append(judged, parley.Judge(finally, a, &h)...)
	slices.SortStableFunc(judged, func(a, b parley.Verdict) int { return j.place(a) - j.place(b) })
	c.Verdicts = tally(c.Verdicts, judged, "")
	c.Unjudged = len(j.h.Requests) - len(h.Requests)
}

// place returns the index of a property in the protocol.
func (j wholeJudge) place(v parley.Verdict) int {
	return slices.IndexFunc(j.p.Properties, func(p parley.Property) bool { return p.Name == v.Property.Name })
}

// cast is a payload of a sender.
type cast struct {
	from    parley.ID
	payload string
}

// castOf returns the payload of a request or a delivery.
func (j wholeJudge) castOf(h *parley.ExternalEvent) cast {
	if h.Msg.Kind == problem.CarryTo {
		if _, payload, err := problem.Decode(h.Msg, j.h.N); err == nil {
			return cast{h.From, string(payload)}
		}
	}
	return cast{h.From, string(h.Msg.Body)}
}

// witnessed returns the deliveries that can be judged: not those of nodes with missing events, and not those of
// payloads whose broadcast may not have been recorded.
func (j wholeJudge) witnessed() []parley.ExternalEvent {
	asked := make(map[cast]bool)
	for i := range j.h.Requests {
		asked[j.castOf(&j.h.Requests[i])] = true
	}
	return slices.DeleteFunc(slices.Clone(j.h.Deliveries), func(d parley.ExternalEvent) bool {
		return j.unknown.Has(d.At) || j.partial.Has(d.From) && !asked[j.castOf(&d)]
	})
}

// settled omits what began shortly before a correct node ended: it need not be finished everywhere.
func (j wholeJudge) settled(requests, deliveries []parley.ExternalEvent) (q, d []parley.ExternalEvent) {
	horizon := j.end - j.settle
	began := make(map[cast]parley.Tick)
	for _, list := range [][]parley.ExternalEvent{requests, deliveries} {
		for i := range list {
			key := j.castOf(&list[i])
			if when, known := began[key]; !known || list[i].When < when {
				began[key] = list[i].When
			}
		}
	}
	keep := func(list []parley.ExternalEvent) (out []parley.ExternalEvent) {
		for i := range list {
			if began[j.castOf(&list[i])] <= horizon {
				out = append(out, list[i])
			}
		}
		return out
	}
	return keep(requests), keep(deliveries)
}
