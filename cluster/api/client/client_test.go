package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"connectrpc.com/connect"

	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// An outcome is known only if a node says so, or nobody could be asked.
func TestUnknown(t *testing.T) {
	told := func(code connect.Code, outcome parleyv1.Outcome) error {
		e := connect.NewError(code, errors.New("x"))
		d, err := connect.NewErrorDetail(&parleyv1.ErrorDetail{Outcome: outcome})
		if err != nil {
			t.Fatal(err)
		}
		e.AddDetail(d)
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

// A session without nodes asks nobody.
func TestNobody(t *testing.T) {
	err := client.NewSession("table").Do(t.Context(), func(context.Context, *client.Client, *parleyv1.Call) error {
		t.Error("somebody was asked")
		return nil
	})
	if err == nil {
		t.Error("no error")
	}
}
