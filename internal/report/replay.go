package report

import (
	"maps"
	"parley"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
	"slices"
)

// Replay feeds one process of a protocol the inputs that the trace records for it. The machine ends in the same state
// as in the run because it is deterministic.
func Replay(s form.Run, log *trace.Log, id parley.ID) parley.Machine {
	return replay(s, log, id, func(trace.Event, []parley.Effect) {})
}

// replay calls effects with the effects of each step, and the event that began it.
func replay(s form.Run, log *trace.Log, id parley.ID, effects func(trace.Event, []parley.Effect)) parley.Machine {
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
		effects(e, step.Effects)
	}
	return m
}

// honest returns what the processes that lie in a run with rounds would have sent if they had been honest, given what
// they received.
func honest(s form.Run, log *trace.Log) (sent []trace.Event) {
	if s.Protocol.Timing != parley.Synchronous || s.Protocol.OnDemand || len(s.Node) > 0 {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(s.Faulty)) {
		if how := s.Faulty[id]; how.Choose == nil && how.Tell == nil || how.Hear != nil || how.Down != nil || how.Twin {
			continue // it does something else than lie
		}
		replay(s, log, id, func(began trace.Event, effects []parley.Effect) {
			for _, e := range effects {
				if e.Op == parley.OpSend {
					sent = append(sent, trace.Event{
						Op: trace.Send, At: id, Time: began.Time, Peer: e.To, Path: e.Path, Epoch: e.Epoch, Msg: e.Msg,
					})
				}
			}
		})
	}
	return sent
}

// replayHost signs as the run did. No protocol that has a tree tosses coins.
type replayHost struct{ sim.Signer }

func (replayHost) Choose(int) int                   { return 0 }
func (replayHost) Refused(_, _ parley.ID, _ string) {}
