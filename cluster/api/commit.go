package api

import (
	"context"
	"errors"
	"maps"
	"slices"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// commit implements CommitService.
type commit struct{ s *Server }

func (h commit) Commit(ctx context.Context, r *parleyv1.CommitRequest) (*parleyv1.CommitResponse, error) {
	if err := h.check(r); err != nil {
		return nil, err
	}
	committed, err := h.s.c.Node.Commit(ctx, r.GetTransaction(), r.GetBodies())
	if err != nil {
		return nil, err
	}
	out := &parleyv1.CommitResponse{Committed: committed}
	if o, err := h.s.c.Node.Outcome(r.GetTransaction()); err == nil && !committed {
		out.Why = o.Why
	}
	return out, nil
}

// check validates a transaction.
func (h commit) check(r *parleyv1.CommitRequest) error {
	switch n := len(r.GetTransaction()); {
	case n == 0 || n > cluster.MaxTx:
		return invalid("a name of %d bytes: allowed are 1 to %d", n, cluster.MaxTx)
	case len(r.GetBodies()) == 0:
		return invalid("no bodies: what members are to do was expected")
	}
	for _, name := range slices.Sorted(maps.Keys(r.GetBodies())) {
		if err := h.s.members.check(name); err != nil {
			return err
		}
		if n := len(r.GetBodies()[name]); n > cluster.MaxPart {
			return invalid("%d bytes for %s: at most %d are allowed", n, name, cluster.MaxPart)
		}
	}
	return nil
}

func (h commit) Outcome(_ context.Context, r *parleyv1.OutcomeRequest) (*parleyv1.OutcomeResponse, error) {
	o, err := h.s.c.Node.Outcome(r.GetTransaction())
	if err != nil && !errors.Is(err, cluster.ErrBlocked) { // otherwise the outcome says so
		return nil, err
	}
	return outcome(o), nil
}

var states = map[cluster.TxState]parleyv1.TransactionState{
	cluster.Pending:   parleyv1.TransactionState_TRANSACTION_STATE_PENDING,
	cluster.Committed: parleyv1.TransactionState_TRANSACTION_STATE_COMMITTED,
	cluster.Aborted:   parleyv1.TransactionState_TRANSACTION_STATE_ABORTED,
}

// outcome converts the outcome of a transaction.
func outcome(o cluster.Outcome) *parleyv1.OutcomeResponse {
	return &parleyv1.OutcomeResponse{Transaction: o.Tx, State: states[o.State], Why: o.Why, Waits: o.Waits}
}
