package cluster

import (
	"bytes"
	"slices"
	"time"

	"parley"
	"parley/lockstep"
)

// The messages of a stream beside the frames of its slots.
const (
	// askedWhy says that the source will want to know why, of the slot in Value. It comes
	// before the source's frame.
	askedWhy parley.Kind = lockstep.Frame + 1 + iota
	// accounted is the answer. Value: the slot. Body: an account.
	accounted
	// where asks in which slots the others are, and at answers: see [mux.Pipeline.Find].
	where
	at
	// listWanted asks for the names that are known, as after the slot in Value; and
	// listTold answers: see names.
	listWanted
	listTold
)

// What becomes of questions that get no answer. Value: the number of the question. Seq: the slot
// that it came into; 0: none.
const (
	// undecided is indicated of one on which nobody correct decides: it came too late for them.
	undecided parley.Kind = parley.Indication + 0x3B
	// unanswered is indicated of one that this node took no part in when it was due, or of which it
	// knows that it was answered while it took none.
	unanswered parley.Kind = parley.Indication + 0x3D
)

// whyWanted, in the Seq of a request, asks for evidence.
const whyWanted = 1

// The timers: that of the slots, for accounts that do not come, and for the next question.
const (
	slotsTimer parley.Timer = iota
	accountsTimer
	gapTimer
)

// asks is one process of a stream of agreements on the values of one source. A Request,
// at the source, has the value for its Body and a number for its Value. It is put into
// the next slot. A Decide is delivered of each slot, with the slot for its Seq and the
// number of the question for its Value, 0 at other processes; before it, Carried from the
// node that tells it, each account that was asked for. Of a slot in which the
// default is decided nothing is told; who asked in it gets no answer. Questions of a process that comes
// back wait until it takes part again.
type asks struct {
	slots
	when lockstep.Schedule
	name func(parley.ID) string

	depth, away int         // how many questions may be in slots that go on, and are
	gap         parley.Tick // between two of them, on average, while somebody is silent
	silence     bool        // the last slot of ours did not end before its time
	next        parley.Tick // when, in silence, the next slot may begin

	queue     []ask // in no slot yet
	begun     []ask // in slots, by number
	gathering []ask // decided on, while accounts come in
}

// ask is one question.
type ask struct {
	number   uint64
	value    []byte // that asked for, and once it is decided on the one decided on
	why      bool
	slot     uint64
	begun    parley.Tick
	told     bool
	until    parley.Tick // accounts are waited for
	accounts []accountOf
}

// accountOf is what one node tells, as it was sent.
type accountOf struct {
	node parley.ID
	body []byte
}

func newAsks(t stream, n, window int, self parley.ID, when lockstep.Schedule, name func(parley.ID) string,
) (*asks, lockstep.Protocol) {
	m := &asks{
		slots: slots{t: t, self: self, n: n, window: window, outOfTurn: true, asked: make(map[uint64]*noted)},
		when:  when, name: name,
	}
	p := m.protocol(t.rounds(n))
	m.pipeline(p, when, m)
	frames := n * (n - 1) * (p.Last + 1)
	m.depth = max(32, int(when.Delta/10/(parley.Tick(frames)*frameTime)))
	m.gap = parley.Tick(p.Last+1) * when.Delta / parley.Tick(m.depth)
	return m, p
}

// frameTime is what a frame may cost, in time, with all that it brings about. A source has
// as many questions under way as cost, if all sources do, the time that a message may take:
// with more of them nodes would come too late for being busy, and count as faulty. It is not
// what limits the rate, for far fewer keep a processor busy.
const frameTime = parley.Tick(1500 * time.Nanosecond)

// burst is how many questions may go into slots at once while somebody is silent. Slots that
// begin together then end together, by the clock, and what is to be done makes all late.
const burst = 4

// Start. Who comes back has to find out which slots have begun.
func (m *asks) Start(s *parley.Step) { m.line.Start(s, m.intact) }

// Request asks for an agreement on a value.
func (m *asks) Request(s *parley.Step, q parley.Msg) {
	if !m.line.Settled() && len(m.queue) >= m.window { // those that nobody waits for any more are among them
		s.Indicate(parley.Msg{Kind: unanswered, Value: q.Value})
		return
	}
	m.queue = append(m.queue, ask{number: q.Value, value: q.Body, why: q.Seq == whyWanted})
	m.after(s)
}

// Fill: a slot begins; the source says what it was asked for first, or the default. With
// signatures it says nothing in its place.
func (m *asks) Fill(s *parley.Step, slot uint64) (parley.Msg, bool) {
	if len(m.queue) == 0 || !m.line.Settled() || !m.line.Tells(slot) {
		return parley.Msg{Kind: parley.Propose, Body: nothing}, m.self == m.t.source && !m.signed
	}
	one := m.queue[0]
	m.queue[0] = ask{}
	if m.queue = m.queue[1:]; len(m.queue) == 0 {
		m.queue = nil
	}
	one.slot, one.begun = slot, s.Now
	m.next = min(max(m.next, s.Now-burst*m.gap), s.Now) + m.gap
	m.begun = append(m.begun, one)
	m.away++
	if one.why = one.why && m.note(slot); one.why {
		s.SendAll(parley.Msg{Kind: askedWhy, Value: slot})
	}
	return parley.Msg{Kind: parley.Propose, Body: one.value}, true
}

// Over is told in turn what has been told already.
func (m *asks) Over(*parley.Step, uint64, []parley.Effect) {}

// note begins an account of a slot.
func (m *asks) note(slot uint64) bool {
	if len(m.asked) >= mostNoted {
		return false
	}
	m.asked[slot] = &noted{name: m.name, account: Account{Node: m.self}}
	return true
}

// Receive.
func (m *asks) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Kind >= parley.Local:
		return
	case q.Kind == lockstep.Frame:
		if len(q.Body) > m.t.frameLimit(m.n) {
			s.Refuse(from, "frame over the limit of the stream")
			return
		}
		m.line.Receive(s, from, q)
	case q.Kind == where || q.Kind == at:
		m.line.Find(s, from, q)
	case q.Origin != 0 || q.Seq != 0:
		s.Refuse(from, "fields that are not used")
		return
	case q.Kind == askedWhy && from == m.t.source && len(q.Body) == 0:
		if q.Value <= m.line.Done() || q.Value > m.line.Opened()+uint64(m.window) ||
			m.asked[q.Value] != nil || !m.note(q.Value) {
			s.Refuse(from, "asks for evidence of too much, or too late")
			return
		}
	case q.Kind == accounted:
		m.account(s, from, q)
	default:
		s.Refuse(from, "no message of a stream")
		return
	}
	m.after(s)
}

// Timeout.
func (m *asks) Timeout(s *parley.Step, t parley.Timer) {
	if t == slotsTimer {
		m.line.Timeout(s)
	}
	m.after(s)
}

// after does what is due after every event: it tells what was decided and puts what is
// asked for into slots. That may end rounds whose time is over, and then there is more to
// tell.
func (m *asks) after(s *parley.Step) {
	for again := true; again; again = len(m.decided) > 0 || m.ended() {
		for i := range m.decided {
			m.tell(s, &m.decided[i])
			m.decided[i] = decided{}
		}
		m.decided = m.decided[:0]
		m.end(s)
		if len(m.queue) > 0 {
			m.line.Want(s)
		}
		for m.line.Settled() && len(m.queue) > 0 && m.away < m.depth {
			if m.silence && s.Now < m.next {
				s.SetTimer(gapTimer, m.next-s.Now)
				break
			}
			opened := m.line.Opened()
			if m.line.Call(s, 0); m.line.Opened() == opened {
				break // the window is full: it begins when it may
			}
		}
	}
	for slot := range m.asked {
		if slot <= m.line.Done() {
			delete(m.asked, slot)
		}
	}
	m.gathered(s)
}

// ended tells whether there are questions in slots that are over.
func (m *asks) ended() bool { return len(m.begun) > 0 && m.begun[0].slot <= m.line.Done() }

// end forgets questions in slots that are over, and says so of those that got no answer.
func (m *asks) end(s *parley.Step) {
	k := 0
	for done := m.line.Done(); k < len(m.begun) && m.begun[k].slot <= done; k++ {
		if one := &m.begun[k]; !one.told {
			m.away--
			s.Indicate(parley.Msg{Kind: unanswered, Seq: one.slot, Value: one.number})
		}
	}
	if clear(m.begun[:k]); k == len(m.begun) {
		m.begun = m.begun[:0]
	} else {
		m.begun = m.begun[k:]
	}
}

// tell delivers a decision, unless it is the default.
func (m *asks) tell(s *parley.Step, d *decided) {
	out := parley.Msg{Kind: parley.Decide, Origin: m.t.source, Seq: d.slot, Body: d.value}
	var own *ask
	if m.self == m.t.source {
		i, found := slices.BinarySearchFunc(m.begun, d.slot, func(a ask, slot uint64) int {
			return int(int64(a.slot - slot))
		})
		if found {
			own = &m.begun[i]
			own.told, out.Value = true, own.number
			m.away--
			m.silence = s.Now-own.begun >= m.when.Delta
		}
	}
	var body []byte
	switch {
	case bytes.Equal(d.value, nothing):
		if own != nil {
			s.Indicate(parley.Msg{Kind: undecided, Seq: d.slot, Value: own.number})
		}
		return
	case d.note != nil:
		body = d.note.account.encode()
	}
	switch {
	case own != nil && own.why:
		one := *own
		one.value, one.until = d.value, s.Now+m.when.Delta
		if body != nil {
			one.accounts = append(one.accounts, accountOf{m.self, body})
		}
		m.gathering = append(m.gathering, one)
		s.SetTimer(accountsTimer, m.when.Delta)
		return
	case body != nil:
		s.Send(m.t.source, parley.Msg{Kind: accounted, Value: d.slot, Body: body})
		s.Deliver(m.self, parley.Msg{Kind: parley.Carried, Seq: d.slot, Body: body})
	}
	s.Deliver(m.t.source, out)
}

// account takes one node's account of a slot of ours, the first.
func (m *asks) account(s *parley.Step, from parley.ID, q parley.Msg) {
	of := func(one ask) bool { return one.slot == q.Value && one.why && !one.told }
	list := m.begun
	i := slices.IndexFunc(list, of)
	if i < 0 {
		list = m.gathering
		i = slices.IndexFunc(list, func(one ask) bool { return one.slot == q.Value })
	}
	switch {
	case i < 0 || slices.ContainsFunc(list[i].accounts, func(a accountOf) bool { return a.node == from }):
		s.Refuse(from, "an account that nobody asked for")
	default:
		if _, ok := decodeAccount(from, q.Body); !ok {
			s.Refuse(from, "what is no account")
			return
		}
		list[i].accounts = append(list[i].accounts, accountOf{from, q.Body})
	}
}

// gathered delivers the decisions of which all accounts have come, or should have: the
// accounts first.
func (m *asks) gathered(s *parley.Step) {
	m.gathering = slices.DeleteFunc(m.gathering, func(one ask) bool {
		if len(one.accounts) < m.n && s.Now < one.until {
			return false
		}
		for _, a := range one.accounts {
			s.Deliver(a.node, parley.Msg{Kind: parley.Carried, Seq: one.slot, Body: a.body})
		}
		s.Deliver(m.t.source, parley.Msg{
			Kind: parley.Decide, Origin: m.t.source, Seq: one.slot, Value: one.number, Body: one.value,
		})
		return true
	})
}

// State visits all but the accounts that are being written: those are of no consequence.
func (m *asks) State(v *parley.Vars) {
	parley.Num(v, "away", &m.away)
	v.Bool("silence", &m.silence)
	v.Time("next", &m.next)
	parley.Slice(v, "queue", &m.queue, visitAsk(v))
	parley.Slice(v, "begun", &m.begun, visitAsk(v))
	parley.Slice(v, "gathering", &m.gathering, visitAsk(v))
	v.Machine("line", m.line)
}

func visitAsk(v *parley.Vars) func(int, *ask) {
	return func(_ int, one *ask) {
		parley.Num(v, "number", &one.number)
		v.Bytes("value", &one.value)
		v.Bool("why", &one.why)
		parley.Num(v, "slot", &one.slot)
		v.Time("begun", &one.begun)
		v.Bool("told", &one.told)
		v.Time("until", &one.until)
		parley.Slice(v, "accounts", &one.accounts, func(_ int, a *accountOf) {
			v.ID("node", &a.node)
			v.Bytes("account", &a.body)
		})
	}
}
