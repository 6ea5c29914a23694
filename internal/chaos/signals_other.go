//go:build !unix

package main

import "syscall"

// The signals that hold a process and let it go on: there are none, and they fail.
const (
	sigStop = syscall.Signal(-1)
	sigCont = syscall.Signal(-1)
)
