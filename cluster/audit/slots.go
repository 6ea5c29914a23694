package audit

import (
	"fmt"
	"maps"
	"slices"

	"parley"
	"parley/agreement/stream"
)

// slotJudge judges a stream of agreements on the values of one source, slot by slot.
//
// Decisions on no value are not recorded. So a correct node that participated in a slot to its end without a
// recorded decision has decided on no value, and a source that began a slot without a request in it has proposed
// no value.
type slotJudge struct {
	*evidence
	slots
	source   parley.ID                         // the source of the stream
	decided  map[uint64][]parley.ExternalEvent // by slot
	proposed map[uint64]parley.ExternalEvent
}

func (j slotJudge) judge(c *Channel) {
	c.Kind = "slots"
	j.read()
	for _, number := range slices.Sorted(maps.Keys(j.slots)) {
		if j.only != 0 && number != j.only {
			continue
		}
		s := j.slots[number]
		h := parley.History{N: j.h.N, Over: true, Naming: j.h.Naming, Deliveries: slices.Clone(j.decided[number])}
		if !j.settled(s, len(h.Deliveries) > 0) {
			c.Unjudged++
			continue
		}
		if q, ok := j.proposed[number]; ok {
			h.Requests = append(h.Requests, q)
		} else if when, ok := s.begun[j.source]; ok && !j.partial.Has(j.source) && !j.signs() {
			h.Requests = append(h.Requests, parley.ExternalEvent{
				At: j.source, From: j.source, When: when, Msg: parley.Msg{Kind: parley.Propose, Body: stream.NoValue()},
			})
		}
		failed := j.failed(s)
		j.fill(&h, s, failed)
		facts := j.facts
		facts.Network, facts.Processes = s.network, parley.ProcessFaults{}
		h.Faulty = union(failed, j.unknown)
		c.Instances++
		a := j.assumptions(failed, facts)
		where := ""
		if j.only == 0 {
			where = fmt.Sprintf("slot %d", number)
		}
		c.Verdicts = tally(c.Verdicts, parley.Judge(j.p, a, &h), where)
	}
}

// read assigns requests and decisions to slots.
func (j *slotJudge) read() {
	j.slots = j.frames()
	for id := range j.p.Proposers.All() {
		j.source = id
		break
	}
	asked := make(map[uint64]parley.ExternalEvent) // by number of the request
	for _, q := range j.h.Requests {
		if q.Msg.Kind == parley.Propose && q.At == j.source {
			asked[q.Msg.Value] = q
		}
	}
	j.decided, j.proposed = make(map[uint64][]parley.ExternalEvent), make(map[uint64]parley.ExternalEvent)
	for _, d := range j.h.Deliveries {
		if d.Msg.Kind != parley.Decide {
			continue
		}
		slot := d.Msg.Seq
		j.decided[slot] = append(j.decided[slot], d)
		j.at(slot)
		if q, ok := asked[d.Msg.Value]; ok && d.At == j.source && d.Msg.Value != 0 {
			j.proposed[slot] = q
		}
	}
	for _, i := range j.h.Indications {
		q, ok := asked[i.Msg.Value]
		if !ok || i.At != j.source || i.Msg.Seq == 0 {
			continue
		}
		switch i.Msg.Kind {
		case stream.Unanswered:
			j.at(i.Msg.Seq).held.Add(j.source)
			fallthrough
		case stream.Undecided: // like all others, it has decided on no value, because its value came too late
			j.proposed[i.Msg.Seq] = q
			if j.unknown.Len() > 0 { // possibly at nodes without traces
				j.at(i.Msg.Seq).held.Add(j.source)
			}
		}
	}
}

// signs reports whether a source without a request sends nothing.
func (j slotJudge) signs() bool { return j.p.Faults == parley.SignedByzantineFaults }

// settled reports whether a slot had time to finish before a correct node ended.
func (j slotJudge) settled(s *slot, decided bool) bool {
	when, ok := s.first()
	if !ok {
		return decided
	}
	return when+parley.Tick(j.last+3)*j.round+j.settle <= j.end
}

// failed returns the nodes that failed in a slot: faulty ones, those that ended, restarted ones that do not
// participate, and those that abstained.
func (j slotJudge) failed(s *slot) parley.Set {
	failed := union(j.w.Liars, s.held)
	if when, ok := s.first(); ok {
		failed = union(failed, j.absences.between(when, when+parley.Tick(j.last+3)*j.round))
	}
	for id := range j.crashed.All() {
		if _, begun := s.begun[id]; !begun || j.w.Ends[id] < s.begun[id]+parley.Tick(j.last+2)*j.round {
			failed.Add(id)
		}
	}
	for id := range j.mute.All() {
		if !s.ended.Has(id) {
			failed.Add(id)
		}
	}
	return failed
}

// fill adds the decisions on no value, which are not recorded.
func (j slotJudge) fill(h *parley.History, s *slot, failed parley.Set) {
	for id := range s.ended.Minus(whose(h.Deliveries)).All() {
		if failed.Has(id) || j.partial.Has(id) {
			continue
		}
		h.Deliveries = append(h.Deliveries, parley.ExternalEvent{
			At: id, From: id, When: s.begun[id], Msg: parley.Msg{Kind: parley.Decide, Seq: s.number, Body: stream.NoValue()},
		})
	}
}
