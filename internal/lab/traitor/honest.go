package traitor

import (
	"maps"

	"parley"
	"parley/faulty"
	"parley/internal/form"
	"parley/sim"
	"parley/trace"
)

// Sending is what one process sends to another one in a round.
type Sending struct {
	Round    int
	From, To parley.ID
}

// Honest returns the rows that the faulty processes of a run with rounds would send if they were honest. It makes the
// run once more, and returns the hash of its trace, which must not differ.
func Honest(r form.Run) (rows map[Sending][]string, hash string) {
	rows = make(map[Sending][]string)
	if !inRounds(r.Protocol) {
		return rows, ""
	}
	opt := r.Options()
	opt.Log = &trace.Log{}
	opt.Faulty = maps.Clone(r.Faulty)
	for id, how := range r.Faulty { // order: the iterations are independent
		if how.Tell == nil && (how.Choose == nil || r.Protocol.Lies == nil) {
			continue // it is honest, or acts twice
		}
		noting := how
		noting.Choose = nil
		noting.Tell = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			p := seat{Run: r, id: id, how: how}
			rows[Sending{faulty.RoundOf(t), id, t.To}] = p.rows(t, t.Honest)
			if how.Tell != nil {
				return how.Tell(s, t)
			}
			out, _ := p.lie(s, t, func(k, n int) int { return how.Choose(s, t, k, n) })
			return out
		}
		opt.Faulty[id] = noting
	}
	sim.Run(opt)
	return rows, opt.Log.Hash()
}
