package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// An outcome is known only if a node reports it, or no node could be asked.
func TestUnknown(t *testing.T) {
	told := func(code connect.Code, outcome parleyv1.Outcome) error {
		e := connect.NewError(code, errors.New("x"))
		e.AddDetail(detail(t, outcome))
		return e
	}
	bare := func(code connect.Code, err error) error { return connect.NewError(code, err) }
	x, bad := errors.New("x"), errors.New("tls: bad certificate")
	for _, c := range []struct {
		name      string
		err       error
		unknown   bool
		elsewhere bool
	}{
		{"none", nil, false, false},
		{"a node's failure", told(connect.CodeUnavailable, parleyv1.Outcome_OUTCOME_NOTHING_DONE), false, true},
		{"a node's late failure", told(connect.CodeDeadlineExceeded, parleyv1.Outcome_OUTCOME_NOTHING_DONE), false, false},
		{"a node that lost sight", told(connect.CodeUnknown, parleyv1.Outcome_OUTCOME_UNKNOWN), true, true},
		{"a node of another version", told(connect.CodeUnknown, parleyv1.Outcome_OUTCOME_UNSPECIFIED), true, true},
		{"the connection broke", bare(connect.CodeUnavailable, x), true, true},
		{"broken as we wrote", bare(connect.CodeCanceled, syscall.EPIPE), true, true},
		{"we have gone", bare(connect.CodeCanceled, context.Canceled), true, false},
		{"closed before we asked", bare(connect.CodeUnavailable, errors.New("http2: client conn could not be established")), false, true},
		{"nobody was there", bare(connect.CodeUnavailable, &net.OpError{Op: "dial", Err: x}), false, true},
		{"the connection broke in an answer", bare(connect.CodeInternal, io.ErrUnexpectedEOF), true, true},
		{"a node is broken", told(connect.CodeInternal, parleyv1.Outcome_OUTCOME_UNKNOWN), true, false},
		{"the node refused us", bare(connect.CodeUnavailable, &net.OpError{Op: "remote error", Err: bad}), false, true},
		{"reading failed", bare(connect.CodeUnavailable, &net.OpError{Op: "read", Err: x}), true, true},
		{"the caller's time is up", bare(connect.CodeDeadlineExceeded, context.DeadlineExceeded), true, false},
		{"the caller has gone", bare(connect.CodeCanceled, context.Canceled), true, false},
		{"too long", bare(connect.CodeResourceExhausted, x), true, false},
		{"no such field", bare(connect.CodeInvalidArgument, x), false, false},
		{"no such method", bare(connect.CodeUnimplemented, x), false, false},
		{"anything", x, true, true},
	} {
		if client.Unknown(c.err) != c.unknown || client.Elsewhere(c.err) != c.elsewhere {
			t.Errorf("%s: unknown %v, elsewhere %v", c.name, client.Unknown(c.err), client.Elsewhere(c.err))
		}
	}
}

// A session without nodes calls none.
func TestNoMember(t *testing.T) {
	err := client.NewSession("table").Do(t.Context(), func(context.Context, *client.Client, *parleyv1.Call) error {
		t.Error("somebody was asked")
		return nil
	})
	if err == nil || client.Unknown(err) {
		t.Error(err)
	}
}

// opens is a table that opens session 7.
type opens struct {
	parleyv1.TableServiceClient
}

func (opens) Open(context.Context, *parleyv1.OpenRequest) (*parleyv1.OpenResponse, error) {
	return &parleyv1.OpenResponse{Session: 7}, nil
}

// A command with an unknown outcome is retried under its number; one with a known outcome is not.
func TestAgain(t *testing.T) {
	ctx, s := t.Context(), client.NewSession("table", &client.Client{Table: opens{}})
	if err := s.Again(ctx); err == nil || client.Unknown(err) {
		t.Errorf("before anything: %v", err)
	}
	var numbers []uint64
	var answer error
	ask := func(_ context.Context, _ *client.Client, call *parleyv1.Call) error {
		numbers = append(numbers, call.GetNumber())
		return answer
	}
	lost := connect.NewError(connect.CodeInternal, errors.New("x"))
	refused := connect.NewError(connect.CodeNotFound, errors.New("x"))
	lost.AddDetail(detail(t, parleyv1.Outcome_OUTCOME_UNKNOWN))
	refused.AddDetail(detail(t, parleyv1.Outcome_OUTCOME_NOTHING_DONE))
	for _, step := range []struct {
		again   bool
		answer  error
		unknown bool
	}{
		{false, nil, false}, {false, lost, true}, {true, lost, true}, {true, refused, true}, {true, nil, false},
		{false, lost, true}, {false, refused, false},
	} {
		var err error
		if answer = step.answer; step.again {
			err = s.Again(ctx)
		} else {
			err = s.Do(ctx, ask)
		}
		if client.Unknown(err) != step.unknown || (err == nil) != (answer == nil) {
			t.Errorf("%+v: %v", step, err)
		}
	}
	if err := s.Again(ctx); err == nil || client.Unknown(err) || !slices.Equal(numbers, []uint64{1, 2, 2, 2, 2, 3, 4}) {
		t.Errorf("%v, numbers %v", err, numbers)
	}
}

// A command that waits for another one waits until its own context ends.
func TestWaits(t *testing.T) {
	s := client.NewSession("table", &client.Client{Table: opens{}})
	under, end := make(chan bool), make(chan bool)
	go func() {
		_ = s.Do(t.Context(), func(context.Context, *client.Client, *parleyv1.Call) error {
			close(under)
			<-end
			return nil
		})
	}()
	<-under
	defer close(end)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Do(ctx, nil); !errors.Is(err, context.Canceled) || client.Unknown(err) {
		t.Error(err)
	}
}

func detail(t *testing.T, outcome parleyv1.Outcome) *connect.ErrorDetail {
	d, err := connect.NewErrorDetail(&parleyv1.ErrorDetail{Outcome: outcome})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The next node is called only if the request had no effect at the last one; for reads also if that is unknown.
// The node that answered last is called first.
func TestNodesAtMostOnce(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: errors.New("x")}
	lost := connect.NewError(connect.CodeUnavailable, errors.New("broken"))
	refused := connect.NewError(connect.CodeInvalidArgument, errors.New("x"))
	for _, c := range []struct {
		name    string
		answers []error // of the nodes
		reads   bool
		called  int
		unknown bool
	}{
		{"the first answers", []error{nil, nil, nil}, false, 1, false},
		{"the second answers", []error{away, nil, nil}, false, 2, false},
		{"nobody answers", []error{away, away, away}, false, 3, false},
		{"the outcome is unknown", []error{away, lost, nil}, false, 2, true},
		{"the outcome of what reads is unknown", []error{away, lost, nil}, true, 3, false},
		{"all outcomes are unknown", []error{lost, away, away}, true, 3, true},
		{"it is refused", []error{refused, nil, nil}, true, 1, false},
	} {
		nodes := []*client.Client{new(client.Client), new(client.Client), new(client.Client)}
		all, called, do := client.NewNodes(nodes...), 0, (*client.Nodes).Do
		if c.reads {
			do = (*client.Nodes).Read
		}
		ask := func(_ context.Context, at *client.Client) error {
			called++
			return c.answers[slices.Index(nodes, at)]
		}
		err := do(all, t.Context(), ask)
		if called != c.called || client.Unknown(err) != c.unknown || (err == nil) != (c.answers[called-1] == nil) {
			t.Errorf("%s: %d were called: %v, unknown %v", c.name, called, err, client.Unknown(err))
		}
		failed := new(client.NodeErrors)
		if errors.As(err, &failed) && (len(failed.Nodes) != called || failed.Nodes[called-1].Node != nodes[called-1]) {
			t.Errorf("%s: %v", c.name, failed)
		}
		if called = 0; err == nil && (do(all, t.Context(), ask) != nil || called != 1) {
			t.Errorf("%s: called again, %d were called", c.name, called)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	called := 0
	_ = client.NewNodes(new(client.Client), new(client.Client)).Do(ctx, func(context.Context, *client.Client) error {
		called++
		cancel()
		return away
	})
	if called != 1 {
		t.Errorf("got %d calls, want 1, because the caller gave up", called)
	}
	if err := client.NewNodes().Do(t.Context(), nil); err == nil || client.Unknown(err) {
		t.Error(err)
	}
}

// A read gives up a node that does not answer in its part of the time; a change waits for it.
func TestNodesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		still, quick := new(client.Client), new(client.Client)
		ask := func(ctx context.Context, at *client.Client) error {
			if at == still {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := client.NewNodes(still, quick).Read(ctx, ask); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := client.NewNodes(still, quick).Do(ctx, ask); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
