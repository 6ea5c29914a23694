package engine

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/trace"
)

// Line is an event in words.
type Line struct {
	Event uint64      `json:"event"` // its number, from 1
	Time  parley.Tick `json:"time"`  // as in RunAnswer.Times
	At    string      `json:"at"`    // the process
	Says  string      `json:"says"`
	Ref   string      `json:"ref"`             // what pictures show of it
	Cause uint64      `json:"cause,omitempty"` // the event of another process that it follows from
	Fault bool        `json:"fault,omitempty"` // it happens at a faulty process
}

// line describes an event.
func (m *made) line(e trace.Event) Line {
	text := strings.TrimSpace(m.words().Event(e))
	_, says, _ := strings.Cut(text, m.Names.Full(e.At)+" ")
	return Line{
		Event: e.ID, Time: m.drawn.timeOf(e.ID), At: m.Names.Full(e.At), Says: says, Ref: m.refOf(e), Cause: e.Cause,
		Fault: m.view.Style().Faulty.Has(e.At),
	}
}

// MaxLines is the largest number of lines in an answer.
const MaxLines = 2000

// StoryAnswer is the answer to "story": events in words.
type StoryAnswer struct {
	Lines []Line `json:"lines"`
}

func (m *made) story(q struct {
	aboutRun
	From  uint64 `json:"from"` // the first event, from 1
	Count int    `json:"count"`
}) (any, error) {
	if q.Count < 0 || q.Count > MaxLines {
		return nil, fmt.Errorf("%d lines: at most %d are allowed", q.Count, MaxLines)
	}
	first := min(max(q.From, 1)-1, uint64(len(m.events)))
	last := min(first+uint64(q.Count), uint64(len(m.events)))
	a := StoryAnswer{Lines: make([]Line, 0, last-first)}
	for _, e := range m.events[first:last] {
		a.Lines = append(a.Lines, m.line(e))
	}
	return a, nil
}

// EventAnswer is the answer to "event": one event, the chain of events that led to it, and what it caused.
type EventAnswer struct {
	Line
	Causes  []Line `json:"causes"`  // from the first to the last before it
	Effects []Line `json:"effects"` // in the order of their times
	// Crashes are, if the process is blocked by the event, the crashes of the processes for which it waits.
	Crashes []Line `json:"crashes,omitempty"`
}

// mostCauses is how many events of a chain are shown, and mostEffects how many effects.
const (
	mostCauses  = 30
	mostEffects = 60
)

func (m *made) event(q struct {
	aboutRun
	Event uint64 `json:"event"`
}) (any, error) {
	if q.Event == 0 || q.Event > uint64(len(m.events)) {
		return nil, fmt.Errorf("event %d: the run has the events 1 to %d", q.Event, len(m.events))
	}
	one := m.events[q.Event-1]
	a := EventAnswer{Line: m.line(one), Causes: []Line{}, Effects: []Line{}}
	for before := m.before(one); before != nil && len(a.Causes) < mostCauses; before = m.before(*before) {
		a.Causes = append([]Line{m.line(*before)}, a.Causes...)
	}
	for _, later := range m.events[q.Event:] {
		if before := m.before(later); before != nil && before.ID == one.ID && len(a.Effects) < mostEffects {
			a.Effects = append(a.Effects, m.line(later))
		}
	}
	for _, crash := range blocking(one, m.Run, m.events, m.waits) {
		a.Crashes = append(a.Crashes, m.line(crash))
	}
	return a, nil
}

// before returns the event that an event follows from: the sending of a message, or the event that began the step in
// which something was sent or delivered. It returns nil for an event that follows from none.
func (m *made) before(e trace.Event) *trace.Event {
	switch e.Op {
	case trace.Receive, trace.Lose, trace.Suspect:
		if e.Cause > 0 && e.Cause <= uint64(len(m.events)) {
			return &m.events[e.Cause-1]
		}
		return nil
	case trace.Start, trace.Request, trace.Timeout, trace.Restart, trace.Pause, trace.Resume, trace.Crash:
		return nil
	}
	for i := int(e.ID) - 2; i >= 0; i-- {
		b := &m.events[i]
		switch {
		case b.At != e.At:
			if b.Op != trace.Lose { // which stands among the effects of the sender
				return nil
			}
		case b.Op == trace.Start || b.Op == trace.Request || b.Op == trace.Timeout || b.Op == trace.Restart ||
			b.Op == trace.Receive || b.Op == trace.Suspect:
			return b
		}
	}
	return nil
}

// ConeAnswer is the answer to "cone": what may have influenced an event, and what the event may have influenced
// (Lamport 1978). Both are references of pictures, without those of the event itself.
type ConeAnswer struct {
	Past   []string `json:"past"`
	Future []string `json:"future"`
}

// cone follows processes and messages from an event. At each process the past is a beginning of its events, and the
// future an end of them.
func (m *made) cone(q struct {
	aboutRun
	Event uint64 `json:"event"`
}) (any, error) {
	if q.Event == 0 || q.Event > uint64(len(m.events)) {
		return nil, fmt.Errorf("event %d: the run has the events 1 to %d", q.Event, len(m.events))
	}
	own := m.refOf(m.events[q.Event-1])
	var a ConeAnswer
	last := make([]uint64, m.Protocol.N) // by process: the last event of the past
	past := []string{}
	last[m.events[q.Event-1].At] = q.Event
	for _, e := range slices.Backward(m.events[:q.Event]) {
		if e.ID > last[e.At] {
			continue
		}
		past = append(past, m.refOf(e))
		if from := m.sentBy(e); from != nil {
			last[from.At] = max(last[from.At], from.ID)
		}
	}
	slices.Reverse(past)
	a.Past = distinct(past, own)
	first := make([]bool, m.Protocol.N) // by process: the future has begun
	first[m.events[q.Event-1].At] = true
	reached := make(map[uint64]bool)
	future := []string{}
	for _, e := range m.events[q.Event-1:] {
		if from := m.sentBy(e); from != nil && reached[from.ID] {
			first[e.At] = true
		}
		if first[e.At] {
			reached[e.ID] = true
			future = append(future, m.refOf(e))
		}
	}
	a.Future = distinct(future, own)
	return a, nil
}

// sentBy returns the event of another process that an event follows from, or nil.
func (m *made) sentBy(e trace.Event) *trace.Event {
	if e.Op == trace.Lose || e.Cause == 0 || e.Cause > uint64(len(m.events)) {
		return nil
	}
	return &m.events[e.Cause-1]
}

// distinct returns references without repetitions and without one of them, in their order.
func distinct(refs []string, except string) []string {
	known := map[string]bool{except: true}
	return slices.DeleteFunc(refs, func(ref string) bool {
		if known[ref] {
			return true
		}
		known[ref] = true
		return false
	})
}

// again returns the run, to be made once more.
func (m *made) again() *again {
	return &again{m.Run, m.facts, m.events, m.recorded, len(m.Node) > 0 || m.of != nil}
}

// kinds are the kinds of variables that the answer to "waiting" has.
var kinds = map[parley.VariableKind]string{
	parley.CountVector: "counts", parley.HeldMessage: "held", parley.ReplicaState: "replica",
	parley.WaitingProcess: "waits",
}

// state answers for the step in which the given number of events is reached.
func (m *made) state(q struct {
	aboutRun
	At uint64 `json:"at"` // the number of events that have happened
}) (any, error) {
	before, after, err := m.again().variables(q.At)
	if err != nil {
		return nil, err
	}
	down := parley.Set{}
	for _, e := range m.events[:min(q.At, uint64(len(m.events)))] {
		switch e.Op {
		case trace.Crash:
			down.Add(e.At)
		case trace.Restart:
			down.Remove(e.At)
		}
	}
	all := []ProcessState{}
	for _, p := range m.processes() {
		id := parley.ID(len(all))
		s := ProcessState{Name: p.Name, Ref: p.Ref, Faulty: m.Liars().Has(id), Down: down.Has(id), Variables: []Variable{}}
		if !s.Faulty && !s.Down {
			for _, v := range after[id] {
				changed := !slices.Contains(before[id], v)
				if kinds[v.Kind] == "" {
					s.Variables = append(s.Variables, Variable{v.Name, v.Value, changed})
				}
			}
		}
		all = append(all, s)
	}
	return StateAnswer{all}, nil
}

// history answers with the values of one variable.
func (m *made) history(q struct {
	aboutRun
	Variable string `json:"variable"`
}) (any, error) {
	if len(m.events) > mostWatched {
		return nil, fmt.Errorf("the run has %s: the history of a variable is shown for at most %d events",
			prose.Count(uint64(len(m.events)), "event", "events"), mostWatched)
	}
	all := make([]ProcessHistory, m.Protocol.N)
	has := make([]bool, m.Protocol.N)
	for id, p := range m.processes() {
		all[id] = ProcessHistory{Name: p.Name, Ref: p.Ref, Values: []Value{}}
	}
	err := m.again().watch(func(event uint64, of parley.ID, v []parley.Variable) {
		h := &all[of]
		value, last := "", ""
		for _, one := range v {
			if one.Name == q.Variable {
				value, has[of] = one.Value, true
			}
		}
		if len(h.Values) > 0 {
			last = h.Values[len(h.Values)-1].Value
		}
		switch {
		case value == last:
		case len(h.Values) == mostValues:
			h.More++
		default:
			h.Values = append(h.Values, Value{event, value})
		}
	})
	if err != nil {
		return nil, err
	}
	a := HistoryAnswer{Processes: []ProcessHistory{}}
	for id, h := range all {
		if has[id] {
			a.Processes = append(a.Processes, h)
		}
	}
	if len(a.Processes) == 0 {
		return nil, fmt.Errorf("no correct process has a variable %.60q", q.Variable)
	}
	return a, nil
}
