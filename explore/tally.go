package explore

import (
	"slices"
	"sync"

	"parley"
)

// Judged is in how far a search put a property to the test: at ends, if it is to hold at
// the end of a run, and in all states otherwise.
type Judged struct {
	Property string `json:"property"`
	Promised bool   `json:"promised"`        // in some state
	Lacks    string `json:"lacks,omitempty"` // why it was not in others
	// Tested tells that it demanded something in a state in which it counts, and Vacuous why
	// it did not in others.
	Tested  bool   `json:"tested"`
	Vacuous string `json:"vacuous,omitempty"`
}

// Tally sums up the verdicts of many histories of one protocol.
type Tally struct {
	mu   sync.Mutex
	list []Judged
}

// Add takes in the verdicts of one history, in the order of the protocol's properties. Over
// tells that nothing more happens in it, and beyond that what is not promised counts, too.
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

// Judged returns what was found out of each property so far, in the order of the protocol.
func (t *Tally) Judged() []Judged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// Counts tells whether a search looks for what a verdict says, if it says that a property broke.
func (o *Options) Counts(v parley.Verdict) bool {
	return (len(o.Only) == 0 || slices.Contains(o.Only, v.Property.Name)) && (v.Violated() || o.Beyond)
}
