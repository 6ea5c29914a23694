package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/cluster"
)

// tally is a participant: it says no to parts that say so, and remembers what it is told.
type tally struct {
	mu       sync.Mutex
	prepared map[string]int // how often
	ends     map[string][]string
	calls    atomic.Int32 // of Prepare under way
	most     atomic.Int32 // at a time
	gate     chan struct{}
}

func newTally() *tally {
	return &tally{prepared: make(map[string]int), ends: make(map[string][]string)}
}

func (l *tally) Prepare(ctx context.Context, tx string, body []byte) (bool, error) {
	now := l.calls.Add(1)
	defer l.calls.Add(-1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	l.mu.Lock()
	l.prepared[tx]++
	gate := l.gate
	l.mu.Unlock()
	if string(body) == "wait" {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	switch string(body) {
	case "no":
		return false, nil
	case "error":
		return false, errors.New("no such account")
	}
	return true, nil
}

func (l *tally) Commit(tx string) { l.told(tx, "commit") }
func (l *tally) Abort(tx string)  { l.told(tx, "abort") }

func (l *tally) told(tx, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[tx] = append(l.ends[tx], what)
}

func (l *tally) asked(tx string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prepared[tx] > 0
}

func (l *tally) end(tx string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(slices.Compact(slices.Clone(l.ends[tx])), ", ")
}

// bodies asks the same of several nodes.
func bodies(body string, nodes ...int) map[string][]byte {
	out := make(map[string][]byte)
	for _, i := range nodes {
		out[fmt.Sprintf("node%d", i+1)] = []byte(body)
	}
	return out
}

// eventually waits for something to come about.
func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("not in the end: %s", what)
		}
	}
}

// parties is a cluster with a tally at each node.
func parties(t *testing.T, n int, durable bool, c cluster.CommitConfig) (*rig, []*tally) {
	ledgers := make([]*tally, n)
	dir := t.TempDir()
	i := 0
	r := newRig(t, n, func(config *cluster.Config) {
		ledgers[i] = newTally()
		config.Participant, config.Commit = ledgers[i], c
		if durable {
			config.Dir = filepath.Join(dir, config.Name)
		}
		i++
	})
	return r, ledgers
}

var crashing = []cluster.CommitProtocol{cluster.TwoPhase, cluster.Majority}

// All say yes and all commit; one says no and all abort, and it is said who and why. Who
// asks again gets the same answer, and nothing is done twice.
func TestCommit(t *testing.T) {
	for _, p := range crashing {
		t.Run(p.String(), func(t *testing.T) {
			r, ledgers := parties(t, 4, p == cluster.TwoPhase, cluster.CommitConfig{Protocol: p})
			ctx := soon(t, 10*time.Second)
			node := r.nodes[0].Load()
			for range 2 {
				if yes, err := node.Commit(ctx, "a", bodies("do", 0, 1, 2)); !yes || err != nil {
					t.Fatal(yes, err)
				}
				if yes, err := node.Commit(ctx, "b", bodies("do", 1)); !yes || err != nil {
					t.Fatal(yes, err)
				}
				if yes, err := node.Commit(ctx, "c", bodies("do", 0)); !yes || err != nil {
					t.Fatal(yes, err)
				}
				no := bodies("do", 0, 1, 2)
				no["node3"] = []byte("no")
				if yes, err := node.Commit(ctx, "d", no); yes || err != nil {
					t.Fatal(yes, err)
				}
				no["node3"], no["node1"] = []byte("do"), []byte("error")
				if yes, err := node.Commit(ctx, "e", no); yes || err != nil {
					t.Fatal(yes, err)
				}
			}
			// Another node that took part knows, and one that did not finds out.
			if yes, err := r.nodes[1].Load().Commit(ctx, "a", bodies("do", 0, 1, 2)); !yes || err != nil {
				t.Fatal(yes, err)
			}
			if yes, err := r.nodes[3].Load().Commit(ctx, "a", bodies("do", 0, 1, 2)); yes || !errors.Is(err, cluster.ErrTaken) {
				t.Fatal(yes, err)
			}
			if yes, err := node.Commit(ctx, "a", bodies("else", 0, 1, 2)); yes || !errors.Is(err, cluster.ErrTaken) {
				t.Fatal(yes, err)
			}
			for _, c := range []struct {
				tx, end string
				at      []int
			}{{"a", "commit", []int{0, 1, 2}}, {"b", "commit", []int{1}}, {"c", "commit", []int{0}},
				{"d", "abort", []int{0, 1, 2}}, {"e", "abort", []int{0}}} {
				for _, i := range c.at {
					if c.end == "abort" && !ledgers[i].asked(c.tx) {
						continue // it was over before its turn
					}
					eventually(t, c.tx, func() bool { return ledgers[i].end(c.tx) == c.end })
					if n := ledgers[i].prepared[c.tx]; n != 1 {
						t.Errorf("node %d prepared %s %d times", i, c.tx, n)
					}
				}
			}
			if len(ledgers[3].prepared) > 0 {
				t.Error("a node without a part was asked")
			}
			for tx, want := range map[string]string{
				"d": "node3: said no", "e": "node1: no such account", "a": "",
			} {
				if o, err := node.Outcome(tx); err != nil || o.Why != want || (o.State == cluster.Committed) != (tx == "a") {
					t.Error(o, err)
				}
			}
			if _, err := node.Outcome("z"); !errors.Is(err, cluster.ErrNoTransaction) {
				t.Error(err)
			}
		})
	}
}

// What is no transaction is refused, and nothing is done.
func TestCommitRefuses(t *testing.T) {
	r, _ := parties(t, 2, false, cluster.CommitConfig{})
	node := r.nodes[0].Load()
	for tx, parts := range map[string]map[string][]byte{
		"": bodies("do", 0), strings.Repeat("x", cluster.MaxTx+1): bodies("do", 0), "nobody": nil,
		"stranger": {"node9": nil}, "long": {"node1": make([]byte, cluster.MaxPart+1)},
	} {
		if _, err := node.Commit(t.Context(), tx, parts); !errors.Is(err, cluster.ErrRefused) {
			t.Errorf("%q: %v", tx, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := node.Commit(ctx, "late", bodies("wait", 1)); !errors.Is(err, cluster.ErrUnknown) &&
		!errors.Is(err, cluster.ErrRefused) {
		t.Error(err)
	}
	for _, c := range []cluster.CommitConfig{{Protocol: 9}, {Votes: -1}, {Open: 1 << 20}} {
		r := &rig{tb: t}
		configured(t, r, 1, func(config *cluster.Config) { config.Commit = c })
		if _, err := cluster.Join(t.Context(), r.configs[0]); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
