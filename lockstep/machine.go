package lockstep

import (
	"parley"
)

// Frame is the only kind of message on the link: Seq is the round, and Body holds the
// messages of that round, each with its path. No other field is used.
const Frame parley.Kind = 1

const roundTimer parley.Timer = 0

// Of makes an ordinary protocol from a protocol in rounds. The functions of the result that read messages open the
// frames.
func Of(p Protocol, when Schedule) parley.Protocol {
	out := p.Protocol
	out.Timing = parley.Synchronous
	out.Relies.Delay = when.delay()
	out.Kinds = []string{"", "FRAME"}
	if p.Explain == nil {
		p.Explain = explainPlainly(p.Kinds)
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
		out.Tree = func(m parley.Machine) parley.Tree { return p.Tree(m.(*machine).instance.rounds) }
	}
	return out
}

// machine runs one instance, and keeps its timer.
type machine struct {
	instance *Instance
}

func newMachine(p Protocol, when Schedule, self parley.ID) *machine {
	return &machine{NewInstance(p, when, self, 0)}
}

// Start waits for round 0; Requests come in between. A process that restarts after
// a crash, or starts too late, has missed rounds and takes no part.
func (m *machine) Start(s *parley.Step) {
	switch {
	case s.Restart || !m.instance.when.OnDemand && s.Now > m.instance.begin:
		m.instance.Abstain()
	case !m.instance.when.OnDemand:
		s.SetTimer(roundTimer, m.instance.begin-s.Now)
	}
}

// Request passes the initial value, and opens an instance on demand. A Call opens it
// without a value, and does nothing if it is open.
func (m *machine) Request(s *parley.Step, q parley.Msg) {
	onCall, waits := m.instance.when.OnDemand, m.instance.Waits()
	switch {
	case q.Kind != Call:
		m.instance.Request(s, q)
	case !onCall:
		s.Refuse(s.Self, "call of rounds that have their time")
	}
	if onCall && waits {
		m.open(s)
	}
}

// open begins round 0 of an instance on demand, now.
func (m *machine) open(s *parley.Step) {
	m.instance.Open(s, s.Now)
	m.wait(s)
}

func (m *machine) wait(s *parley.Step) {
	if m.instance.Over() {
		s.StopTimer(roundTimer)
		return
	}
	s.SetTimer(roundTimer, m.instance.Deadline()-s.Now)
}

// Receive handles a frame. The first one of round 0, from any process, opens an
// instance on demand.
func (m *machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind >= parley.Local { // an indication from the layer beneath: rounds have no clause for it
		return
	}
	if m.instance.when.OnDemand && m.instance.Waits() && q.Value == 0 && Opens(q) {
		m.open(s)
	}
	before := m.instance.round
	m.instance.Receive(s, from, q)
	if m.instance.round != before {
		m.wait(s)
	}
}

// Opens reports whether q is a frame that can open an instance on demand.
func Opens(q parley.Msg) bool {
	return q.Kind == Frame && q.Origin == 0 && q.Seq == 0 && wellFormed(q.Body)
}

// Timeout ends the open round, or begins round 0.
func (m *machine) Timeout(s *parley.Step, _ parley.Timer) {
	before := m.instance.round
	if m.instance.Expire(s) && m.instance.round != before {
		m.wait(s)
	}
}

// State visits the variables of the instance.
func (m *machine) State(v *parley.Vars) { m.instance.State(v) }
