package report

import (
	"parley"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
)

// Replay feeds one process of a protocol the inputs that the trace records for it. The machine ends in the same state
// as in the run because it is deterministic.
func Replay(s form.Run, log *trace.Log, id parley.ID) parley.Machine {
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
