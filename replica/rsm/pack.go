package rsm

import (
	"encoding/binary"

	"parley"
)

// Packs of commands. Of a client that opened its session nothing is applied twice,
// however late it asks again: when the session is not remembered any more, it is told so.

// Status is what became of a command of a pack.
type Status byte

// What may become of one.
const (
	// Applied: now, or before with the answer that it had then.
	Applied Status = iota + 1
	// Old: the session has a later command. This one was applied before that, or never is.
	Old
	// Expired: the session is not remembered. This one was applied before that, or never is.
	Expired
)

// Reply is the answer to one command of a pack.
type Reply struct {
	Status   Status
	Position uint64 // of the command, if it is Applied
	Answer   []byte
}

// opened is the part of a client's number that sessions which were opened have: the rest is
// the position at which that was.
const opened uint64 = 1 << 62

func isOpened(client uint64) bool { return client&(processes|opened) == opened }

// Client is the number of a client whose session was opened at a position.
func Client(position uint64) uint64 { return opened | position&(opened-1) }

// entry is one command of a pack.
type entry struct {
	client, number uint64
	command        []byte
}

// MaxOwner is how many bytes the name of an owner of sessions has at most.
const MaxOwner = 64

// AppendCommand appends a command of a pack. The client is one that was opened, and numbers
// its commands from 1. Client 0 with number 0 opens a session: the command is the name of its
// owner, and the reply has the position of that, see [Client]. With number 1 it asks once, and
// without a session: a command that changes nothing, because it is applied as often as it is asked.
func AppendCommand(buf []byte, client, number uint64, command []byte) []byte {
	buf = binary.AppendUvarint(buf, client)
	return parley.AppendBytes(binary.AppendUvarint(buf, number), command)
}

// readCommands reads what AppendCommand wrote. Commands alias it.
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

// appendReply appends what ReadReplies reads.
func appendReply(buf []byte, r Reply) []byte {
	buf = append(buf, byte(r.Status))
	return parley.AppendBytes(binary.AppendUvarint(buf, r.Position), r.Answer)
}

// ReadReplies reads the body of Replies, and tells whether it is one. Answers alias it.
func ReadReplies(b []byte) (list []Reply, ok bool) {
	for r := (parley.Reader{Rest: b}); len(r.Rest) > 0; {
		list = append(list, Reply{Status(r.Take(1)[0]), r.Number(1<<64 - 1), r.Bytes()})
		if r.Bad {
			return nil, false
		}
	}
	return list, true
}
