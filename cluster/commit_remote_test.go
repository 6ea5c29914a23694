package cluster_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley/cluster"
)

// remote is a tally in a simulated other process. While it is down it answers nothing.
type remote struct {
	*tally
	down  atomic.Bool
	ctx   context.Context // of the node's incarnation
	end   context.CancelFunc
	lives []string
	asked atomic.Bool
}

func (r *remote) Begin(*slog.Logger) {
	r.ctx, r.end = context.WithCancel(context.Background())
	r.lives = append(r.lives, "begin")
}

func (r *remote) End() {
	r.lives = append(r.lives, "end")
	r.end()
}

func (r *remote) Again(tx string, body []byte) error {
	r.lives = append(r.lives, "again "+tx+" "+string(body))
	return nil
}

func (r *remote) Commit(tx string) {
	if r.asked.Store(true); r.down.Load() {
		<-r.ctx.Done()
		return
	}
	r.tally.Commit(tx)
}

// A participant that outlives its node learns of the node's incarnations, and gets unanswered requests again.
func TestCommitRemoteParticipant(t *testing.T) {
	each(t, func(t *testing.T, p cluster.CommitProtocol) {
		var remotes []*remote
		r := newRig(t, 4, func(c *cluster.Config) {
			remotes = append(remotes, &remote{tally: newTally()})
			c.Participant, c.Commit.Protocol = remotes[len(remotes)-1], p
			onDisk(c, true)
		})
		far := remotes[1]
		far.down.Store(true)
		if yes, err := r.nodes[0].Load().Commit(soon(t, 20*time.Second), "t", bodies("do", 0, 1)); !yes || err != nil {
			t.Fatal(yes, err)
		}
		eventually(t, "it is asked to commit", far.asked.Load)
		r.stop(1)
		far.down.Store(false)
		r.start(1)
		eventually(t, "it has committed", func() bool { return far.tally.end("t") == "commit" })
		if want := []string{"begin", "end", "begin", "again t do"}; !slices.Equal(far.lives, want) || far.prepared["t"] != 1 {
			t.Errorf("%q, and asked to prepare %d times", far.lives, far.prepared["t"])
		}
	}, cluster.TwoPhase, cluster.Majority, cluster.Agreed)
}
