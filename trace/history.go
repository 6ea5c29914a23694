package trace

import "parley"

// Record appends e to the list of h that op belongs to and tells whether there is one: a
// history has what crosses the border to the layer above, and restarts.
func Record(h *parley.History, op Op, e parley.Happening) bool {
	switch op {
	case Request:
		h.Requests = append(h.Requests, e)
	case Deliver:
		h.Deliveries = append(h.Deliveries, e)
	case Indicate:
		h.Indications = append(h.Indications, e)
	case Restart:
		h.Restarts = append(h.Restarts, e)
	default:
		return false
	}
	return true
}

// History returns what the run of the log looks like from above. The header says how many
// processes there are, which of them are faulty, what they are called and whether the run
// has ended.
func (l *Log) History(h Header) *parley.History {
	out := &parley.History{N: h.N, Over: h.Facts.Over, Naming: h.Name}
	for _, id := range h.Faulty {
		out.Faulty.Add(parley.ID(id))
	}
	for i := range l.Events {
		e := &l.Events[i]
		from := e.At
		if e.Op == Deliver {
			from = e.Peer
		}
		Record(out, e.Op, parley.Happening{At: e.At, From: from, When: e.Time, Order: e.ID, Path: e.Path, Msg: e.Msg})
	}
	return out
}

// Assumptions returns the circumstances of the run of a trace, for [parley.Judge].
func (h Header) Assumptions(p parley.Protocol, hist *parley.History) parley.Assumptions {
	return h.Facts.Assumptions(p, hist)
}

// Assumptions returns the circumstances of a run of p with these facts, for
// [parley.Judge]: those that the facts name, and how many processes of hist are faulty.
func (f Facts) Assumptions(p parley.Protocol, hist *parley.History) parley.Assumptions {
	a := parley.Assumptions{
		N: p.N, M: p.M, Faulty: hist.Faulty.Len(), Worst: f.Worst, Network: f.Network, Processes: f.Processes,
	}
	if p.Proposers.Len() == 1 {
		a.SourceFaulty = p.Proposers.Minus(hist.Faulty) == parley.Set{}
	}
	return a
}
