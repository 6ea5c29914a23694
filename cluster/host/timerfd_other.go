//go:build !linux

package host

import "time"

// timerfdAlarm is unused: alarms on this system are as late as the runtime makes them.
type timerfdAlarm struct{}

func newTimerfdAlarm(*Host) *timerfdAlarm              { return nil }
func (*timerfdAlarm) schedule(*Process, time.Duration) {}
func (*timerfdAlarm) close()                           {}
