package reading

import (
	"parley"
)

// Outcome is how a run begins and ends for one process.
type Outcome struct {
	Process parley.ID
	// Starts is its initial value, or what it heard from the source; nil: none.
	Starts []byte
	// Decides is what it decides on; nil: nothing.
	Decides []byte
	// Decided is the event by which it does, by number, in the history of a trace.
	Decided uint64
	// Role is what it is in the run: source, correct, faulty: twofaced.
	Role string
}

// Outcomes reads the outcome of every process off a history: what it was first
// asked to propose and what it decided first; what a faulty one decides means
// nothing and is left out. Roles are correct and faulty, with
// the name of the behaviour if there is one; with a single proposer, that one is
// the source.
func Outcomes(h *parley.History, proposers parley.Set, behaviour func(parley.ID) string) []Outcome {
	out := make([]Outcome, h.N)
	for i := range out {
		id := parley.ID(i)
		role := "correct"
		if h.Faulty.Has(id) {
			role = "faulty"
			if behaviour != nil && behaviour(id) != "" {
				role += ": " + behaviour(id)
			}
		}
		if proposers.Len() == 1 && proposers.Has(id) {
			role = "source, " + role
		}
		out[i] = Outcome{Process: id, Role: role}
	}
	for _, q := range h.Requests {
		if o := &out[q.At]; q.Msg.Kind == parley.Propose && o.Starts == nil {
			o.Starts = some(q.Msg.Body)
		}
	}
	for _, d := range h.Deliveries {
		if o := &out[d.At]; d.Msg.Kind == parley.Decide && o.Decides == nil && h.Correct(d.At) {
			o.Decides, o.Decided = some(d.Msg.Body), d.Order
		}
	}
	return out
}

// some is a value that is there, if only an empty one.
func some(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}
