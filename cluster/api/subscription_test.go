package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// subscribe returns a subscription to a group through several nodes, from its first position.
func (s *served) subscribe(t *testing.T, group string, nodes ...int) *client.Subscription {
	t.Helper()
	var list []*client.Client
	for _, i := range nodes {
		list = append(list, s.client(t, i, all))
	}
	sub, err := client.NewNodes(list...).Subscribe(t.Context(), group, 1)
	must(t, err)
	t.Cleanup(func() { _ = sub.Close() })
	return sub
}

// cast broadcasts the numbers from..to.
func (s *served) cast(t *testing.T, group string, from, to int) {
	t.Helper()
	c := s.client(t, 0, all)
	for i := from; i < to; i++ {
		r := &parleyv1.BroadcastRequest{Group: group, Payload: fmt.Append(nil, i)}
		if _, err := c.Group.Broadcast(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// hear requires the delivery of the numbers from..to.
func hear(t *testing.T, sub *client.Subscription, from, to int) {
	t.Helper()
	for d, err := range sub.All(t.Context()) {
		if err != nil || string(d.GetPayload()) != fmt.Sprint(from) {
			t.Fatalf("%v, %v: %d was expected", d, err, from)
		}
		if from++; from == to {
			return
		}
	}
}

// closed closes the API of a node.
func (s *served) closed(t *testing.T, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.servers[i].Close(ctx); err != nil {
		t.Error(err)
	}
}

// A subscription continues at the next node when its own ends or becomes silent, or after a pause of the reader,
// without a gap or repetition. It fails while no node can be reached.
func TestSubscriptionContinues(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		sub := s.subscribe(t, "total", 3, 2, 1)
		s.cast(t, "total", 0, 10)
		hear(t, sub, 0, 5)
		s.closed(t, 3)
		s.cast(t, "total", 10, 20)
		hear(t, sub, 5, 15)
		s.network.Cut(s.network.Host("clients"), s.network.Host("node3"))
		s.cast(t, "total", 20, 30)
		began := time.Now()
		hear(t, sub, 15, 30)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a silent node was waited for for %v", took)
		}
		for range 10 { // nothing is delivered, and the caller's context ends
			soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if d, err := sub.Next(soon); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(d, err)
			}
			cancel()
		}
		s.cast(t, "total", 30, 40)
		hear(t, sub, 30, 40)
		s.closed(t, 1)
		failed := new(client.NodeErrors)
		if d, err := sub.Next(t.Context()); !errors.As(err, &failed) || len(failed.Nodes) != 3 || client.Unknown(err) ||
			errors.Is(err, client.ErrCutOff) {
			t.Fatal(d, err)
		}
		s.network.Heal(s.network.Host("clients"), s.network.Host("node3"))
		s.cast(t, "total", 40, 45)
		hear(t, sub, 40, 45)
	})
}

// A subscription to new deliveries continues without a gap at the next node.
func TestSubscriptionFromNow(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		s.cast(t, "total", 0, 5)
		sub, err := client.NewNodes(s.client(t, 1, all), s.client(t, 2, all)).Subscribe(t.Context(), "total", 0)
		must(t, err)
		s.closed(t, 1)
		s.cast(t, "total", 5, 10)
		hear(t, sub, 5, 10)
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		if d, err := sub.Next(t.Context()); err == nil {
			t.Error(d)
		}
	})
}

// A subscription that cannot continue without a gap fails for good: in a group with positions local to a node,
// and if the next position is no longer retained.
func TestSubscriptionIsCutOff(t *testing.T) {
	inBubble(t, 4, api.Limits{}, func(t *testing.T, s *served) {
		own := s.subscribe(t, "causal", 1, 2)
		s.cast(t, "causal", 0, 3)
		hear(t, own, 0, 3)
		s.closed(t, 1)
		short := s.subscribe(t, "short", 2, 3)
		s.cast(t, "short", 0, 3)
		hear(t, short, 0, 3)
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if d, err := short.Next(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(d, err)
		}
		s.cast(t, "short", 3, 40)
		for range 2 {
			if d, err := own.Next(t.Context()); !errors.Is(err, client.ErrCutOff) {
				t.Error(d, err)
			}
			if d, err := short.Next(t.Context()); !errors.Is(err, client.ErrCutOff) || client.Detail(err).GetFirst() <= short.Position() {
				t.Error(d, err)
			}
		}
		again := client.NewNodes(s.client(t, 3, all))
		if _, err := again.Subscribe(t.Context(), "short", 1); !errors.Is(err, client.ErrCutOff) || client.Detail(err).GetFirst() == 0 {
			t.Error(err)
		}
	})
}
