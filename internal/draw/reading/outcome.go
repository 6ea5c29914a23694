package reading

import (
	"parley"
)

// Outcome has the beginning and the end of a run for one process.
type Outcome struct {
	Process parley.ID
	// Starts is its initial value, or the value it received from the source; nil: none.
	Starts []byte
	// Decides is its decision; nil: none.
	Decides []byte
	// Decided is the number of the event of the decision, in the history of a trace.
	Decided uint64
	// Role is its role in the run: source, correct, faulty: twofaced.
	Role string
}

// Outcomes reads the outcome of every process from a history: its first proposal and its first decision. A decision
// of a faulty process means nothing and is omitted. Roles are correct and faulty, with the name of the behavior if
// there is one; a single proposer is the source.
func Outcomes(h *parley.History, proposers parley.Set, behavior func(parley.ID) string) []Outcome {
	out := make([]Outcome, h.N)
	for i := range out {
		id := parley.ID(i)
		role := "correct"
		if h.Faulty.Has(id) {
			role = "faulty"
			if behavior != nil && behavior(id) != "" {
				role += ": " + behavior(id)
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

// some returns v, or an empty value for nil.
func some(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}
