package client

import (
	"errors"
	"fmt"
	"testing"

	"parley/cluster/api/parleyv1"
)

// A subscription continues at another node only if positions mean the same there: in groups with total order, and
// in memory only if enough former members still are members, without a restart.
func TestFollows(t *testing.T) {
	total, causal, lies := parleyv1.Level_LEVEL_TOTAL, parleyv1.Level_LEVEL_CAUSAL, parleyv1.Level_LEVEL_BYZANTINE
	for _, c := range []struct {
		name    string
		from    uint64
		at      int
		level   parleyv1.Level
		durable bool
		lives   [3]uint64 // of the members before, and now; 0 for none
		now     [3]uint64
		cutOff  bool
	}{
		{name: "nothing was delivered", from: 1, level: causal, at: 1},
		{name: "the first node", from: 9, level: causal},
		{name: "the next node", from: 9, level: causal, at: 1, cutOff: true},
		{name: "the next node, one order", from: 9, level: total, at: 1},
		{name: "resumed", from: 9, level: causal, durable: true, lives: [3]uint64{1, 2, 3}, now: [3]uint64{1, 2, 3}, cutOff: true},
		{name: "resumed, one order", from: 9, level: total, lives: [3]uint64{1, 2, 3}, now: [3]uint64{0, 2, 3}},
		{name: "one has stayed", from: 9, level: total, lives: [3]uint64{1, 2, 3}, now: [3]uint64{0, 5, 3}},
		{name: "none has stayed", from: 9, level: total, lives: [3]uint64{1, 2, 0}, now: [3]uint64{0, 5, 3}, cutOff: true},
		{name: "none has stayed, on the disk", from: 9, level: total, durable: true, lives: [3]uint64{1, 2, 3}, now: [3]uint64{4, 5, 6}},
		{name: "with a liar", from: 9, level: lies, lives: [3]uint64{1, 2, 3}, now: [3]uint64{0, 2, 3}},
		{name: "perhaps the liar", from: 9, level: lies, lives: [3]uint64{1, 2, 3}, now: [3]uint64{1, 5, 6}, cutOff: true},
		{name: "perhaps the liar, on the disk", from: 9, level: lies, durable: true, lives: [3]uint64{1, 2, 3}, now: [3]uint64{1, 5, 6}},
	} {
		status := func(lives [3]uint64) (*parleyv1.StatusResponse, *parleyv1.GroupStatus) {
			st := &parleyv1.StatusResponse{Durable: c.durable, M: 1}
			group := &parleyv1.GroupStatus{Name: "g", Level: c.level, View: &parleyv1.ViewStatus{}}
			for i, life := range lives {
				name := fmt.Sprint("node", i+1)
				m := &parleyv1.MemberStatus{Name: name, Incarnation: life, Connected: life > 0}
				if i == 2 {
					m = &parleyv1.MemberStatus{Name: name, Self: true}
					st.Incarnation = life
				}
				if st.Members = append(st.Members, m); life > 0 && c.level != lies {
					group.View.Members = append(group.View.Members, name)
				}
			}
			return st, group
		}
		s := &Subscription{from: c.from, begin: c.from, at: c.at, stood: c.lives != [3]uint64{}}
		s.lives = livesOf(status(c.lives))
		st, group := status(c.now)
		if err := s.follows(st, group, livesOf(st, group)); errors.Is(err, ErrCutOff) != c.cutOff || (err != nil) != c.cutOff {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
