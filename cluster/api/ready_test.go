package api

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/cluster"
)

// A restarted node that does not participate yet counts as faulty, and is not ready. One that only waits for
// something to agree on is ready.
func TestReady(t *testing.T) {
	in := cluster.GroupStatus{ViewStatus: cluster.ViewStatus{In: true}}
	for _, c := range []struct {
		group  cluster.GroupStatus
		stream cluster.SlotStatus
		want   string
	}{
		{in, cluster.SlotStatus{}, ""},
		{cluster.GroupStatus{Name: "g"}, cluster.SlotStatus{}, "not a member of group g" + rejoins},
		{in, cluster.SlotStatus{Mute: true, Waits: true}, ""},
		{in, cluster.SlotStatus{Mute: true}, "takes no part yet in 1 of 2 streams of agreements" + catchesUp},
	} {
		got := problems(cluster.Status{
			State: cluster.Running, Groups: []cluster.GroupStatus{c.group},
			Streams: []cluster.StreamStatus{{SlotStatus: c.stream}, {}},
		})
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, and not %q", c, got, c.want)
		}
	}
}

// A member of a table without its state is not ready.
func TestReadyWithState(t *testing.T) {
	for _, c := range []struct {
		table cluster.TableStatus
		want  string
	}{
		{cluster.TableStatus{ViewStatus: cluster.ViewStatus{In: true}, Serving: true}, ""},
		{cluster.TableStatus{Name: "t", ViewStatus: cluster.ViewStatus{In: true}},
			"does not have the present state of table t yet" + catchesUp},
		{cluster.TableStatus{Name: "t"}, "not a member of table t" + rejoins},
		{cluster.TableStatus{Name: "t", Stopped: "why"},
			"table t has stopped: why: restart the node with --rejoin if its replica differs; correct the state machine if it panicked"},
	} {
		got := problems(cluster.Status{State: cluster.Running, Tables: []cluster.TableStatus{c.table}})
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, and not %q", c, got, c.want)
		}
	}
}

// A node whose disk is nearly full is not ready. One with little room is.
func TestReadyOnFullDisk(t *testing.T) {
	for _, c := range []struct {
		store cluster.StoreStatus
		want  string
	}{
		{cluster.StoreStatus{Low: "little"}, ""},
		{cluster.StoreStatus{Full: "none"}, "refuses requests that write: none: free space on the disk of its data folder"},
	} {
		got := problems(cluster.Status{State: cluster.Running, Store: &c.store})
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, and not %q", c, got, c.want)
		}
	}
}

// storeFigures sends only the metrics of a store.
type storeFigures cluster.StoreStatus

func (storeFigures) Describe(chan<- *prometheus.Desc) {}
func (s storeFigures) Collect(to chan<- prometheus.Metric) {
	sender(to).store(cluster.StoreStatus(s))
}

// The metrics show the free space of a disk, whether that is too little, and how slow the disk is.
func TestDiskFigures(t *testing.T) {
	r := prometheus.NewRegistry()
	if err := r.Register(storeFigures{Free: 40 << 20, Full: "none", Slowest: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	for name, want := range map[string]float64{
		"parley_store_free_bytes": 40 << 20, "parley_store_refuses": 1, "parley_store_slowest_commit_seconds": 3,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
