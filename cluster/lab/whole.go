package lab

import (
	"os"
	"slices"
	"time"

	"parley"
	"parley/trace"
)

// whole makes one trace of those of all processes.
func (r *running) whole(over bool) (trace.Header, *trace.Log, error) {
	var traces []trace.Trace
	for id, c := range r.members {
		for life := uint64(1); life <= c.life; life++ {
			t, err := r.written(parley.ID(id), life)
			if err != nil {
				return trace.Header{}, nil, err
			}
			traces = append(traces, t)
		}
	}
	w, err := trace.Merge(traces, trace.Merging{Grace: time.Duration(r.Delay)})
	if err != nil {
		return trace.Header{}, nil, err
	}
	h := r.Header
	h.Facts = r.facts(w)
	h.Facts.Over = over
	return h, w.Log, nil
}

// written reads what one life of a process has written down, and adds what was done to it.
func (r *running) written(id parley.ID, life uint64) (trace.Trace, error) {
	file := r.traceOf(id, life)
	f, err := os.Open(file)
	if err != nil {
		return trace.Trace{}, err
	}
	defer func() { _ = f.Close() }()
	all, err := trace.ReadAll(name(id), f)
	if err != nil {
		return trace.Trace{}, err
	}
	t := all[0]
	log := &trace.Log{Keep: true, Gaps: t.Log.Gaps, Broken: t.Log.Broken}
	var more []trace.Event
	if life == 1 {
		more = r.stopped[id]
	}
	last := parley.Tick(0)
	add := func(e trace.Event) {
		for len(more) > 0 && more[0].Time <= e.Time {
			log.Add(more[0])
			more = more[1:]
		}
		last = max(last, e.Time)
		if e.Op == trace.Restart && r.lost[id] == life {
			e.Msg.Value = 1
		}
		if e.Op != trace.Refuse || !r.Liars.Has(id) { // what a liar thinks of others is its own matter
			log.Add(e)
		}
	}
	for _, e := range t.Log.Events {
		add(e)
	}
	if died := r.died[id]; int(life) <= len(died) {
		add(trace.Event{Op: trace.Crash, At: id, Time: max(last, died[life-1])})
	}
	t.Log = log
	return t, nil
}

// facts are the circumstances of the run, as far as they show.
func (r *running) facts(w *trace.Whole) trace.Facts {
	f := w.Header.Facts
	f.Network.Late = r.slow(w.Log)
	f.Processes.LostDisk = len(r.lost) > 0
	f.Processes.Suspected = r.suspected(w.Log)
	f.Processes.Paused = r.late > time.Duration(r.Delay)*r.Tick || r.slept(w.Log)
	up := 0
	for id, c := range r.members {
		if !c.killed && !r.Liars.Has(parley.ID(id)) {
			up++
		}
	}
	f.Processes.Minority = 2*up <= r.Header.N
	return f
}

// slow tells whether a message took longer than the protocol was told.
func (r *running) slow(log *trace.Log) bool {
	return slices.ContainsFunc(log.Events, func(e trace.Event) bool {
		return e.Op == trace.Receive && e.Cause > 0 && e.Time-log.Events[e.Cause-1].Time > r.Delay
	})
}

// slept tells whether a process that does not lie stood still, or found that it woke too late.
func (r *running) slept(log *trace.Log) bool {
	return slices.ContainsFunc(log.Events, func(e trace.Event) bool {
		switch {
		case r.Liars.Has(e.At):
			return false
		case e.Op == trace.Start:
			return r.Early && e.Time > 0
		case e.Op == trace.Refuse:
			return e.Peer == e.At && string(e.Msg.Body) == "woke too late: abstains"
		}
		return e.Op == trace.Pause
	})
}

// suspected tells whether a process that does not lie suspected one that was up and does
// not lie.
func (r *running) suspected(log *trace.Log) bool {
	down := r.Liars
	for _, e := range log.Events {
		switch {
		case e.Op == trace.Crash:
			down.Add(e.At)
		case e.Op == trace.Restart && !r.Liars.Has(e.At):
			down.Remove(e.At)
		case (e.Op == trace.Indicate || e.Op == trace.Suspect) && e.Msg.Kind == parley.Suspect &&
			!r.Liars.Has(e.At) && int(e.Msg.Origin) < r.Header.N && !down.Has(e.Msg.Origin):
			return true
		}
	}
	return false
}
