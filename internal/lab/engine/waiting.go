package engine

import (
	"strings"

	"parley"
	"parley/internal/draw/reading"
)

// WaitingAnswer is the answer to "waiting": what each process held and waited for during the run, by process.
type WaitingAnswer struct {
	Processes []Waiter `json:"processes"`
}

// Waiter is a process with what it held and waited for.
type Waiter struct {
	Name  string     `json:"name"`
	Ref   string     `json:"ref"`
	Spans []WaitSpan `json:"spans"`
}

// WaitSpan is a time in which a process has a variable that the page draws.
type WaitSpan struct {
	Kind  string   `json:"kind"` // counts, held, replica or waits
	Name  string   `json:"name"`
	Value string   `json:"value"`
	From  string   `json:"from,omitempty"`
	Place string   `json:"place,omitempty"`
	Waits string   `json:"waits,omitempty"`
	Since uint64   `json:"since"`
	Until uint64   `json:"until"` // 0: to the end
	Parts uint64   `json:"parts,omitempty"`
	Cells []string `json:"cells,omitempty"` // of a vector
}

// waitingOf puts the spans of a run in order by process.
func waitingOf(all []Process, spans []reading.WaitSpan) WaitingAnswer {
	a := WaitingAnswer{Processes: []Waiter{}}
	for _, p := range all {
		a.Processes = append(a.Processes, Waiter{Name: p.Name, Ref: p.Ref, Spans: []WaitSpan{}})
	}
	for _, s := range spans {
		one := WaitSpan{
			Kind: kinds[s.Kind], Name: s.Name, Value: s.Value, Place: s.Place, Waits: s.Waits, Since: s.Since, Until: s.Until,
			Parts: s.Parts,
		}
		switch s.Kind {
		case parley.HeldMessage:
			one.From = all[s.From].Name
		case parley.CountVector:
			one.Cells = strings.Fields(s.Value)
		}
		p := &a.Processes[s.At]
		p.Spans = append(p.Spans, one)
	}
	return a
}
