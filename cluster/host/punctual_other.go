//go:build !linux

package host

import "time"

// punctual is for systems on which alarms are as late as the runtime has them.
type punctual struct{}

func newPunctual(*Host) *punctual               { return nil }
func (*punctual) after(*Process, time.Duration) {}
func (*punctual) close()                        {}
