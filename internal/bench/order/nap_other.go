//go:build !linux

package order

import "time"

// nap sleeps.
func nap(d time.Duration) { time.Sleep(d) }
