package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/faulty"
)

// agreed is a configuration with protocol Agreed.
var agreed = cluster.CommitConfig{Protocol: cluster.Agreed, Delay: 20 * time.Millisecond}

// agreeing returns a cluster with rounds so long that no node misses one on a busy computer.
func agreeing(t *testing.T, n int, durable bool, c cluster.CommitConfig) (*rig, []*tally) {
	return configuredParties(t, n, durable, c, func(c *cluster.Config) { c.Round = time.Second })
}

// If all vote yes, all commit; if one votes no, all abort; a name is used once; and transactions that are too
// long are refused.
func TestAgreedCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, ledgers := agreeing(t, 4, false, agreed)
		ctx := soon(t, 20*time.Second)
		node := r.nodes[0].Load()
		for range 2 {
			if yes, err := node.Commit(ctx, "a", bodies("do", 0, 1, 2)); !yes || err != nil {
				t.Fatal(yes, err)
			}
			no := bodies("do", 1, 2)
			no["node4"] = []byte("error")
			if yes, err := node.Commit(ctx, "b", no); yes || err != nil {
				t.Fatal(yes, err)
			}
		}
		// Every node knows the outcome.
		if yes, err := r.nodes[3].Load().Commit(ctx, "a", bodies("do", 0, 1, 2)); !yes || err != nil {
			t.Error(yes, err)
		}
		if _, err := r.nodes[3].Load().Commit(ctx, "a", bodies("else", 0)); !errors.Is(err, cluster.ErrTaken) {
			t.Error(err)
		}
		if _, err := node.Commit(ctx, "c", bodies(string(make([]byte, cluster.MaxPart)), 0, 1)); !errors.Is(err, cluster.ErrRefused) {
			t.Error(err)
		}
		for i := range 3 {
			eventually(t, "told of a", func() bool { return ledgers[i].end("a") == "commit" })
		}
		for i := range 4 {
			eventually(t, "all know why", func() bool {
				o, err := r.nodes[i].Load().Outcome("b")
				return err == nil && o.State == cluster.Aborted && o.Why == "node4: no such account"
			})
		}
		if _, err := node.Outcome("z"); !errors.Is(err, cluster.ErrNoTransaction) {
			t.Error(err)
		}
		if s := node.Status().Commit; s.Committed != 1 || s.Aborted != 1 || s.Pending != 0 || s.Protocol != "agreed" {
			t.Errorf("%+v", s)
		}
	})
}

// A participant that is down, silent, or two-faced blocks no node, and correct nodes decide the same.
func TestAgreedCommitWithAFaultyNode(t *testing.T) {
	each(t, func(t *testing.T, fault string) {
		c := agreed
		c.Votes = 300 * time.Millisecond
		i := 0
		r, ledgers := configuredParties(t, 4, false, c, func(c *cluster.Config) {
			c.Round = 200 * time.Millisecond
			if i++; i == 4 && fault != "down" {
				b, err := faulty.Parse(fault)
				must(t, err)
				c.FaultInjection = &cluster.FaultInjection{Traitor: b}
			}
		})
		if fault == "down" {
			r.stop(3)
		}
		ctx := soon(t, 30*time.Second)
		yes, err := r.nodes[0].Load().Commit(ctx, "t", bodies("do", 0, 1, 3))
		if err != nil || yes && fault != "twofaced" {
			t.Error(yes, err)
		}
		if yes, err := r.nodes[1].Load().Commit(ctx, "u", bodies("do", 0, 1, 2)); !yes || err != nil {
			t.Error(yes, err)
		}
		for k := range 3 {
			eventually(t, "told of u", func() bool { return ledgers[k].end("u") == "commit" })
		}
		for k := range 2 {
			want := map[bool]string{true: "commit", false: "abort"}[yes]
			eventually(t, "told of t", func() bool { return ledgers[k].end("t") == want || !ledgers[k].asked("t") })
		}
	}, "down", "silent", "twofaced")
}

// A participant that voted yes and crashed before it learned the outcome asks the others after its restart, and
// believes m+1 of them.
func TestAgreedCommitParticipantRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, ledgers := agreeing(t, 4, true, agreed)
		ctx := soon(t, 30*time.Second)
		ledgers[2].gate = make(chan struct{})
		ledgers[3].gate = make(chan struct{})
		parts := bodies("wait", 2, 3)
		answer := make(chan error, 1)
		node := r.nodes[0].Load()
		go func() {
			yes, err := node.Commit(ctx, "t", parts)
			if !yes {
				err = errors.Join(err, errors.New("it is aborted"))
			}
			answer <- err
		}()
		eventually(t, "they are asked", func() bool { return ledgers[2].asked("t") && ledgers[3].asked("t") })
		close(ledgers[3].gate)
		eventually(t, "node 4 has voted", func() bool { return cluster.VotesOrdered(node, "t") == 1 })
		r.stop(3)
		close(ledgers[2].gate)
		must(t, <-answer)
		r.start(3)
		eventually(t, "it is told", func() bool { return ledgers[3].end("t") == "commit" })
		ledgers[3].mu.Lock()
		if ledgers[3].prepared["t"] != 2 {
			t.Errorf("it prepared %d times", ledgers[3].prepared["t"])
		}
		ledgers[3].mu.Unlock()
		// It takes part again, as a coordinator and as a participant.
		if yes, err := r.nodes[3].Load().Commit(ctx, "u", bodies("do", 0, 3)); !yes || err != nil {
			t.Error(yes, err)
		}
		if yes, err := r.nodes[0].Load().Commit(ctx, "v", bodies("do", 1, 3)); !yes || err != nil {
			t.Error(yes, err)
		}
		// If all restart, each still knows all outcomes, and prepares nothing that is over.
		eventually(t, "all are told", func() bool {
			return ledgers[0].end("u") != "" && ledgers[1].end("v") != "" && ledgers[3].end("u") != "" && ledgers[3].end("v") != ""
		})
		synctest.Wait() // until this is on the disks
		r.stop(all(4)...)
		r.start(all(4)...)
		for i := range 4 {
			for _, tx := range []string{"t", "u", "v"} {
				if o, err := r.nodes[i].Load().Outcome(tx); err != nil || o.State != cluster.Committed {
					t.Errorf("node %d: the outcome of %s is %v, %v", i+1, tx, o, err)
				}
			}
		}
		if yes, err := r.nodes[1].Load().Commit(ctx, "w", bodies("do", 0, 1, 2, 3)); !yes || err != nil {
			t.Error(yes, err)
		}
		for i, want := range []map[string]int{{"u": 1}, {"v": 1}, {"t": 1}, {"t": 2, "u": 1, "v": 1}} {
			ledgers[i].mu.Lock()
			want["w"] = 1
			if !maps.Equal(ledgers[i].prepared, want) {
				t.Errorf("node %d prepared %v, and %v is expected", i+1, ledgers[i].prepared, want)
			}
			ledgers[i].mu.Unlock()
		}
	})
}

// In memory, a restarted node begins no transactions until the others have admitted it. Then it takes part again, and
// knows the outcomes that the others found before.
func TestAgreedCommitRestartsInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _ := agreeing(t, 4, false, agreed)
		ctx := soon(t, 30*time.Second)
		if yes, err := r.nodes[0].Load().Commit(ctx, "t", bodies("do", 0, 1)); !yes || err != nil {
			t.Fatal(yes, err)
		}
		r.stop(3)
		r.configs[3].Rejoin = true
		r.start(3)
		node := r.nodes[3].Load()
		eventually(t, "it takes part again", func() bool {
			yes, err := node.Commit(ctx, "u", bodies("do", 2, 3))
			if err != nil && !errors.Is(err, cluster.ErrRefused) && !errors.Is(err, cluster.ErrUnknown) {
				t.Fatal(err)
			}
			return yes
		})
		if o, err := node.Outcome("t"); err != nil || o.State != cluster.Committed {
			t.Error(o, err)
		}
	})
}

// A thousand concurrent transactions.
func TestAgreedCommitManyAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const many = 1000
		c := agreed
		c.Open, c.Prepares, c.Votes = 200, 8, time.Minute // for a busy computer
		r, ledgers := configuredParties(t, 4, false, c, func(c *cluster.Config) { c.Round = 10 * time.Second })
		ctx := soon(t, 60*time.Second)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				parts := bodies("do", 0, 1, 2)
				if i%10 == 0 {
					parts["node2"] = []byte("no")
				}
				yes, err := r.nodes[i%4].Load().Commit(ctx, fmt.Sprint("t", i), parts)
				if err != nil || yes != (i%10 != 0) {
					t.Errorf("%d: %t, %v", i, yes, err)
				}
			})
		}
		all.Wait()
		for k := range 3 {
			for i := range many {
				tx, want := fmt.Sprint("t", i), "commit"
				if i%10 == 0 {
					want = "abort"
				}
				if want == "commit" || ledgers[k].asked(tx) {
					eventually(t, "it is told", func() bool { return ledgers[k].end(tx) == want })
				}
			}
			if most := ledgers[k].most.Load(); most > 8 {
				t.Errorf("%d calls at a time", most)
			}
			if s := r.nodes[k].Load().Status().Commit; s.Pending != 0 || s.Open != 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
