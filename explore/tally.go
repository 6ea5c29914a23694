package explore

import (
	"slices"
	"sync"

	"parley"
)

// Judged says how far a search tested a property: in terminal states if it must hold at the end of a run,
// and in all states otherwise.
type Judged struct {
	Property string `json:"property"`
	Promised bool   `json:"promised"`        // in some state
	Lacks    string `json:"lacks,omitempty"` // why it is not promised in other states
	// Tested reports whether the property could be broken in at least one state in which it was judged.
	Tested bool `json:"tested"`
	// Vacuous says why the property demanded nothing in other such states, and so could not be broken there.
	Vacuous string `json:"vacuous,omitempty"`
}

// Tally sums up the verdicts on many histories of one protocol. It is safe for concurrent use.
type Tally struct {
	mu   sync.Mutex
	list []Judged
}

// Add adds the verdicts on one history, in the order of the protocol's properties. The argument over means that the
// history is complete. The argument beyond means that properties count even if they are not promised.
func (t *Tally) Add(all []parley.Verdict, over, beyond bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list == nil {
		t.list = make([]Judged, len(all))
	}
	for i, v := range all {
		t.list[i].add(v, over, beyond)
	}
}

func (j *Judged) add(v parley.Verdict, over, beyond bool) {
	j.Property = v.Property.Name
	if v.Property.Mode == parley.Sometimes || v.Property.Mode == parley.Eventually && !over {
		return
	}
	least := func(to *string, why string) {
		if *to == "" || why < *to {
			*to = why
		}
	}
	if v.Promise.Holds {
		j.Promised = true
	} else {
		least(&j.Lacks, v.Promise.Because)
	}
	switch {
	case !v.Promise.Holds && !beyond:
	case v.Vacuous == "":
		j.Tested = true
	default:
		least(&j.Vacuous, v.Vacuous)
	}
}

// Judged returns the results for each property so far, in the order of the protocol.
func (t *Tally) Judged() []Judged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// Counts reports whether a search looks for violations of the verdict's property.
func (o *Options) Counts(v parley.Verdict) bool {
	return (len(o.Only) == 0 || slices.Contains(o.Only, v.Property.Name)) && (v.Violated() || o.Beyond)
}
