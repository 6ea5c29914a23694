package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/catalog"
	"parley/cluster"
	"parley/cluster/audit"
	"parley/trace"
)

// readTraces reads all traces in a folder.
func readTraces(t *testing.T, dir string) []trace.Trace {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	must(t, err)
	var all []trace.Trace
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		some, err := trace.ReadAll(filepath.Base(file), bytes.NewReader(b))
		must(t, err)
		all = append(all, some...)
	}
	return all
}

// found audits traces and returns the verdicts by machine.
func found(t *testing.T, traces []trace.Trace, settle time.Duration) map[string]audit.Channel {
	t.Helper()
	none := func(trace.Header) parley.Naming { return nil }
	list, err := audit.Audit(traces, audit.Options{Protocol: audit.Protocols(catalog.All(), none), Settle: settle})
	must(t, err)
	out := make(map[string]audit.Channel)
	for _, c := range list {
		out[c.Machine] = c
	}
	return out
}

// Nodes write traces of their machines, each group and each stream in a file of its own; the audit confirms all
// properties. The recorded events are part of it.
func TestTraces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n, each = 3, 40
		dir, home := t.TempDir(), t.TempDir()
		var delivered [n]atomic.Int64
		levels := []cluster.Level{
			cluster.Total, cluster.Reliable, cluster.Uniform, cluster.FIFO, cluster.Causal, cluster.Atomic,
		}
		nodes := joined(t, n, func(i int, c *cluster.Config) {
			c.Trace = &cluster.Tracing{Open: cluster.TraceFolder(dir)}
			if i == 0 {
				c.Dir = home
			}
			for _, level := range levels {
				c.Groups = append(c.Groups, cluster.GroupConfig{
					Name: level.String(), Level: level, Deliver: func(cluster.Delivery) { delivered[i].Add(1) },
				})
			}
		})
		for k := range each {
			for i, node := range nodes {
				for _, level := range levels {
					must(t, node.Group(level.String()).BroadcastAsync(fmt.Appendf(nil, "%d of %d", k, i)))
				}
			}
		}
		for i := range delivered {
			for end := time.Now().Add(20 * time.Second); delivered[i].Load() < int64(n*each*len(levels)) &&
				time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
		if _, err := nodes[0].Agree(context.Background(), cluster.AgreeRequest{Value: []byte("x"), Algorithm: cluster.SM, M: 1}); err != nil {
			t.Log(err) // the computer may be too slow
		}
		file, err := nodes[0].DumpFlight()
		if err != nil || file != filepath.Join(home, "flight.jsonl") {
			t.Fatal(file, err)
		}
		const settle = 100 * time.Millisecond
		time.Sleep(3 * settle)
		for _, node := range nodes {
			if err := node.Close(); err != nil {
				t.Log(err)
			}
		}
		all := found(t, readTraces(t, dir), settle)
		for _, level := range levels {
			c := all["group/"+level.String()]
			if c.Incomplete != nil || len(c.Verdicts) < 4 || c.Violated() {
				t.Errorf("%v: %v, %+v", level, c.Incomplete, c.Verdicts)
			}
			for _, v := range c.Verdicts {
				if v.Property.Mode != parley.Sometimes && v.Promised == 0 {
					t.Logf("%v: %s is not promised: %s", level, v.Property.Name, v.Spared)
				}
			}
		}
		flight := found(t, readTraces(t, home), settle)
		if c := flight["group/total"]; c.Incomplete == nil || !strings.Contains(c.Incomplete.Error(), "a recorder kept") ||
			c.Violated() || c.Log.Len() == 0 {
			t.Errorf("the recorder: %+v", c)
		}
	})
}
