// Package show shows a finished run of any host: what happened in it, and its verdicts, as text, pictures and JSON.
package show

import (
	"parley"
	"parley/cli/console"
	"parley/internal/draw/reading"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// Run is a run that can be made or has been made, with the naming of its processes.
type Run struct {
	run.Spec // its plan leaves nothing open
	Names    console.Names
	Args     []string // the arguments of "parley run" that repeat the run
	Host     string   // the host that makes the run; empty for the simulator
	Words    string   // describes the host, if not the simulator
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

// Replay feeds one process of a protocol the inputs that the trace records for it. The machine ends in the same state
// as in the run because it is deterministic.
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
