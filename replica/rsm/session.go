package rsm

import (
	"cmp"
	"slices"

	"parley"
)

// Queue is the largest number of a process's own commands that wait, including the command in flight. Further
// commands are refused.
const Queue = 1024

// session is what is known of a client.
type session struct {
	client uint64
	owner  []byte // opaque name from the host; empty: shared by all processes
	last   uint64 // number of its last command
	at     uint64 // position of that command
	answer []byte
}

func (x *session) state(v *parley.Vars) {
	parley.Num(v, "client", &x.client)
	v.Bytes("owner", &x.owner)
	parley.Num(v, "last", &x.last)
	parley.Num(v, "at", &x.at)
	v.Bytes("answer", &x.answer)
}

// processes is the lowest number of a client that is an incarnation of a process.
const processes uint64 = 1 << 63

// client returns the number of an incarnation of a process as a client.
func client(id parley.ID, life uint64) uint64 { return processes | life<<16&^processes | uint64(id) }

// ownerOf returns the process of such a client.
func ownerOf(client uint64) parley.ID { return parley.ID(client & 0xFFFF) }

// numbered reports whether a command may have the number seq.
func numbered(seq uint64) bool { return seq > 0 && seq < 1<<63 }

// sessions are the remembered sessions, by client.
type sessions struct {
	list []session
	kept int // scratch: bytes of all answers; recomputed when loaded
}

// find returns the index of a client's session, or where it would be inserted.
func (x *sessions) find(client uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.list, client, func(y session, c uint64) int { return cmp.Compare(y.client, c) })
}

// of returns the session of a client, a new one if there is none.
func (x *sessions) of(client uint64) *session {
	i, found := x.find(client)
	if !found {
		x.list = slices.Insert(x.list, i, session{client: client})
	}
	return &x.list[i]
}

// trim forgets sessions while there are too many, or their answers are too long. It takes them from the owner
// with most sessions or bytes, the one with the oldest last command first. So an owner with less than an equal
// share loses nothing to others.
func (x *sessions) trim(sessions, bytes int) {
	for len(x.list) > sessions || x.kept > bytes {
		many := len(x.list) > sessions
		uses := func(y *session) int {
			if many {
				return 1
			}
			return len(y.answer)
		}
		share, most := make(map[string]int), 0
		for i := range x.list {
			y := &x.list[i]
			share[string(y.owner)] += uses(y)
			most = max(most, share[string(y.owner)])
		}
		oldest := -1
		for i := range x.list {
			y := &x.list[i]
			if share[string(y.owner)] == most && uses(y) > 0 && (oldest < 0 || y.at < x.list[oldest].at) {
				oldest = i
			}
		}
		x.kept -= len(x.list[oldest].answer)
		x.list = slices.Delete(x.list, oldest, oldest+1)
	}
}

// visit visits the sessions as they are at a position.
func (x *sessions) visit(v *parley.Vars, position uint64) {
	x.kept = 0
	parley.Slice(v, "sessions", &x.list, func(_ int, y *session) {
		y.state(v)
		if len(y.owner) > MaxOwner || y.at == 0 || y.at > position ||
			!numbered(y.last) && (y.last != 0 || !isOpened(y.client)) {
			v.Fail()
		}
		x.kept += len(y.answer)
	})
}

// inOrder reports whether the keys rise.
func inOrder[T any](list []T, key func(T) uint64) bool {
	return slices.IsSortedFunc(list, func(a, b T) int {
		if key(a) < key(b) {
			return -1
		}
		return 1
	})
}
