//go:build unix

package order

import (
	"syscall"
	"time"
)

// processorTime is what the process has used so far, by itself and in the system for it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
