package report

import (
	"parley"
	"parley/internal/draw/reading"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
)

// mostWatched is the number of events of the longest run that is replayed to find what its processes wait for.
const mostWatched = 20_000

// Waits replays a run and returns what each process held and waited for, step by step. It returns nothing for a run
// that is too long, that has rounds, or that the log does not determine because its machines draw random values.
func Waits(s form.Run, log *trace.Log, facts trace.Facts, faulty parley.Set) []reading.WaitSpan {
	if log.Len() > mostWatched || s.Protocol.Timing == parley.Synchronous { // in rounds nothing is held back
		return nil
	}
	again := sim.Replay{
		Protocol: s.Protocol, Faulty: s.Liars(), Signer: s.Signer(), Clocks: s.Plan.Clocks, Stepped: facts.Stepped,
		Naming: s.Names.Full,
	}
	var all reading.Waits
	if err := again.WatchDerived(log.Events, all.Step); err != nil {
		return nil
	}
	return all.End(faulty)
}
