package clustertest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/clustertest"
	"parley/replica/keyvalue"
)

func counters(c *cluster.Config) {
	c.Tables = []cluster.TableConfig{{Name: "t"}}
	c.Groups = []cluster.GroupConfig{{Name: "g", Level: cluster.Total}}
}

func get(t *testing.T, n *cluster.Node, key string) string {
	t.Helper()
	value, _, err := n.Table("t").KeyValue().Get(t.Context(), []byte(key))
	if err != nil && !errors.Is(err, keyvalue.ErrMissing) {
		t.Fatal(err)
	}
	return string(value)
}

// Acknowledged commands survive a power failure of all nodes, and the loss of one disk.
func TestPowerFailure(t *testing.T) {
	clustertest.Run(t, 3, counters, func(t *testing.T, c *clustertest.Cluster) {
		if _, err := c.Node(0).Table("t").KeyValue().Put(t.Context(), []byte("a"), []byte("1")); err != nil {
			t.Fatal(err)
		}
		c.Kill(0, 1, 2)
		if c.Node(1) != nil {
			t.Error("a node that was killed is there")
		}
		c.Start(0, 1, 2)
		if got := get(t, c.Node(2), "a"); got != "1" {
			t.Errorf("after a power failure of all nodes a is %q", got)
		}
		c.Stop(1)
		c.Lose(1)
		c.Start(1)
		if got := get(t, c.Node(1), "a"); got != "1" {
			t.Errorf("at a node that lost its disk a is %q", got)
		}
	})
}

// A disconnected node delivers nothing, and the others continue; after it has rejoined it has their deliveries.
func TestCut(t *testing.T) {
	clustertest.Run(t, 3, counters, func(t *testing.T, c *clustertest.Cluster) {
		c.Cut(2)
		c.Wait("the others to go on without it", func() bool {
			return len(c.Node(0).Status().Groups[0].Members) == 2
		})
		if _, err := c.Node(0).Group("g").Broadcast(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		c.Heal(2)
		c.Wait("it to be back", func() bool { return len(c.Node(0).Status().Groups[0].Members) == 3 })
		var all []string
		for i := range 3 {
			news, err := c.Node(i).Group("g").Subscribe(1)
			if err != nil {
				t.Fatal(err)
			}
			d, err := news.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(d.Payload))
		}
		if !slices.Equal(all, []string{"hello", "hello", "hello"}) {
			t.Errorf("delivered %q", all)
		}
	})
}

// Messages take as long as the configured latency.
func TestDelay(t *testing.T) {
	clustertest.Run(t, 3, counters, func(t *testing.T, c *clustertest.Cluster) {
		for i := range 3 {
			for k := range 3 {
				if i != k {
					c.Delay(i, k, 20*time.Millisecond)
				}
			}
		}
		began := time.Now()
		if _, err := c.Node(0).Group("g").Broadcast(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 40*time.Millisecond || took > 100*time.Millisecond {
			t.Errorf("a message and its acknowledgement took %s", took)
		}
	})
}
