package sim

import (
	"slices"

	"parley"
	"parley/trace"
)

// Assumptions are the circumstances of the run so far, for [parley.Judge]: not what
// the options might have done, but what happened. Call it when the run is over. What
// befell liars, and processes that the caller has added to the faulty ones of the
// history, is a part of their being faulty. Who crashed for good was correct until
// then, and what befell it before counts.
func (s *Sim) Assumptions() parley.Assumptions {
	return s.Facts().Assumptions(s.opt.Protocol, &s.History)
}

// Facts returns what no event of the run so far tells, as the header of its trace has it.
func (s *Sim) Facts() trace.Facts {
	p := s.opt.Protocol
	a := trace.Facts{Over: s.History.Over}
	// order: the worst is looked for
	for _, how := range s.opt.Faulty {
		a.Worst = max(a.Worst, how.Model)
	}
	joined := s.joined()
	up := s.up()
	a.Network = parley.NetworkFaults{
		Lost: s.Stats.Lost > 0, Doubled: s.Stats.Doubled > 0, Reordered: s.Stats.Overtaken > 0,
		Late: s.Stats.Late > 0, Cut: s.Stats.Cut > 0 || s.Stats.NoEdge > 0 && !p.Relays, Disconnected: joined < up.Len(),
	}
	befell := func(whom parley.Set) bool { return whom.Minus(s.free()) != parley.Set{} }
	a.Processes = parley.ProcessFaults{
		Restarted: befell(s.restarted), LostDisk: befell(s.diskless), Paused: befell(s.paused) || s.wrongClock(),
		Suspected: s.Stats.FalseSuspicions > 0, Minority: 2*joined <= p.N,
	}
	return a
}

// free are the processes that may do what they like.
func (s *Sim) free() parley.Set { return s.History.Faulty.Minus(s.doomed) }

// up returns the correct processes that are not down.
func (s *Sim) up() parley.Set {
	out := s.Correct()
	for id := range out.All() {
		if s.procs[id].down {
			out.Remove(id)
		}
	}
	return out
}

// wrongClock tells whether a clock is further off, or drifts more, than promised.
func (s *Sim) wrongClock() bool {
	off := func(x, bound int64) bool { return x > bound || x < -bound }
	return slices.ContainsFunc(s.opt.Clocks, func(c Clock) bool {
		told := s.opt.Promised
		return !s.free().Has(c.At) && (off(int64(c.Offset), int64(told.Offset)) || off(c.Drift, told.Drift))
	})
}

// joined returns how many correct processes that are up can reach one another, both
// ways, over links that work now and through such processes alone: the most there
// are in one part of the network.
func (s *Sim) joined() int {
	left, most := s.up(), 0
	for left != (parley.Set{}) {
		for id := range left.All() {
			there, back := s.reached(id, s.works), s.reached(id, func(a, b parley.ID) bool { return s.works(b, a) })
			part := there.Minus(there.Minus(back))
			most, left = max(most, part.Len()), left.Minus(part)
			break
		}
	}
	return most
}

// reached returns the processes that a process can reach, itself too.
func (s *Sim) reached(from parley.ID, works func(a, b parley.ID) bool) parley.Set {
	up, out := s.up(), parley.SetOf(from)
	for next := []parley.ID{from}; len(next) > 0; next = next[1:] {
		for id := range up.Minus(out).All() {
			if works(next[0], id) {
				out.Add(id)
				next = append(next, id)
			}
		}
	}
	return out
}

// works tells whether a message from a to b may arrive if it is sent now.
func (s *Sim) works(a, b parley.ID) bool {
	own := s.opt.Protocol.Graph
	return s.edge(a, b) && (len(own) == 0 || own[a].Has(b)) && s.rule(a, b).Loss < 1
}
