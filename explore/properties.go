package explore

import (
	"sync"

	"parley"
	"parley/trace"
)

// propertyChecker decides properties: once for each history and set of crashed processes.
type propertyChecker struct {
	x      *search
	shards [16]struct {
		sync.Mutex
		known map[verdictKey]bool
	}
	mu       sync.Mutex
	findings []found
	seen     map[string]bool // properties of mode Sometimes that held
	tally    Tally
}

// verdictKey is everything that a verdict depends on.
type verdictKey struct {
	history uint32
	down    uint16
	root    uint16
	over    bool
	had     uint16 // the budgets used at all, one bit each
}

// found is a state that breaks a property or reaches the goal.
type found struct {
	root     int
	id       id
	trail    []takenTransition // of a random run, whose states have no id
	last     []takenTransition // transitions beyond the state; in the last one a machine panics
	property string
	why      string
	promised bool
	key      verdictKey
}

// enough is how many findings are kept at most.
const enough = 100

// keep keeps findings, and ends the search unless Options.All is set.
func (j *propertyChecker) keep(list []found) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.findings = append(j.findings, list[:min(len(list), enough-len(j.findings))]...)
	if !j.x.o.All {
		j.x.Stop()
	}
}

// noteSeen records that a property of mode Sometimes held.
func (j *propertyChecker) noteSeen(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen == nil {
		j.seen = make(map[string]bool)
	}
	j.seen[name] = true
}

// historyOf returns the history of a key. Crashed processes count as faulty.
func (j *propertyChecker) historyOf(q *verdictKey) *parley.History {
	x := j.x
	h := x.history(q.history, x.roots[q.root].faulty, q.over)
	for p := range parley.ID(x.p.N) {
		if q.down>>p&1 == 1 {
			h.Faulty.Add(p)
		}
	}
	return h
}

// broken returns the violated properties that the search looks for.
func (j *propertyChecker) broken(q *verdictKey, h *parley.History) (out []found) {
	x := j.x
	all := parley.Judge(x.p, j.runConditions(q, h), h)
	j.tally.Add(all, h.Over, x.o.Beyond)
	for _, v := range all {
		if v.Property.Mode == parley.Sometimes && v.Broken == nil {
			j.noteSeen(v.Property.Name)
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

// runConditions returns the conditions of the runs with a key.
func (j *propertyChecker) runConditions(q *verdictKey, h *parley.History) parley.RunConditions {
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

// add adds an event to the list of a history that it belongs to.
func add(h *parley.History, e *event) {
	at := e.ExternalEvent
	at.Order = uint64(len(h.Requests) + len(h.Deliveries) + len(h.Indications) + len(h.Restarts) + 1)
	trace.Record(h, e.op, at)
}
