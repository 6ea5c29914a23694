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

// What became of what was asked.
const (
	nothing = parleyv1.Outcome_OUTCOME_NOTHING_DONE
	unknown = parleyv1.Outcome_OUTCOME_UNKNOWN
)

// failure is an error with all that a client is told of it but the node's name.
type failure struct {
	code    connect.Code
	outcome parleyv1.Outcome
	reason  string
	err     error
}

func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns what happened.
func (f *failure) Unwrap() error { return f.err }

// refuse is the failure of what was not begun.
func refuse(code connect.Code, reason, format string, args ...any) error {
	return &failure{code, nothing, reason, fmt.Errorf(format, args...)}
}

// invalid is the failure of a request that makes no sense.
func invalid(format string, args ...any) error {
	return refuse(connect.CodeInvalidArgument, "invalid", format, args...)
}

// kinds says of the errors of a node what a client is told. The first that fits holds, but for the
// outcome, which is unknown of what is ErrUnknown, too.
var kinds = []struct {
	err     error
	code    connect.Code
	outcome parleyv1.Outcome
	reason  string
}{
	// Errors of tables, transactions and agreements are ErrUnknown, or nothing was done.
	{cluster.ErrTaken, connect.CodeAlreadyExists, nothing, "taken"},
	{cluster.ErrExpired, connect.CodeAborted, unknown, "expired"},
	{cluster.ErrBlocked, connect.CodeUnknown, unknown, "blocked"},
	{cluster.ErrUnknown, connect.CodeUnknown, unknown, "unknown"},
	{cluster.ErrNoTransaction, connect.CodeNotFound, nothing, "no transaction"},
	{keyvalue.ErrMissing, connect.CodeNotFound, nothing, "no value"},
	{keyvalue.ErrNoNumber, connect.CodeFailedPrecondition, nothing, "no number"},
	{keyvalue.ErrTooLarge, connect.CodeResourceExhausted, nothing, "too large"},
	{keyvalue.ErrUnknown, connect.CodeInvalidArgument, nothing, "no such command"},
	// What another node may serve comes before what is refused for good.
	{cluster.ErrNotConfigured, connect.CodeNotFound, nothing, "not configured"},
	{cluster.ErrDraining, connect.CodeUnavailable, nothing, "draining"},
	{cluster.ErrNoRoom, connect.CodeUnavailable, nothing, "disk full"},
	{cluster.ErrExpelled, connect.CodeUnavailable, nothing, "expelled"},
	{cluster.ErrNotMember, connect.CodeUnavailable, nothing, "not a member"},
	{cluster.ErrStopped, connect.CodeUnavailable, nothing, "stopped"},
	{cluster.ErrClosed, connect.CodeUnavailable, nothing, "closed"},
	{cluster.ErrRefused, connect.CodeFailedPrecondition, nothing, "refused"},
	{cluster.ErrAbstained, connect.CodeAborted, unknown, "abstained"},
	{cluster.ErrSlowSubscriber, connect.CodeAborted, nothing, "slow"},
	{cluster.ErrNotRetained, connect.CodeOutOfRange, nothing, "gone"},
	{cluster.ErrTooLarge, connect.CodeInvalidArgument, nothing, "too large"},
	{cluster.ErrReserved, connect.CodeInvalidArgument, nothing, "reserved"},
}

// failed says of an error what a client is told. What is no error of ours is taken as a
// fault of this node.
func failed(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if slow, ok := errors.AsType[*cluster.RoundError](err); ok {
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

// failures tells clients of a node's errors, and counts them.
type failures struct {
	node   string
	counts *counts
}

// told is an error as a client gets it.
func (s failures) told(err error, reads bool) error {
	if err == nil {
		return nil
	}
	var f *failure
	if told, ok := errors.AsType[*connect.Error](err); ok {
		// It is of the library, which read no whole request, or could not send.
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

// harmless is the failure of what changes nothing, so that there was nothing to be done.
func (f *failure) harmless() *failure {
	out := &failure{f.code, nothing, f.reason, f.err}
	if was, text := cluster.ErrUnknown.Error(), f.Error(); f.outcome == unknown && strings.Contains(text, was) {
		out.err = errors.New(strings.Replace(text, was, "no answer came", 1))
	}
	return out
}

// longestError is how many bytes the text of an error has at most: what a client sent may be in
// it, and in the log.
const longestError = 256

// brief cuts a text that is too long, and says so.
func brief(text string) string {
	const rest = " ... (cut)"
	if len(text) <= longestError {
		return text
	}
	return strings.ToValidUTF8(text[:longestError-len(rest)], "") + rest
}

// wire is a failure with its detail.
func (f *failure) wire(node string) *connect.Error {
	// The packages of a node begin their errors with their own names, which no client knows.
	text := brief(strings.TrimPrefix(f.Error(), "cluster: "))
	out := connect.NewError(f.code, errors.New(text))
	detail := &parleyv1.ErrorDetail{Outcome: f.outcome, Reason: f.reason, Node: node}
	if gone, ok := errors.AsType[*cluster.GoneError](f.err); ok {
		detail.First = gone.First
	}
	if d, err := connect.NewErrorDetail(detail); err == nil { // it always can be made
		out.AddDetail(d)
	}
	return out
}
