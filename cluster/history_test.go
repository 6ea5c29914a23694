package cluster

import (
	"context"
	"errors"
	"testing"

	"parley"
)

// A node can be away without having been told to leave: from its beginning, or because it
// had to join once more. Who read before hears that there is a gap.
func TestGapWithoutLeave(t *testing.T) {
	pack := func(h *history, position uint64) {
		h.add(kept{first: position << packBits, from: parley.ID(0), count: 1, pack: []byte{1, 'a'}})
	}
	over, end := context.WithCancel(t.Context()) // so that nothing waits
	end()
	var g Group
	g.kept.init(100, 1<<20)
	early, err := g.Subscribe(1 << packBits)
	if err != nil {
		t.Fatal(err)
	}
	for _, behind := range []uint64{5, 9} { // it has to join twice
		g.kept.begin(behind << packBits)
		if _, err := early.Next(over); !errors.Is(err, ErrOut) {
			t.Fatalf("behind %d: %v", behind, err)
		}
		if _, err := g.Subscribe(behind << packBits); !errors.Is(err, ErrGone) {
			t.Fatalf("from %d: %v", behind, err)
		}
		if early, err = g.Subscribe((behind + 1) << packBits); err != nil {
			t.Fatal(err)
		}
		pack(&g.kept, behind+1)
		if d, err := early.Next(over); err != nil || d.Position != (behind+1)<<packBits {
			t.Fatalf("behind %d: %v, %v", behind, d, err)
		}
	}
}
