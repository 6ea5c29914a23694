package api

import (
	"context"
	"errors"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// commit is CommitService.
type commit struct{ s *Server }

func (h commit) Commit(ctx context.Context, r *parleyv1.CommitRequest) (*parleyv1.CommitResponse, error) {
	committed, err := h.s.c.Node.Commit(ctx, r.GetTransaction(), r.GetBodies())
	if err != nil {
		return nil, err
	}
	return &parleyv1.CommitResponse{Committed: committed}, nil
}

func (h commit) Outcome(_ context.Context, r *parleyv1.OutcomeRequest) (*parleyv1.OutcomeResponse, error) {
	o, err := h.s.c.Node.Outcome(r.GetTransaction())
	if err != nil && !errors.Is(err, cluster.ErrBlocked) { // else the outcome says so
		return nil, err
	}
	return outcome(o), nil
}

var states = map[cluster.TxState]parleyv1.TransactionState{
	cluster.Pending:   parleyv1.TransactionState_TRANSACTION_STATE_PENDING,
	cluster.Committed: parleyv1.TransactionState_TRANSACTION_STATE_COMMITTED,
	cluster.Aborted:   parleyv1.TransactionState_TRANSACTION_STATE_ABORTED,
}

// outcome is that of a transaction as clients get it.
func outcome(o cluster.Outcome) *parleyv1.OutcomeResponse {
	return &parleyv1.OutcomeResponse{Transaction: o.Tx, State: states[o.State], Why: o.Why, Waits: o.Waits}
}
