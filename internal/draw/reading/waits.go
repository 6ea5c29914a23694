package reading

import (
	"slices"

	"parley"
	"parley/trace"
)

// WaitSpan is a time in which a process has a derived variable with one value, such as a message that waits.
type WaitSpan struct {
	At parley.ID
	parley.Variable
	Since, Until uint64      // the event that begins the step in which it appears, and disappears; Until 0: never
	Begins, Ends parley.Tick // the times of these events
	// Parts is the event from which on another correct replica holds something else at the same place; 0: none.
	Parts uint64
}

// Waits collects the spans of a run, step by step.
type Waits struct {
	Spans []WaitSpan
	open  map[parley.ID][]int // the spans of each process that have not ended
}

// Step takes the derived variables of a process after a step.
func (w *Waits) Step(e trace.Event, _ bool, shown []parley.Variable) {
	if w.open == nil {
		w.open = make(map[parley.ID][]int)
	}
	shown = slices.Clone(shown)
	var still []int
	for _, i := range w.open[e.At] {
		if k := slices.Index(shown, w.Spans[i].Variable); k >= 0 {
			shown = slices.Delete(shown, k, k+1)
			still = append(still, i)
			continue
		}
		w.Spans[i].Until, w.Spans[i].Ends = e.ID, e.Time
	}
	for _, v := range shown {
		still = append(still, len(w.Spans))
		w.Spans = append(w.Spans, WaitSpan{At: e.At, Variable: v, Since: e.ID, Begins: e.Time})
	}
	w.open[e.At] = still
}

// End returns the spans. It compares the replicas of processes that are not faulty.
func (w *Waits) End(faulty parley.Set) []WaitSpan {
	for i := range w.Spans {
		a := &w.Spans[i]
		if a.Kind != parley.ReplicaState || faulty.Has(a.At) {
			continue
		}
		for _, b := range w.Spans {
			if b.Kind == a.Kind && b.Name == a.Name && b.Place == a.Place && b.Value != a.Value && !faulty.Has(b.At) {
				if at := max(a.Since, b.Since); a.Parts == 0 || at < a.Parts {
					a.Parts = at
				}
			}
		}
	}
	return w.Spans
}
