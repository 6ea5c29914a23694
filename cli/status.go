package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// The exit statuses of all commands.
const (
	fine        = 0
	violated    = 1
	usage       = 2
	unfinished  = 3
	interrupted = 130 // as a shell has it of a program that Ctrl-C ends
)

// statuses say what an exit status means, whatever the command.
var statuses = []struct {
	status int
	means  string
}{
	{fine, "done; something broke that was not promised, or nothing did"},
	{violated, "a promise broke, a goal was found, two things differ, or a node or cluster is not healthy"},
	{usage, "bad input: a flag, a file, or a request that a node does not allow"},
	{unfinished, "the command ended before its end, or the cluster did not answer"},
	{interrupted, "interrupted, by Ctrl-C or a signal; a command that runs until then ends with 0"},
}

// statusTable is the table of exit statuses as the help prints it.
func statusTable() string {
	var b strings.Builder
	b.WriteString("The exit status is\n")
	for _, s := range statuses {
		fmt.Fprintf(&b, "    %3d  %s\n", s.status, s.means)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// statusError ends a command whose report has been printed with a status.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// endedError is an error that ends a command with another status than that of bad input.
type endedError struct {
	status int
	error
}

// Unwrap returns the error itself.
func (e *endedError) Unwrap() error { return e.error }

// interruptible returns a context that ends with the first of the signals. The second one ends
// the process at once.
func interruptible(ctx context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
