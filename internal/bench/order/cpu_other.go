//go:build !unix

package order

import "time"

// processorTime is unknown on this system.
func processorTime() time.Duration { return 0 }
