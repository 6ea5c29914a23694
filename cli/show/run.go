// Package show shows a run that is over, made by whatever host: what happened in it and what that
// says of the protocol, as text, pictures and JSON.
package show

import (
	"parley"
	"parley/cli/console"
	"parley/internal/draw/reading"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// Run is a run that can be made, or has been, and how its reader calls the processes.
type Run struct {
	run.Spec // its plan leaves nothing open
	Names    console.Names
	Args     []string // the arguments of "parley run" that make the same run again
	Host     string   // the host that makes it, empty for the simulator
	Words    string   // what another host is, in words
}

// Style is how the run is drawn.
func (r Run) Style(width int) reading.Style {
	return reading.Style{Width: width, Name: r.Names.Full, Faulty: r.Liars()}
}

// Header returns the header of the run's trace.
func (r Run) Header(facts trace.Facts) trace.Header {
	h := r.Spec.Header(facts)
	h.Args, h.Names = r.Args, string(r.Names)
	return h
}

// Replay feeds one process of a protocol what the trace says that it met. The machine ends as it
// did then because it is deterministic.
func Replay(s Run, log *trace.Log, id parley.ID) parley.Machine {
	m := s.Protocol.New(id)
	step := parley.Step{Self: id, N: s.Protocol.N, Members: parley.SetOf(id), Host: replayHost{s.Signer()}}
	for _, e := range log.Events {
		if e.At != id {
			continue
		}
		step.Now, step.Path, step.Effects = e.Time, e.Path, step.Effects[:0]
		switch e.Op {
		case trace.Start:
			m.Start(&step)
		case trace.Request:
			m.Request(&step, e.Msg)
		case trace.Receive:
			m.Receive(&step, e.Peer, e.Msg)
		case trace.Timeout:
			m.Timeout(&step, parley.Timer(e.Msg.Value))
		}
	}
	return m
}

// replayHost signs as the run did. No protocol that has a tree tosses coins.
type replayHost struct{ sim.Signer }

func (replayHost) Choose(int) int                   { return 0 }
func (replayHost) Refused(_, _ parley.ID, _ string) {}
