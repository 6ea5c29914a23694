//go:build unix

package cli

import (
	"syscall"
)

// The signals that hold a process of a run and let it go on.
const (
	canHold = true
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)
