package client

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"parley/cli/console"
	"parley/cluster/api/parleyv1"
)

// answered returns an error that a node has answered.
func answered(code connect.Code, reason string) error {
	err := connect.NewError(code, errors.New("why"))
	detail, _ := connect.NewErrorDetail(&parleyv1.ErrorDetail{Reason: reason})
	err.AddDetail(detail)
	return err
}

// A command ends with 2 if its request is wrong, with 3 if the cluster gave no answer, such as without a majority, and
// otherwise with 1.
func TestReportStatus(t *testing.T) {
	unasked := connect.NewError(connect.CodeUnavailable, errors.New("connection refused"))
	for what, row := range map[string]struct {
		errs []error
		want int
	}{
		"no node can be called":              {[]error{unasked, unasked}, console.Unfinished},
		"no answer in time":                  {[]error{connect.NewError(connect.CodeDeadlineExceeded, errors.New("late"))}, console.Unfinished},
		"the node says that it was too late": {[]error{answered(connect.CodeDeadlineExceeded, "deadline")}, console.Unfinished},
		"too few nodes are connected":        {[]error{unasked, answered(connect.CodeUnavailable, "not connected")}, console.Unfinished},
		"not a member":                       {[]error{answered(connect.CodeUnavailable, "not a member")}, console.Unfinished},
		"the node abstained":                 {[]error{answered(connect.CodeAborted, "abstained")}, console.Unfinished},
		"the transaction is blocked":         {[]error{answered(connect.CodeUnknown, "blocked")}, console.Unfinished},
		"one of several answered":            {[]error{unasked, nil}, console.Violated},
		"one refuses":                        {[]error{unasked, answered(connect.CodeFailedPrecondition, "too slow")}, console.Violated},
		"the key has no value":               {[]error{answered(connect.CodeNotFound, "no value")}, console.Violated},
		"the session expired":                {[]error{answered(connect.CodeAborted, "expired")}, console.Violated},
		"a value is too long":                {[]error{answered(connect.CodeInvalidArgument, "too large")}, console.Usage},
		"the client lacks the right":         {[]error{answered(connect.CodePermissionDenied, "no right")}, console.Usage},
		"a signal ended the command":         {[]error{unasked, connect.NewError(connect.CodeCanceled, context.Canceled)}, console.Interrupted},
		"a node has canceled":                {[]error{answered(connect.CodeCanceled, "why")}, console.Violated},
		"there is no such group":             {[]error{unasked, answered(connect.CodeNotFound, "no group")}, console.Usage},
	} {
		a := &console.App{Err: io.Discard}
		if got := Report(a, Joined(row.errs)); !errors.Is(got, console.ExitError(row.want)) {
			t.Errorf("%s: got %v, want status %d", what, got, row.want)
		}
	}
}

// The error of a call says whether the request may have taken effect. A clock that is not in step has been read.
func TestCallErrorOutcome(t *testing.T) {
	for _, row := range []struct {
		err                 error
		text, code, outcome string
	}{
		{errNotInStep, "a: its clock is not in step with the others", "", ""},
		{connect.NewError(connect.CodeCanceled, context.Canceled),
			"a: interrupted (canceled; the outcome is unknown)", "canceled", "unknown"},
		{connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded),
			"a: no answer came in time (deadline_exceeded; the outcome is unknown)", "deadline_exceeded", "unknown"},
		{connect.NewError(connect.CodeInvalidArgument, errors.New("no value")), "a: no value (invalid_argument)",
			"invalid_argument", ""},
	} {
		err := Said(Node{Name: "a"}, row.err)
		said, ok := errors.AsType[console.CallError](err)
		if !ok {
			t.Fatalf("%v is no error of a call", err)
		}
		if _, code, _, outcome := said.Call(); err.Error() != row.text || code != row.code || outcome != row.outcome {
			t.Errorf("got %q, code %q, outcome %q; want %+v", err, code, outcome, row)
		}
	}
}

// A decision on nothing is shown as such, and is not the empty value.
func TestPrintDecision(t *testing.T) {
	d := &parleyv1.Decision{Source: "node1", M: 1, Slot: 7}
	for _, row := range []struct {
		value []byte
		want  string
	}{
		{[]byte{}, `node1 decides "": slot 7 from node1, tetra with m = 1, after 3ms` + "\n"},
		{nil, "node1 decides nothing: slot 7 from node1, tetra with m = 1, after 3ms\n" +
			"The value of node1 did not get through in time. No correct node decides on it: ask again.\n"},
	} {
		var out strings.Builder
		d.Value = row.value
		if printDecision(&out, "node1", "tetra", d, 3*time.Millisecond); out.String() != row.want {
			t.Errorf("got %q, want %q", &out, row.want)
		}
	}
}
