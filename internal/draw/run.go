package draw

import (
	"parley"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/trace"
)

// Run is a run to draw. What is drawn depends on what the run and its protocol have: clocks, the states of a decision
// that all take alike, an order of deliveries, rounds or other messages, and information trees.
type Run struct {
	Heading
	reading.SpaceTimeOptions
	Protocol parley.Protocol
	Events   []trace.Event
	Lives    []reading.Outcome
	Rounds   []reading.Round
	// Trees are the information trees to draw.
	Trees []Tree
	// Steps reports that times are numbers of steps, because nothing determines the delays. Such a run has no clocks.
	Steps bool
}

// Scene draws the run.
func (r *Run) Scene() scene.Scene { return Figure(r.Heading, r.parts()...) }

func (r *Run) parts() (parts []Part) {
	unit := "ticks"
	if r.Steps {
		unit = "steps"
	}
	if clocks, ok := reading.ClocksOf(r.Protocol, r.Events, r.Style); ok && !r.Steps {
		parts = append(parts, Clocks{r.Style, clocks})
	}
	stages, staged := reading.StagesOf(r.Protocol, r.Events, r.Style)
	if staged {
		parts = append(parts, Stages{r.Style, stages, unit})
	}
	rounds := r.Protocol.Timing == parley.Synchronous
	events := !rounds && !staged && len(parts) == 0 // messages say less than states and clocks
	order, ok := reading.Sequence(r.Protocol, r.Events, r.Style)
	if ok && (order.Delivered || !events) { // otherwise the picture of the events shows all of it
		parts = append(parts, Order{r.Style, order})
	}
	switch {
	case rounds:
		d := Diagram{Style: r.Style, Lives: r.Lives, Rounds: r.Rounds}
		parts = append(parts, d)
		for _, t := range r.Trees {
			t.Filled = d.Arrivals(t.Of)
			parts = append(parts, t)
		}
	case events:
		parts = append(parts, SpaceTime{r.SpaceTimeOptions, r.Protocol, r.Events, unit})
	}
	return parts
}
