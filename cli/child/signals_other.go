//go:build !unix

package child

import "syscall"

// This system has no signals to pause and resume a process of a run.
const (
	CanHold = false
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)
