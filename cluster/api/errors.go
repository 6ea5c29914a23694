package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/replica/keyvalue"
)

// The outcomes of failed requests.
const (
	nothing = parleyv1.Outcome_OUTCOME_NOTHING_DONE
	unknown = parleyv1.Outcome_OUTCOME_UNKNOWN
)

// failure is an error with all that a client learns of it except the node's name.
type failure struct {
	code    connect.Code
	outcome parleyv1.Outcome
	reason  string
	err     error
}

func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// refuse returns the failure of a request that had no effect.
func refuse(code connect.Code, reason, format string, args ...any) error {
	return &failure{code, nothing, reason, fmt.Errorf(format, args...)}
}

// invalid returns the failure of an invalid request.
func invalid(format string, args ...any) error {
	return refuse(connect.CodeInvalidArgument, "invalid", format, args...)
}

// kinds maps the errors of a node to what clients get. The first match applies, except that the outcome is
// unknown if the error also matches ErrUnknown.
var kinds = []struct {
	err     error
	code    connect.Code
	outcome parleyv1.Outcome
	reason  string
}{
	// Errors of tables, transactions, and agreements match ErrUnknown, or the request had no effect.
	{cluster.ErrTaken, connect.CodeAlreadyExists, nothing, "taken"},
	{cluster.ErrSessionTaken, connect.CodeAborted, nothing, "session taken"},
	{cluster.ErrExpired, connect.CodeAborted, unknown, "expired"},
	{cluster.ErrBlocked, connect.CodeUnknown, unknown, "blocked"},
	{cluster.ErrUnknown, connect.CodeUnknown, unknown, "unknown"},
	{cluster.ErrNoTransaction, connect.CodeNotFound, nothing, "no transaction"},
	{keyvalue.ErrMissing, connect.CodeNotFound, nothing, "no value"},
	{keyvalue.ErrNoNumber, connect.CodeFailedPrecondition, nothing, "no number"},
	{keyvalue.ErrTooLarge, connect.CodeResourceExhausted, nothing, "too large"},
	{keyvalue.ErrUnknown, connect.CodeInvalidArgument, nothing, "no such command"},
	// Errors that another node may not have come before final refusals.
	{cluster.ErrNotConfigured, connect.CodeNotFound, nothing, "not configured"},
	{cluster.ErrDraining, connect.CodeUnavailable, nothing, "draining"},
	{cluster.ErrNoRoom, connect.CodeUnavailable, nothing, "disk full"},
	{cluster.ErrExpelled, connect.CodeUnavailable, nothing, "expelled"},
	{cluster.ErrNotMember, connect.CodeUnavailable, nothing, "not a member"},
	{cluster.ErrStopped, connect.CodeUnavailable, nothing, "stopped"},
	{cluster.ErrClosed, connect.CodeUnavailable, nothing, "closed"},
	{cluster.ErrBusy, connect.CodeResourceExhausted, nothing, "busy"},
	{cluster.ErrRefused, connect.CodeFailedPrecondition, nothing, "refused"},
	{cluster.ErrAbstained, connect.CodeAborted, unknown, "abstained"},
	{cluster.ErrSlowSubscriber, connect.CodeAborted, nothing, "slow"},
	{cluster.ErrNotRetained, connect.CodeOutOfRange, nothing, "gone"},
	{cluster.ErrTooLarge, connect.CodeInvalidArgument, nothing, "too large"},
	{cluster.ErrReserved, connect.CodeInvalidArgument, nothing, "reserved"},
}

// failed returns the failure for an error. An unknown error counts as an internal fault of this node.
func failed(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if slow, ok := errors.AsType[*cluster.RoundError](err); ok {
		if slow.Disconnected() {
			return &failure{connect.CodeUnavailable, nothing, "not connected", slow}
		}
		return &failure{connect.CodeFailedPrecondition, nothing, "too slow", slow}
	}
	f := &failure{connect.CodeInternal, unknown, "internal", err}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f = &failure{k.code, k.outcome, k.reason, err}
			switch {
			case errors.Is(err, cluster.ErrUnknown):
				f.outcome = unknown
			case errors.Is(err, cluster.ErrRefused):
				f.outcome = nothing
			}
			break
		}
	}
	if f.code == connect.CodeInternal || f.reason == "unknown" || f.reason == "refused" {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			f.code, f.reason = connect.CodeDeadlineExceeded, "deadline"
		case errors.Is(err, context.Canceled):
			f.code, f.reason = connect.CodeCanceled, "canceled"
		}
	}
	return f
}

// failures converts a node's errors for clients, and counts them.
type failures struct {
	node   string
	counts *counts
}

// told returns the error for a client. reads says that the method changes nothing.
func (s failures) told(err error, reads bool) error {
	if err == nil {
		return nil
	}
	var f *failure
	if told, ok := errors.AsType[*connect.Error](err); ok {
		// The library returned it because it could not read the whole request, or could not send.
		f = &failure{told.Code(), unknown, "protocol", errors.New(told.Message())}
	} else {
		f = failed(err)
	}
	if reads {
		f = f.harmless()
	}
	s.counts.error(f)
	return f.wire(s.node)
}

// harmless returns the failure of a request that changes nothing, and so had no effect.
func (f *failure) harmless() *failure {
	out := &failure{f.code, nothing, f.reason, f.err}
	if was, text := cluster.ErrUnknown.Error(), f.Error(); f.outcome == unknown && strings.Contains(text, was) {
		out.err = errors.New(strings.Replace(text, was, "no answer came", 1))
	}
	return out
}

// longestError limits the text of an error, in bytes, because it may contain what a client sent, and appears in
// the log.
const longestError = 256

// brief truncates a long text, and marks it as cut.
func brief(text string) string {
	const rest = " ... (cut)"
	if len(text) <= longestError {
		return text
	}
	return strings.ToValidUTF8(text[:longestError-len(rest)], "") + rest
}

// wire returns a failure with its detail.
func (f *failure) wire(node string) *connect.Error {
	// The packages of a node begin their errors with their own names, which clients do not know.
	text := brief(strings.TrimPrefix(f.Error(), "cluster: "))
	out := connect.NewError(f.code, errors.New(text))
	detail := &parleyv1.ErrorDetail{Outcome: f.outcome, Reason: f.reason, Node: node}
	if gone, ok := errors.AsType[*cluster.GoneError](f.err); ok {
		detail.First = gone.First
	}
	if d, err := connect.NewErrorDetail(detail); err == nil { // never fails
		out.AddDetail(d)
	}
	return out
}
