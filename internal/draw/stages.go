package draw

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scale"
	"parley/internal/draw/scene"
	"parley/trace"
)

// Stages draws how far each process is over time with what all must decide alike: a bar for each process, divided
// by its states, and light arrows for messages.
type Stages struct {
	reading.Style
	reading.Stages
	// Unit is the unit of time.
	Unit string
	Cuts []Cut
}

// Cut is a time in which some processes cannot reach others. Until 0 means to the end.
type Cut struct{ Since, Until parley.Tick }

// stageLook is the look of a stage: its colors, its texture, and its names in a bar and in the legend.
type stageLook struct {
	ink          scene.Ink
	fault, solid bool
	hatch        string // some of / \ | -
	name, means  string
}

var stageLooks = map[parley.Stage]stageLook{
	parley.StageWaiting:   {name: "waiting", means: "waiting: has not voted yes, may abort alone"},
	parley.StageInDoubt:   {ink: 2, hatch: "/", name: "in doubt", means: "in doubt: voted yes, outcome unknown"},
	parley.StagePrepared:  {ink: 1, hatch: "|", name: "prepared", means: "prepared: knows that all voted yes"},
	parley.StageBlocked:   {fault: true, hatch: `/\`, name: "blocked", means: "blocked: cannot find out the outcome"},
	parley.StageCommitted: {ink: 6, solid: true, name: "✓ committed", means: "committed"},
	parley.StageAborted:   {ink: 8, solid: true, hatch: "-", name: "✗ aborted", means: "aborted"},
}

const (
	barHeight    = 22
	mostMessages = 150 // maximum arrows between lanes
	mostBars     = 48  // maximum lanes
)

func (Stages) values() []string { return nil }

// lanes is the picture of stages under construction.
type lanes struct {
	Stages
	axis   scale.Axis
	rows   []int // the middle of each lane
	bottom int
	used   map[string]bool
	stages map[parley.Stage]bool
	drawn  int // messages
	hidden int // lanes
}

func (d Stages) picture(scene.Palette, int) picture {
	hidden := max(len(d.Lanes)-mostBars, 0)
	d.Lanes = d.Lanes[:len(d.Lanes)-hidden]
	l := lanes{Stages: d, hidden: hidden, used: make(map[string]bool), stages: make(map[parley.Stage]bool)}
	names := 0
	for _, lane := range d.Lanes {
		names = max(names, wide("name", d.Called(lane.At))+14)
	}
	l.axis = scale.Axis{To: l.end(), Left: names + 12, Width: figureWidth - names - 24}
	var ground, arrows, bars sketch
	ground.text("head", 0, 16, start, "What each process knows of the outcome")
	l.place(&ground)
	l.messages(&arrows)
	for i := range d.Lanes {
		l.lane(&bars, i)
	}
	drawAxis(l.axis, &ground, 28, l.bottom, d.Unit)
	l.cuts(&ground)
	l.parting(&bars)
	return picture{
		width: figureWidth, height: l.bottom + 24, legend: l.legend(),
		marks: slices.Concat(ground.marks, arrows.marks, bars.marks),
	}
}

// cuts marks the times in which the network is cut.
func (l *lanes) cuts(s *sketch) {
	known := make(map[Cut]bool)
	for _, c := range l.Cuts {
		if known[c] || c.Since > l.axis.To {
			continue
		}
		known[c], l.used["cut"] = true, true
		until := l.axis.To
		if c.Until > 0 {
			until = min(until, c.Until)
		}
		x := l.axis.At(c.Since)
		s.rect("cutoff", x, 24, max(l.axis.At(until)-x, 3), 5).Tip = "the network is cut from " + clockTime(c.Since)
		s.line("cut", x, 24, x, l.bottom)
		if c.Until > 0 && c.Until <= l.axis.To {
			s.line("cut", l.axis.At(until), 24, l.axis.At(until), l.bottom)
		}
	}
}

// parting marks the first time at which one process has committed and another one has aborted.
func (l *lanes) parting(s *sketch) {
	b, parted := l.Parting(l.Faulty)
	if !parted {
		return
	}
	x, from := l.axis.At(b.Since), len(s.marks)
	s.line("parting", x, 30, x, l.bottom)
	s.tip(from, "the outcomes differ from "+clockTime(b.Since))
	s.about(from, scene.Event(b.Event), b.Event, 0)
	l.used["parting"] = true
}

// end returns the time at which the picture ends: some time after the last change, or with the run if that is near.
func (l *lanes) end() parley.Tick {
	last := max(l.Changed+l.Changed/7, 1)
	if l.Over <= l.Changed*7/5 {
		last = max(last, l.Over)
	}
	return last
}

// place sets the places of the lanes, and names them.
func (l *lanes) place(s *sketch) {
	y, before := 30, ""
	pitch := 34
	if l.arrows() {
		pitch = 54
	}
	for _, lane := range l.Lanes {
		if l.Named && lane.Name != before {
			s.text("note", 0, y+14, start, lane.Name)
			y += 20
			before = lane.Name
		}
		first, faulty, name := len(s.marks), l.Faulty.Has(lane.At), l.Called(lane.At)
		w := wide("name", name) + 14
		s.process(w/2, y+pitch/2, name, faulty)
		s.about(first, scene.Process(lane.At), 0, 0)
		l.rows = append(l.rows, y+pitch/2)
		y += pitch
	}
	l.bottom = y + 4
}

// arrows reports whether messages are drawn.
func (l *lanes) arrows() bool {
	n := 0
	for _, m := range l.Messages {
		if m.Time <= l.axis.To {
			n++
		}
	}
	return !l.Named && n <= mostMessages && l.hidden == 0
}

func (l *lanes) messages(s *sketch) {
	if !l.arrows() {
		return
	}
	for i := range l.Messages {
		m := &l.Messages[i]
		if m.Time > l.axis.To {
			continue
		}
		l.drawn++
		first, down := len(s.marks), 1
		y1, y2 := l.rows[m.Peer], l.rows[m.At] // one lane for each process, in order
		if y2 < y1 {
			down = -1
		}
		y1, y2 = y1+down*(barHeight/2+1), y2-down*(barHeight/2+2)
		x1, x2 := l.axis.At(m.Sent.Time), l.axis.At(m.Time)
		until := m.ID
		switch {
		case m.Down:
			s.stopped("missing", "missed", x1, y1, max(l.axis.At(m.Fell), x1+8), y2)
			l.used["missed"], until = true, 0
		case m.Omitted:
			s.omitted("light", x1, y1, x2, y2)
			l.used["omitted"] = true
		case m.Op == trace.Lose:
			s.missing(x1, y1, max(x2, x1+8), y2-down*6)
			l.used["lost"] = true
		default:
			s.line("light", x1, y1, x2, y2).Arrow = true
			l.used["message"] = true
		}
		s.tip(first, messageTip(l.Style, m))
		s.about(first, scene.Event(m.ID), m.Sent.ID, until)
	}
}

// lane draws the bars of one lane.
func (l *lanes) lane(s *sketch, at int) {
	lane, y := l.Lanes[at], l.rows[at]
	if l.Faulty.Has(lane.At) {
		l.used["faulty"] = true
	}
	for i, span := range lane.Spans {
		until, to := l.axis.To, uint64(0)
		if i+1 < len(lane.Spans) {
			until, to = lane.Spans[i+1].Since, lane.Spans[i+1].Event
		}
		x, first := l.axis.At(span.Since), len(s.marks)
		w := max(l.axis.At(until)-x, 2)
		what := "is down"
		if span.Stage == parley.NoStage {
			s.line("down", x, y, x+w, y)
			s.cross(x, y)
			l.used["down"] = true
		} else {
			look := stageLooks[span.Stage]
			look.bar(s, x, y-barHeight/2, w, barHeight)
			l.stages[span.Stage] = true
			if wide("state", look.name)+10 <= w {
				look.label(s, x, y, w)
			}
			_, what, _ = strings.Cut(look.name, " ")
			if !look.solid {
				what = look.name
			}
			what = "is " + what
		}
		words := fmt.Sprintf("%s %s from %s", l.Called(lane.At), what, clockTime(span.Since))
		if to != 0 {
			words += " to " + clockTime(until)
		}
		s.tip(first, words)
		ref := scene.Event(span.Event)
		if span.Event == 0 {
			ref = scene.Process(lane.At)
		}
		s.about(first, ref, span.Event, to)
	}
}

// bar draws a rectangle with the look of a stage.
func (look stageLook) bar(s *sketch, x, y, w, h int) {
	role := "stage"
	if look.solid {
		role = "stage-solid"
	}
	m := s.rect(role, x, y, w, h)
	m.Ink, m.Faulty = look.ink, look.fault
	if path := scale.Hatching(look.hatch, x, y, w, h); path != "" {
		role = "stage-hatch"
		if look.solid {
			role = "stage-stripe"
		}
		m := s.path(role, "%s", path)
		m.Ink, m.Faulty = look.ink, look.fault
	}
}

// label writes the name of a stage into its bar.
func (look stageLook) label(s *sketch, x, y, w int) {
	tone := scene.Part{Text: look.name, Tone: "text"}
	role := "stage-plate"
	if look.solid {
		tone.Tone, role = "value", "stage-solid"
	}
	text := wide("state", look.name)
	m := s.rect(role, x+5, y-8, min(text+4, w-8), 16)
	m.Ink, m.Faulty = look.ink, look.fault
	s.parts("state", x+7, y+4, start, tone)
}

func (l *lanes) legend() (out legend) {
	for stage := parley.StageWaiting; stage <= parley.StageAborted; stage++ {
		look := stageLooks[stage]
		out.add(l.stages[stage], look.means, func(s *sketch, x, y int) { look.bar(s, x, y-7, 26, 14) })
	}
	out.add(l.used["message"], "message", func(s *sketch, x, y int) { s.line("light", x, y, x+26, y).Arrow = true })
	out = append(out, fates(l.used)...)
	out.add(l.used["down"], "crash, and then down", func(s *sketch, x, y int) {
		s.line("down", x+5, y, x+26, y)
		s.cross(x+5, y)
	})
	out.add(l.used["faulty"], "faulty process", faultyName)
	out.add(l.used["cut"], "the network is cut", func(s *sketch, x, y int) {
		s.rect("cutoff", x, y-3, 26, 5)
	})
	out.add(l.used["parting"], "one has committed, and another one has aborted", func(s *sketch, x, y int) {
		s.line("parting", x+13, y-9, x+13, y+9)
	})
	if l.Over > l.axis.To {
		out.remark(fmt.Sprintf("The run ends at %s; no process changes its state after %s.",
			clockTime(l.Over), clockTime(l.Changed)))
	}
	if l.hidden > 0 {
		out.remark(prose.Count(uint64(l.hidden), "more lane is", "more lanes are") +
			" not drawn; a trace has all of them.")
	}
	if left := len(l.Messages) - l.drawn; left > 0 {
		out.remark(prose.Count(uint64(left), "message is", "messages are") + " not drawn.")
	}
	if l.Alive > 0 {
		out.remark(prose.Count(l.Alive, "sign of life is", "signs of life are") + " not drawn.")
	}
	return out
}
