//go:build unix

package child

import (
	"syscall"
)

// The signals that hold a process of a run and let it go on.
const (
	CanHold = true
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)
