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
	// Cuts are the times in which links between processes lose everything.
	Cuts []Cut
	// Crashed are the faulty processes that crash without an event, each with the time.
	Crashed map[parley.ID]parley.Tick
	// Tainted are events that depend on what broke a property.
	Tainted map[uint64]bool
	// Steps reports that times are numbers of steps, because nothing determines the delays. Such a run has no clocks.
	Steps bool
}

// Scene draws the run.
func (r *Run) Scene() scene.Scene {
	parts, _ := r.parts()
	return Figure(r.Heading, parts...)
}

// The names of pictures of a run.
const (
	ClocksPicture    = "clocks"
	StagesPicture    = "stages"
	OrderPicture     = "order"
	RoundsPicture    = "rounds"
	SpaceTimePicture = "spacetime"
	TreePicture      = "tree"
)

// Pictures returns the names of the pictures that Scene consists of, from top to bottom. There may be several trees.
func (r *Run) Pictures() []string {
	_, names := r.parts()
	return names
}

// Picture draws those parts of Scene that have a name, in the colors of the whole, without a heading.
func (r *Run) Picture(name string) scene.Scene {
	parts, names := r.parts()
	inks := inksOf(parts)
	var chosen []picture
	for i, p := range parts {
		if names[i] == name {
			chosen = append(chosen, p.picture(inks, 0))
		}
	}
	return figure(Heading{}, chosen...)
}

// parts returns the parts of the picture with their names.
func (r *Run) parts() (parts []Part, names []string) {
	add := func(name string, p Part) { parts, names = append(parts, p), append(names, name) }
	unit := "ticks"
	if r.Steps {
		unit = "steps"
	}
	if clocks, ok := reading.ClocksOf(r.Protocol, r.Events, r.Style); ok && !r.Steps {
		add(ClocksPicture, Clocks{r.Style, clocks})
	}
	stages, staged := reading.StagesOf(r.Protocol, r.Events, r.Style)
	if staged {
		stages.Crash(r.Crashed)
		add(StagesPicture, Stages{r.Style, stages, unit, r.Cuts})
	}
	rounds := r.Protocol.Timing == parley.Synchronous
	events := !rounds && !staged && len(parts) == 0 // messages say less than states and clocks
	order, ok := reading.Sequence(r.Protocol, r.Events, r.Style)
	if ok && (order.Delivered || !events) { // otherwise the picture of the events shows all of it
		add(OrderPicture, Order{r.Style, order, r.Tainted})
	}
	switch {
	case rounds:
		d := Diagram{Style: r.Style, Lives: r.Lives, Rounds: r.Rounds}
		add(RoundsPicture, d)
		for _, t := range r.Trees {
			t.Filled = d.Arrivals(t.Of)
			add(TreePicture, t)
		}
	case events:
		add(SpaceTimePicture, SpaceTime{r.SpaceTimeOptions, r.Protocol,
			reading.OnceSpaceTime(r.Protocol, r.Events, r.SpaceTimeOptions), unit})
	}
	return parts, names
}
