package node

import (
	"context"
	"errors"
	"testing"

	"parley/cli/console"
)

// A node that fails ends with status 1, and one that is ended with 0.
func TestEndOf(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	end(broken{errors.New("the disk")})
	if err := endOf(ctx); !errors.Is(err, console.ExitError(console.Violated)) {
		t.Errorf("broken: %v", err)
	}
	ctx, end = context.WithCancelCause(t.Context())
	end(nil)
	if err := endOf(ctx); err != nil {
		t.Errorf("told to end: %v", err)
	}
}
