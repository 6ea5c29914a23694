package agree

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/stream"
	"parley/cluster/kernel"
)

// VectorRequest hands in this node's value for an agreement of all nodes on the vector of
// their values. Nodes find each other by the name; Algorithm and M must be alike.
type VectorRequest struct {
	Name  string // at most MaxName bytes
	Value []byte // at most MaxProposal bytes
	// Algorithm and M as in a Question. For m > 2 it must be stream.PhaseKing or stream.SM.
	Algorithm stream.Algorithm
	M         int
	// Gather is how long this node waits for the others' values before it asks for the
	// agreement to begin; by default 50 ms.
	Gather time.Duration
}

// The limits of proposals, in bytes.
const (
	MaxName     = stream.MaxName
	MaxProposal = stream.MaxProposal
)

// Vector is what all correct nodes agree on under one name.
type Vector struct {
	Name string
	Slot uint64 // in which it was agreed on
	// Values are the values of all nodes, by their places in Config.Members; nil stands for a
	// node that had handed in none. The caller may do with them what it likes.
	Values [][]byte
}

// AgreeVector is interactive consistency: see cluster.Node.AgreeVector.
func (s *Service) AgreeVector(ctx context.Context, p VectorRequest) (Vector, error) {
	return s.propose(ctx, p, false)
}

// propose is Propose, with voting for a vector by which correct nodes are to outvote liars.
func (s *Service) propose(ctx context.Context, p VectorRequest, voting bool) (Vector, error) {
	t := s.key(p.Algorithm, p.M, stream.Everyone)
	v := Vector{Name: p.Name}
	switch {
	case p.Name == "" || len(p.Name) > MaxName:
		return v, fmt.Errorf("%w: a name of %d bytes: allowed are 1 to %d", kernel.ErrRefused, len(p.Name), MaxName)
	case len(p.Value) > MaxProposal:
		return v, fmt.Errorf("%w: a proposal of %d bytes: at most %d", kernel.ErrTooLarge, len(p.Value), MaxProposal)
	case p.Gather < 0:
		return v, fmt.Errorf("%w: a gathering time of %v", kernel.ErrRefused, p.Gather)
	case p.Gather == 0:
		p.Gather = gather
	}
	o, err := s.ready(t)
	switch {
	case err != nil:
		return v, err
	case voting && len(s.k.Members) <= 2*t.M:
		return v, fmt.Errorf("%w: m = %d of %d nodes can outvote the others: consensus needs n > 2m",
			kernel.ErrRefused, t.M, len(s.k.Members))
	}
	a, err := o.ask(ctx, stream.VectorRequest(p.Name, p.Value, parley.Tick(p.Gather)))
	if err != nil {
		return v, fmt.Errorf("cluster: no vector of %q, for which %d nodes must ask: %w", p.Name, t.M+1, err)
	}
	v.Slot = a.slot
	v.Values, _ = stream.AgreedVector(parley.Msg{Body: slices.Clone(a.value)}, len(s.k.Members)) // this node wrote it
	return v, nil
}

// gather is how long a node waits for others' values unless it is told otherwise.
const gather = 50 * time.Millisecond

// Consensus is Propose and then a rule of the vector: see cluster.Node.Consensus.
func (s *Service) Consensus(ctx context.Context, p VectorRequest, rule consensus.Rule, otherwise []byte,
) ([]byte, Vector, error) {
	v, err := s.propose(ctx, p, true)
	if err != nil {
		return nil, v, err
	}
	if rule.Of == nil {
		rule = consensus.Majority
	}
	vector := slices.Clone(v.Values)
	for i := range vector {
		if vector[i] == nil {
			vector[i] = otherwise
		}
	}
	return rule.Of(vector, otherwise), v, nil
}
