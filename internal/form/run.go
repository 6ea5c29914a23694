package form

import (
	"fmt"

	"parley"
	"parley/internal/draw/reading"
	"parley/internal/naming"
	"parley/run"
	"parley/trace"
)

// Run is a run that can be made or has been made, with the naming of its processes.
type Run struct {
	run.Spec // its plan leaves nothing open
	Names    naming.Names
	Args     []string // the arguments of "parley run" that repeat the run
	Host     string   // the host that makes the run; empty for the simulator
	Words    string   // describes the host, if not the simulator
	// Node is the program that is each process, with its arguments; nil: the processes are machines. Settings are the
	// protocol's own flags, which the program gets.
	Node     []string
	Settings map[string]string
}

// Style returns the style in which the run is drawn.
func (r Run) Style(width int) reading.Style {
	return reading.Style{Width: width, Name: r.Names.Full, Faulty: r.Liars()}
}

// Header returns the header of the run's trace.
func (r Run) Header(facts trace.Facts) trace.Header {
	h := r.Spec.Header(facts)
	h.Args, h.Names = r.Args, string(r.Names)
	return h
}

// Crashing describes the faulty processes that crash as their behavior says, at a time of which no event tells.
func (r Run) Crashing() []string {
	out := []string{}
	for id := range parley.ID(r.Protocol.N) {
		if when, ok := CrashTime(r.Faulty[id]); ok {
			out = append(out, fmt.Sprintf("%s is faulty and crashes at tick %d: from then on it sends nothing and handles "+
				"nothing that arrives; the story has no event of this crash", r.Names.Full(id), when.Nanoseconds()))
		}
	}
	return out
}
