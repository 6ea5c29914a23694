package tetra_test

import (
	"testing"

	"parley"
	"parley/agreement/tetra"
	"parley/explore"
	"parley/faulty"
	"parley/parleytest"
)

// split is a source that proposes another value to the last process, and supports both.
var split = faulty.Behavior{Name: "split", Model: parley.OralByzantineFaults,
	Tell: func(_ *parley.Step, t *parley.Turn) (out []parley.Outgoing) {
		for _, honest := range t.Honest {
			if honest.Msg.Kind <= tetra.Ready && t.To == 3 {
				honest.Msg.Body = []byte("b")
			}
			out = append(out, honest)
		}
		return out
	}}

// TestExplored explores every order of messages of four processes without time-outs. Larger systems are among the
// cases of package explore.
func TestExplored(t *testing.T) {
	system := func(m explore.Model, how map[parley.ID]faulty.Behavior) explore.Options {
		ask := []explore.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("a")}}}
		return explore.Options{
			Protocol: tetra.New(tetra.Config{N: 4, M: 1}), Model: m,
			Roots: []explore.Root{{Faulty: how, Requests: ask}},
		}
	}
	silent := func(id parley.ID) map[parley.ID]faulty.Behavior {
		return map[parley.ID]faulty.Behavior{id: faulty.Silent}
	}
	parleytest.Explored(t, []parleytest.System{
		{Name: "one silent", Options: system(explore.Model{}, silent(3)), States: 47_556, Ends: 3},
		{Name: "two-faced source", Options: system(explore.Model{}, map[parley.ID]faulty.Behavior{0: split}),
			States: 720_257, Ends: 2},
	})
}
