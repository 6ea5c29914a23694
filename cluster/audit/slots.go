package audit

import (
	"fmt"
	"maps"
	"slices"

	"parley"
	"parley/agreement/stream"
)

// slots judges a stream of agreements on the values of one source, slot by slot.
//
// A node tells of no decision on no value. So a correct node that took
// part in a slot to its end and told nothing has decided on no value, and a source that
// began a slot and was asked for nothing in it has said no value.
func (e *evidence) slots(c *Channel) {
	c.Kind = "slots"
	f := e.frames()
	source := e.source()
	asked := make(map[uint64]parley.Happening) // by question
	for _, q := range e.h.Requests {
		if q.Msg.Kind == parley.Propose && q.At == source {
			asked[q.Msg.Value] = q
		}
	}
	decided := make(map[uint64][]parley.Happening)
	proposed := make(map[uint64]parley.Happening)
	for _, d := range e.h.Deliveries {
		if d.Msg.Kind != parley.Decide {
			continue
		}
		slot := d.Msg.Seq
		decided[slot] = append(decided[slot], d)
		f.at(slot)
		if q, ok := asked[d.Msg.Value]; ok && d.At == source && d.Msg.Value != 0 {
			proposed[slot] = q
		}
	}
	for _, i := range e.h.Indications {
		q, ok := asked[i.Msg.Value]
		if !ok || i.At != source || i.Msg.Seq == 0 {
			continue
		}
		switch i.Msg.Kind {
		case stream.Unanswered:
			f.at(i.Msg.Seq).held.Add(source)
			fallthrough
		case stream.Undecided: // it has decided on no value, as all others, for it was late
			proposed[i.Msg.Seq] = q
			if e.unknown.Len() > 0 { // perhaps at those that left no trace
				f.at(i.Msg.Seq).held.Add(source)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(f.slots)) {
		s := f.slots[number]
		h := parley.History{N: e.h.N, Over: true, Naming: e.h.Naming, Deliveries: slices.Clone(decided[number])}
		if !e.settledSlot(s, len(h.Deliveries) > 0) {
			c.Unjudged++
			continue
		}
		if q, ok := proposed[number]; ok {
			h.Requests = append(h.Requests, q)
		} else if when, ok := s.begun[source]; ok && !e.partial.Has(source) && !e.signs() {
			h.Requests = append(h.Requests, parley.Happening{
				At: source, From: source, When: when, Msg: parley.Msg{Kind: parley.Propose, Body: stream.NoValue()},
			})
		}
		failed := e.failedIn(s)
		e.fill(&h, s, failed)
		facts := e.facts
		facts.Network, facts.Processes = s.network, parley.ProcessFaults{}
		h.Faulty = union(failed, e.unknown)
		c.Instances++
		a := e.assumptions(failed, facts)
		c.Verdicts = tally(c.Verdicts, parley.Judge(e.p, a, &h), fmt.Sprintf("slot %d", number))
	}
}

// source is the process whose value it is.
func (e *evidence) source() parley.ID {
	for id := range e.p.Proposers.All() {
		return id
	}
	return 0
}

// signs tells whether a source that is asked for nothing says nothing.
func (e *evidence) signs() bool { return e.p.Faults == parley.SignedByzantineFaults }

// settledSlot tells whether a slot had time to come to its end before a correct node ended.
func (e *evidence) settledSlot(s *slot, decided bool) bool {
	when, ok := s.first()
	if !ok {
		return decided
	}
	return when+parley.Tick(e.last+3)*e.round+e.settle <= e.end
}

// failedIn are the nodes that failed in a slot: liars, those that ended, those that came
// back and so take no part, and those that were held up and abstained.
func (e *evidence) failedIn(s *slot) parley.Set {
	failed := union(e.w.Liars, s.held)
	if when, ok := s.first(); ok {
		failed = union(failed, e.absent(when, when+parley.Tick(e.last+3)*e.round))
	}
	for id := range e.crashed.All() {
		if _, begun := s.begun[id]; !begun || e.w.Ends[id] < s.begun[id]+parley.Tick(e.last+2)*e.round {
			failed.Add(id)
		}
	}
	for id := range e.mute.All() {
		if !s.ended.Has(id) {
			failed.Add(id)
		}
	}
	return failed
}

// fill adds the decisions on no value, which are not told.
func (e *evidence) fill(h *parley.History, s *slot, failed parley.Set) {
	var told parley.Set
	for _, d := range h.Deliveries {
		told.Add(d.At)
	}
	for id := range s.ended.Minus(told).All() {
		if failed.Has(id) || e.partial.Has(id) {
			continue
		}
		h.Deliveries = append(h.Deliveries, parley.Happening{
			At: id, From: id, When: s.begun[id], Msg: parley.Msg{Kind: parley.Decide, Seq: s.number, Body: stream.NoValue()},
		})
	}
}
