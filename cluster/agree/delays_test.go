package agree

import (
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
