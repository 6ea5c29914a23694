//go:build !unix

package bench

import "runtime"

// peakRSS is the most memory that the runtime has taken from the system.
func peakRSS() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
