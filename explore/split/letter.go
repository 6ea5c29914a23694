package split

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"parley"
)

// message is one that is sent in a round.
type message struct {
	from, to parley.ID
	epoch    uint32
	path     parley.Path
	msg      parley.Msg
}

// key appends what tells messages apart.
func (m *message) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(m.from))
	b = binary.AppendUvarint(b, uint64(m.to))
	b = binary.AppendUvarint(b, uint64(m.epoch))
	return parley.AppendMsg(b, m.path, m.msg)
}

// isFor tells whether a message goes to a process.
func (m *message) isFor(id parley.ID) bool { return m.from != id && (m.to == id || m.to == parley.All) }

// addressed are the messages to one process.
func addressed(sends []message, to parley.ID) (list []message) {
	for i := range sends {
		if sends[i].isFor(to) {
			list = append(list, sends[i])
		}
	}
	return list
}

// timer is one that a process has set.
type timer struct {
	of     parley.ID
	number parley.Timer
	path   parley.Path
	due    parley.Tick
}

// never is when a timer is due that is not set.
const never parley.Tick = math.MaxInt64

// key appends what tells timers apart.
func (t *timer) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(t.of))
	b = binary.AppendUvarint(b, uint64(t.number))
	b = binary.AppendUvarint(b, uint64(t.path))
	return binary.AppendVarint(b, int64(t.due))
}

// armed returns the timers, those due first in front, with one in place of the one of its number.
func armed(list []timer, t timer) []timer {
	list = append(disarmed(list, t), t)
	slices.SortFunc(list, func(t, u timer) int {
		return cmp.Or(cmp.Compare(t.due, u.due), cmp.Compare(t.of, u.of), cmp.Compare(t.path, u.path),
			cmp.Compare(t.number, u.number))
	})
	return list
}

// disarmed returns the timers without one.
func disarmed(list []timer, t timer) []timer {
	return slices.DeleteFunc(list, func(u timer) bool { return u.of == t.of && u.path == t.path && u.number == t.number })
}
