package report

import (
	"maps"
	"slices"

	"parley"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
)

// Replay feeds one process of a protocol the inputs that the trace records for it. The machine ends in the same state
// as in the run because it is deterministic. The error is about the first event that the machine does not survive.
func Replay(s form.Run, log *trace.Log, id parley.ID) (parley.Machine, error) {
	return again(s).Feed(log.Events, id, nil)
}

func again(s form.Run) sim.Replay {
	return sim.Replay{Protocol: s.Protocol, Signer: s.Signer(), Clocks: s.Plan.Clocks}
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
		// If its machine does not survive what liars send, what it would have sent before counts.
		_, _ = again(s).Feed(log.Events, id, func(began trace.Event, effects []parley.Effect) {
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
