// Package timer keeps the timers of machines in explorations, sorted by due time.
package timer

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"parley"
)

// Timer is a timer that a process has set.
type Timer struct {
	Of     parley.ID
	Number parley.Timer
	Path   parley.Path
	Due    parley.Tick
}

// Never is the due time of a timer that is not set.
const Never parley.Tick = math.MaxInt64

func (t Timer) compare(u Timer) int {
	return cmp.Or(cmp.Compare(t.Due, u.Due), cmp.Compare(t.Of, u.Of), cmp.Compare(t.Path, u.Path),
		cmp.Compare(t.Number, u.Number))
}

// Set inserts a timer into a list, replacing the one with the same process, path and number.
func Set(list []Timer, t Timer) []Timer {
	list = Stop(list, t)
	i, _ := slices.BinarySearchFunc(list, t, Timer.compare)
	return slices.Insert(list, i, t)
}

// Stop removes the timer with the same process, path and number from a list.
func Stop(list []Timer, t Timer) []Timer {
	return slices.DeleteFunc(list, func(u Timer) bool { return u.Of == t.Of && u.Path == t.Path && u.Number == t.Number })
}

// Key appends a key that identifies a list.
func Key(b []byte, list []Timer) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		t := &list[i]
		b = binary.AppendUvarint(b, uint64(t.Of))
		b = binary.AppendUvarint(b, uint64(t.Number))
		b = binary.AppendUvarint(b, uint64(t.Path))
		b = binary.AppendVarint(b, int64(t.Due))
	}
	return b
}
