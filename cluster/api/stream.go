package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
)

// errSlow is the error of a client that did not read its messages in time.
var errSlow = refuse(connect.CodeAborted, "slow", "the client reads too slowly: it is cut off")

// pulse is the interval of empty messages on an idle stream.
const pulse = 5 * time.Second

// follow sends the results of next until it fails or the client disconnects. It first sends an empty message, so
// that the client knows that the stream is open, and another one whenever the stream was idle for the time pulse.
func follow[T any](ctx context.Context, to *connect.ServerStream[T], empty func() *T,
	next func(context.Context) (*T, error),
) error {
	c := callOf(ctx)
	send := func(m *T) error { return c.send(func() error { return to.Send(m) }) }
	if err := send(empty()); err != nil {
		return err
	}
	for {
		m, err := soon(ctx, next)
		switch {
		case errors.Is(err, errNothing):
			m = empty()
		case err != nil:
			return err
		}
		if err := send(m); err != nil {
			return err
		}
	}
}

var errNothing = errors.New("nothing came")

// soon waits for the next message, at most for the time pulse.
func soon[T any](ctx context.Context, next func(context.Context) (*T, error)) (*T, error) {
	limited, cancel := context.WithTimeoutCause(ctx, pulse, errNothing)
	defer cancel()
	m, err := next(limited)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errNothing) {
		err = errNothing
	}
	return m, err
}
