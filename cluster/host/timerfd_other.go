//go:build !linux

package host

import "time"

// timerfdAlarm is for systems on which alarms are as late as the runtime has them.
type timerfdAlarm struct{}

func newTimerfdAlarm(*Host) *timerfdAlarm           { return nil }
func (*timerfdAlarm) after(*Process, time.Duration) {}
func (*timerfdAlarm) close()                        {}
