package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/cluster"
)

// onDatagrams starts four nodes that are connected by packets, which meddle can change.
func onDatagrams(t *testing.T, meddle func(from, to parley.ID, packet []byte, send func([]byte))) []*cluster.Node {
	t.Helper()
	return joined(t, 4, func(i int, c *cluster.Config) {
		if c.Links, c.Round = cluster.Datagrams, 200*time.Millisecond; meddle != nil {
			c.Test().Meddle = func(to parley.ID, packet []byte, send func([]byte)) { meddle(parley.ID(i), to, packet, send) }
		}
	})
}

// Over datagrams nodes agree with every algorithm, on one value and on vectors.
func TestAgreeOverDatagrams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := onDatagrams(t, nil)
		for _, a := range []cluster.Algorithm{cluster.EIG, cluster.OM, cluster.SM, cluster.PhaseKing} {
			d, err := nodes[1].Agree(t.Context(), cluster.AgreeRequest{Value: []byte("attack"), Algorithm: a})
			if err != nil || string(d.Value) != "attack" {
				t.Errorf("%v: %q, %v", a, d.Value, err)
			}
		}
		var asked sync.WaitGroup
		for i, node := range nodes {
			asked.Go(func() {
				v, err := node.AgreeVector(t.Context(), cluster.VectorRequest{Name: "x", Value: fmt.Append(nil, i), Gather: 500 * time.Millisecond})
				if got := fmt.Sprintf("%s", v.Values); err != nil || got != "[0 1 2 3]" {
					t.Errorf("node %d: %s, %v", i, got, err)
				}
			})
		}
		asked.Wait()
	})
}

// Packets from and to one node are lost, duplicated, and reordered: it counts as the faulty one, and the others
// agree.
func TestDatagramsAreLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var lost, twice, later int
		var mu sync.Mutex
		chance := rand.New(rand.NewPCG(1, 2))
		nodes := onDatagrams(t, func(from, to parley.ID, packet []byte, send func([]byte)) {
			if from != 3 && to != 3 {
				send(packet)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch chance.IntN(4) {
			case 0:
				lost++
			case 1:
				twice++
				send(packet)
				send(packet)
			case 2:
				later++
				time.AfterFunc(time.Duration(chance.IntN(int(30*time.Millisecond))), func() { send(packet) })
			default:
				send(packet)
			}
		})
		all := ledgers(nodes)
		var asked sync.WaitGroup
		const each = 10
		for i, node := range nodes[:3] {
			asked.Go(func() {
				for k := range each {
					value := fmt.Sprint(i, k)
					if d, err := node.Agree(t.Context(), cluster.AgreeRequest{Value: []byte(value)}); err != nil || string(d.Value) != value {
						t.Errorf("node %d asked for %s: %q, %v", i, value, d.Value, err)
					}
				}
			})
		}
		asked.Wait()
		for source := range parley.ID(3) {
			within(t, 5*time.Second, "all decide", func() bool {
				return len(all[0].values(source)) == each && len(all[1].values(source)) == each && len(all[2].values(source)) == each
			})
			for i := range 3 {
				if a, b := fmt.Sprint(all[i].values(source)), fmt.Sprint(all[0].values(source)); a != b {
					t.Errorf("of source %d node %d decided %s, and the first %s", source, i, a, b)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if lost < 10 || twice < 10 || later < 10 {
			t.Errorf("%d were lost, %d came twice and %d later", lost, twice, later)
		}
	})
}

// Over calls nodes agree with every algorithm, and deliver all broadcasts in one order.
func TestCallsCarryAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var all [4]told
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			all[i].per = make(map[parley.ID]uint64)
			c.Links, c.Round = cluster.Calls, roomy
			c.Groups = []cluster.GroupConfig{
				{Name: "g", Level: cluster.Total, Deliver: func(d cluster.Delivery) { all[i].deliver(d, cluster.Total) }},
			}
		})
		for _, a := range []cluster.Algorithm{cluster.EIG, cluster.OM, cluster.SM, cluster.PhaseKing} {
			d, err := nodes[1].Agree(t.Context(), cluster.AgreeRequest{Value: []byte("attack"), Algorithm: a})
			if err != nil || string(d.Value) != "attack" {
				t.Errorf("%v: %q, %v", a, d.Value, err)
			}
		}
		const each = 50
		var casting sync.WaitGroup
		for i, node := range nodes {
			casting.Go(func() {
				for k := range each {
					if err := node.Group("g").BroadcastAsync(tagged(k, 4, &all[i])); err != nil {
						t.Error(err)
					}
				}
			})
		}
		casting.Wait()
		for i := range all {
			within(t, 10*time.Second, "all deliver", func() bool { return len(all[i].all()) == 4*each })
			if all[i].bad != "" || !slices.Equal(all[i].all(), all[0].all()) {
				t.Errorf("node %d delivered %s, %q", i, all[i].bad, all[i].all())
			}
		}
	})
}

// Services that datagrams cannot carry are refused.
func TestRefusedLinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for want, change := range map[string]func(c *cluster.Config){
			"groups and tables need streams or calls": func(c *cluster.Config) { c.Groups = []cluster.GroupConfig{{Name: "g"}} },
			"tables need streams or calls":            func(c *cluster.Config) { c.Tables = []cluster.TableConfig{{Name: "t"}} },
			"there are no links 7":                    func(c *cluster.Config) { c.Links = 7 },
		} {
			c := cluster.Config{Name: "a", Members: []cluster.Member{{Name: "a"}, {Name: "b"}}, Links: cluster.Datagrams}
			change(&c)
			if _, err := cluster.Join(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, not %q", err, want)
			}
		}
		for _, l := range []cluster.Links{cluster.Streams, cluster.Datagrams, cluster.Calls} {
			if again, err := cluster.ParseLinks(l.String()); again != l || err != nil {
				t.Errorf("%v is read as %v: %v", l, again, err)
			}
		}
		if _, err := cluster.ParseLinks("pigeons"); err == nil {
			t.Error("links by pigeons")
		}
	})
}
