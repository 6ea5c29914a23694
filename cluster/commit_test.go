package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/cluster"
)

// tally is a participant that votes no to bodies that say so, and records its calls.
type tally struct {
	mu       sync.Mutex
	prepared map[string]int // how often
	ends     map[string][]string
	calls    atomic.Int32 // of Prepare in progress
	most     atomic.Int32 // maximum of calls
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

// bodies returns the same body for several nodes.
func bodies(body string, nodes ...int) map[string][]byte {
	out := make(map[string][]byte)
	for _, i := range nodes {
		out[fmt.Sprintf("node%d", i+1)] = []byte(body)
	}
	return out
}

// parties returns a cluster with a tally at each node.
func parties(t *testing.T, n int, durable bool, c cluster.CommitConfig) (*rig, []*tally) {
	return configuredParties(t, n, durable, c, func(*cluster.Config) {})
}

func configuredParties(t *testing.T, n int, durable bool, c cluster.CommitConfig, more func(*cluster.Config)) (*rig, []*tally) {
	ledgers := make([]*tally, n)
	r := configured(t, n, func(i int, config *cluster.Config) {
		ledgers[i] = newTally()
		config.Participant, config.Commit = ledgers[i], c
		if durable {
			onDisk(config, false)
		}
		more(config)
	})
	return r.begin(), ledgers
}

var crashing = []cluster.CommitProtocol{cluster.TwoPhase, cluster.Majority}

// If all vote yes, all commit; if one votes no, all abort, with its name and reason. A retry gets the same
// answer, and nothing is done twice.
func TestCommit(t *testing.T) {
	each(t, func(t *testing.T, p cluster.CommitProtocol) {
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
		// Another member knows the outcome, and a node without a part finds out.
		for _, i := range []int{1, 3} {
			if yes, err := r.nodes[i].Load().Commit(ctx, "a", bodies("do", 0, 1, 2)); !yes || err != nil {
				t.Fatal(yes, err)
			}
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
					continue // aborted before its turn
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
	}, crashing...)
}

// A participant that voted yes and has lost the coordinator is blocked: it names the node that it waits for, and
// never aborts on its own. When the coordinator restarts from its disk, it learns the outcome.
func TestCommitBlockedUntilTheCoordinatorIsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, ledgers := parties(t, 3, true, cluster.CommitConfig{Delay: 20 * time.Millisecond, Votes: time.Minute})
		gate := make(chan struct{})
		for i := range ledgers {
			ledgers[i].gate = gate
		}
		parts := bodies("do", 0, 1, 2)
		parts["node1"] = []byte("wait") // the others have voted yes, and node 1 is asked last
		parts["node3"] = []byte("wait")
		answer := make(chan error, 1)
		coordinator := r.nodes[0].Load()
		go func() { answer <- second(coordinator.Commit(t.Context(), "t", parts)) }()
		eventually(t, "all are asked", func() bool { return ledgers[0].asked("t") && ledgers[1].asked("t") && ledgers[2].asked("t") })
		ledgers[2].mu.Lock()
		ledgers[2].gate = make(chan struct{})
		ledgers[2].mu.Unlock()
		cluster.LoseFrom(coordinator, 1) // votes of node 2 are lost from here on
		close(gate)
		eventually(t, "node 2 has voted", func() bool { return cluster.HasVoted(r.nodes[1].Load(), "t") })
		r.stop(0)
		if err := <-answer; !errors.Is(err, cluster.ErrUnknown) || !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
		r.stop(2)
		var blocked *cluster.BlockedError
		eventually(t, "node 2 says that it is blocked", func() bool {
			o, err := r.nodes[1].Load().Outcome("t")
			return o.State == cluster.Pending && errors.As(err, &blocked)
		})
		if !errors.Is(blocked, cluster.ErrBlocked) || !errors.Is(blocked, cluster.ErrUnknown) ||
			!slices.Equal(blocked.Waits, []string{"node1", "node3"}) {
			t.Errorf("%v", blocked)
		}
		if s := r.nodes[1].Load().Status().Commit; len(s.Blocked) != 1 || s.Pending != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(200 * time.Millisecond)
		if ledgers[1].end("t") != "" {
			t.Fatal("it has decided by itself")
		}
		r.start(0)
		eventually(t, "node 2 is told", func() bool { return ledgers[1].end("t") == "abort" })
		if _, err := r.nodes[0].Load().Outcome("t"); !errors.Is(err, cluster.ErrNoTransaction) {
			t.Error(err)
		}
	})
}

// A participant that restarts from its disk prepares again what it had voted yes to, and learns the outcome, also
// if the coordinator committed long ago.
func TestCommitParticipantComesBack(t *testing.T) {
	each(t, func(t *testing.T, p cluster.CommitProtocol) {
		r, ledgers := parties(t, 3, true, cluster.CommitConfig{Protocol: p, Delay: 20 * time.Millisecond})
		ctx := soon(t, 20*time.Second)
		ledgers[2].gate = make(chan struct{})
		parts := bodies("do", 1, 2)
		parts["node3"] = []byte("wait")
		answer := make(chan error, 1)
		node := r.nodes[0].Load()
		go func() {
			yes, err := node.Commit(ctx, "t", parts)
			if !yes {
				err = errors.Join(err, errors.New("it is aborted"))
			}
			answer <- err
		}()
		eventually(t, "it is asked", func() bool { return cluster.IsAsked(r.nodes[2].Load(), "t") && ledgers[2].asked("t") })
		for i := range 2 { // it does not learn the outcome
			cluster.LoseFrom(r.nodes[2].Load(), parley.ID(i))
		}
		close(ledgers[2].gate)
		must(t, <-answer)
		r.stop(2)
		if ledgers[2].end("t") != "" {
			t.Fatal("it has heard")
		}
		r.start(2)
		eventually(t, "it is told", func() bool { return ledgers[2].end("t") == "commit" })
		ledgers[2].mu.Lock()
		if ledgers[2].prepared["t"] != 2 {
			t.Errorf("it prepared %d times", ledgers[2].prepared["t"])
		}
		ledgers[2].mu.Unlock()
		eventually(t, "all is over", func() bool { return r.nodes[0].Load().Status().Commit.Open == 0 })
		r.stop(0, 1, 2)
		r.start(0, 1, 2)
		for i := range 3 {
			if o, err := r.nodes[i].Load().Outcome("t"); o.State != cluster.Committed || err != nil {
				t.Errorf("node %d: %v, %v", i, o, err)
			}
		}
		if ledgers[2].prepared["t"] != 2 || len(ledgers[2].ends["t"]) != 1 {
			t.Error("what was over is done again")
		}
	}, crashing...)
}

// Without the coordinator the others decide by a majority.
func TestCommitGoesOnWithoutTheCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, ledgers := parties(t, 3, false, cluster.CommitConfig{Protocol: cluster.Majority, Delay: 20 * time.Millisecond, Votes: 300 * time.Millisecond})
		gate := make(chan struct{})
		ledgers[0].gate = gate
		defer close(gate)
		parts := bodies("do", 1, 2)
		parts["node1"] = []byte("wait")
		coordinator := r.nodes[0].Load()
		go func() { _, _ = coordinator.Commit(t.Context(), "t", parts) }()
		eventually(t, "the others are asked", func() bool { return ledgers[1].asked("t") && ledgers[2].asked("t") })
		r.stop(0)
		for i := 1; i < 3; i++ {
			eventually(t, "they decide", func() bool { return ledgers[i].end("t") == "abort" })
		}
	})
}

// A thousand concurrent transactions, within the limits of calls and open transactions: each has one outcome on
// all nodes, and in the end no node keeps any.
func TestCommitManyAtATime(t *testing.T) {
	each(t, func(t *testing.T, p cluster.CommitProtocol) {
		const many = 1000
		r, ledgers := parties(t, 3, false, cluster.CommitConfig{
			Protocol: p, Open: 100, Prepares: 8, Delay: time.Second, Votes: time.Minute, // for a busy computer
		})
		ctx := soon(t, 60*time.Second)
		var all sync.WaitGroup
		committed := make([]bool, many)
		for i := range many {
			all.Go(func() {
				parts := bodies("do", 0, 1, 2)
				if i%10 == 0 {
					parts[fmt.Sprintf("node%d", 1+i/10%3)] = []byte("no")
				}
				yes, err := r.nodes[i%3].Load().Commit(ctx, fmt.Sprint("t", i), parts)
				if committed[i] = yes; err != nil || yes != (i%10 != 0) {
					o, _ := r.nodes[i%3].Load().Outcome(fmt.Sprint("t", i))
					t.Errorf("%d: %t, %v: %v", i, yes, err, o)
				}
			})
		}
		most := 0
		for quiet := make(chan struct{}); ; time.Sleep(time.Millisecond) {
			if most == 0 {
				go func() { all.Wait(); close(quiet) }()
			}
			most = max(most, 1, r.nodes[0].Load().Status().Commit.Preparing)
			select {
			case <-quiet:
			default:
				continue
			}
			break
		}
		for k, l := range ledgers {
			if most := l.most.Load(); most > 8 {
				t.Errorf("%d calls at a time", most)
			}
			for i := range many {
				tx, want := fmt.Sprint("t", i), map[bool]string{true: "commit", false: "abort"}[committed[i]]
				if !committed[i] && !l.asked(tx) {
					continue
				}
				eventually(t, "it is told", func() bool { return l.end(tx) == want })
			}
			eventually(t, "all is over", func() bool { return cluster.KeptTransactions(r.nodes[k].Load()) == 0 })
		}
	}, crashing...)
}
