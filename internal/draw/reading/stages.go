package reading

import (
	"cmp"
	"maps"
	"slices"

	"parley"
	"parley/trace"
)

// Stages is how far each process is over time with a decision that all take alike.
type Stages struct {
	Lanes    []StageLane // by decision, then by process
	Messages []Moment    // those that are no heartbeats, in order of arrival
	// Named reports that there are several decisions. Alive is the number of heartbeats left out.
	Named bool
	Alive uint64
	// Changed is the time of the last change, and Over that of the last event.
	Changed, Over parley.Tick
}

// StageLane is one process in one decision.
type StageLane struct {
	At    parley.ID
	Name  string // of the decision, if there are several
	Spans []StageSpan
}

// StageSpan is a time in one stage. The last one has no end.
type StageSpan struct {
	Stage parley.Stage // NoStage: the process is down
	Since parley.Tick
	Event uint64 // the event that began it; 0: the run
}

// stageReader reads stages event by event.
type stageReader struct {
	p     parley.Protocol
	out   Stages
	lanes map[stageKey]*StageLane
	down  parley.Set
}

type stageKey struct {
	of uint64
	at parley.ID
}

// StagesOf reads the stages of a run. It returns false if the protocol has none, or no event tells of one.
func StagesOf(p parley.Protocol, events []trace.Event, s Style) (out Stages, ok bool) {
	if p.Progress == nil {
		return Stages{}, false
	}
	r := stageReader{p: p, lanes: make(map[stageKey]*StageLane)}
	if r.find(events); len(r.lanes) == 0 {
		return Stages{}, false
	}
	for _, e := range events {
		if int(e.At) < p.N {
			r.event(e)
			r.out.Over = max(r.out.Over, e.Time)
		}
	}
	run := SpaceTime(p, events, SpaceTimeOptions{Style: s})
	r.out.Alive = run.Alive
	for _, m := range slices.Concat(run.Moments, run.Unarrived) {
		switch {
		case m.Message() && m.Sent.ID != 0:
			r.out.Messages = append(r.out.Messages, m)
		case m.Op == trace.Crash, m.Op == trace.Restart:
			r.out.Changed = max(r.out.Changed, m.Time)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.lanes), func(a, b stageKey) int {
		return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.at, b.at))
	}) {
		r.out.Lanes = append(r.out.Lanes, *r.lanes[key])
	}
	return r.out, true
}

// Crash ends the lanes of processes at the times of their crashes, of which no event tells.
func (s *Stages) Crash(crashed map[parley.ID]parley.Tick) {
	for i := range s.Lanes {
		lane := &s.Lanes[i]
		when, ok := crashed[lane.At]
		if !ok || when > s.Over {
			continue
		}
		after := slices.IndexFunc(lane.Spans, func(span StageSpan) bool { return span.Since >= when })
		if after > 0 {
			lane.Spans = lane.Spans[:after]
		}
		lane.Spans = append(lane.Spans, StageSpan{parley.NoStage, when, 0})
		s.Changed = max(s.Changed, when)
	}
}

// progress returns what an event makes of its process.
func (r *stageReader) progress(e trace.Event) parley.Progress {
	switch e.Op {
	case trace.Request, trace.Deliver, trace.Indicate, trace.Send, trace.Receive, trace.Append:
		return r.p.Progress(e.Msg, e.Op == trace.Append)
	}
	return parley.Progress{}
}

// find makes the lanes: for all processes if there is one decision, and otherwise for those that take part in each.
func (r *stageReader) find(events []trace.Event) {
	decisions := make(map[uint64]string)
	for _, e := range events {
		got := r.progress(e)
		if got.Stage == parley.NoStage || int(e.At) >= r.p.N {
			continue
		}
		decisions[got.Of] = cmp.Or(got.Name, decisions[got.Of])
		r.lane(stageKey{got.Of, e.At})
	}
	r.out.Named = len(decisions) > 1
	for of := range decisions { // order: each decision by itself
		for id := range parley.ID(r.p.N) {
			switch key := (stageKey{of, id}); {
			case !r.out.Named:
				r.lane(key)
			case r.lanes[key] != nil:
				r.lanes[key].Name = decisions[of]
			}
		}
	}
}

func (r *stageReader) event(e trace.Event) {
	switch e.Op {
	case trace.Crash:
		r.down.Add(e.At)
		for key, lane := range r.lanes { // order: each lane by itself
			if key.at == e.At {
				lane.Spans = append(lane.Spans, StageSpan{parley.NoStage, e.Time, e.ID})
			}
		}
	case trace.Restart:
		r.down.Remove(e.At)
		r.restart(e)
	default:
		if got := r.progress(e); got.Stage != parley.NoStage {
			r.reach(stageKey{got.Of, e.At}, got.Stage, e)
		}
	}
}

// reach begins a stage. A lane begins by waiting, and an outcome is the end of it.
func (r *stageReader) reach(key stageKey, stage parley.Stage, e trace.Event) {
	lane := r.lane(key)
	last := &lane.Spans[len(lane.Spans)-1]
	switch {
	case r.down.Has(e.At) || last.Stage == stage:
		return
	case stage < parley.StageCommitted && last.Stage >= parley.StageCommitted: // a late message
		return
	case stage == parley.StageInDoubt && last.Stage > stage: // the same vote again
		return
	}
	r.out.Changed = max(r.out.Changed, e.Time)
	if last.Since == e.Time && last.Stage != parley.NoStage {
		last.Stage, last.Event = stage, e.ID
		return
	}
	lane.Spans = append(lane.Spans, StageSpan{stage, e.Time, e.ID})
}

func (r *stageReader) lane(key stageKey) *StageLane {
	if r.lanes[key] == nil {
		r.lanes[key] = &StageLane{At: key.at, Spans: []StageSpan{{Stage: parley.StageWaiting}}}
	}
	return r.lanes[key]
}

// restart continues with what is durable: a yes and an outcome are, and nothing else.
func (r *stageReader) restart(e trace.Event) {
	for key, lane := range r.lanes { // order: each lane by itself
		if key.at != e.At {
			continue
		}
		stage := parley.StageWaiting
		for _, s := range lane.Spans {
			if s.Stage > stage && e.Msg.Value != 1 {
				stage = s.Stage
			}
		}
		if stage == parley.StagePrepared || stage == parley.StageBlocked {
			stage = parley.StageInDoubt
		}
		lane.Spans = append(lane.Spans, StageSpan{stage, e.Time, e.ID})
	}
}

// Parting returns the beginning of the first outcome that differs from another process's, among processes that are not
// faulty, and whether there is one.
func (s *Stages) Parting(faulty parley.Set) (second StageSpan, parted bool) {
	if s.Named {
		return StageSpan{}, false
	}
	first := make(map[parley.Stage]StageSpan)
	for _, lane := range s.Lanes {
		for _, span := range lane.Spans {
			if known, has := first[span.Stage]; !faulty.Has(lane.At) && (!has || span.Event < known.Event) {
				first[span.Stage] = span
			}
		}
	}
	a, committed := first[parley.StageCommitted]
	b, aborted := first[parley.StageAborted]
	if a.Event > b.Event {
		b = a
	}
	return b, committed && aborted
}
