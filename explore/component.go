package explore

import (
	"encoding/binary"

	"parley"
	"parley/explore/internal/timer"
)

// processState is one state of one seat: of a process, or of the coalition. It is immutable once it has a
// number.
type processState struct {
	root    int
	seat    int
	down    bool
	asked   int    // how many of the root's requests it has received
	noticed uint64 // the crashes it was notified of: see withNotice
	// machine is what parley.Save wrote. Where no bound on delays is assumed, each process has its own
	// time: it is 0 here, and passes when a timer expires.
	machine []byte
	timers  []timer.Timer // sorted, the next one due first
	// What remains after a crash.
	durable []byte
	log     []parley.Record
	lives   int

	share uint64
}

// withNotice adds a notified crash to before, which has four bits for each process: the incarnation that
// crashed, so that the next crash of the process is notified too.
func withNotice(before uint64, of parley.ID, life uint64) uint64 {
	return before&^(15<<(4*of)) | life<<(4*of)
}

// incarnation returns the number of the process's current incarnation, from 1, modulo 15.
func (c *processState) incarnation() uint64 { return uint64(c.lives)%15 + 1 }

// key appends a key that identifies the process state.
func (c *processState) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(c.root))
	b = binary.AppendUvarint(b, uint64(c.seat))
	down := byte(0)
	if c.down {
		down = 1
	}
	b = append(b, down)
	b = binary.AppendUvarint(b, uint64(c.asked))
	b = binary.AppendUvarint(b, c.noticed)
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

// message is one message in flight to one process.
type message struct {
	from, to parley.ID
	epoch    uint32
	path     parley.Path
	msg      parley.Msg
	due      parley.Tick // the latest arrival, where messages arrive in time
	share    uint64
}

func (m *message) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(m.from))
	b = binary.AppendUvarint(b, uint64(m.to))
	b = binary.AppendUvarint(b, uint64(m.epoch))
	b = binary.AppendVarint(b, int64(m.due))
	return parley.AppendMsg(b, m.path, m.msg)
}

// queue is the messages in flight on one FIFO link.
type queue struct {
	link  uint32
	first uint32 // the next message to arrive
	rest  uint32 // the queue without it; 0: empty
	share uint64
}

// link returns the number of a link.
func link(from, to parley.ID) uint32 { return uint32(from)*most + uint32(to) + 1 }
