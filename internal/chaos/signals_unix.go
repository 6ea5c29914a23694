//go:build unix

package main

import "syscall"

// The signals to pause and resume a process.
const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)
