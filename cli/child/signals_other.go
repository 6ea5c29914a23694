//go:build !unix

package child

import "syscall"

// There are no signals that hold a process of a run and let it go on.
const (
	CanHold = false
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)
