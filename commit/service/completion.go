package service

import (
	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
)

// completionTracker makes processes forget transactions: members that have carried out an outcome notify the
// coordinator, and the coordinator announces which transactions are over.
type completionTracker struct {
	*txTable
	news  bool // a transaction is over, and other processes may not know it
	pulse bool // openTimer is set
}

// carried records that this process has carried out the outcome of t.
func (e *completionTracker) carried(s *parley.Step, t *transaction) {
	id := CoordinatorOf(t.path)
	if id == e.self {
		e.close(t)
		e.beat(s)
		return
	}
	send(s, id, 0, parley.Msg{Kind: msgDone, Body: encodeNumbers([]uint64{NumberOf(t.path)})})
	e.beat(s)
	if e.of[id].over(NumberOf(t.path)) {
		e.drop(id, func(x *transaction) bool { return x == t })
	}
}

// done handles the numbers of this coordinator's transactions that from has carried out.
func (e *completionTracker) done(s *parley.Step, from parley.ID, q parley.Msg) {
	list, ok := readNumbers(q.Body, 4*e.c.Open)
	if !ok || len(list) == 0 {
		s.Refuse(from, "numbers that cannot be read")
		return
	}
	for _, number := range list {
		t := e.live[PathOf(e.self, number)]
		switch {
		case t == nil:
			e.news = true // the sender has not forgotten the transaction
		case t.spec.Has(from):
			t.acked.Add(from)
			e.close(t)
		}
	}
	e.beat(s)
}

// close forgets t, which this process coordinates, if it is over: aborted, or carried out by all members.
func (e *completionTracker) close(t *transaction) {
	if t.told && (t.outcome == problem.Abort || t.missing() == (parley.Set{})) {
		e.news = true
		e.drop(e.self, func(x *transaction) bool { return x == t })
	}
}

// sendOpen sends each other process the numbers of the transactions that it shares with this coordinator and
// that are not over.
func (e *completionTracker) sendOpen(s *parley.Step) {
	e.news = false
	of := make([][]uint64, e.c.N)
	for _, t := range e.of[e.self].list {
		for _, id := range t.spec.Members[1:] {
			of[id] = append(of[id], NumberOf(t.path))
		}
	}
	for id := range parley.ID(e.c.N) {
		if id != e.self {
			send(s, id, 0, parley.Msg{Kind: msgOpen, Seq: e.next, Body: encodeNumbers(of[id])})
		}
	}
}

// timeout repeats messages that other processes may have missed, as long as that is needed.
func (e *completionTracker) timeout(s *parley.Step) {
	e.pulse = false
	if e.remind(s) {
		e.beat(s)
	}
}

// beat sets the timer for timeout, unless it is set.
func (e *completionTracker) beat(s *parley.Step) {
	if !e.pulse {
		e.pulse = true
		s.SetTimer(openTimer, 4*e.c.Delta)
	}
}

// remind announces what is over, and notifies coordinators of the outcomes that this process has carried out
// and that are not over. It returns whether remind must be called again.
func (e *completionTracker) remind(s *parley.Step) (more bool) {
	for _, t := range e.of[e.self].list {
		if t.outcome != problem.Commit {
			continue
		}
		more = true
		if e.c.Majority { // in two phases the inner machine repeats the decision
			for id := range t.missing().All() {
				send(s, id, t.path, parley.Msg{Kind: ballot.Decision, Body: []byte(t.outcome.String())})
			}
		}
	}
	if e.news || more {
		e.sendOpen(s)
	}
	for id := range e.of {
		var list []uint64
		for _, t := range e.of[id].list {
			if parley.ID(id) != e.self && t.told {
				if t.reminded {
					list = append(list, NumberOf(t.path))
				}
				t.reminded, more = true, true
			}
		}
		if len(list) > 0 {
			send(s, parley.ID(id), 0, parley.Msg{Kind: msgDone, Body: encodeNumbers(list)})
		}
	}
	return more
}

// opened handles a coordinator's announcement of what is over. It notifies the coordinator again of the open
// transactions that this process has carried out or forgotten.
func (e *completionTracker) opened(s *parley.Step, from parley.ID, q parley.Msg) {
	list, ok := readNumbers(q.Body, 4*e.c.Open)
	if !ok || q.Seq >= 1<<56 || len(list) > 0 && list[len(list)-1] >= q.Seq {
		s.Refuse(from, "numbers that cannot be read")
		return
	}
	c := &e.of[from]
	if q.Seq < c.below {
		return
	}
	c.below, c.open = q.Seq, list
	e.drop(from, func(t *transaction) bool { return t.told && c.over(NumberOf(t.path)) })
	var again []uint64
	for _, number := range list {
		if t := e.live[PathOf(from, number)]; t == nil || t.told {
			again = append(again, number)
		}
	}
	if len(again) > 0 {
		send(s, from, 0, parley.Msg{Kind: msgDone, Body: encodeNumbers(again)})
	}
}
