package cluster

import "testing"

// Fewer than a third of the members may say what is wrong by chance: groups and tables believe no single word where
// there are four of them or more.
func TestLiarsByMembers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 3: 0, 4: 1, 6: 1, 7: 2} {
		if got := (Config{Members: make([]Member, n)}).views().Liars; got != want {
			t.Errorf("%d members: %d liars, expected %d", n, got, want)
		}
	}
}
