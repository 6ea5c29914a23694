package cluster

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"parley"
	"parley/clock/convergence"
)

// A node whose clock begins anew takes the common time that it had for the date, however its
// machine's clock was set meanwhile; and one that never had it takes that of the machine.
func TestClocksBeginAnewWithTheTime(t *testing.T) {
	t.Parallel()
	const hour, hardware = int64(time.Hour), int64(time.Millisecond)
	plan, err := Config{Members: make([]Member, 4)}.filled().plan()
	if err != nil {
		t.Fatal(err)
	}
	for had, want := range map[bool]int64{false: 5 * hour, true: 9*hour + hardware} {
		c := newClockwork(plan, 0, 1e8, 2e7, func() int64 { return 5 * hour })
		s := &parley.Step{Self: 0, N: 4, Now: parley.Tick(hardware)}
		c.Start(s)
		if had {
			c.settle(9 * hour)
			c.adjusts(s) // the logical clock shows nothing yet but the hardware clock
		}
		s.Effects = nil
		c.enters(s, true)
		logical, _ := convergence.Now(c.clock, s.Now)
		s.Now += max(0, c.one.Deadline()-logical)
		c.Timeout(s, dateTimer)
		date := binary.BigEndian.AppendUint64(nil, uint64(want-int64(logical)))
		told := false
		for _, e := range s.Effects {
			told = told || e.Op == parley.OpSend && bytes.Contains(e.Msg.Body, date)
		}
		if !told {
			t.Errorf("had the time: %v: it does not say that it is %v", had, time.Duration(want))
		}
	}
}
