package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// levels maps the levels of groups. LEVEL_UNSPECIFIED is missing.
var levels = map[parleyv1.Level]cluster.Level{
	parleyv1.Level_LEVEL_TOTAL:     cluster.Total,
	parleyv1.Level_LEVEL_RELIABLE:  cluster.Reliable,
	parleyv1.Level_LEVEL_UNIFORM:   cluster.Uniform,
	parleyv1.Level_LEVEL_FIFO:      cluster.FIFO,
	parleyv1.Level_LEVEL_CAUSAL:    cluster.Causal,
	parleyv1.Level_LEVEL_ATOMIC:    cluster.Atomic,
	parleyv1.Level_LEVEL_BYZANTINE: cluster.Byzantine,
}

// group is this node's membership in a group, with its level.
type group struct {
	*cluster.Group
	level cluster.Level
}

// groups implements GroupService.
type groups struct{ s *Server }

// find returns this node's membership in a group.
func (h groups) find(name string) (group, error) {
	for _, c := range h.s.c.Cluster.Groups {
		if c.Name == name {
			return group{h.s.c.Node.Group(name), c.Level}, nil
		}
	}
	return group{}, refuse(connect.CodeNotFound, "no group", "there is no group %q", name)
}

// Limits of broadcasts and fetches.
const (
	maxPayload = 60 << 10 // which any group can carry
	maxFetched = 1 << 20  // bytes in one answer
	mostFetch  = 1000     // deliveries
	longFetch  = time.Minute
	usualFetch = 10 * time.Second
)

func (h groups) Broadcast(ctx context.Context, r *parleyv1.BroadcastRequest) (*parleyv1.BroadcastResponse, error) {
	g, err := h.find(r.GetGroup())
	if err != nil {
		return nil, err
	}
	level, given := levels[r.GetLevel()]
	switch {
	case !given && r.GetLevel() != parleyv1.Level_LEVEL_UNSPECIFIED:
		return nil, invalid("there is no level %d", r.GetLevel())
	case !given:
		level = g.level
	case !g.level.Carries(level):
		return nil, invalid("a group of level %s has no payloads of level %s", g.level, level)
	}
	if len(r.GetPayload()) > maxPayload {
		return nil, invalid("a payload of %d bytes: at most %d are allowed", len(r.GetPayload()), maxPayload)
	}
	position, err := g.BroadcastAt(ctx, level, r.GetPayload())
	return &parleyv1.BroadcastResponse{Position: position}, err
}

// delivery converts a delivery.
func (h groups) delivery(d cluster.Delivery) *parleyv1.Delivery {
	return &parleyv1.Delivery{Position: d.Position, From: h.s.members.name(d.From), Payload: d.Payload}
}

func (h groups) Subscribe(
	ctx context.Context, r *parleyv1.SubscribeRequest, to *connect.ServerStream[parleyv1.SubscribeResponse],
) error {
	g, err := h.find(r.GetGroup())
	if err != nil {
		return err
	}
	sub, err := g.Group.Subscribe(r.GetFrom())
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	return follow(ctx, to, func() *parleyv1.SubscribeResponse {
		return &parleyv1.SubscribeResponse{Next: sub.Position()}
	}, func(ctx context.Context) (*parleyv1.SubscribeResponse, error) {
		d, err := sub.Next(ctx)
		return &parleyv1.SubscribeResponse{Delivery: h.delivery(d), Next: sub.Position()}, err
	})
}

func (h groups) Fetch(ctx context.Context, r *parleyv1.FetchRequest) (*parleyv1.FetchResponse, error) {
	g, err := h.find(r.GetGroup())
	if err != nil {
		return nil, err
	}
	wait := usualFetch
	if r.GetWait() != nil {
		if wait = r.GetWait().AsDuration(); r.GetWait().CheckValid() != nil || wait < 0 || wait > longFetch {
			return nil, invalid("wait: %v: allowed are 0 to %v", wait, longFetch)
		}
	}
	limit := int(r.GetLimit())
	if limit == 0 || limit > mostFetch {
		limit = mostFetch
	}
	sub, err := g.Group.Subscribe(r.GetFrom())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Close() }()
	out := &parleyv1.FetchResponse{}
	over, cancel := context.WithTimeoutCause(ctx, wait, errNothing)
	defer cancel()
	for size := 0; len(out.Deliveries) < limit && size < maxFetched; {
		d, err := sub.Next(over)
		if err != nil && len(out.Deliveries) == 0 && !errors.Is(context.Cause(over), errNothing) {
			return nil, err
		}
		if err != nil {
			break // a permanent error recurs at the next request
		}
		out.Deliveries = append(out.Deliveries, h.delivery(d))
		size += len(d.Payload)
		cancel() // deliveries that are already here need no waiting
	}
	out.Next = sub.Position()
	return out, nil
}
