// Package child starts further processes of the same program. These child processes end when their parent ends.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"parley"
	"parley/cluster/harness"
)

// Most is the maximum number of processes that one command may start.
const Most = 32

// variable is set in the environment of a child. It keeps a program that ignores its arguments, such as a test
// binary, from starting processes without end.
const variable = "PARLEY_NODE"

// Allowed returns an error in a process that is a child itself. The argument what names the request, and why is the
// reason to refuse it.
func Allowed(what, why string) error {
	if os.Getenv(variable) == "" {
		return nil
	}
	return fmt.Errorf("%s: %s is set: %s", what, variable, why)
}

// LockThread locks the calling goroutine to its thread until the returned function is called. The end of the thread
// kills the children that it has started.
func LockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// Command prepares a process of this program with the given name and arguments. No variable of the environment sets a
// flag of it. The process ends with this one. The
// calling goroutine must be locked to its thread.
func Command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PARLEY_") })
	cmd.Env = append(cmd.Env, variable+"="+name)
	dieWithParent(cmd)
	return cmd, nil
}

// Start starts a process of this program that communicates over its standard input and output. The calling goroutine
// must be locked to its thread.
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

// Pause stops a process until Resume. Without CanHold it returns an error.
func Pause(p *os.Process) error { return p.Signal(sigStop) }

// Resume continues a process that Pause has stopped.
func Resume(p *os.Process) error { return p.Signal(sigCont) }
