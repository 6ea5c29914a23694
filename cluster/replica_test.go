package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/tables"
	"parley/replica/rsm"
)

// odd is a machine that counts commands. At one node it counts differently, and some commands make it panic.
type odd struct {
	count byte
	by    byte
}

func (o *odd) Apply(command []byte) []byte {
	switch string(command) {
	case "panic":
		panic("the command is one too many")
	case "part": // which no machine may do
		o.count += o.by - 1
	}
	o.count++
	return []byte{o.count}
}
func (o *odd) Snapshot() []byte { return []byte{o.count} }
func (o *odd) Restore(b []byte) bool {
	if len(b) == 1 {
		o.count = b[0]
	}
	return len(b) == 1
}
func (o *odd) Hash() uint64 { return uint64(o.count) }

// withOdd runs a test with three nodes in memory that have a table with such machines. That of node3 diverges on
// request.
func withOdd(t *testing.T, test func(t *testing.T, nodes []*cluster.Node, logs []*logged)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		logs := []*logged{{}, {}, {}}
		test(t, joined(t, 3, func(i int, c *cluster.Config) {
			by := []byte{1, 1, 2}[i]
			c.Log, c.Groups = logs[i].logger(), []cluster.GroupConfig{{Name: "total"}}
			c.Tables = []cluster.TableConfig{
				{Name: "odd", State: "odd", New: func() rsm.Application { return &odd{by: by} }}, {Name: "table"},
			}
			c.Test().Tables = tables.DefaultLimits
			c.Test().Tables.Compare = 8
		}), logs)
	})
}

// A diverged replica is detected with the default settings, named by all nodes, and stops, and its node reports
// that; the others serve the table.
func TestDivergedReplica(t *testing.T) {
	withOdd(t, func(t *testing.T, nodes []*cluster.Node, logs []*logged) {
		ctx := soon(t, time.Minute)
		s := nodes[0].Table("odd").Session()
		for k := range 16 {
			command := "one"
			if k == 3 {
				command = "part"
			}
			if _, _, err := s.Do(ctx, []byte(command)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // of virtual time: the hashes of the replicas arrive
		if _, _, err := nodes[2].Table("odd").Query(ctx, []byte("one")); !errors.Is(err, cluster.ErrStopped) ||
			!errors.Is(err, cluster.ErrRefused) {
			t.Errorf("the replica that differs: got %v, want ErrStopped", err)
		}
		for i, node := range nodes {
			st := node.Status().Tables[0]
			if fmt.Sprint(st.Diverged) != "[node3]" || (st.Stopped != "") != (i == 2) ||
				!strings.Contains(logs[i].String(), `msg="replica diverged" table=odd node=node3 position=`) {
				t.Errorf("node%d: got %+v, want node3 named, and stopped there\n%s", i+1, st, logs[i])
			}
		}
		if _, _, err := s.Do(ctx, []byte("one")); err != nil {
			t.Errorf("the other replicas: %v", err)
		}
	})
}

// A machine that panics stops its table, with an error for waiting and later callers, and nothing else: the node
// and its other table continue.
func TestPanicInApply(t *testing.T) {
	withOdd(t, func(t *testing.T, nodes []*cluster.Node, logs []*logged) {
		ctx := soon(t, time.Minute)
		odd := nodes[0].Table("odd")
		_, _, err := odd.Session().Do(ctx, []byte("panic"))
		if !errors.Is(err, cluster.ErrStopped) || !errors.Is(err, cluster.ErrUnknown) || ctx.Err() != nil ||
			!strings.Contains(fmt.Sprint(err), "its application panicked: the command is one too many") {
			t.Errorf("the command that panics: got %v, want ErrStopped and why", err)
		}
		if _, _, err := odd.Query(ctx, []byte("one")); !errors.Is(err, cluster.ErrStopped) || !errors.Is(err, cluster.ErrRefused) {
			t.Errorf("a later command: got %v, want ErrStopped", err)
		}
		if text := logs[0].String(); !strings.Contains(text, `msg="state machine panicked; its replica stops" table=odd err="the command is one too many" stack=`) {
			t.Errorf("the log has no panic:\n%s", text)
		}
		if st := nodes[0].Status(); st.State != cluster.Running || !strings.Contains(st.Tables[0].Stopped, "panicked") {
			t.Errorf("got %+v, want a node that runs", st)
		}
		if _, err := nodes[0].Table("table").KeyValue().Put(ctx, []byte("a"), []byte("b")); err != nil {
			t.Errorf("the other table: %v", err)
		}
	})
}

// Calls of a service that is not configured fail, and the error lists what is configured.
func TestNotConfigured(t *testing.T) {
	withOdd(t, func(t *testing.T, nodes []*cluster.Node, _ []*logged) {
		ctx, n, long := t.Context(), nodes[0], strings.Repeat("x", 1000)
		table, group := n.Table(long), n.Group("nowhere")
		for what, ask := range map[string]func() error{
			"Open":      func() error { _, err := table.Open(ctx); return err },
			"Do":        func() error { _, _, err := table.Session().Do(ctx, []byte("x")); return err },
			"Query":     func() error { _, _, err := table.Query(ctx, []byte("x")); return err },
			"Get":       func() error { _, _, err := table.KeyValue().Get(ctx, []byte("x")); return err },
			"Inspect":   func() error { _, _, err := table.Inspect(ctx); return err },
			"Broadcast": func() error { _, err := group.Broadcast(ctx, []byte("x")); return err },
			"Post":      func() error { return group.BroadcastAsync([]byte("x")) },
			"Subscribe": func() error { _, err := group.Subscribe(0); return err },
		} {
			if err := ask(); !errors.Is(err, cluster.ErrNotConfigured) || len(err.Error()) > 256 {
				t.Errorf("%s: got %v, want ErrNotConfigured", what, err)
			}
		}
		if err := group.BroadcastAsync(nil); !strings.HasSuffix(err.Error(), `there is no group "nowhere": configured are total`) {
			t.Errorf("got %v, want the names that there are", err)
		}
	})
}
