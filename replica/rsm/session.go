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
	digest []byte // of that command, if the order may carry commands of liars
}

func (x *session) state(v *parley.Vars, ordered bool) {
	parley.Num(v, "client", &x.client)
	v.Bytes("owner", &x.owner)
	parley.Num(v, "last", &x.last)
	parley.Num(v, "at", &x.at)
	v.Bytes("answer", &x.answer)
	if ordered {
		v.Bytes("digest", &x.digest)
	}
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
	// ordered says that commands may come from liars: the first byte of an owner is then the process that opened the
	// session. It never changes.
	ordered bool
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
//
// If liars may open sessions, trim first selects the process that opened most, because a liar could make up owners. It
// then forgets up to 1/16 of all sessions at once, so that a liar cannot make each command search all of them.
func (x *sessions) trim(sessions, bytes int) {
	for len(x.list) > sessions || x.kept > bytes {
		many := len(x.list) > sessions
		uses := func(y *session) int {
			if many {
				return 1
			}
			return len(y.answer)
		}
		candidates, count := func(y *session) bool { return uses(y) > 0 }, 1
		if x.ordered {
			candidates = x.heaviest(candidates, uses, func(y *session) string { return string(y.owner[:min(1, len(y.owner))]) })
			count = max(1, len(x.list)/16)
		}
		x.forget(x.heaviest(candidates, uses, func(y *session) string { return string(y.owner) }), count)
	}
}

// forget forgets up to count of the candidates, those with the oldest last commands.
func (x *sessions) forget(candidates func(*session) bool, count int) {
	var ages []uint64
	for i := range x.list {
		if y := &x.list[i]; candidates(y) {
			ages = append(ages, y.at)
		}
	}
	slices.Sort(ages)
	last := ages[min(count, len(ages))-1] // no two sessions have a command at the same position
	x.list = slices.DeleteFunc(x.list, func(y session) bool {
		gone := candidates(&y) && y.at <= last
		if gone {
			x.kept -= len(y.answer)
		}
		return gone
	})
}

// heaviest returns those of the candidates whose group uses most. The function group returns the name of a session's
// group.
func (x *sessions) heaviest(
	among func(*session) bool, uses func(*session) int, group func(*session) string,
) func(*session) bool {
	share, most := make(map[string]int), 0
	for i := range x.list {
		if y := &x.list[i]; among(y) {
			share[group(y)] += uses(y)
			most = max(most, share[group(y)])
		}
	}
	return func(y *session) bool { return among(y) && share[group(y)] == most }
}

// visit visits the sessions as they are at a position.
func (x *sessions) visit(v *parley.Vars, position uint64) {
	x.kept = 0
	parley.Slice(v, "sessions", &x.list, func(_ int, y *session) {
		y.state(v, x.ordered)
		if len(y.owner) > MaxOwner+1 || y.at == 0 || y.at > position ||
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
