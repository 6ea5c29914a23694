package api

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
)

// errSlow is the error of a client that did not read what was sent to it.
var errSlow = refuse(connect.CodeAborted, "slow", "the client reads too slowly: it is cut off")

// pulse is how often a stream says that it still stands, where there is nothing to say.
const pulse = 5 * time.Second

// follow sends what next returns until it fails or the client leaves. An empty message is
// sent first, so that the client knows that the stream stands, and every few seconds.
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

// soon waits for the next message, but not for long.
func soon[T any](ctx context.Context, next func(context.Context) (*T, error)) (*T, error) {
	limited, cancel := context.WithTimeoutCause(ctx, pulse, errNothing)
	defer cancel()
	m, err := next(limited)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errNothing) {
		err = errNothing
	}
	return m, err
}
