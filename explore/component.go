package explore

import (
	"encoding/binary"

	"parley"
	"parley/explore/internal/timer"
)

// processState is one state of one seat: of a process, or of the coalition. It does not
// change once it has a number.
type processState struct {
	root  int
	seat  int
	down  bool
	asked int    // how many of the root's requests it has got
	told  uint64 // whose crashes it was told of: see told
	// machine is what parley.Save wrote. Where no bound on delays is assumed the time is
	// that of the process alone: it is 0 here, and passes when a timer runs out.
	machine []byte
	timers  []timer.Timer // those due first in front
	// What would be there after a crash.
	durable []byte
	log     []parley.Record
	lives   int

	share uint64
}

// told is what a process was told of crashes, four bits a process, with one more: of a
// life of that process, for who came back and crashes again is told of again.
func told(before uint64, of parley.ID, life uint64) uint64 {
	return before&^(15<<(4*of)) | life<<(4*of)
}

// life numbers the life that a process is in, from 1.
func (c *processState) life() uint64 { return uint64(c.lives)%15 + 1 }

// key appends what tells components apart.
func (c *processState) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(c.root))
	b = binary.AppendUvarint(b, uint64(c.seat))
	down := byte(0)
	if c.down {
		down = 1
	}
	b = append(b, down)
	b = binary.AppendUvarint(b, uint64(c.asked))
	b = binary.AppendUvarint(b, c.told)
	b = binary.AppendUvarint(b, uint64(c.lives))
	b = parley.AppendBytes(b, c.machine)
	b = timer.Key(b, c.timers)
	b = parley.AppendBytes(b, c.durable)
	b = binary.AppendUvarint(b, uint64(len(c.log)))
	for _, r := range c.log {
		b = binary.AppendUvarint(b, uint64(r.Path))
		b = parley.AppendBytes(b, r.Body)
	}
	return b
}

// message is one message on its way to one process.
type message struct {
	from, to parley.ID
	epoch    uint32
	path     parley.Path
	msg      parley.Msg
	due      parley.Tick // when it has arrived at the latest; in synchronous protocols
	share    uint64
}

func (m *message) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(m.from))
	b = binary.AppendUvarint(b, uint64(m.to))
	b = binary.AppendUvarint(b, uint64(m.epoch))
	b = binary.AppendVarint(b, int64(m.due))
	return parley.AppendMsg(b, m.path, m.msg)
}

// queue is what is on its way on one link that keeps the order.
type queue struct {
	link  uint32
	first uint32 // the message that arrives next
	rest  uint32 // the queue without it; 0: nothing
	share uint64
}

// link is the number of a link.
func link(from, to parley.ID) uint32 { return uint32(from)*most + uint32(to) + 1 }
