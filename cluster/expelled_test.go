package cluster

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"parley"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/tables"
	"parley/membership/expel"
)

// What the others say while a node begins counts when it has begun: its groups and tables are
// not all there before.
func TestExpelledWhileItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seq, want := range []uint64{expel.Views, expel.All} {
			n := &Node{c: Config{Members: make([]Member, 4), M: 1, Log: slog.New(slog.DiscardHandler)}}
			n.admin.life, n.admin.moved, n.groups = 7, make(chan struct{}), groups.New(&n.k, nil)
			n.tables = tables.New(&n.k, nil, tableLimits)
			n.k.Host = host.New(host.Config{N: 4, Life: 7, Log: n.c.Log})
			if err := n.openExpulsions(); err != nil {
				t.Fatal(err)
			}
			for from := range parley.ID(2) {
				err := n.heard(from+1, parley.Encode(nil, parley.Env{}, parley.Msg{Kind: expel.Told, Value: 7, Seq: uint64(seq)}))
				if err != nil || n.k.State() != Running || from == 0 && n.k.ShutFrom() != 0 {
					t.Fatal(err, n.k.State())
				}
			}
			if err := n.begun(); err != nil {
				t.Fatal(err)
			}
			if got := n.k.ShutFrom(); got != want {
				t.Errorf("it is expelled from %d, not %d", got, want)
			}
			if synctest.Wait(); n.k.State() != Expelled {
				t.Fatal("it is", n.k.State())
			}
			for liars, takes := range map[bool]bool{false: false, true: seq == 0} {
				if err := n.k.Takes(liars); (err == nil) != takes {
					t.Errorf("told %d, liars %v: %v", seq, liars, err)
				}
			}
		}
	})
}

// A machine of another kind, and with transactions in spite of liars how many are taken and
// remembered, are part of what nodes must have alike.
func TestDigestOfWhatDecides(t *testing.T) {
	t.Parallel()
	base := Config{Tables: []TableConfig{{Name: "t"}}, Commit: CommitConfig{Protocol: Agreed}}
	seen := map[[32]byte]string{base.digest(): "the first"}
	for name, change := range map[string]func(c *Config){
		"state":    func(c *Config) { c.Tables = []TableConfig{{Name: "t", State: "bank"}} },
		"open":     func(c *Config) { c.Commit.Open = 7 },
		"remember": func(c *Config) { c.Commit.Remember = 7 },
	} {
		c := base
		change(&c)
		if d := c.digest(); seen[d] != "" {
			t.Errorf("%s has the digest of %s", name, seen[d])
		} else {
			seen[d] = name
		}
	}
	same := base
	same.Commit.Open, same.Commit.Remember = 4096, 16384
	if same.digest() != base.digest() {
		t.Error("the defaults, named, have another digest")
	}
}
