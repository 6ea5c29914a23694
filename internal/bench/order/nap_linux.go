package order

import (
	"syscall"
	"time"
)

// nap sleeps with an accuracy of some microseconds. The runtime's timers may be 1 ms late while the process waits for
// the network.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // after an early wake-up the caller checks the time
}
