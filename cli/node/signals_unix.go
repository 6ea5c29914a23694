//go:build unix

package node

import (
	"os"
	"syscall"
)

// flightSignals make a node write down its last events.
var flightSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGQUIT}

// raise sends this process a signal.
func raise(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }
