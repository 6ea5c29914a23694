package engine

import (
	"parley"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
)

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

// again is a run that is made once more, to see the variables of its machines. It replays the events, or simulates the
// run again if its machines draw random values: no trace has them.
type again struct {
	form.Run
	facts    trace.Facts
	events   []trace.Event
	recorded bool // no simulation makes the run again
	foreign  bool // the variables are in programs or nodes that have ended
}

// replay returns how the correct processes of the run repeat their steps.
func (a *again) replay() sim.Replay {
	return sim.Replay{
		Protocol: a.Protocol, Faulty: a.Liars(), Signer: a.Signer(), Clocks: a.Plan.Clocks, Stepped: a.facts.Stepped,
		Naming: a.Names.Full,
	}
}

// variables returns the variables of each process before and after the step in which the given number of events is
// reached.
func (a *again) variables(at uint64) (before, after [][]parley.Variable, err error) {
	if a.foreign {
		none := make([][]parley.Variable, a.Protocol.N)
		return none, none, nil
	}
	at = min(at, uint64(len(a.events)))
	as := a.replay()
	began := at
	for began > 0 && sim.IsEffect(a.events[began-1].Op) {
		began-- // to the event that began the step
	}
	if after, err = as.Variables(a.events, int(at)); err == nil {
		before, err = as.Variables(a.events, int(max(began, 1)-1))
	}
	if err != nil && !a.recorded {
		before, after = a.simulated(at)
		err = nil
	}
	return before, after, err
}

// simulated is variables by simulation.
func (a *again) simulated(at uint64) (before, after [][]parley.Variable) {
	log := &trace.Log{Keep: true}
	opt := a.Options()
	opt.Log = log
	last := make([][]parley.Variable, a.Protocol.N)
	opt.Between = func(s *sim.Sim) {
		if after != nil {
			return
		}
		now := make([][]parley.Variable, a.Protocol.N)
		for id := range parley.ID(a.Protocol.N) {
			if !a.Liars().Has(id) {
				now[id] = parley.ShowNamed(s.Machine(id), s.Clock(id), a.Names.Full)
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

// watch calls seen with the variables of a correct process after each of its steps. If the machines draw random values,
// which no trace has, it simulates the run once more.
func (a *again) watch(seen func(event uint64, of parley.ID, v []parley.Variable)) error {
	type step struct {
		event uint64
		of    parley.ID
		v     []parley.Variable
	}
	if a.foreign {
		return nil
	}
	var steps []step
	err := a.replay().Watch(a.events, func(began trace.Event, v []parley.Variable) {
		steps = append(steps, step{began.ID, began.At, v})
	})
	switch {
	case err != nil && a.recorded:
		return err
	case err != nil:
		steps = nil
		log := &trace.Log{Keep: true}
		opt := a.Options()
		opt.Log = log
		last := 0
		opt.Between = func(s *sim.Sim) {
			for _, e := range log.Events[last:] {
				if !sim.IsEffect(e.Op) && !a.Liars().Has(e.At) {
					steps = append(steps, step{e.ID, e.At, parley.ShowNamed(s.Machine(e.At), s.Clock(e.At), a.Names.Full)})
				}
			}
			last = len(log.Events)
		}
		sim.Run(opt)
	}
	for _, s := range steps {
		seen(s.event, s.of, s.v)
	}
	return nil
}

// HistoryAnswer is the answer to "history": the values of one variable at every correct process that has it.
type HistoryAnswer struct {
	Processes []ProcessHistory `json:"processes"`
}

// ProcessHistory has the values of a variable at one process.
type ProcessHistory struct {
	Name   string  `json:"name"`
	Ref    string  `json:"ref"`
	Values []Value `json:"values"` // in order; each differs from the one before it
	More   int     `json:"more"`   // further values, which are left out
}

// Value is a value of a variable.
type Value struct {
	Since uint64 `json:"since"` // the event whose step sets it
	Value string `json:"value"` // empty while the process does not have the variable, or is down
}

// The limits of a history.
const (
	mostWatched = 20_000 // events of the run
	mostValues  = 400    // values of one process
)
