package console

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// The exit statuses of all commands.
const (
	Fine        = 0
	Violated    = 1
	Usage       = 2
	Unfinished  = 3
	Interrupted = 130 // as a shell has it of a program that Ctrl-C ends
)

// Statuses say what an exit status means, whatever the command.
var Statuses = []struct {
	Status int
	Means  string
}{
	{Fine, "done; something broke that was not promised, or nothing did"},
	{Violated, "a promise broke, a goal was found, two things differ, or a node or cluster is not healthy"},
	{Usage, "bad input: a flag, a file, or a request that a node does not allow"},
	{Unfinished, "the command ended before its end, or the cluster did not answer"},
	{Interrupted, "interrupted, by Ctrl-C or a signal; a command that runs until then ends with 0"},
}

// StatusTable is the table of exit statuses as the help prints it.
func StatusTable() string {
	var b strings.Builder
	b.WriteString("The exit status is\n")
	for _, s := range Statuses {
		fmt.Fprintf(&b, "    %3d  %s\n", s.Status, s.Means)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ExitError ends a command whose report has been printed with a status.
type ExitError int

func (s ExitError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// End ends a command with an error, or with a status if there is none.
func End(status int, err error) error {
	if err == nil && status != Fine {
		return ExitError(status)
	}
	return err
}

// EndedError is an error that ends a command with another status than that of bad input.
type EndedError struct {
	Status int
	error
}

// Unwrap returns the error itself.
func (e *EndedError) Unwrap() error { return e.error }

// EndWith makes an error that ends a command with a status.
func EndWith(status int, err error) error { return &EndedError{status, err} }

// UntilSignal returns a context that ends with Ctrl-C or SIGTERM. Call stop to free what it holds.
func UntilSignal(ctx context.Context) (until context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// Interruptible is UntilSignal with a second signal that ends the process at once.
func Interruptible(ctx context.Context) (until context.Context, stop context.CancelFunc) {
	ctx, stop = UntilSignal(ctx)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
