package rsm

import (
	"encoding/binary"

	"parley"
)

// Packs of commands. No command of a client with an opened session is applied twice, however late the retry:
// if the session was forgotten, the reply says so.

// Status is the outcome of one command of a pack.
type Status byte

// The outcomes.
const (
	// Applied: the command was applied now, or earlier, with the same answer.
	Applied Status = iota + 1
	// Old: the session has a later command. This command was applied before the later one, or is never
	// applied.
	Old
	// Expired: the session was forgotten. This command was applied before the session was forgotten, or is never
	// applied.
	Expired
	// Taken: another command was applied under the number of this one, which is never applied. A replica reports
	// Taken only if the order tolerates liars (see [NewOrdered]): a liar can send commands in any session.
	Taken
)

// Reply is the answer to one command of a pack.
type Reply struct {
	Status   Status
	Position uint64 // of the command, if Status is Applied
	Answer   []byte
}

// opened marks the numbers of clients whose session was opened. The other bits are the position of the
// opening.
const opened uint64 = 1 << 62

func isOpened(client uint64) bool { return client&(processes|opened) == opened }

// Client returns the number of the client whose session was opened at position.
func Client(position uint64) uint64 { return opened | position&(opened-1) }

// entry is one command of a pack.
type entry struct {
	client, number uint64
	command        []byte
}

// MaxOwner is the longest name of an owner of sessions, in bytes.
const MaxOwner = 64

// AppendCommand appends a command to a pack. A client that opened a session numbers its commands from 1. Client 0
// with number 0 opens a session: the command is the name of the owner, and the reply has the position for [Client].
// Client 0 with number 1 sends a command without a session. Such a command should change nothing, because every retry
// is applied again.
func AppendCommand(buf []byte, client, number uint64, command []byte) []byte {
	buf = binary.AppendUvarint(buf, client)
	return parley.AppendBytes(binary.AppendUvarint(buf, number), command)
}

// readCommands reads a pack from AppendCommand. The commands alias b.
func readCommands(b []byte) (list []entry, ok bool) {
	for r := (parley.Reader{Rest: b}); len(r.Rest) > 0; {
		x := entry{r.Number(1<<64 - 1), r.Number(1<<63 - 1), r.Bytes()}
		if r.Bad || x.client == 0 && x.number > 1 || x.client != 0 && (!isOpened(x.client) || x.number == 0) ||
			x.client == 0 && x.number == 0 && len(x.command) > MaxOwner {
			return nil, false
		}
		list = append(list, x)
	}
	return list, len(list) > 0
}

// appendReply appends r in the encoding that ReadReplies reads.
func appendReply(buf []byte, r Reply) []byte {
	buf = append(buf, byte(r.Status))
	return parley.AppendBytes(binary.AppendUvarint(buf, r.Position), r.Answer)
}

// ReadReplies reads the Body of Replies, and returns whether it is valid. The answers alias b.
func ReadReplies(b []byte) (list []Reply, ok bool) {
	for r := (parley.Reader{Rest: b}); len(r.Rest) > 0; {
		list = append(list, Reply{Status(r.Take(1)[0]), r.Number(1<<64 - 1), r.Bytes()})
		if r.Bad {
			return nil, false
		}
	}
	return list, true
}
