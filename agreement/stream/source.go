package stream

import (
	"bytes"
	"slices"

	"parley"
	"parley/lockstep"
)

// The outcomes of requests that get no decision. Value: the number of the request. Seq: the slot
// that it came into; 0: none.
const (
	// Undecided is indicated for a request on which no correct process decides, because it came too late for the
	// others.
	Undecided parley.Kind = parley.Indication + 0x3B
	// Nothing is indicated for a slot, Seq, that all correct processes decide on nothing: without rounds, the value of
	// the source did not get through in time. At the source, Value is the number of the request.
	Nothing parley.Kind = parley.Indication + 0x3C
	// Unanswered is indicated for a request in whose slot this process took no part. The others may
	// have decided on it.
	Unanswered parley.Kind = parley.Indication + 0x3D
)

// wantEvidence, in the Seq of a request, asks for evidence.
const wantEvidence = 1

// The timers besides slotsTimer: for missing evidence, and for the next request.
const (
	evidenceTimer parley.Timer = iota + 1
	gapTimer
)

// SourceRequest returns a request to the source of a stream: to agree on a value of
// at most Limit bytes, which must not be NoValue. The caller numbers its requests from 1, in Value.
func SourceRequest(value []byte, evidence bool) parley.Msg {
	m := parley.Msg{Kind: parley.Propose, Body: bytes.Clone(value)}
	if evidence {
		m.Seq = wantEvidence
	}
	return m
}

// sourceMachine is one process of a stream of agreements on the values of one source. The source
// puts each SourceRequest into the next slot. All processes deliver a Decide for each slot, with the slot
// in Seq and, at the source, the number of the request in Value; before it they deliver Carried from
// each process that sent Evidence, if that was requested. For a slot in which the default is
// decided nothing is delivered. Requests of a process that rejoins wait until it takes part again.
type sourceMachine struct {
	streamCore

	maxInFlight, inFlight int         // how many requests may be in unfinished slots, and are
	slotInterval          parley.Tick // average time between two slots, while a process is silent
	peerSilent            bool        // this process's last slot did not end before its time
	nextSlot              parley.Tick // during silence, when the next slot may begin

	queue     []sourceRequest // in no slot yet
	begun     []sourceRequest // in slots, by number
	gathering []sourceRequest // decided, while evidence arrives
}

type sourceRequest struct {
	number        uint64
	value         []byte // of the request, and once it is decided the decided value
	wantsEvidence bool
	slot          uint64
	begun         parley.Tick
	decided       bool
	evidenceUntil parley.Tick // how long to wait for evidence
	evidence      []sentEvidence
}

// sentEvidence is the Evidence of one process, as it was sent.
type sentEvidence struct {
	from parley.ID
	body []byte
}

func newSourceMachine(core streamCore) *sourceMachine {
	m := &sourceMachine{streamCore: core}
	m.recorders = make(map[uint64]*evidenceRecorder)
	m.open(m)
	frames := m.N * (m.N - 1) * (m.last + 1)
	m.maxInFlight = max(32, int(m.when.Delta/10/(parley.Tick(frames)*frameTime)))
	m.slotInterval = parley.Tick(m.last+1) * m.when.Delta / parley.Tick(m.maxInFlight)
	return m
}

// frameTime is the cost of a frame, with all that it causes, in ticks, which are nanoseconds in a
// cluster. A source has so many requests in flight that, if all sources do the same, they cost the
// longest delay of a message: with more, busy processes would be too late, and count as faulty. This
// does not limit the rate, because far fewer requests keep a processor busy.
const frameTime parley.Tick = 1500

// burst is how many requests may go into slots at once while a process is silent. Slots that begin
// together then end together at their deadlines, and the work at their end makes all processes late.
const burst = 4

// Start finds out, after a restart, which slots have begun.
func (m *sourceMachine) Start(s *parley.Step) { m.slots.Start(s, m.DiskIntact) }

// Request requests an agreement on a value. Only the source accepts it.
func (m *sourceMachine) Request(s *parley.Step, q parley.Msg) {
	if m.self != m.Source {
		s.Refuse(m.self, "request at a process that is not the source")
		return
	}
	if !m.slots.Settled() && len(m.queue) >= m.Window { // some of these may have been given up
		s.Indicate(parley.Msg{Kind: Unanswered, Value: q.Value})
		return
	}
	m.queue = append(m.queue, sourceRequest{number: q.Value, value: q.Body, wantsEvidence: q.Seq == wantEvidence})
	m.after(s)
}

// ProposalFor is called when a slot begins. The source proposes the value of its oldest request, or the
// default; with signatures it proposes nothing instead of the default.
func (m *sourceMachine) ProposalFor(s *parley.Step, slot uint64) (parley.Msg, bool) {
	if len(m.queue) == 0 || !m.slots.Settled() || !m.slots.Tells(slot) {
		return parley.Msg{Kind: parley.Propose, Body: noValue}, m.self == m.Source && !m.signed
	}
	one := m.queue[0]
	m.queue[0] = sourceRequest{}
	if m.queue = m.queue[1:]; len(m.queue) == 0 {
		m.queue = nil
	}
	one.slot, one.begun = slot, s.Now
	m.nextSlot = min(max(m.nextSlot, s.Now-burst*m.slotInterval), s.Now) + m.slotInterval
	m.begun = append(m.begun, one)
	m.inFlight++
	if one.wantsEvidence = one.wantsEvidence && m.record(slot); one.wantsEvidence {
		s.SendAll(parley.Msg{Kind: evidenceQuery, Value: slot})
	}
	return parley.Msg{Kind: parley.Propose, Body: one.value}, true
}

// SlotDone does nothing: all decisions have been delivered before.
func (m *sourceMachine) SlotDone(*parley.Step, uint64, []parley.Effect) {}

func (m *sourceMachine) record(slot uint64) bool {
	if len(m.recorders) >= maxRecorded {
		return false
	}
	m.recorders[slot] = &evidenceRecorder{name: m.Name, evidence: Evidence{Node: m.self}}
	return true
}

func (m *sourceMachine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Kind >= parley.Local:
		return
	case q.Kind == lockstep.Frame:
		if len(q.Body) > m.FrameLimit(m.N) {
			s.Refuse(from, "frame over the limit of the stream")
			return
		}
		m.slots.Receive(s, from, q)
	case q.Kind == positionQuery || q.Kind == positionReply:
		m.slots.HandlePosition(s, from, q)
	case q.Origin != 0 || q.Seq != 0:
		s.Refuse(from, "fields that are not used")
		return
	case q.Kind == evidenceQuery && from == m.Source && len(q.Body) == 0:
		if q.Value <= m.slots.Done() || q.Value > m.slots.Opened()+uint64(m.Window) ||
			m.recorders[q.Value] != nil || !m.record(q.Value) {
			s.Refuse(from, "asks for evidence of too much, or too late")
			return
		}
	case q.Kind == evidenceReply:
		m.takeEvidence(s, from, q)
	default:
		s.Refuse(from, "no message of a stream")
		return
	}
	m.after(s)
}

func (m *sourceMachine) Timeout(s *parley.Step, t parley.Timer) {
	if t == slotsTimer {
		m.slots.Timeout(s)
	}
	m.after(s)
}

// after does what is due after every event: it delivers decisions and puts requests into slots.
// That may end rounds whose time is over, which makes more decisions.
func (m *sourceMachine) after(s *parley.Step) {
	for again := true; again; again = len(m.decided) > 0 || m.hasEnded() {
		for i := range m.decided {
			m.deliver(s, &m.decided[i])
			m.decided[i] = decision{}
		}
		m.decided = m.decided[:0]
		m.dropEnded(s)
		if len(m.queue) > 0 {
			m.slots.Want(s)
		}
		for m.slots.Settled() && len(m.queue) > 0 && m.inFlight < m.maxInFlight {
			if m.peerSilent && s.Now < m.nextSlot {
				s.SetTimer(gapTimer, m.nextSlot-s.Now)
				break
			}
			opened := m.slots.Opened()
			if m.slots.OpenSlot(s, 0); m.slots.Opened() == opened {
				break // the window is full: the slot begins later
			}
		}
	}
	// order: each is deleted independently
	for slot := range m.recorders {
		if slot <= m.slots.Done() {
			delete(m.recorders, slot)
		}
	}
	m.deliverGathered(s)
}

func (m *sourceMachine) hasEnded() bool { return len(m.begun) > 0 && m.begun[0].slot <= m.slots.Done() }

// dropEnded removes requests in slots that are over, and indicates those that got no decision.
func (m *sourceMachine) dropEnded(s *parley.Step) {
	k := 0
	for done := m.slots.Done(); k < len(m.begun) && m.begun[k].slot <= done; k++ {
		if one := &m.begun[k]; !one.decided {
			m.inFlight--
			s.Indicate(parley.Msg{Kind: Unanswered, Seq: one.slot, Value: one.number})
		}
	}
	if clear(m.begun[:k]); k == len(m.begun) {
		m.begun = m.begun[:0]
	} else {
		m.begun = m.begun[k:]
	}
}

// deliver delivers a decision, unless it is the default.
func (m *sourceMachine) deliver(s *parley.Step, d *decision) {
	out := parley.Msg{Kind: parley.Decide, Origin: m.Source, Seq: d.slot, Body: d.value}
	var own *sourceRequest
	if m.self == m.Source {
		i, found := slices.BinarySearchFunc(m.begun, d.slot, func(a sourceRequest, slot uint64) int {
			return int(int64(a.slot - slot))
		})
		if found {
			own = &m.begun[i]
			own.decided, out.Value = true, own.number
			m.inFlight--
			m.peerSilent = s.Now-own.begun >= m.when.Delta
		}
	}
	var body []byte
	switch {
	case bytes.Equal(d.value, noValue):
		if own != nil {
			s.Indicate(parley.Msg{Kind: Undecided, Seq: d.slot, Value: own.number})
		}
		return
	case d.evidence != nil:
		body = d.evidence.evidence.encode()
	}
	switch {
	case own != nil && own.wantsEvidence:
		one := *own
		one.value, one.evidenceUntil = d.value, s.Now+m.when.Delta
		if body != nil {
			one.evidence = append(one.evidence, sentEvidence{m.self, body})
		}
		m.gathering = append(m.gathering, one)
		s.SetTimer(evidenceTimer, m.when.Delta)
		return
	case body != nil:
		s.Send(m.Source, parley.Msg{Kind: evidenceReply, Value: d.slot, Body: body})
		s.Deliver(m.self, parley.Msg{Kind: parley.Carried, Seq: d.slot, Body: body})
	}
	s.Deliver(m.Source, out)
}

// takeEvidence records the evidence of one process about a slot of this source. The first counts.
func (m *sourceMachine) takeEvidence(s *parley.Step, from parley.ID, q parley.Msg) {
	of := func(one sourceRequest) bool { return one.slot == q.Value && one.wantsEvidence && !one.decided }
	list := m.begun
	i := slices.IndexFunc(list, of)
	if i < 0 {
		list = m.gathering
		i = slices.IndexFunc(list, func(one sourceRequest) bool { return one.slot == q.Value })
	}
	switch {
	case i < 0 || slices.ContainsFunc(list[i].evidence, func(e sentEvidence) bool { return e.from == from }):
		s.Refuse(from, "an account that nobody asked for")
	default:
		if _, ok := DecodeEvidence(from, q.Body); !ok {
			s.Refuse(from, "what is no account")
			return
		}
		list[i].evidence = append(list[i].evidence, sentEvidence{from, q.Body})
	}
}

// deliverGathered delivers the decisions whose evidence has come from all, or whose wait is over: the
// evidence first.
func (m *sourceMachine) deliverGathered(s *parley.Step) {
	m.gathering = slices.DeleteFunc(m.gathering, func(one sourceRequest) bool {
		if len(one.evidence) < m.N && s.Now < one.evidenceUntil {
			return false
		}
		for _, e := range one.evidence {
			s.Deliver(e.from, parley.Msg{Kind: parley.Carried, Seq: one.slot, Body: e.body})
		}
		s.Deliver(m.Source, parley.Msg{
			Kind: parley.Decide, Origin: m.Source, Seq: one.slot, Value: one.number, Body: one.value,
		})
		return true
	})
}

// State visits everything except the evidence that is being recorded: nothing depends on it.
func (m *sourceMachine) State(v *parley.Vars) {
	parley.Num(v, "away", &m.inFlight)
	v.Bool("silence", &m.peerSilent)
	v.Time("next", &m.nextSlot)
	parley.Slice(v, "queue", &m.queue, visitRequest(v))
	parley.Slice(v, "begun", &m.begun, visitRequest(v))
	parley.Slice(v, "gathering", &m.gathering, visitRequest(v))
	v.Machine("line", m.slots)
}

func visitRequest(v *parley.Vars) func(int, *sourceRequest) {
	return func(_ int, one *sourceRequest) {
		parley.Num(v, "number", &one.number)
		v.Bytes("value", &one.value)
		v.Bool("why", &one.wantsEvidence)
		parley.Num(v, "slot", &one.slot)
		v.Time("begun", &one.begun)
		v.Bool("told", &one.decided)
		v.Time("until", &one.evidenceUntil)
		parley.Slice(v, "accounts", &one.evidence, func(_ int, e *sentEvidence) {
			v.ID("node", &e.from)
			v.Bytes("account", &e.body)
		})
	}
}
