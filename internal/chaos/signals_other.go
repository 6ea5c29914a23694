//go:build !unix

package main

import "syscall"

// The signals to pause and resume a process do not exist here, and sending them fails.
const (
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)
