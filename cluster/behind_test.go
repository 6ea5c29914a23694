package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/link"
)

// stops returns why a started node does not join, or why it fails within some seconds.
func stops(r *rig, i int) error {
	c := r.configs[i]
	why := make(chan error, 10)
	c.Broken = func(err error) { why <- err }
	node, err := cluster.Join(r.tb.Context(), c)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	select {
	case err := <-why:
		return err
	case <-time.After(10 * time.Second):
		return nil
	}
}

// A node whose folder is restored from an older copy is refused by all nodes that have seen more of it, also
// after their restarts, and in every attempt. With an empty folder and Rejoin it is admitted.
func TestRestoredCopyIsRefused(t *testing.T) {
	each(t, func(t *testing.T, again string) {
		r := newRig(t, 3, withTable(true))
		ctx := soon(t, 2*time.Minute)
		put := func(i int, key string) {
			t.Helper()
			must(t, second(r.table(i).KeyValue().Put(ctx, []byte(key), []byte("v"))))
		}
		put(0, "before")
		copied := r.disk(2).Crash(nil) // while it runs
		if again == "itself" {         // the copy then has an incarnation with the same number
			r.stop(2)
			r.start(2)
			r.back(2)
		}
		for k := range 30 {
			put(2, fmt.Sprint(k))
		}
		time.Sleep(2 * time.Second) // the others have received its position
		r.stop(2)
		if again == "others" {
			r.stop(0, 1)
			r.start(0, 1)
		}
		r.configs[2].Disk = copied
		for try := range 5 {
			if err := stops(r, 2); !errors.Is(err, cluster.ErrStaleIncarnation) {
				t.Fatalf("try %d with an old copy: %v", try, err)
			}
		}
		put(0, "after")
		r.lose(2)
		r.start(2)
		r.back(2)
		put(2, "again")
	}, "nobody", "others", "itself")
}

// A copy that ran without the nodes that would refuse it has written more than it lacks. It is still refused by
// them.
func TestRestoredCopyIsRefusedForGood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		ctx := soon(t, 2*time.Minute)
		copied := r.disk(2).Crash(nil)
		must(t, second(r.table(2).KeyValue().Put(ctx, []byte("k"), []byte("v"))))
		time.Sleep(2 * time.Second)
		r.stop(2)
		r.configs[2].Disk = copied
		for range 2 { // once refused, it is refused for good, although each start writes a record and little is missing
			for try := range 5 {
				if err := stops(r, 2); !errors.Is(err, cluster.ErrStaleIncarnation) {
					t.Fatalf("try %d with an old copy: %v", try, err)
				}
			}
			r.stop(0, 1)
			r.start(0, 1)
		}
	})
}

// A node with an old copy that starts without the nodes that know better fails as soon as one of them is
// connected.
func TestRefusedLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		copied := r.disk(2).Crash(nil)
		must(t, second(r.table(2).KeyValue().Put(soon(t, time.Minute), []byte("k"), []byte("v"))))
		time.Sleep(2 * time.Second)
		r.stop(0, 1, 2)
		why := make(chan error, 10)
		r.configs[2].Disk = copied
		r.configs[2].Broken = func(err error) { why <- err }
		r.start(2)
		r.start(0, 1)
		select {
		case err := <-why:
			if !errors.Is(err, cluster.ErrStaleIncarnation) {
				t.Errorf("it stops for another reason: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("it goes on")
		}
	})
}

// A power failure does not make an old copy: the others only received positions of synced records.
func TestCrashIsNotBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		ctx := soon(t, 5*time.Minute)
		chance := rand.New(rand.NewPCG(1, 2))
		for k := range 20 {
			for range k % 4 {
				must(t, second(r.table(0).KeyValue().Put(ctx, []byte("k"), []byte("v"))))
			}
			time.Sleep(time.Duration(chance.IntN(1500)) * time.Millisecond)
			left := r.disk(1).Crash(chance)
			r.stop(1)
			r.configs[1].Disk = left
			r.start(1)
			r.back(1)
		}
	})
}

// A future incarnation is refused. What was believed of a certificate is dropped when it is revoked: an attacker
// who held a node's key for a while cannot exclude the node.
func TestHugeLifeIsForgottenWithItsCertificate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := besieged(t, nil)
		if kind, b := s.greeted(2, 1<<62); kind != rawBye || link.Reason(b[0]) != link.FutureLife {
			t.Errorf("a life in the far future is answered by a frame of type %d: %v", kind, b)
		}
		if kind, _ := s.greeted(2, uint64(time.Now().Add(time.Hour).UnixNano())); kind != rawHello {
			t.Errorf("a life within the leeway of clocks is answered by a frame of type %d", kind)
		}
		now := uint64(time.Now().UnixNano())
		if kind, b := s.greeted(2, now); kind != rawBye || link.Reason(b[0]) != link.OldLife {
			t.Errorf("a life before it is answered by a frame of type %d: %v", kind, b)
		}
		must(t, s.nodes[2].Forget(s.config.Name))
		again := s.greets(2, now)
		if kind, b := again.next(); kind != rawHello {
			t.Errorf("a life that others are forgotten for is answered by a frame of type %d: %v", kind, b)
		}
		if err := s.nodes[2].Forget(s.config.Name); !errors.Is(err, cluster.ErrRefused) {
			t.Errorf("a node that is connected is forgotten: %v", err)
		}
		if err := s.nodes[2].Forget("nobody"); !errors.Is(err, cluster.ErrRefused) {
			t.Error(err)
		}
		_ = again.Close()
		if kind, _ := s.greeted(2, uint64(time.Now().Add(time.Hour).UnixNano())); kind != rawHello {
			t.Errorf("a life within the leeway of clocks is answered by a frame of type %d", kind)
		}
		issued, err := s.authority.IssueNode(s.config.Name, nil, time.Hour)
		must(t, err)
		must(t, second(s.authority.Revoke(cert.Serial(s.config.Self.Certificate()))))
		for i := range s.configs {
			must(t, s.configs[i].Trust.Set(s.authority.Anchors()))
		}
		s.config.Self = issued.Self()
		if kind, b := s.greeted(2, now); kind != rawHello {
			t.Errorf("the node with a new certificate is answered by a frame of type %d: %v", kind, b)
		}
	})
}

// The same holds if that incarnation was expelled: the node is admitted as another incarnation after Forget, and
// its messages are accepted.
func TestExpelledHugeLifeIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := besieged(t, nil)
		huge := uint64(time.Now().Add(time.Hour).UnixNano())
		for _, to := range []parley.ID{1, 2} {
			if kind, _ := s.greeted(to, huge); kind != rawHello {
				t.Fatalf("a life within the leeway of clocks is answered by a frame of type %d", kind)
			}
		}
		expelled := func() bool { return s.nodes[2].Status().Members[0].Expelled }
		for _, at := range []int{1, 2} {
			must(t, s.nodes[at].Expel(soon(t, time.Minute), s.config.Name))
		}
		eventually(t, "it is expelled", expelled)
		if kind, _ := s.greeted(2, huge); kind != rawHello || !expelled() {
			t.Errorf("the same life again is answered by a frame of type %d, expelled %v", kind, expelled())
		}
		eventually(t, "it is gone", func() bool { return !s.nodes[2].Status().Members[0].Connected })
		must(t, s.nodes[2].Forget(s.config.Name))
		again := s.greets(2, uint64(time.Now().UnixNano()))
		if kind, b := again.next(); kind != rawHello {
			t.Fatalf("a life that others are forgotten for is answered by a frame of type %d: %v", kind, b)
		}
		eventually(t, "the node is listened to", func() bool { return !expelled() })
		_ = again.Close()
	})
}
