package engine

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/sim"
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
		Event: e.ID, Time: m.drawn[e.ID-1].Time, At: m.Names.Full(e.At), Says: says, Ref: m.refOf(e), Cause: e.Cause,
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

// StateAnswer is the answer to "state": the variables of every process after an event.
type StateAnswer struct {
	Processes []ProcessState `json:"processes"`
}

// ProcessState has the variables of one process.
type ProcessState struct {
	Name      string     `json:"name"`
	Ref       string     `json:"ref"`
	Faulty    bool       `json:"faulty"` // it lies: nothing is known of its state
	Down      bool       `json:"down"`
	Variables []Variable `json:"variables"`
}

// Variable is one variable of a process.
type Variable struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Changed bool   `json:"changed"` // by the step of the event
}

func (m *made) state(q struct {
	aboutRun
	At uint64 `json:"at"` // the number of events that have happened
}) (any, error) {
	all, err := m.stateAt(q.At)
	return StateAnswer{all}, err
}

// stateAt returns the variables after the step in which the given number of events is reached.
func (m *made) stateAt(at uint64) ([]ProcessState, error) {
	before, after, err := m.variables(at)
	if err != nil {
		return nil, err
	}
	down := parley.Set{}
	for _, e := range m.events[:min(at, uint64(len(m.events)))] {
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
				s.Variables = append(s.Variables, Variable{v.Name, v.Value, changed})
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// variables returns the variables of each process before and after the step in which the given number of events is
// reached. It replays the events, or simulates the run once more if its machines draw random values: no trace has them.
func (m *made) variables(at uint64) (before, after [][]parley.Variable, err error) {
	at = min(at, uint64(len(m.events)))
	again := sim.Replay{
		Protocol: m.Protocol, Faulty: m.Liars(), Signer: m.Signer(), Clocks: m.Plan.Clocks, Stepped: m.facts.Stepped,
	}
	began := at
	for began > 0 && sim.IsEffect(m.events[began-1].Op) {
		began-- // to the event that began the step
	}
	if after, err = again.Variables(m.events, int(at)); err == nil {
		before, err = again.Variables(m.events, int(max(began, 1)-1))
	}
	if err != nil && !m.recorded {
		before, after = m.simulated(at)
		err = nil
	}
	return before, after, err
}

// simulated is variables by simulation.
func (m *made) simulated(at uint64) (before, after [][]parley.Variable) {
	log := &trace.Log{Keep: true}
	opt := m.Options()
	opt.Log = log
	last := make([][]parley.Variable, m.Protocol.N)
	opt.Between = func(s *sim.Sim) {
		if after != nil {
			return
		}
		now := make([][]parley.Variable, m.Protocol.N)
		for id := range parley.ID(m.Protocol.N) {
			if !m.Liars().Has(id) {
				now[id] = parley.Show(s.Machine(id), s.Clock(id))
			}
		}
		if log.Len() >= at {
			before, after = last, now
		}
		last = now
	}
	sim.Run(opt)
	if after == nil {
		before, after = last, last
	}
	return before, after
}
