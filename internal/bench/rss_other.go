//go:build !unix

package bench

import "runtime"

// peakRSS returns the maximum memory that the runtime has taken from the system, in bytes.
func peakRSS() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
