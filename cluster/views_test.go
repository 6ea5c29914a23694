package cluster

import "testing"

// Up to (n-1)/3 members may send wrong messages: with four or more members, groups and tables trust no single
// one.
func TestLiarsByMembers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 3: 0, 4: 1, 6: 1, 7: 2} {
		if got := (Config{Members: make([]Member, n)}).views().Liars; got != want {
			t.Errorf("%d members: %d liars, expected %d", n, got, want)
		}
	}
}
