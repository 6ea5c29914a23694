package service

import (
	"cmp"
	"slices"

	"parley"
)

// Queue is how many commands of a process's own wait at most, the one under way too.
// More are refused.
const Queue = 1024

// session is what is known of a client.
type session struct {
	client uint64
	owner  []byte // who opened it, in the words of the host; none: the processes together
	last   uint64 // the number of its last command
	at     uint64 // and the position of that
	answer []byte
}

func (x *session) state(v *parley.Vars) {
	parley.Num(v, "client", &x.client)
	v.Bytes("owner", &x.owner)
	parley.Num(v, "last", &x.last)
	parley.Num(v, "at", &x.at)
	v.Bytes("answer", &x.answer)
}

// processes is the first client that is a life of a process.
const processes uint64 = 1 << 63

// client is a life of a process as a client.
func client(id parley.ID, life uint64) uint64 { return processes | life<<16&^processes | uint64(id) }

// ownerOf is the process that such a client is.
func ownerOf(client uint64) parley.ID { return parley.ID(client & 0xFFFF) }

// numbered tells whether a command may have that number.
func numbered(seq uint64) bool { return seq > 0 && seq < 1<<63 }

// session returns that of a client, a new one if there is none.
func (p *process) session(client uint64) *session {
	i, found := slices.BinarySearchFunc(p.sessions, client, func(x session, c uint64) int {
		return cmp.Compare(x.client, c)
	})
	if !found {
		p.sessions = slices.Insert(p.sessions, i, session{client: client})
	}
	return &p.sessions[i]
}

// trim forgets sessions if there are too many, or their answers are too long: of the owner
// who has most of that, the one whose last command is the oldest. So nobody who has less than
// an equal share loses anything to others.
func (p *process) trim() {
	for len(p.sessions) > p.c.Sessions || p.kept > p.c.Answers {
		many := len(p.sessions) > p.c.Sessions
		uses := func(x *session) int {
			if many {
				return 1
			}
			return len(x.answer)
		}
		share, most := make(map[string]int), 0
		for i := range p.sessions {
			x := &p.sessions[i]
			share[string(x.owner)] += uses(x)
			most = max(most, share[string(x.owner)])
		}
		oldest := -1
		for i := range p.sessions {
			x := &p.sessions[i]
			if share[string(x.owner)] == most && uses(x) > 0 && (oldest < 0 || x.at < p.sessions[oldest].at) {
				oldest = i
			}
		}
		p.kept -= len(p.sessions[oldest].answer)
		p.sessions = slices.Delete(p.sessions, oldest, oldest+1)
	}
}

// inOrder tells whether keys go up.
func inOrder[T any](list []T, key func(T) uint64) bool {
	return slices.IsSortedFunc(list, func(a, b T) int {
		if key(a) < key(b) {
			return -1
		}
		return 1
	})
}
