package lockstep

import (
	"parley"
)

// Instance is one process in one instance of a protocol in rounds. Its owner keeps
// the timer: it reads Deadline after every clause, and calls Expire.
type Instance struct {
	p      Protocol
	self   parley.ID
	when   Schedule
	number uint64 // the Value of its frames

	begin  parley.Tick // of round 0; far while unknown
	round  int         // the open round: -1 before the first, last+1 when the instance is over
	now    window      // frames of the open round
	next   window      // frames of the next round: peers may be a round ahead
	rounds Rounds

	sent, parts, before, read []framePart // scratch
}

// framePart is a message before it is put into a frame or after it is read from one.
type framePart struct {
	to   parley.ID
	path parley.Path
	msg  parley.Msg
}

// window holds at most one frame per process: the first is final.
type window struct {
	got    parley.Set
	frames [][]byte
}

const farFuture parley.Tick = 1 << 62

// NewInstance makes a process in an instance of the given number, which is the Value
// of its frames. It panics if the schedule is inconsistent.
func NewInstance(p Protocol, when Schedule, self parley.ID, number uint64) *Instance {
	if when.Delta < 1 {
		panic("lockstep: a round has a length")
	}
	if when.Slack < 0 || when.Slack > when.Delta {
		panic("lockstep: the slack is a part of a round")
	}
	if when.delay() < 1 && when.OnDemand {
		panic("lockstep: rounds on call last for two messages and four times the slack")
	}
	m := &Instance{
		p: p, self: self, when: when, number: number, begin: when.Begin, round: -1, rounds: p.New(self),
		now: window{frames: make([][]byte, p.N)}, next: window{frames: make([][]byte, p.N)},
	}
	if when.OnDemand {
		m.begin = farFuture
	}
	return m
}

// Reusable is implemented by Rounds that can start again in their own memory.
type Reusable interface {
	// Reset returns the process to the state that New makes.
	Reset()
}

// Counting is implemented by Rounds that need to know from which processes frames arrived, including empty frames.
type Counting interface {
	// Came gets the set of processes whose frames of a round have arrived. It runs when the round closes,
	// before the messages in the frames are absorbed.
	Came(round int, from parley.Set)
}

// Reset returns the instance to the state that NewInstance makes, with another number.
func (m *Instance) Reset(number uint64) {
	m.number, m.begin, m.round = number, m.when.Begin, -1
	if m.when.OnDemand {
		m.begin = farFuture
	}
	m.now.clear()
	m.next.clear()
	if r, ok := m.rounds.(Reusable); ok {
		r.Reset()
	} else {
		m.rounds = m.p.New(m.self)
	}
}

func (w *window) clear() {
	w.got = parley.Set{}
	clear(w.frames)
}

// Waits reports whether round 0 has not begun.
func (m *Instance) Waits() bool { return m.round < 0 }

// Over reports whether the last round has ended, or the process takes no part.
func (m *Instance) Over() bool { return m.round > m.p.Last }

// The reasons for refusing a frame that arrives after its round.
const (
	LateFrame      = "late frame"
	AfterLastRound = "frame after the last round"
)

// Abstain makes the process take no further part.
func (m *Instance) Abstain() { m.round = m.p.Last + 1 }

// Deadline returns a time on the process's own clock: the end of the open round or, if no round has begun, the
// beginning of round 0. For an instance on demand that has not begun, it returns a time that never comes.
func (m *Instance) Deadline() parley.Tick { return m.deadline(m.round) }

func (m *Instance) deadline(r int) parley.Tick {
	return m.begin + parley.Tick(r+1)*m.when.Delta
}

// Request passes the initial value to the rounds. After round 0 has begun, the request is refused.
func (m *Instance) Request(s *parley.Step, q parley.Msg) {
	if m.round >= 0 {
		s.Refuse(s.Self, "request after round 0")
		return
	}
	mark := s.Mark()
	m.rounds.Request(s, q)
	forbidSends(s, mark)
}

// forbidSends panics if a message was sent outside a frame.
func forbidSends(s *parley.Step, mark int) {
	for i := mark; i < len(s.Effects); i++ {
		if s.Effects[i].Op == parley.OpSend {
			panic("lockstep: a message sent outside Emit")
		}
	}
}

// Open begins round 0 at begin, which must not be in the future.
func (m *Instance) Open(s *parley.Step, begin parley.Tick) {
	m.begin = begin
	m.open(s)
	m.advance(s)
}

// Receive keeps a frame of the open round or of the next round. It compares the clock to find out whether a
// frame is late, because the timer may itself be late.
func (m *Instance) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind != Frame || q.Origin != 0 || q.Value != m.number {
		s.Refuse(from, "not a frame")
		return
	}
	w := &m.now
	switch {
	case m.Over():
		s.Refuse(from, AfterLastRound)
		return
	case q.Seq > uint64(m.p.Last):
		s.Refuse(from, "frame of a round there is not")
		return
	case m.p.Most != nil && len(q.Body) > m.p.Most(int(q.Seq)):
		s.Refuse(from, "frame too long for its round")
		return
	case int(q.Seq) < m.round, s.Now >= m.deadline(int(q.Seq)):
		s.Refuse(from, LateFrame)
		return
	case int(q.Seq) == m.round+1:
		w = &m.next
	case int(q.Seq) > m.round+1:
		s.Refuse(from, "frame more than a round ahead")
		return
	}
	if !w.got.Add(from) {
		s.Refuse(from, "second frame of a round")
		return
	}
	w.frames[from] = q.Body
	m.advance(s)
}

// Expire ends the open round if its time is over. If the instance is not on demand, it begins round 0 when
// the time of round 0 has come. A process that wakes later than the slack would send too late, and decide
// without frames that arrived during its sleep. So it abstains, and Expire returns false.
func (m *Instance) Expire(s *parley.Step) bool {
	switch end := m.Deadline(); {
	case m.Over() || s.Now < end:
		return true // the timer of a round that was closed early
	case m.when.Late(s.Now - end):
		s.Refuse(s.Self, parley.WokeTooLate)
		m.Abstain()
		return false
	}
	if m.round >= 0 {
		m.close(s)
	}
	m.open(s)
	m.advance(s)
	return true
}

// advance closes the open round early, and the next one if that is complete too.
func (m *Instance) advance(s *parley.Step) {
	for m.when.Early && m.round >= 0 && !m.Over() && m.now.got.Len() == s.N-1 {
		m.close(s)
		m.open(s)
	}
}

// close absorbs what came in the open round, in the order of the senders. A
// frame that does not parse counts as missing, with all its parts.
func (m *Instance) close(s *parley.Step) {
	outer, mark := s.Path, s.Mark()
	if c, ok := m.rounds.(Counting); ok {
		c.Came(m.round, m.now.got)
	}
	for id := range m.now.got.All() {
		body := m.now.frames[id]
		if len(body) == 0 {
			continue
		}
		if m.read = m.read[:0]; !m.parse(body) {
			s.Refuse(id, "malformed frame")
			continue
		}
		for i := range m.read {
			s.Path = m.read[i].path
			m.rounds.Absorb(s, m.round, id, m.read[i].msg)
		}
	}
	s.Path = outer
	m.rounds.Close(s, m.round)
	forbidSends(s, mark)
}

// parse reads the messages of a frame, and reports whether all of it parses.
func (m *Instance) parse(body []byte) bool {
	for len(body) > 0 {
		var one framePart
		var err error
		if one.path, one.msg, body, err = parley.ReadMsg(body); err != nil {
			return false
		}
		m.read = append(m.read, one)
	}
	return true
}

// open begins the next round, whose frames may have come already. Its deadline
// is counted from the beginning of the instance, not from now.
func (m *Instance) open(s *parley.Step) {
	m.round++
	m.now, m.next = m.next, m.now
	m.next.clear()
	if m.Over() {
		return
	}
	mark := s.Mark()
	m.rounds.Emit(s, m.round)
	m.sendFrames(s, mark)
}

// sendFrames puts what Emit sent into one frame for each receiver. Receivers of the
// same messages share one body, and if all get the same, one frame goes to all.
func (m *Instance) sendFrames(s *parley.Step, mark int) {
	m.sent = m.sent[:0]
	alike := true
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpSend {
			return false
		}
		m.sent = append(m.sent, framePart{e.To, e.Path, e.Msg})
		alike = alike && e.To == parley.All
		return true
	})
	head := parley.Msg{Kind: Frame, Seq: uint64(m.round), Value: m.number}
	if alike {
		head.Body = encode(m.sent)
		s.SendAll(head)
		return
	}
	m.sendEach(s, head)
}

// sendEach sends each receiver its own frame; receivers that are neighbors in the order
// of processes and get the same messages share one body.
func (m *Instance) sendEach(s *parley.Step, head parley.Msg) {
	first := true
	for id := range parley.ID(s.N) {
		if id == s.Self {
			continue
		}
		mine := m.parts[:0]
		for _, p := range m.sent {
			if p.to == id || p.to == parley.All {
				mine = append(mine, p)
			}
		}
		if first || !same(m.before, mine) {
			head.Body = encode(mine)
		}
		s.Send(id, head)
		first, m.before, m.parts = false, mine, m.before
	}
}

// same reports whether two lists hold the same messages; bodies are compared by identity.
func same(a, b []framePart) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i].msg, b[i].msg
		if a[i].path != b[i].path || x.Kind != y.Kind || x.Origin != y.Origin || x.Seq != y.Seq ||
			x.Value != y.Value || len(x.Body) != len(y.Body) || len(x.Body) > 0 && &x.Body[0] != &y.Body[0] {
			return false
		}
	}
	return true
}

func encode(list []framePart) []byte {
	if len(list) == 0 {
		return nil
	}
	size := 0
	for _, p := range list {
		size += len(p.msg.Body) + 16
	}
	body := make([]byte, 0, size)
	for _, p := range list {
		body = parley.AppendMsg(body, p.path, p.msg)
	}
	return body
}

// wellFormed reports whether a frame parses to its end.
func wellFormed(body []byte) bool {
	for len(body) > 0 {
		var err error
		if _, _, body, err = parley.ReadMsg(body); err != nil {
			return false
		}
	}
	return true
}

// Rounds returns the process's rounds.
func (m *Instance) Rounds() Rounds { return m.rounds }

// State visits the number and the beginning only if each instance has its own.
func (m *Instance) State(v *parley.Vars) {
	parley.Num(v, "round", &m.round)
	if m.when.OnDemand {
		parley.Num(v, "number", &m.number)
		if m.round >= 0 && !m.Over() {
			v.Time("begin", &m.begin)
		} else {
			m.begin = farFuture
		}
	}
	m.window(v, "now got", "now", m.round, &m.now)
	m.window(v, "next got", "next", m.round+1, &m.next)
	v.Inner("rounds", m.rounds, m.p.Rename)
}

func (m *Instance) window(v *parley.Vars, got, name string, round int, w *window) {
	v.Set(got, &w.got)
	parley.PerProcess(v, name, w.frames, func(id parley.ID, body *[]byte) {
		v.Coded("frame", body, func(b []byte, perm []parley.ID) []byte {
			e := parley.Env{From: id, To: m.self, Round: round}
			return frames{m.p}.rename(e, parley.Msg{Seq: uint64(round), Body: b}, perm).Body
		})
	})
}
