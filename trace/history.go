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

// Assumptions returns the circumstances of a run of p with these facts, for
// [parley.Judge]: those that the facts name, how many processes of hist are faulty or were
// away, and whether these cut the graph of p into parts.
func (f Facts) Assumptions(p parley.Protocol, hist *parley.History) parley.Assumptions {
	a := parley.Assumptions{
		N: p.N, M: p.M, Faulty: hist.Faulty.Len(), Worst: f.Worst, Network: f.Network, Processes: f.Processes,
	}
	var back parley.Set
	for _, r := range hist.Restarts {
		back.Add(r.At)
	}
	a.Away = back.Minus(hist.Faulty).Len()
	if p.Proposers.Len() == 1 {
		a.SourceFaulty = p.Proposers.Minus(hist.Faulty) == parley.Set{}
	}
	if correct := parley.Everyone(p.N).Minus(hist.Faulty); len(p.Graph) > 0 {
		joined := largest(p.Graph, correct)
		a.Network.Disconnected = a.Network.Disconnected || joined < correct.Len()
		a.Processes.Minority = a.Processes.Minority || 2*joined <= p.N
	}
	return a
}

// largest returns how many processes there are in the largest part of a graph, of those
// given alone.
func largest(graph []parley.Set, among parley.Set) (most int) {
	for left := among; left != (parley.Set{}); {
		var part parley.Set
		for id := range left.All() {
			part.Add(id)
			break
		}
		for next := part; next != (parley.Set{}); {
			var more parley.Set
			for id := range next.All() {
				for to := range graph[id].All() {
					if among.Has(to) && part.Add(to) {
						more.Add(to)
					}
				}
			}
			next = more
		}
		most, left = max(most, part.Len()), left.Minus(part)
	}
	return most
}
