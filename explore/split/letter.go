package split

import (
	"encoding/binary"

	"parley"
)

// message is a message sent in a round.
type message struct {
	from, to parley.ID
	epoch    uint32
	path     parley.Path
	msg      parley.Msg
}

// key appends a key that identifies the message.
func (m *message) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(m.from))
	b = binary.AppendUvarint(b, uint64(m.to))
	b = binary.AppendUvarint(b, uint64(m.epoch))
	return parley.AppendMsg(b, m.path, m.msg)
}

// isFor returns whether a message goes to a process.
func (m *message) isFor(id parley.ID) bool { return m.from != id && (m.to == id || m.to == parley.All) }

// addressed returns the messages to one process.
func addressed(sends []message, to parley.ID) (list []message) {
	for i := range sends {
		if sends[i].isFor(to) {
			list = append(list, sends[i])
		}
	}
	return list
}
