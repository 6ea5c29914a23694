package measure

import (
	"strings"
	"testing"
	"time"

	"parley/cluster/clocks"
	"parley/cluster/link"
)

// The recommended round is 10 times twice the delay of the slowest message, or the round for 1.5 times the wake
// latency, whichever is longer. The error for clocks is the usual round trip, rounded up.
func TestAdvise(t *testing.T) {
	peer := func(name string, median, p999 time.Duration) PeerMeasurement {
		return PeerMeasurement{Name: name, Connected: true, RTT: link.RTT{P50: median, P999: p999, Samples: 1000}}
	}
	const us, ms = time.Microsecond, time.Millisecond
	for name, c := range map[string]struct {
		m     Measurement
		round time.Duration
		err   time.Duration
		short bool
		why   string
	}{
		"slow messages": {
			Measurement{Nodes: 4, Round: 100 * ms, Peers: []PeerMeasurement{
				peer("b", 200*us, 3*ms), peer("c", 150*us, 8*ms), peer("d", 100*us, ms),
			}, Wake: clocks.WakeLatency{P999: ms}},
			100 * ms, 200 * us, false, "a message to c, the slowest, takes 4ms",
		},
		"late waking": {
			Measurement{Nodes: 4, Round: 35 * ms, Peers: []PeerMeasurement{peer("b", 100*us, 400*us)},
				Wake: clocks.WakeLatency{P999: 6 * ms, Pauses: 2, Most: time.Second}},
			100 * ms, 100 * us, true, "it was paused 2 times for longer, for 1s at most",
		},
		"nobody there": {
			Measurement{Nodes: 4, Peers: make([]PeerMeasurement, 3), Wake: clocks.WakeLatency{P999: 100 * us}},
			2 * ms, 50 * us, false, "3 of 3 other nodes were not reached",
		},
		"seven": {
			Measurement{Nodes: 7, Round: 10 * ms, Peers: []PeerMeasurement{peer("b", 80*us, 90*us)}},
			ms, 100 * us, false, "m = 2: among 7 nodes at most 2 may lie",
		},
	} {
		a, err := Advise(c.m)
		if err != nil {
			t.Fatal(name, err)
		}
		if a.Round != c.round || a.Error != c.err || a.Short != c.short ||
			!strings.Contains(strings.Join(a.Reasons, "\n"), c.why) || a.Delta < 2*a.Error {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
