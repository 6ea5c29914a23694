package order

import (
	"syscall"
	"time"
)

// nap sleeps, to some microseconds. The runtime's timers may be a millisecond late while the
// process waits for the network.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // who is woken early looks at the time
}
