package stream

import (
	"bytes"
	"encoding/binary"

	"parley"
	"parley/agreement/interactive"
	"parley/lockstep"
	"parley/mux"
)

// streamCore is what both machines of streams share: the slots, and what the rounds of
// all slots share.
type streamCore struct {
	Config
	self   parley.ID
	when   lockstep.Schedule
	last   int // round
	signed bool
	// outOfTurn means that the machine gets decisions as soon as they are made, in decided, and not slot by slot.
	outOfTurn bool
	slots     *mux.Rejoining
	recorders map[uint64]*evidenceRecorder // slots with requested evidence
	decided   []decision
}

// decision is a decision that the machine has not delivered yet.
type decision struct {
	slot     uint64
	value    []byte
	evidence *evidenceRecorder
}

// The kinds of messages of both machines, besides the frames of slots. Vectors do not use the first two.
const (
	// evidenceQuery says that the source will ask for evidence of the slot in Value. The source
	// sends it before its frame.
	evidenceQuery parley.Kind = lockstep.Frame + 1 + iota
	// evidenceReply answers evidenceQuery. Value: the slot. Body: Evidence.
	evidenceReply
	// positionQuery asks in which slots the others are, and positionReply answers: see
	// [mux.Rejoining.HandlePosition].
	positionQuery
	positionReply
	// namesQuery asks for the names that are known after the slot in Value, and namesReply
	// answers: see nameCatchUp.
	namesQuery
	namesReply
)

const slotsTimer parley.Timer = 0

func (o *streamCore) open(above mux.SlotHandler) {
	p := o.Rounds(o.N)
	o.last, o.signed = p.Last, p.Faults == parley.SignedByzantineFaults
	o.slots = mux.NewRejoining(inSlots(p, o), o.when, o.Window, o.self, above,
		mux.RejoinConfig{M: o.M, PositionQuery: positionQuery, PositionReply: positionReply, Whole: !o.outOfTurn})
}

// Slots returns the slots, whose progress a host may show.
func (o *streamCore) Slots() *mux.Pipeline { return &o.slots.Pipeline }

// inSlots returns p as the protocol of the slots of one process's stream.
func inSlots(p lockstep.Protocol, of *streamCore) lockstep.Protocol {
	inner := p
	p.New = func(self parley.ID) lockstep.Rounds { return &slotRounds{Rounds: inner.New(self), p: &inner, of: of} }
	// mux refuses protocols whose signatures count in all slots. These cover the slot's number.
	p.Faults = parley.OralByzantineFaults
	return p
}

// slotRounds is the rounds of one process in one slot. It does what the rounds do, and
//   - binds signatures to the slot: a signature from one slot does not count in another;
//   - refuses values over the stream's limit;
//   - passes the decision to the machine at once, if the machine wants it out of turn;
//   - records what is received, if evidence was requested;
//   - abstains if the process was late: see timeliness.
type slotRounds struct {
	lockstep.Rounds
	timeliness
	p    *lockstep.Protocol // of the rounds
	of   *streamCore
	slot uint64
	host slotSigner        // scratch
	note *evidenceRecorder // scratch; nil: no evidence was requested
}

// timeliness says whether a process was in time in a slot. With at most m faulty processes, a
// process that is in time receives from n-1-m others in every round. If it did not receive from another
// process, that process may have been late; but if its own value was not decided, it was itself late
// in sending and perhaps in receiving, and its decision counts only if it received from all others.
type timeliness struct {
	heardTooFew, missedSome bool // in some round it received from fewer than n-1-m others; than all others
	proposed                bool // it had a value
	value                   []byte
	overruled               bool // in some round it did not receive from all, and its value was not decided
}

func (a *timeliness) says(value []byte) { a.proposed, a.value = true, value }

func (a *timeliness) hears(n, m int, from parley.Set) {
	a.heardTooFew = a.heardTooFew || from.Len() < n-1-m
	a.missedSome = a.missedSome || from.Len() < n-1
}

func (a *timeliness) decides(all bool, self parley.ID, decided []byte) {
	if !a.missedSome || !a.proposed {
		return
	}
	if all {
		vector, err := interactive.DecodeVector(decided)
		if err != nil {
			panic(err) // this process wrote it
		}
		decided = vector[self]
	}
	a.overruled = !bytes.Equal(decided, a.value)
}

// Isolated reports whether it was late: see [mux.Isolation].
func (a *timeliness) Isolated() bool { return a.heardTooFew || a.overruled }

func (a *timeliness) State(v *parley.Vars) {
	v.Bool("few", &a.heardTooFew)
	v.Bool("some", &a.missedSome)
	v.Bool("spoke", &a.proposed)
	v.Bytes("said", &a.value)
	v.Bool("foreign", &a.overruled)
}

// Reset prepares for the next slot.
func (r *slotRounds) Reset() {
	if one, ok := r.Rounds.(lockstep.Reusable); ok {
		one.Reset()
	} else {
		r.Rounds = r.p.New(r.of.self)
	}
	r.note, r.timeliness = nil, timeliness{}
}

func (r *slotRounds) Request(s *parley.Step, m parley.Msg) {
	r.says(m.Body)
	r.Rounds.Request(s, m)
}

// Came records whose frames came: see [lockstep.Counting].
func (r *slotRounds) Came(_ int, from parley.Set) { r.hears(r.of.N, r.of.M, from) }

func (r *slotRounds) State(v *parley.Vars) {
	parley.Num(v, "slot", &r.slot)
	r.timeliness.State(v)
	r.Rounds.State(v)
}

// enter binds signing and verification from here on to the slot.
func (r *slotRounds) enter(s *parley.Step) (before parley.Host) {
	before = s.Host
	if r.of.signed {
		r.host.Host, r.host.slot = before, r.slot
		s.Host = &r.host
	}
	return before
}

// Emit reads the slot's number in round 0, when the slot begins.
func (r *slotRounds) Emit(s *parley.Step, round int) {
	if round == 0 {
		r.slot = r.of.slots.Opened()
	}
	before := r.enter(s)
	r.Rounds.Emit(s, round)
	s.Host = before
}

func (r *slotRounds) Absorb(s *parley.Step, round int, from parley.ID, m parley.Msg) {
	o := r.of
	if o.Limit() < MaxValue && o.oversized(o.N, parley.Env{From: from, Round: round}, m) {
		s.Refuse(from, "value over the limit of the stream")
		return
	}
	if len(o.recorders) > 0 {
		if r.note = o.recorders[r.slot]; r.note != nil {
			r.note.hear(r.p, parley.Env{From: from, To: o.self, Path: s.Path, Round: round}, m)
		}
	}
	before := r.enter(s)
	r.Rounds.Absorb(s, round, from, m)
	s.Host = before
}

func (r *slotRounds) Close(s *parley.Step, round int) {
	o := r.of
	before, mark := r.enter(s), s.Mark()
	r.Rounds.Close(s, round)
	s.Host = before
	if round < o.last {
		return
	}
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpDeliver || e.Msg.Kind != parley.Decide {
			return o.outOfTurn && e.Op == parley.OpDeliver
		}
		r.decides(o.All(), o.self, e.Msg.Body)
		if o.outOfTurn && !r.Isolated() && o.slots.Tells(r.slot) {
			note := o.recorders[r.slot]
			if note != nil {
				note.tree(r.p, r.Rounds)
			}
			o.decided = append(o.decided, decision{r.slot, e.Msg.Body, note})
		}
		return o.outOfTurn
	})
}

// slotSigner makes signatures cover the number of a slot.
type slotSigner struct {
	parley.Host
	slot uint64
	buf  []byte
}

func (h *slotSigner) with(b []byte) []byte {
	h.buf = append(binary.BigEndian.AppendUint64(h.buf[:0], h.slot), b...)
	return h.buf
}

func (h *slotSigner) Sign(as parley.ID, b []byte) []byte { return h.Host.Sign(as, h.with(b)) }

func (h *slotSigner) Verify(id parley.ID, b, sig []byte) bool {
	return h.Host.Verify(id, h.with(b), sig)
}
