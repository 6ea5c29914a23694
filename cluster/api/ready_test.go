package api

import (
	"strings"
	"testing"

	"parley/cluster"
)

// A node that has come back and takes no part yet in something counts as faulty there, and is not
// ready; one that only waits for something to agree on is.
func TestReady(t *testing.T) {
	away, waits := &cluster.SlotStatus{Mute: true}, &cluster.SlotStatus{Mute: true, Waits: true}
	for _, c := range []struct {
		group  cluster.GroupStatus
		stream cluster.SlotStatus
		want   string
	}{
		{cluster.GroupStatus{ViewStatus: cluster.ViewStatus{In: true}}, cluster.SlotStatus{}, ""},
		{cluster.GroupStatus{Name: "g"}, cluster.SlotStatus{}, "it is not a member of group g"},
		{cluster.GroupStatus{Name: "g", SlotStatus: away}, cluster.SlotStatus{}, "it takes no part in group g yet"},
		{cluster.GroupStatus{SlotStatus: waits}, *waits, ""},
		{cluster.GroupStatus{SlotStatus: waits}, *away, "it takes no part yet in 1 of 2 streams of agreements"},
	} {
		got := new(Server).problems(cluster.Status{
			State: cluster.Running, Groups: []cluster.GroupStatus{c.group},
			Streams: []cluster.StreamStatus{{SlotStatus: c.stream}, {}},
		})
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, and not %q", c, got, c.want)
		}
	}
}
