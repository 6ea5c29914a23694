// Package child starts this program again as other processes, which end with this one.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"parley"
	"parley/cluster/harness"
)

// Most is how many processes one command may start.
const Most = 32

// variable is set in the environment of a child, so that a program that does not look at its
// arguments, as that of a test, does not start processes without end.
const variable = "PARLEY_NODE"

// Allowed returns an error in a process that is a child itself: what was asked for, and why it may not be.
func Allowed(what, why string) error {
	if os.Getenv(variable) == "" {
		return nil
	}
	return fmt.Errorf("%s: %s is set: %s", what, variable, why)
}

// LockThread keeps the calling goroutine on its thread, whose end kills the children that it has
// started, until the returned function is called.
func LockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// Command prepares a process of this program with arguments, under a name of its own. The process ends
// with this one; the calling goroutine must be locked to its thread.
func Command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), variable+"="+name)
	dieWithParent(cmd)
	return cmd, nil
}

// Start starts a process of this program, which speaks over its standard input and output.
// The calling goroutine must be locked to its thread.
func Start(ctx context.Context, id parley.ID, args ...string) (*harness.Child, error) {
	cmd, err := Command(ctx, id.String(), args...)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	signal := func(s os.Signal) func() error {
		return func() error {
			if err := cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
				return err
			}
			return nil
		}
	}
	return &harness.Child{
		In: in, Out: out, Kill: signal(os.Kill), Stop: signal(sigStop), Continue: signal(sigCont), Wait: cmd.Wait,
	}, nil
}
