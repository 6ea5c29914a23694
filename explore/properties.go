package explore

import (
	"sync"

	"parley"
	"parley/trace"
)

// propertyChecker decides about properties: once for each past, with whoever is down.
type propertyChecker struct {
	x      *search
	shards [16]struct {
		sync.Mutex
		known map[verdictKey]bool
	}
	mu       sync.Mutex
	findings []found
	seen     map[string]bool // properties that are to hold sometimes, and did
	tally    Tally
}

// verdictKey is all that a verdict depends on.
type verdictKey struct {
	past uint32
	down uint16
	root uint16
	over bool
	had  uint16 // which budgets were used at all
}

// found is a state in which something was found.
type found struct {
	root     int
	id       id
	trail    []takenTransition // of a run at random, which has no id
	last     []takenTransition // moves beyond the state, in the last of which a machine panics
	property string
	why      string
	promised bool
	question verdictKey
}

// enough is how many findings are kept.
const enough = 100

// keep keeps what was found, and ends the search if that is enough.
func (j *propertyChecker) keep(list []found) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.findings = append(j.findings, list[:min(len(list), enough-len(j.findings))]...)
	if !j.x.o.All {
		j.x.Stop()
	}
}

// saw notes a property that is to hold sometimes, and does.
func (j *propertyChecker) saw(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen == nil {
		j.seen = make(map[string]bool)
	}
	j.seen[name] = true
}

// seenBy is the history that a question is about. Who is down counts as faulty.
func (j *propertyChecker) seenBy(q *verdictKey) *parley.History {
	x := j.x
	h := x.history(q.past, x.roots[q.root].faulty, q.over)
	for p := range parley.ID(x.p.N) {
		if q.down>>p&1 == 1 {
			h.Faulty.Add(p)
		}
	}
	return h
}

// broken returns which properties that count do not hold of a history.
func (j *propertyChecker) broken(q *verdictKey, h *parley.History) (out []found) {
	x := j.x
	all := parley.Judge(x.p, j.assumptions(q, h), h)
	j.tally.Add(all, h.Over, x.o.Beyond)
	for _, v := range all {
		if v.Property.Mode == parley.Sometimes && v.Broken == nil {
			j.saw(v.Property.Name)
		}
		if v.Property.Mode == parley.Sometimes || v.Broken == nil || !x.o.Counts(v) {
			continue
		}
		out = append(out, found{
			root: int(q.root), property: v.Property.Name, why: v.Broken.Error(), promised: v.Promise.Holds,
		})
	}
	return out
}

// assumptions are the circumstances of the runs that a question is about.
func (j *propertyChecker) assumptions(q *verdictKey, h *parley.History) parley.RunConditions {
	x := j.x
	had := func(budget int) bool { return q.had>>budget&1 == 1 }
	a := trace.Facts{Worst: x.roots[q.root].worst}
	a.Network = parley.NetworkFaults{
		Lost: had(losses), Doubled: had(doubles), Reordered: !x.o.Model.FIFO && !x.timed,
		Late: !x.timed && had(timeouts),
	}
	a.Processes = parley.ProcessFaults{
		Restarted: had(restarts), LostDisk: had(disks), Suspected: had(suspicions),
		Minority: 2*(x.p.N-h.Faulty.Len()) <= x.p.N,
	}
	for _, e := range h.Indications {
		if e.Msg.Kind == parley.Suspect && h.Correct(e.Msg.Origin) && !x.roots[q.root].faulty.Has(e.At) {
			a.Processes.Suspected = true
		}
	}
	return a.RunConditions(x.p, h)
}

// add puts an event into the list of a history that it belongs to.
func add(h *parley.History, e *event) {
	at := e.ExternalEvent
	at.Order = uint64(len(h.Requests) + len(h.Deliveries) + len(h.Indications) + len(h.Restarts) + 1)
	trace.Record(h, e.op, at)
}
