//go:build !linux

package host

import "time"

// started is the origin of the time.
var started = time.Now()

// sinceBoot returns the monotonic time. If the system's monotonic clock stops during a suspension,
// suspensions are not noticed here.
func sinceBoot() time.Duration { return time.Since(started) }
