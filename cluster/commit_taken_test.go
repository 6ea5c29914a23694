package cluster_test

import (
	"errors"
	"testing"
	"time"

	"parley/cluster"
)

// A client without an answer asks another node, which has no part in the transaction: it gets the outcome, or an
// unknown outcome, but never that the transaction had no effect.
func TestCommitAskedElsewhere(t *testing.T) {
	each(t, func(t *testing.T, p cluster.CommitProtocol) {
		r, ledgers := parties(t, 4, false, cluster.CommitConfig{Protocol: p, Votes: time.Minute})
		ctx := soon(t, 20*time.Second)
		for tx, body := range map[string]string{"a": "do", "b": "no"} {
			first, err := r.nodes[0].Load().Commit(ctx, tx, bodies(body, 1, 2))
			if err != nil || first != (body == "do") {
				t.Fatal(first, err)
			}
			for i := range 4 {
				if yes, err := r.nodes[i].Load().Commit(ctx, tx, bodies(body, 1, 2)); yes != first || err != nil {
					t.Errorf("%s is asked at node %d: %t, %v", tx, i+1, yes, err)
				}
			}
			_, err = r.nodes[3].Load().Commit(ctx, tx, bodies("other", 1, 2))
			if !errors.Is(err, cluster.ErrTaken) || errors.Is(err, cluster.ErrUnknown) {
				t.Errorf("what has the name of %s and is another: %v", tx, err)
			}
			if o, err := r.nodes[1].Load().Outcome(tx); (o.State == cluster.Committed) != first || err != nil {
				t.Error(o, err)
			}
		}
		underWay(t, r, ledgers[1])
	}, crashing...)
}

// underWay commits a transaction at another node before it has an outcome: earlier callers continue to wait, and
// its outcome is known at its members.
func underWay(t *testing.T, r *rig, slow *tally) {
	ctx := soon(t, 20*time.Second)
	slow.mu.Lock()
	slow.gate = make(chan struct{})
	slow.mu.Unlock()
	asked := bodies("wait", 1)
	asked["node3"] = []byte("do")
	first := make(chan error, 1)
	go func() {
		defer close(first)
		yes, err := r.nodes[1].Load().Commit(ctx, "w", asked)
		if err == nil && !yes {
			err = errors.New("it is aborted, it says")
		}
		if err != nil {
			first <- err
		}
	}()
	eventually(t, "it is to be prepared", func() bool { return slow.asked("w") })
	node := r.nodes[3].Load()
	_, err := node.Commit(ctx, "w", asked)
	if !errors.Is(err, cluster.ErrTaken) || !errors.Is(err, cluster.ErrUnknown) {
		t.Errorf("under way: %v", err)
	}
	if o, err := node.Outcome("w"); !errors.Is(err, cluster.ErrNoTransaction) {
		t.Errorf("a node without a part says of its outcome: %+v, %v", o, err)
	}
	select {
	case err := <-first:
		t.Errorf("who asked first has an answer before there is one: %v", err)
	default:
	}
	close(slow.gate)
	if err := <-first; err != nil {
		t.Error(err)
	}
	eventually(t, "all know the end", func() bool { return cluster.KeptTransactions(r.nodes[1].Load()) == 0 })
	for i := 1; i < 4; i++ {
		if yes, err := r.nodes[i].Load().Commit(ctx, "w", asked); !yes || err != nil {
			t.Errorf("asked again at node %d: %t, %v", i+1, yes, err)
		}
	}
	if o, err := r.nodes[1].Load().Outcome("w"); o.State != cluster.Committed || err != nil {
		t.Errorf("its outcome: %+v, %v", o, err)
	}
}
