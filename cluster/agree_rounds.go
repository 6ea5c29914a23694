package cluster

import (
	"bytes"
	"encoding/binary"

	"parley"
	"parley/agreement/interactive"
	"parley/lockstep"
	"parley/mux"
)

// inSlot is one process's rounds in one slot of a stream. It does what the rounds do, and
// beside it
//   - binds signatures to the slot: what is signed in one counts in no other;
//   - refuses values over the stream's limit;
//   - takes the decision to the machine, at once and out of turn, where that is asked for;
//   - notes what is heard, for who asks why;
//   - abstains, if it was too late: see attendance.
type inSlot struct {
	lockstep.Rounds
	attendance
	p    *lockstep.Protocol // of which the rounds are
	of   *slots
	slot uint64
	host numbered // scratch
	note *noted   // scratch: of no consequence; nil: nobody asks
}

// attendance tells whether a process took part in some rounds as those do that are in time. With
// at most m faulty such a one hears n-1-m others in every round. What it did not hear, others were
// late with; unless the decision on its own value is another one: then it was late itself, in what
// it said and perhaps in what it heard, and what it decides means nothing unless it heard all.
type attendance struct {
	few, some bool   // in some round it heard fewer than n-1-m others; than all
	spoke     bool   // it had a value
	said      []byte // that
	foreign   bool   // in some round it did not hear all, and this is not what was decided on
}

// says takes in its value.
func (a *attendance) says(value []byte) { a.spoke, a.said = true, value }

// hears takes in whom it heard in a round.
func (a *attendance) hears(t stream, n int, from parley.Set) {
	a.few = a.few || from.Len() < n-1-t.m
	a.some = a.some || from.Len() < n-1
}

// decides takes in a decision of a stream.
func (a *attendance) decides(t stream, self parley.ID, decision []byte) {
	if !a.some || !a.spoke {
		return
	}
	if t.all() {
		vector, err := interactive.DecodeVector(decision)
		if err != nil {
			panic(err) // it was written by this process
		}
		decision = vector[self]
	}
	a.foreign = !bytes.Equal(decision, a.said)
}

// Apart tells whether it was too late.
func (a *attendance) Apart() bool { return a.few || a.foreign }

func (a *attendance) State(v *parley.Vars) {
	v.Bool("few", &a.few)
	v.Bool("some", &a.some)
	v.Bool("spoke", &a.spoke)
	v.Bytes("said", &a.said)
	v.Bool("foreign", &a.foreign)
}

// slots is what the rounds of a stream share at one node: its machine embeds it.
type slots struct {
	t         stream
	self      parley.ID
	n         int
	window    int // slots that may have begun in the time that one lasts
	last      int // round
	signed    bool
	outOfTurn bool
	line      *mux.Pipeline
	asked     map[uint64]*noted // slots whose evidence is asked for
	decided   []decided
	// intact tells that a stream of which the disk has nothing is one in which this node
	// has not taken part in any life.
	intact bool
}

// decided is a decision that the machine has not told yet.
type decided struct {
	slot  uint64
	value []byte
	note  *noted
}

// protocol returns p for slots of a stream.
func (o *slots) protocol(p lockstep.Protocol) lockstep.Protocol {
	o.last, o.signed = p.Last, p.Faults == parley.SignedByzantineFaults
	inner := p
	p.New = func(self parley.ID) lockstep.Rounds { return &inSlot{Rounds: inner.New(self), p: &inner, of: o} }
	// Slots refuse protocols whose signatures are good in any of them: these are not.
	p.Faults = parley.OralByzantineFaults
	return p
}

// pipeline makes the pipeline of a stream.
func (o *slots) pipeline(p lockstep.Protocol, when lockstep.Schedule, above mux.Above) {
	o.line = mux.NewPipeline(p, when, o.window, o.self, above)
	o.line.CanReturn(mux.Returns{M: o.t.m, Where: where, At: at, Whole: !o.outOfTurn})
}

// Reset is for the next slot.
func (r *inSlot) Reset() {
	if one, ok := r.Rounds.(lockstep.Reusable); ok {
		one.Reset()
	} else {
		r.Rounds = r.p.New(r.of.self)
	}
	r.note, r.attendance = nil, attendance{}
}

// Request.
func (r *inSlot) Request(s *parley.Step, m parley.Msg) {
	r.says(m.Body)
	r.Rounds.Request(s, m)
}

// Came.
func (r *inSlot) Came(_ int, from parley.Set) { r.hears(r.of.t, r.of.n, from) }

// State is that of the rounds, and of what is beside them.
func (r *inSlot) State(v *parley.Vars) {
	parley.Num(v, "slot", &r.slot)
	r.attendance.State(v)
	r.Rounds.State(v)
}

// enter has what is signed and verified from here on bound to the slot.
func (r *inSlot) enter(s *parley.Step) (before parley.Host) {
	before = s.Host
	if r.of.signed {
		r.host.Host, r.host.slot = before, r.slot
		s.Host = &r.host
	}
	return before
}

// Emit. Round 0 is emitted when the slot begins, and only then is its number known.
func (r *inSlot) Emit(s *parley.Step, round int) {
	if round == 0 {
		r.slot = r.of.line.Opened()
	}
	before := r.enter(s)
	r.Rounds.Emit(s, round)
	s.Host = before
}

func (r *inSlot) Absorb(s *parley.Step, round int, from parley.ID, m parley.Msg) {
	o := r.of
	if o.t.limit() < MaxValue && o.t.oversized(o.n, parley.Env{From: from, Round: round}, m) {
		s.Refuse(from, "value over the limit of the stream")
		return
	}
	if len(o.asked) > 0 {
		if r.note = o.asked[r.slot]; r.note != nil {
			r.note.hear(r.p, parley.Env{From: from, To: o.self, Path: s.Path, Round: round}, m)
		}
	}
	before := r.enter(s)
	r.Rounds.Absorb(s, round, from, m)
	s.Host = before
}

func (r *inSlot) Close(s *parley.Step, round int) {
	o := r.of
	before, mark := r.enter(s), s.Mark()
	r.Rounds.Close(s, round)
	s.Host = before
	if round < o.last {
		return
	}
	for i := mark; i < len(s.Effects); i++ {
		if e := &s.Effects[i]; e.Op == parley.OpDeliver && e.Msg.Kind == parley.Decide {
			r.decides(o.t, o.self, e.Msg.Body)
		}
	}
	if !o.outOfTurn {
		return
	}
	counts := !r.Apart() && o.line.Tells(r.slot)
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpDeliver || e.Msg.Kind != parley.Decide || !counts {
			return e.Op == parley.OpDeliver
		}
		note := o.asked[r.slot]
		if note != nil {
			note.tree(r.p, r.Rounds)
		}
		o.decided = append(o.decided, decided{r.slot, e.Msg.Body, note})
		return true
	})
}

// numbered has signatures cover the number of a slot beside what is signed.
type numbered struct {
	parley.Host
	slot uint64
	buf  []byte
}

func (h *numbered) with(b []byte) []byte {
	h.buf = append(binary.BigEndian.AppendUint64(h.buf[:0], h.slot), b...)
	return h.buf
}

func (h *numbered) Sign(as parley.ID, b []byte) []byte { return h.Host.Sign(as, h.with(b)) }

func (h *numbered) Verify(id parley.ID, b, sig []byte) bool { return h.Host.Verify(id, h.with(b), sig) }

// described is a machine of a stream as a protocol, for one who lies as far as slots can:
// frame by frame, each with the signatures of its slot.
func (o *slots) described(p lockstep.Protocol, when lockstep.Schedule, m parley.Machine) parley.Protocol {
	out := mux.Slots(p, when, o.window)
	out.New = func(parley.ID) parley.Machine { return m }
	honest := out.Lies
	if honest == nil {
		return out
	}
	out.Lies = func(s *parley.Step, t *parley.Turn) []parley.Sent {
		var told []parley.Sent
		for i, one := range t.Honest {
			if one.Msg.Kind != lockstep.Frame {
				told = append(told, one)
				continue
			}
			turn := *t
			turn.Memo, turn.Out, turn.Honest = nil, nil, t.Honest[i:i+1]
			turn.Seen = func(yield func(parley.Got) bool) {
				for got := range t.Seen {
					if got.Msg.Kind == lockstep.Frame && !yield(got) {
						return
					}
				}
			}
			before := s.Host
			if o.signed {
				s.Host = &numbered{Host: before, slot: one.Msg.Value}
			}
			told = append(told, honest(s, &turn)...)
			s.Host = before
		}
		return told
	}
	return out
}
