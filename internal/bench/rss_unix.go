//go:build unix

package bench

import (
	"runtime"
	"syscall"
)

// peakRSS returns the maximum resident memory of the process, in bytes.
func peakRSS() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return uint64(u.Maxrss)
	}
	return uint64(u.Maxrss) * 1024
}
