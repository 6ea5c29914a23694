package group_test

import (
	"strings"
	"testing"

	"parley"

	"parley/membership/group"
)

// A restarted process delivers again, at the same positions, what it delivered, however often its state has
// replaced its log. So does an excluded process, together with what it missed.
func TestKept(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Durable: true, Return: true, Compact: 1, Keep: 3, KeepBytes: 1 << 10})
	for _, text := range []string{"a", "b"} {
		p.cast(0, text)
		p.all(2, 0, 1, 2)
	}
	p.restart(1)
	p.expect(1, "1:a; 2:b; resumed 0; 1:a")
	p.all(20, 0, 1, 2)
	p.heard(2)
	p.suspected(2, 0, 1)
	p.down(2)
	p.cast(0, "c")
	p.cast(1, "d")
	p.all(8, 0, 1)
	p.down(2)
	p.restart(2)
	p.expect(2, "resumed 0; 1:a; 2:b; view 2 [0 1 2]")
	p.all(60, 0, 1, 2)
	p.restart(2)
	p.heard(2)
	p.restart(2)
	p.expect(2, "resumed 1; 2:b; 3:d; 4:c")
}

// All deliveries of a group survive restarts of its members one after the other, and of all.
func TestKeptOverRollingRestart(t *testing.T) {
	p := newPost(t, group.Config{N: 3, Durable: true, Return: true, Compact: 2, Keep: 100, KeepBytes: 1 << 10})
	p.cast(0, "a")
	p.cast(1, "b")
	p.all(4, 0, 1, 2)
	for id := range []int{0, 1, 2} {
		others := [][2]int{{1, 2}, {0, 2}, {0, 1}}[id]
		x, y := parley.ID(others[0]), parley.ID(others[1])
		p.down(parley.ID(id))
		p.suspect(x, parley.ID(id))
		p.suspect(y, parley.ID(id))
		p.all(20, x, y)
		p.down(parley.ID(id))
		p.restart(parley.ID(id))
		p.all(60, 0, 1, 2)
	}
	for id := range []int{0, 1, 2} {
		p.restart(parley.ID(id))
		p.heard(parley.ID(id))
	}
	p.all(60, 0, 1, 2)
	for id := range parley.ID(3) {
		p.period(500, id)
		p.restart(id)
		if got := p.heard(id); !strings.Contains(got, "resumed 0; 1:a; 2:b") {
			t.Errorf("process %d says %q", id, got)
		}
	}
}
