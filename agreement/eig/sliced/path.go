package sliced

// maxLieutenants and maxFaults make every quantity fit in one machine word: one bit per receiver,
// and one byte per relay of a path.
const (
	maxLieutenants = 64
	maxFaults      = 8
)

// Path names a node of the information tree, and the message that fills the node. It holds the relays after the
// source, one byte each, as lieutenant index + 1. The newest relay is in the low byte. Path 0 is the source's own
// message. The path of a message of round r has r relays, at most 8.
//
// The article writes the source first, and appends each sender. A Path leaves out the source, because it is on every
// path.
type Path uint64

// Last returns the lieutenant index of the newest relay, the sender of the message, or -1 for
// path 0, whose sender is the source.
func (p Path) Last() int { return int(p&0xff) - 1 }

// Append returns the path of the message in which lieutenant q relays p, which has at most seven
// relays.
func (p Path) Append(q int) Path { return p<<8 | Path(q+1) }

// everyone returns the set of l lieutenants.
func everyone(l int) uint64 { return 1<<l - 1 }

// broadcast returns the word of a sender that sends every receiver the same bit.
func broadcast(bit uint64) uint64 { return -bit }
