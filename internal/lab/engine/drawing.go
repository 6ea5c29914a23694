package engine

import (
	"parley"
	"parley/internal/draw"
	"parley/internal/exploration"
	"parley/internal/report"
	"parley/trace"
)

// drawing are the events of a run with the times that pictures show.
type drawing struct {
	events  []trace.Event
	stepped bool // the times are the numbers of steps
}

// drawingOf returns the events of a run with the times that pictures show. Most events of a run that a search has found
// have the same time, if the protocol has no rounds; so their steps are numbered.
func drawingOf(p parley.Protocol, events []trace.Event, facts trace.Facts) drawing {
	if facts.Explored && p.Timing != parley.Synchronous {
		return drawing{exploration.OneByOne(events), true}
	}
	return drawing{events, false}
}

// timeOf returns the time of an event; 0 for no event.
func (d drawing) timeOf(event uint64) parley.Tick {
	if event == 0 {
		return 0
	}
	return d.events[event-1].Time
}

// of returns what there is to draw of a view, except what processes wait for.
func (d drawing) of(v *report.View) *draw.Run {
	r := v.Drawing(d.events)
	r.Steps = d.stepped
	return r
}

// times returns when the events happened.
func (d drawing) times() []TimeSpan {
	spans := []TimeSpan{}
	for _, e := range d.events {
		if len(spans) == 0 || spans[len(spans)-1].Time != e.Time {
			spans = append(spans, TimeSpan{e.ID, e.Time})
		}
	}
	return spans
}
