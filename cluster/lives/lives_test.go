package lives

import (
	"testing"

	"parley/cluster/link"
)

// hello returns the hello of a node: its incarnation, its folder, the position at which the incarnation began,
// and the current position.
func hello(life, folder, began, position uint64) (h link.Hello) {
	h.Incarnation, h.Disk.Store, h.Disk.Began, h.Disk.Position = life, folder, began, position
	return h
}

// judged requires that a node is admitted (want is 0), or refused for a reason.
func judged(t *testing.T, l *Book, h link.Hello, want link.Reason) {
	t.Helper()
	var got link.Reason
	if down := l.Judge("n", h, "serial", 1<<60); down != nil {
		got = down.Reason
	}
	if got != want {
		t.Errorf("life %d of folder %d, began at %d, at %d: %v, want %v", h.Incarnation, h.Disk.Store, h.Disk.Began,
			h.Disk.Position, got, want)
	}
}

// An old copy is refused because of its incarnation. It is also refused when its incarnation reaches the known
// number, however much it has written by then.
func TestCopyWithAKnownLife(t *testing.T) {
	l := InMemory(func(string) bool { return false })
	judged(t, l, hello(7, 1, 100, 100), 0)
	judged(t, l, hello(7, 1, 100, 110), 0) // it reconnects
	judged(t, l, hello(6, 1, 90, 95), link.OldLife)
	judged(t, l, hello(7, 1, 300, 301), link.Behind)
	judged(t, l, hello(8, 1, 400, 400), link.Behind)
	judged(t, l, hello(9, 2, 0, 0), 0)
	// A copy taken after the previous incarnation was stopped is refused, too.
	l = InMemory(func(string) bool { return false })
	judged(t, l, hello(7, 1, 100, 110), 0)
	judged(t, l, hello(7, 1, 100, 101), link.Behind)
}

// A late report of an incarnation does not count for the folder of the next one.
func TestLatePositionOfALifeBefore(t *testing.T) {
	l := InMemory(func(string) bool { return false })
	judged(t, l, hello(7, 1, 0, 100), 0)
	judged(t, l, hello(8, 2, 0, 1), 0)
	l.Told("n", 7, 1_000_000)
	judged(t, l, hello(8, 2, 0, 20), 0)
	l.Told("n", 8, 50)
	judged(t, l, hello(9, 2, 40, 40), link.Behind)
}
