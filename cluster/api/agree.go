package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"parley"
	"parley/agreement/consensus"
	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/internal/lists"
)

// agreement implements AgreeService.
type agreement struct{ s *Server }

var algorithms = map[parleyv1.Algorithm]cluster.Algorithm{
	parleyv1.Algorithm_ALGORITHM_UNSPECIFIED: cluster.EIG,
	parleyv1.Algorithm_ALGORITHM_EIG:         cluster.EIG,
	parleyv1.Algorithm_ALGORITHM_OM:          cluster.OM,
	parleyv1.Algorithm_ALGORITHM_SM:          cluster.SM,
	parleyv1.Algorithm_ALGORITHM_PHASE_KING:  cluster.PhaseKing,
	parleyv1.Algorithm_ALGORITHM_TETRA:       cluster.Tetra,
}

// wire returns the value of the API for a value of a node: the inverse of values, without the unspecified value.
func wire[W, N comparable](values map[W]N, of N) (none W) {
	for w, n := range values { // order: one fits
		if n == of && w != none {
			return w
		}
	}
	return none
}

var rules = map[parleyv1.Rule]consensus.Rule{
	parleyv1.Rule_RULE_UNSPECIFIED: consensus.Majority,
	parleyv1.Rule_RULE_MAJORITY:    consensus.Majority,
	parleyv1.Rule_RULE_MEDIAN:      consensus.Median,
	parleyv1.Rule_RULE_MINIMUM:     consensus.Minimum,
	parleyv1.Rule_RULE_MAXIMUM:     consensus.Maximum,
}

// mostLiars is larger than any m that a cluster tolerates.
const mostLiars = 1 << 10

// asked parses the kind of a requested agreement.
func asked(a parleyv1.Algorithm, m uint32) (cluster.Algorithm, int, error) {
	algorithm, ok := algorithms[a]
	switch {
	case !ok:
		return 0, 0, invalid("there is no algorithm %d", a)
	case m > mostLiars:
		return 0, 0, invalid("m = %d: so many nodes there are not", m)
	}
	return algorithm, int(m), nil
}

// agreeFailed returns the error of an agreement. A refusal that is not due to the time or the state of the node
// is due to an invalid request.
func agreeFailed(err error) error {
	if err == nil {
		return nil
	}
	f := failed(err)
	switch {
	case errors.Is(err, cluster.ErrAbstained):
		f.code, f.reason = connect.CodeAborted, "abstained"
	case f.reason == "refused" && errors.Is(err, cluster.ErrReserved):
		f.code, f.reason = connect.CodeInvalidArgument, "reserved"
	case f.reason == "refused":
		f.code, f.reason = connect.CodeInvalidArgument, "invalid"
	}
	return f
}

func (h agreement) Agree(ctx context.Context, r *parleyv1.AgreeRequest) (*parleyv1.AgreeResponse, error) {
	algorithm, m, err := asked(r.GetAlgorithm(), r.GetM())
	if err != nil {
		return nil, err
	}
	d, err := h.s.c.Node.Agree(ctx, cluster.AgreeRequest{
		Value: r.GetValue(), Algorithm: algorithm, M: m, Evidence: r.GetEvidence(),
	})
	return &parleyv1.AgreeResponse{Decision: h.decision(d)}, agreeFailed(err)
}

// decision converts a decision.
func (h agreement) decision(d cluster.Decision) *parleyv1.Decision {
	names := h.s.members
	out := &parleyv1.Decision{
		Source: names.name(d.Source), Algorithm: wire(algorithms, d.Algorithm), M: uint32(d.M), Slot: d.Slot,
		Value: some(d.Value),
	}
	for _, a := range d.Evidence {
		account := &parleyv1.Account{Node: names.name(a.Node), Cut: a.Cut}
		for _, x := range a.Received {
			account.Heard = append(account.Heard,
				&parleyv1.Heard{Round: uint32(x.Round), From: names.name(x.From), Text: x.Text})
		}
		for _, b := range a.Tree {
			path := lists.Of(b.Path, names.name)
			account.Tree = append(account.Tree, &parleyv1.Branch{Path: path, In: some(b.In), Out: some(b.Out)})
		}
		out.Evidence = append(out.Evidence, account)
	}
	return out
}

// reserved is the value that stands for no value among nodes: see [cluster.ErrReserved].
const reserved = "\x00nothing\x00"

// some returns a value, nil if it stands for none.
func some(value []byte) []byte {
	if string(value) == reserved {
		return nil
	}
	return value
}

// proposal parses a proposal.
func proposal(r *parleyv1.ProposeRequest) (cluster.VectorRequest, error) {
	algorithm, m, err := asked(r.GetAlgorithm(), r.GetM())
	if err != nil {
		return cluster.VectorRequest{}, err
	}
	if r.GetGather() != nil && r.GetGather().CheckValid() != nil {
		return cluster.VectorRequest{}, invalid("gather: %w", r.GetGather().CheckValid())
	}
	return cluster.VectorRequest{
		Name: r.GetName(), Value: r.GetValue(), Algorithm: algorithm, M: m, Gather: r.GetGather().AsDuration(),
	}, nil
}

// vector converts a vector.
func (h agreement) vector(v cluster.Vector) *parleyv1.Vector {
	out := &parleyv1.Vector{Name: v.Name, Slot: v.Slot}
	for id, value := range v.Values {
		out.Entries = append(out.Entries, &parleyv1.Entry{Node: h.s.members.name(parley.ID(id)), Value: value})
	}
	return out
}

func (h agreement) Propose(ctx context.Context, r *parleyv1.ProposeRequest) (*parleyv1.ProposeResponse, error) {
	p, err := proposal(r)
	if err != nil {
		return nil, err
	}
	v, err := h.s.c.Node.AgreeVector(ctx, p)
	return &parleyv1.ProposeResponse{Vector: h.vector(v)}, agreeFailed(err)
}

func (h agreement) Consensus(ctx context.Context, r *parleyv1.ConsensusRequest) (*parleyv1.ConsensusResponse, error) {
	p, err := proposal(r.GetProposal())
	if err != nil {
		return nil, err
	}
	rule, ok := rules[r.GetRule()]
	if !ok {
		return nil, invalid("there is no rule %d", r.GetRule())
	}
	value, v, err := h.s.c.Node.Consensus(ctx, p, rule, r.GetOtherwise())
	return &parleyv1.ConsensusResponse{Value: value, Vector: h.vector(v)}, agreeFailed(err)
}

// mostDecisions is how many decisions may wait for a client that reads slowly before it is cut off.
const mostDecisions = 4096

func (h agreement) Decisions(
	ctx context.Context, _ *parleyv1.DecisionsRequest, to *connect.ServerStream[parleyv1.DecisionsResponse],
) error {
	waiting := make(chan cluster.Decision, mostDecisions)
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	stop := h.s.c.Node.Decisions(func(d cluster.Decision) {
		select {
		case waiting <- d:
		default:
			cut(errSlow)
		}
	})
	defer stop()
	return follow(ctx, to, func() *parleyv1.DecisionsResponse {
		return &parleyv1.DecisionsResponse{}
	}, func(ctx context.Context) (*parleyv1.DecisionsResponse, error) {
		select {
		case d := <-waiting:
			return &parleyv1.DecisionsResponse{Decision: h.decision(d)}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
}
