package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cluster"
)

// governed returns a cluster with a group and a table, for the tests of administration.
func governed(t *testing.T, n int) *rig {
	return newRig(t, n, func(c *cluster.Config) {
		onDisk(c, false)
		c.Groups = []cluster.GroupConfig{{Name: "g"}}
		if n > 3 {
			c.Groups = append(c.Groups, cluster.GroupConfig{Name: "b", Level: cluster.Byzantine})
		}
		c.Tables = []cluster.TableConfig{{Name: "t"}}
		c.Participant = newTally()
	})
}

// Status reports the actual members, views, positions, and counters, and can be encoded as JSON.
func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := governed(t, 4)
		ctx := soon(t, 10*time.Second)
		node := r.nodes[1].Load()
		for range 3 {
			must(t, second(r.table(1).KeyValue().Add(ctx, []byte("k"), 1)))
		}
		position, err := node.Group("b").Broadcast(ctx, []byte("x"))
		must(t, err)
		must(t, second(node.Commit(ctx, "tx", bodies("do", 0, 1))))
		s := node.Status()
		all := []string{"node1", "node2", "node3", "node4"}
		if s.Name != "node2" || s.State != cluster.Running || s.Again || s.Incarnation == 0 || time.Since(s.Started) > time.Minute ||
			s.Store == nil || s.Store.Bytes == 0 || s.Cluster != "test" {
			t.Errorf("%+v", s)
		}
		for _, v := range []cluster.ViewStatus{s.Groups[0].ViewStatus, s.Tables[0].ViewStatus} {
			if !v.In || v.View != 1 || !slices.Equal(v.Members, all) {
				t.Errorf("%+v", v)
			}
		}
		// A Byzantine group has no views: all nodes are its members, and this node takes part.
		if v := s.Groups[1]; !v.In || v.View != 0 || !slices.Equal(v.Members, all) || v.Suspected != nil {
			t.Errorf("%+v", v)
		}
		if p := s.Tables[0].Position; p < 3 || p > 6 {
			t.Errorf("position %d", p)
		}
		if s.Commit.Committed != 1 || s.Commit.Protocol != "two-phase" {
			t.Errorf("%+v", s.Commit)
		}
		for i, m := range s.Members {
			if m.Name != all[i] || !m.Connected || m.Self != (i == 1) || m.Expelled ||
				!slices.Equal(m.In, []string{"group/g", "table/t"}) || !m.Self && (m.FramesIn == 0 || m.Incarnation == 0) {
				t.Errorf("%+v", m)
			}
		}
		b, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(b), `"members":[{"name":"node1"`) {
			t.Error(err, string(b))
		}
		if p := s.Groups[1].Position; p != position || p != 1<<16 {
			t.Errorf("position %d, and the payload is at %d", p, position)
		}
		// A node that is down is not connected, and suspected or out of the view.
		r.stop(3)
		eventually(t, "node4 is out of the view", func() bool {
			s := node.Status()
			return !s.Members[3].Connected && slices.Equal(s.Groups[0].Members, all[:3]) && len(s.Members[3].In) == 0
		})
	})
}

// A node that leaves is out of all views at once, and the others did not have to suspect it. It refuses requests,
// and rejoins by Join.
func TestLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := governed(t, 3)
		ctx := soon(t, 20*time.Second)
		left := r.nodes[2].Swap(nil)
		must(t, left.Leave(ctx))
		for i := range 2 { // the last node to install the view may do so one message after Leave has returned
			within(t, 5*time.Second, "it is in no view", func() bool {
				return !slices.ContainsFunc(views(r.nodes[i].Load()), func(v cluster.ViewStatus) bool {
					return len(v.Members) != 2 || len(v.Suspected) > 0
				})
			})
		}
		if s := left.Status(); s.State != cluster.Left {
			t.Errorf("it is %s", s.State)
		}
		if err := left.Group("g").BroadcastAsync(nil); !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
		if _, err := r.table(0).KeyValue().Add(ctx, []byte("k"), 1); err != nil {
			t.Error(err)
		}
		r.start(2)
		r.back(2)
		if err := left.Close(); err != nil {
			t.Error(err)
		}
		// A majority must stay: a Leave below it is refused, and the node continues.
		if err := r.nodes[2].Swap(nil).Leave(ctx); err != nil {
			t.Error(err)
		}
		for name, leave := range map[string]func(context.Context) error{
			"leave": r.nodes[1].Load().Leave, "drain": r.nodes[1].Load().Drain,
		} {
			within(t, 5*time.Second, "it is refused", func() bool { return len(views(r.nodes[1].Load())[0].Members) == 2 })
			if err := leave(ctx); !errors.Is(err, cluster.ErrRefused) {
				t.Errorf("%s: got %v, want ErrRefused", name, err)
			}
		}
		if _, err := r.table(1).KeyValue().Add(ctx, []byte("k"), 1); err != nil {
			t.Error(err)
		}
	})
}

// views returns all views that a node knows.
func views(n *cluster.Node) (list []cluster.ViewStatus) {
	s := n.Status()
	for _, g := range s.Groups {
		if g.Level != cluster.Byzantine.String() {
			list = append(list, g.ViewStatus)
		}
	}
	for _, x := range s.Tables {
		list = append(list, x.ViewStatus)
	}
	return list
}

// Without a majority a node cannot leave: it is closed when the context ends, and reports that.
func TestLeaveWithoutAMajority(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := governed(t, 3)
		r.stop(0, 1)
		err := r.nodes[2].Swap(nil).Leave(soon(t, 300*time.Millisecond))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "[group/g table/t]") {
			t.Error(err)
		}
	})
}

// A draining node refuses new requests, and finishes earlier ones.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := governed(t, 3)
		ctx := soon(t, 20*time.Second)
		node := r.nodes[2].Swap(nil)
		client := node.Table("t").KeyValue()
		under := make(chan error, 1)
		gate := make(chan struct{})
		go func() {
			close(gate)
			_, err := client.Add(ctx, []byte("k"), 1)
			under <- err
		}()
		<-gate
		time.Sleep(20 * time.Millisecond)
		done := make(chan error, 1)
		go func() { done <- node.Drain(ctx) }()
		eventually(t, "it drains", func() bool { return node.Status().State != cluster.Running })
		_, err := client.Add(ctx, []byte("k"), 1)
		if !errors.Is(err, cluster.ErrRefused) && !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
		for what, err := range map[string]error{
			"broadcast": node.Group("g").BroadcastAsync(nil),
			"commit":    second(node.Commit(ctx, "tx", bodies("do", 0))),
			"agree":     second(node.Agree(ctx, cluster.AgreeRequest{})),
		} {
			if !errors.Is(err, cluster.ErrDraining) && !errors.Is(err, cluster.ErrClosed) {
				t.Error(what, err)
			}
		}
		if err := errors.Join(<-under, <-done); err != nil {
			t.Error(err)
		}
		if sum, err := r.table(0).KeyValue().Add(ctx, []byte("k"), 1); sum != 2 || err != nil {
			t.Error(sum, err)
		}
	})
}

// An expelled node is out of all views, although it is running, and learns it: its requests fail with
// ErrExpelled, which matches ErrNotMember. It rejoins only as another incarnation.
func TestExpel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := governed(t, 3)
		ctx := soon(t, 20*time.Second)
		must(t, r.nodes[1].Load().Expel(ctx, "node3"))
		out := r.nodes[2].Load()
		eventually(t, "it learns of it", func() bool { return out.Status().State == cluster.Expelled })
		asking := soon(t, 2*time.Second)
		_, _, err := out.Table("t").Session().Do(asking, nil) // it does not wait to become a member again
		if !errors.Is(err, cluster.ErrExpelled) || !errors.Is(err, cluster.ErrRefused) || asking.Err() != nil {
			t.Error("session", err, asking.Err())
		}
		for what, err := range map[string]error{
			"group": second(out.Group("g").Broadcast(ctx, nil)), "table": second(out.Table("t").Open(ctx)),
			"commit": second(out.Commit(ctx, "tx", bodies("do", 0))),
			"agree":  second(out.Agree(ctx, cluster.AgreeRequest{})), "expel": out.Expel(ctx, "node1"),
		} {
			if !errors.Is(err, cluster.ErrExpelled) || !errors.Is(err, cluster.ErrNotMember) {
				t.Error(what, err)
			}
		}
		time.Sleep(2 * quick.Suspect)
		for i := range 2 {
			eventually(t, "it is out", func() bool { return r.nodes[i].Load().Status().Members[2].Expelled })
			for _, v := range views(r.nodes[i].Load()) {
				if len(v.Members) != 2 {
					t.Errorf("node %d: %+v", i, v)
				}
			}
		}
		if err := out.Drain(ctx); err != nil || out.Status().State != cluster.Left {
			t.Errorf("it is drained, and then %s: %v", out.Status().State, err)
		}
		r.stop(2)
		r.start(2)
		r.back(2)
		if s := r.nodes[0].Load().Status(); s.Members[2].Expelled || !slices.Contains(s.Members[2].In, "table/t") {
			t.Errorf("%+v", s.Members[2])
		}
		for _, name := range []string{"node1", "node9"} {
			if err := r.nodes[0].Load().Expel(ctx, name); !errors.Is(err, cluster.ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// With m = 1 of four nodes, one node alone can expel a member from services that tolerate only crashes, but not
// from those that tolerate Byzantine faults; two nodes can.
func TestExpelTakesMoreThanMayLie(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := governed(t, 4)
		ctx := soon(t, 20*time.Second)
		must(t, r.nodes[0].Load().Expel(ctx, "node4"))
		// It is out of the views, and learns that from more than one node, and continues in the rest.
		out := r.nodes[3].Load()
		eventually(t, "it learns of it", func() bool { return out.Status().State == cluster.Expelled })
		if err := out.Group("g").BroadcastAsync(nil); !errors.Is(err, cluster.ErrExpelled) {
			t.Error(err)
		}
		if position, err := out.Group("b").Broadcast(ctx, []byte("x")); err != nil || position == 0 {
			t.Error(position, err)
		}
		if _, err := out.Agree(ctx, cluster.AgreeRequest{}); err != nil {
			t.Error(err)
		}
		for i := range 3 {
			if got := cluster.Shut(r.nodes[i].Load(), 3); got != "crash" {
				t.Errorf("node %d has shut it out of %s", i, got)
			}
		}
		must(t, r.nodes[1].Load().Expel(ctx, "node4"))
		for i := range 3 {
			eventually(t, "all is shut", func() bool { return cluster.Shut(r.nodes[i].Load(), 3) == "all" })
		}
		eventually(t, "it learns of that, too", func() bool {
			err := out.Group("b").BroadcastAsync(nil)
			return errors.Is(err, cluster.ErrExpelled) && errors.Is(second(out.Agree(ctx, cluster.AgreeRequest{})), cluster.ErrExpelled)
		})
	})
}

// A node that has lost its folder, and does not declare it, is refused by nodes that know it, because its
// promises are lost. As a new member it is admitted, and gets all state: then another node may fail, and in
// durable mode all nodes may restart.
func TestLostFolder(t *testing.T) {
	each(t, func(t *testing.T, durable bool) {
		r := newRig(t, 3, withTable(durable))
		ctx := soon(t, 60*time.Second)
		client := r.table(0).KeyValue()
		const keys = 50
		for i := range keys {
			must(t, second(client.Put(ctx, fmt.Append(nil, i), fmt.Append(nil, "value", i))))
		}
		r.lose(2)
		r.configs[2].Rejoin = false
		if _, err := cluster.Join(ctx, r.configs[2]); !errors.Is(err, cluster.ErrStaleIncarnation) {
			t.Errorf("it joins: %v", err)
		}
		refused := uint64(0)
		for i := range 2 {
			refused += r.nodes[i].Load().Status().Members[2].Dropped["old incarnation"]
		}
		if refused == 0 {
			t.Error("nobody has refused it")
		}
		r.lose(2)
		r.start(2)
		r.back(2)
		r.stop(1)
		check := func(at int) {
			t.Helper()
			for i := range keys {
				value, _, err := r.table(at).KeyValue().Get(ctx, fmt.Append(nil, i))
				if err != nil || string(value) != fmt.Sprint("value", i) {
					t.Fatalf("at %d: %d is %s, %v", at, i, value, err)
				}
			}
		}
		check(2)
		if !durable {
			return
		}
		r.stop(0, 2)
		r.start(0, 1, 2)
		check(2)
	}, false, true)
}
