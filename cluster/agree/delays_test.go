package agree

import (
	"errors"
	"testing"
	"time"

	"parley/cluster/link"
)

// A node that paused once is not slow; one that is slow now and then is. Of few pings the faster half counts.
func TestRecentDelay(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		recent link.RecentRTT
		want   time.Duration
	}{
		{link.RecentRTT{}, time.Second}, // falls back to earlier measurements
		{link.RecentRTT{P50: 2 * ms, P90: 300 * ms, Samples: 5}, ms},
		{link.RecentRTT{P50: 2 * ms, P90: 300 * ms, Samples: 40}, 150 * ms},
		{link.RecentRTT{P50: 2 * ms, P90: 4 * ms, Samples: 40}, 2 * ms},
	} {
		if got := recentDelay(c.recent, 2*time.Second); got != c.want {
			t.Errorf("%+v: %v, not %v", c.recent, got, c.want)
		}
	}
}

// An agreement that is not started says which nodes are not connected or slow, and what to do. Only missing nodes are a
// reason to ask another node.
func TestRoundErrorSaysWhatToDo(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		list         []Slow // the slowest first
		want         string
		disconnected bool
	}{
		{[]Slow{{"c", 12 * ms}, {"b", 12 * ms}, {"d", ms}}, "cluster: refused: messages to c take 12ms, messages to b take 12ms, " +
			"but a 100ms round allows 10ms: set round to at least 120ms", false},
		{[]Slow{{"b", 0}, {"c", 0}, {"d", ms}}, "cluster: refused: b, c are not connected, and an agreement with m = 1 can do " +
			"without 1: start the missing nodes", true},
		{[]Slow{{"b", 0}, {"c", 12 * ms}}, "cluster: refused: b is not connected, and an agreement with m = 1 can do without 1: " +
			"start the missing nodes; messages to c take 12ms, but a 100ms round allows 10ms: set round to at least 120ms", false},
		{[]Slow{{"b", 0}, {"c", 10 * ms}}, "", false},
	} {
		err := tooSlow(c.list, 1, 100*ms, 10*ms)
		var wrong *RoundError
		switch got := errors.As(err, &wrong); {
		case !got && c.want != "":
			t.Errorf("%v: got no error, want %q", c.list, c.want)
		case got && (err.Error() != c.want || wrong.Disconnected() != c.disconnected):
			t.Errorf("%v: got %q, %v; want %q, %v", c.list, err, wrong.Disconnected(), c.want, c.disconnected)
		}
	}
	drift := &RoundError{Drift: -5000}
	if want := "cluster: refused: the clock of this node runs 5000 ppm slower than those of the others, but rounds allow 3000 " +
		"ppm: repair the clock of this computer"; drift.Error() != want || drift.Disconnected() {
		t.Errorf("got %q, want %q", drift, want)
	}
}
