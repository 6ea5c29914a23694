package lockstep

import (
	"parley"
)

// Frame is the one kind of message on the link: Seq is the round and Body the
// messages of that round, each with its path. No other field is used.
const Frame parley.Kind = 1

// roundEnds is the one timer.
const roundEnds parley.Timer = 0

// Of makes an ordinary protocol of one in rounds. The functions that look into
// messages open the frames.
func Of(p Protocol, when Schedule) parley.Protocol {
	out := p.Protocol
	out.Timing = parley.Synchronous
	out.Relies.Delay = when.Delta - 2*when.slack()
	out.Kinds = []string{"", "FRAME"}
	if p.Explain == nil {
		p.Explain = plainly(p.Kinds)
	}
	f := frames{p}
	out.New = func(self parley.ID) parley.Machine { return newMachine(p, when, self) }
	out.Explain = f.explain
	if p.Lies != nil {
		out.Lies = f.lies
	}
	if p.Size != nil {
		out.Size = f.size
	}
	if p.Rename != nil || p.RenameAll != nil {
		out.Rename = f.rename
	}
	if p.Tree != nil {
		out.Tree = func(m parley.Machine) parley.Tree { return p.Tree(m.(*machine).rounds) }
	}
	return out
}

// machine runs the rounds of one process.
type machine struct {
	parley.Base
	self   parley.ID
	when   Schedule
	last   int
	frames frames

	round  int    // the round that is open: -1 before the first, last+1 when all is over
	now    window // frames of the open round
	next   window // frames of the one after it: peers may be a round ahead
	rounds Rounds

	sent, parts, before []part // scratch
}

// part is a message on its way into a frame or out of it.
type part struct {
	to   parley.ID
	path parley.Path
	msg  parley.Msg
}

// window holds one frame a process at most: the first is final.
type window struct {
	got    parley.Set
	frames [][]byte
}

func newMachine(p Protocol, when Schedule, self parley.ID) *machine {
	if when.Delta < 1 {
		panic("lockstep: a round has a length")
	}
	if when.Slack < 0 || when.Slack > when.Delta {
		panic("lockstep: the slack is a part of a round")
	}
	return &machine{
		self: self, when: when, last: p.Last, frames: frames{p}, round: -1, rounds: p.New(self),
		now: window{frames: make([][]byte, p.N)}, next: window{frames: make([][]byte, p.N)},
	}
}

// Start waits for round 0; Requests come in between. A process that comes back
// after a crash, or starts too late, has missed rounds and takes no part.
func (m *machine) Start(s *parley.Step) {
	if s.Restart || s.Now > m.when.Begin {
		m.round = m.last + 1
		return
	}
	s.SetTimer(roundEnds, m.when.Begin-s.Now)
}

// deadline is when round r ends on the process's own clock, whenever it began.
func (m *machine) deadline(r int) parley.Tick {
	return m.when.Begin + parley.Tick(r+1)*m.when.Delta
}

// Request is in time before round 0. Later it is too late for an initial value.
func (m *machine) Request(s *parley.Step, q parley.Msg) {
	if m.round >= 0 {
		s.Refuse(s.Self, "request after round 0")
		return
	}
	mark := s.Mark()
	m.rounds.Request(s, q)
	noSends(s, mark)
}

// noSends keeps messages out of the link that are in no frame.
func noSends(s *parley.Step, mark int) {
	for i := mark; i < len(s.Effects); i++ {
		if s.Effects[i].Op == parley.OpSend {
			panic("lockstep: a message sent outside Emit")
		}
	}
}

// Receive keeps a frame of the open round or of the next. The clock says what is
// late, and not the timer, which may be late itself.
func (m *machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind >= parley.Local { // an indication of a layer beneath: rounds have no clause for it
		return
	}
	if q.Kind != Frame || q.Origin != 0 || q.Value != 0 {
		s.Refuse(from, "not a frame")
		return
	}
	w := &m.now
	switch {
	case m.round > m.last:
		s.Refuse(from, "frame after the last round")
		return
	case q.Seq > uint64(m.last):
		s.Refuse(from, "frame of a round there is not")
		return
	case int(q.Seq) < m.round, s.Now >= m.deadline(int(q.Seq)):
		s.Refuse(from, "late frame")
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

// Timeout is the end of the open round, or the beginning of round 0. A process
// that wakes later than the slack would send too late, and decide without frames
// that came while it slept: it abstains.
func (m *machine) Timeout(s *parley.Step, _ parley.Timer) {
	switch end := m.deadline(m.round); {
	case m.round > m.last || s.Now < end:
		return // of a round that was closed early
	case s.Now > end && s.Now-end >= m.when.slack():
		s.Refuse(s.Self, "woke too late: abstains")
		m.round = m.last + 1
		return
	}
	if m.round >= 0 {
		m.close(s)
	}
	m.open(s)
	m.advance(s)
}

// advance closes the open round early, and the next one if that is complete too.
func (m *machine) advance(s *parley.Step) {
	for m.when.Early && m.round >= 0 && m.round <= m.last && m.now.got.Len() == s.N-1 {
		m.close(s)
		m.open(s)
	}
}

// close absorbs what came in the open round, in the order of the senders. A
// frame that does not parse is as good as none: no part of it counts.
func (m *machine) close(s *parley.Step) {
	outer, mark := s.Path, s.Mark()
	for id := range m.now.got.All() {
		body := m.now.frames[id]
		if len(body) == 0 {
			continue
		}
		path, q, rest, err := parley.ReadMsg(body)
		if err != nil || !well(rest) {
			s.Refuse(id, "malformed frame")
			continue
		}
		for {
			s.Path = path
			m.rounds.Absorb(s, m.round, id, q)
			if len(rest) == 0 {
				break
			}
			path, q, rest, _ = parley.ReadMsg(rest)
		}
	}
	s.Path = outer
	m.rounds.Close(s, m.round)
	noSends(s, mark)
}

// open begins the next round, of which frames may have come already. Its deadline
// is counted from the beginning of the instance, not from now.
func (m *machine) open(s *parley.Step) {
	m.round++
	m.now, m.next = m.next, m.now
	m.next.got = parley.Set{}
	clear(m.next.frames)
	if m.round > m.last {
		s.StopTimer(roundEnds)
		return
	}
	mark := s.Mark()
	m.rounds.Emit(s, m.round)
	m.enframe(s, mark)
	s.SetTimer(roundEnds, m.deadline(m.round)-s.Now)
}

// enframe puts what Emit sent into one frame for each receiver. Receivers that
// are sent the same share one body, and if all are, the frame goes to all.
func (m *machine) enframe(s *parley.Step, mark int) {
	m.sent = m.sent[:0]
	alike := true
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpSend {
			return false
		}
		m.sent = append(m.sent, part{e.To, e.Path, e.Msg})
		alike = alike && e.To == parley.All
		return true
	})
	head := parley.Msg{Kind: Frame, Seq: uint64(m.round)}
	if alike {
		head.Body = encode(m.sent)
		s.SendAll(head)
		return
	}
	m.share(s, head)
}

// share sends each receiver its own frame; neighbours in the order of processes
// that are sent the same get the same body.
func (m *machine) share(s *parley.Step, head parley.Msg) {
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

// same tells whether two lists hold the same messages, bodies by identity.
func same(a, b []part) bool {
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

func encode(list []part) []byte {
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

// well tells whether a frame can be read to its end.
func well(body []byte) bool {
	for len(body) > 0 {
		var err error
		if _, _, body, err = parley.ReadMsg(body); err != nil {
			return false
		}
	}
	return true
}

func (m *machine) State(v *parley.Vars) {
	parley.Num(v, "round", &m.round)
	m.window(v, "now got", "now", m.round, &m.now)
	m.window(v, "next got", "next", m.round+1, &m.next)
	v.Inner("rounds", m.rounds, m.frames.p.Rename)
}

func (m *machine) window(v *parley.Vars, got, name string, round int, w *window) {
	v.Set(got, &w.got)
	parley.PerProcess(v, name, w.frames, func(id parley.ID, body *[]byte) {
		v.Coded("frame", body, func(b []byte, perm []parley.ID) []byte {
			e := parley.Env{From: id, To: m.self, Round: round}
			return m.frames.rename(e, parley.Msg{Seq: uint64(round), Body: b}, perm).Body
		})
	})
}
