//go:build !linux

package host

import "time"

// started is what the time counts from.
var started = time.Now()

// sinceBoot is the monotonic time: of what else goes on while a machine is suspended, if it
// does not, nothing is known here.
func sinceBoot() time.Duration { return time.Since(started) }
