//go:build unix

package child

import "syscall"

// The signals to pause and resume a process of a run.
const (
	CanHold = true
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)
