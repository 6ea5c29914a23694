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

// VectorRequest submits this node's value for an agreement of all nodes on the vector of their values. Requests
// with one Name, Algorithm, and M belong together.
type VectorRequest struct {
	Name  string // at most MaxName bytes
	Value []byte // at most MaxProposal bytes
	// Algorithm and M are as in Request. For m > 2, Algorithm must be stream.PhaseKing or stream.SM.
	Algorithm stream.Algorithm
	M         int
	// Gather is how long this node waits for the others' values before it asks to begin the agreement; by
	// default 50 ms.
	Gather time.Duration
}

// The limits of proposals, in bytes.
const (
	MaxName     = stream.MaxName
	MaxProposal = stream.MaxProposal
)

// Vector is the vector that all correct nodes decide under one name.
type Vector struct {
	Name string
	Slot uint64 // of the decision
	// Values are the values of all nodes, in the order of Config.Members; nil stands for a node that
	// submitted no value. The caller may modify the values.
	Values [][]byte
}

// AgreeVector is interactive consistency: see cluster.Node.AgreeVector.
func (s *Service) AgreeVector(ctx context.Context, p VectorRequest) (Vector, error) {
	return s.propose(ctx, p, false)
}

// propose implements AgreeVector. voting requires that correct nodes can outvote faulty ones in the vector.
func (s *Service) propose(ctx context.Context, p VectorRequest, voting bool) (Vector, error) {
	t := s.key(p.Algorithm, p.M, stream.Everyone)
	v := Vector{Name: p.Name}
	switch {
	case p.Name == "" || len(p.Name) > MaxName:
		return v, fmt.Errorf("%w: the name has %d bytes: allowed are 1 to %d", kernel.ErrRefused, len(p.Name), MaxName)
	case len(p.Value) > MaxProposal:
		return v, fmt.Errorf("%w: the proposal has %d bytes: at most %d are allowed", kernel.ErrTooLarge,
			len(p.Value), MaxProposal)
	case p.Gather < 0:
		return v, fmt.Errorf("%w: the gathering time is %v: a positive one was expected", kernel.ErrRefused, p.Gather)
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
		return v, fmt.Errorf("cluster: no vector of %q: at least %d nodes must propose: %w", p.Name, t.M+1, err)
	}
	v.Slot = a.slot
	v.Values, _ = stream.AgreedVector(parley.Msg{Body: slices.Clone(a.value)}, len(s.k.Members)) // this node wrote it
	return v, nil
}

// gather is the default of VectorRequest.Gather.
const gather = 50 * time.Millisecond

// Consensus calls AgreeVector and applies a rule to the vector: see cluster.Node.Consensus.
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
