//go:build unix

package main

import "syscall"

// The signals that hold a process and let it go on.
const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)
