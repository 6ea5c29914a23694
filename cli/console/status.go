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
	Interrupted = 130 // the shell's status for a program that Ctrl-C ended
)

// Statuses says what each exit status means in all commands.
var Statuses = []struct {
	Status int
	Means  string
}{
	{Fine, "done, and no promise broke"},
	{Violated, "a promise broke, a search or a check found something, two traces differ, or a node " +
		"refused, failed, is unhealthy, or aborted a transaction"},
	{Usage, "bad input: a flag, a file, or a request that a node does not allow"},
	{Unfinished, "the command was stopped before it was complete, or the cluster did not answer"},
	{Interrupted, "interrupted by Ctrl-C or a signal; but commands that run until Ctrl-C, such as node, end " +
		"with 0"},
}

// StatusTable returns the table of exit statuses for the help.
func StatusTable() string {
	var b strings.Builder
	b.WriteString("The exit status is\n")
	for _, s := range Statuses {
		fmt.Fprintf(&b, "    %3d  %s\n", s.Status, s.Means)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ExitError ends a command with a status after its report has been printed.
type ExitError int

func (s ExitError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// End returns err, or an ExitError if err is nil and status is not Fine.
func End(status int, err error) error {
	if err == nil && status != Fine {
		return ExitError(status)
	}
	return err
}

// EndedError is an error that ends a command with a status other than Usage.
type EndedError struct {
	Status int
	error
}

// Unwrap returns the error itself.
func (e *EndedError) Unwrap() error { return e.error }

// EndWith returns an error that ends a command with a status.
func EndWith(status int, err error) error { return &EndedError{status, err} }

// UntilSignal returns a context that ends with Ctrl-C or SIGTERM, or when the terminal closes, except under nohup. Call
// stop to release its resources.
func UntilSignal(ctx context.Context) (until context.Context, stop context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, signals...)
}

// Interruptible is UntilSignal, except that a second signal ends the process immediately.
func Interruptible(ctx context.Context) (until context.Context, stop context.CancelFunc) {
	ctx, stop = UntilSignal(ctx)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
