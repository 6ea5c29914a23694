package cluster

import (
	"encoding/hex"
	"testing"
	"time"
)

// A node refuses one that is configured otherwise, by a hash. It stays as it is, or nodes could not be upgraded one
// after the other.
func TestDigestStays(t *testing.T) {
	members := []Member{{Name: "a", Signer: []byte("1")}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	full := Config{
		Members: members, M: 1, Round: time.Second, Durable: true, Links: Calls,
		Groups:     []GroupConfig{{Name: "g"}, {Name: "h", Level: Byzantine}},
		Tables:     []TableConfig{{Name: "t"}, {Name: "u", State: "mine", Sessions: 7}},
		Times:      Times{Beat: time.Millisecond, Retry: time.Minute},
		Clocks:     ClockConfig{Error: time.Millisecond, Drift: 200, Period: time.Minute},
		Commit:     CommitConfig{Protocol: Agreed, Votes: time.Minute, Open: 10},
		Agreements: []Agreement{{Algorithm: EIG, M: 1}, {Algorithm: SM, M: 2}},
	}
	for want, c := range map[string]Config{
		"4991f28238a1a248": {Members: members},
		"521e91600c6cc454": full,
	} {
		sum := c.filled().digest()
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
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
