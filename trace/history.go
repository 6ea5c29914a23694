package trace

import "parley"

// Record appends e to the list of h for op, and reports whether there is such a list. A history has lists of
// requests, deliveries, indications and restarts.
func Record(h *parley.History, op Op, e parley.ExternalEvent) bool {
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

// History returns the external events of the log. The header supplies the number of processes, the faulty
// processes, the names, and whether the run has ended.
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
		Record(out, e.Op, parley.ExternalEvent{At: e.At, From: from, When: e.Time, Order: e.ID, Path: e.Path, Msg: e.Msg})
	}
	return out
}

// RunConditions returns the conditions of a run of p with these facts, for [parley.Judge]. They are the faults in f,
// how many processes of hist are faulty or were down for a time, and whether the faulty processes disconnect the
// graph of p.
func (f Facts) RunConditions(p parley.Protocol, hist *parley.History) parley.RunConditions {
	a := parley.RunConditions{
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
		joined := Joined(correct, func(from, to parley.ID) bool { return p.Graph[from].Has(to) })
		a.Network.Disconnected = a.Network.Disconnected || joined < correct.Len()
		a.Processes.Minority = a.Processes.Minority || 2*joined <= p.N
	}
	return a
}

// Joined returns the size of the largest part of a network. The processes of a part are in among, and can reach each
// other, both ways, over working links and only through processes in among.
func Joined(among parley.Set, works func(from, to parley.ID) bool) (most int) {
	reached := func(from parley.ID, works func(a, b parley.ID) bool) parley.Set {
		out := parley.SetOf(from)
		for next := []parley.ID{from}; len(next) > 0; next = next[1:] {
			for id := range among.Minus(out).All() {
				if works(next[0], id) {
					out.Add(id)
					next = append(next, id)
				}
			}
		}
		return out
	}
	for left := among; left != (parley.Set{}); {
		for id := range left.All() {
			there, back := reached(id, works), reached(id, func(a, b parley.ID) bool { return works(b, a) })
			part := there.Minus(there.Minus(back))
			most, left = max(most, part.Len()), left.Minus(part)
			break
		}
	}
	return most
}
