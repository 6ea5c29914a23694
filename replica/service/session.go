package service

import (
	"cmp"
	"slices"

	"parley"
)

// session is what is known of a client.
type session struct {
	client uint64
	last   uint64 // the number of its last command
	at     uint64 // and the position of that
	answer []byte
}

func (x *session) state(v *parley.Vars) {
	parley.Num(v, "client", &x.client)
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

// trim forgets the clients whose last command is the oldest, if there are too many, or of
// those who have answers, if these are too long.
func (p *process) trim() {
	for len(p.sessions) > p.c.Sessions || p.kept > p.c.Answers {
		oldest, many := -1, len(p.sessions) > p.c.Sessions
		for i := range p.sessions {
			if x := &p.sessions[i]; (many || len(x.answer) > 0) && (oldest < 0 || x.at < p.sessions[oldest].at) {
				oldest = i
			}
		}
		p.kept -= len(p.sessions[oldest].answer)
		p.sessions = slices.Delete(p.sessions, oldest, oldest+1)
	}
}
