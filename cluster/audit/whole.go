package audit

import (
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// wholeJudge judges a machine that is one instance of its protocol.
type wholeJudge struct{ *evidence }

func (j wholeJudge) judge(c *Channel) {
	c.Deliveries = j.delivered()
	j.held = parley.Set{} // no such machine has rounds
	if c.Lost > 0 && j.p.Faults == parley.OralByzantineFaults {
		j.facts.Network.Lost = true // others exclude members whose messages are lost
	}
	failed := union(j.w.Liars, j.crashed)
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

// delivered returns how many deliveries the correct node has that delivered the most. A restarted node may deliver
// again what it delivered before.
func (j wholeJudge) delivered() (most int) {
	type delivery struct {
		at, from parley.ID
		number   uint64
	}
	known, counts := make(map[delivery]bool), make(map[parley.ID]int)
	for i := range j.h.Deliveries {
		v := &j.h.Deliveries[i]
		if d := (delivery{v.At, v.From, v.Msg.Seq}); !known[d] && !j.w.Liars.Has(d.at) {
			known[d] = true
			counts[d.at]++
			most = max(most, counts[d.at])
		}
	}
	return most
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
