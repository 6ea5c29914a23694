package byzantine

import (
	"bytes"
	"slices"

	"parley"
	"parley/lockstep"
	"parley/mux"
)

// era is one sequence of slots, from 1, as one process knows it.
type era struct {
	p      *process
	number uint64
	other  bool          // its slots use the timer odd, and not 0
	line   *mux.Pipeline // nil: it has ended, and its batches are kept for processes that request them

	delivered uint64 // the last delivered slot
	done      uint64 // the last slot that was agreed on
	oldest    uint64 // batches of earlier slots have been dropped
	kept      int    // bytes of stored batches
	lost      bool   // this process cannot continue in it
	ring      []outcome

	mark  uint64   // of all that was agreed on in it
	marks []uint64 // the mark after each of the last slots whose number is a multiple of marking
}

// marking is the distance, in slots, of the marks that are sent.
const marking = 16

func (e *era) lately() (slot, mark uint64) {
	slot = e.done - e.done%marking // 0 means the beginning of the era
	if mark = e.marked(slot); mark == 0 {
		slot = 0
	}
	return slot, mark
}

func (e *era) marked(slot uint64) uint64 {
	kept := uint64(len(e.marks))
	switch {
	case e.p.out || e != e.p.cur: // it does not know what was delivered before
	case slot == 0 && e.number > 0:
		return max(1, e.p.from)
	case slot == 0 || slot%marking != 0 || slot > e.done || e.done-slot >= marking*kept:
	default:
		return max(1, e.marks[slot/marking%kept]^e.p.from)
	}
	return 0
}

// outcome is what was agreed on in a slot, and the record of answers about it.
type outcome struct {
	slot    uint64
	entries []entry // by process
	told    []uint8 // by process: how many batches of the slot it was sent
}

// entry is one process's batch in a slot.
type entry struct {
	body    []byte // nil: none, or missing here
	lacking []byte // the digest, if the batch is missing here
	asked   uint8  // how often all were asked for it
}

// newEra makes an era. All but the first wait until enough processes are ready for them. Those begin up to
// two message delays apart, and not one, so the rounds of these eras are longer by one delay.
func (p *process) newEra(number uint64) *era {
	e := &era{
		p: p, number: number, oldest: 1, ring: make([]outcome, 5*p.c.Window),
		marks: make([]uint64, p.c.Window/marking+3), // slots that are over here may still be running at others
	}
	e.other = p.cur != nil && !p.cur.other
	e.line = mux.NewPipeline(slot(p.c, e), In(number, p.when), p.c.Window, p.self, e)
	e.line.Bound(2 * (p.c.Flight + envelope*p.c.Window))
	e.line.Timer(e.timer())
	if number > 0 {
		e.line.Pause()
	}
	return e
}

// In returns the schedule of an era. In all eras except the first, rounds are 1.5 times as long.
func In(era uint64, when lockstep.Schedule) lockstep.Schedule {
	if era == 0 {
		return when
	}
	if when.Slack == 0 {
		when.Slack = when.Delta / 20
	}
	when.Delta += when.Delta / 2
	return when
}

// timer returns the timer of the slots: an era and the next one may run at the same time.
func (e *era) timer() parley.Timer {
	if e.other {
		return odd
	}
	return 0
}

// keep returns for how many slots delivered batches are kept. While one process waits for another's answer to
// its request, no more slots than that may begin.
func (e *era) keep() uint64 { return uint64(2 * e.p.c.Window) }

// most bounds the bytes of stored batches, delivered or not: twice what correct processes begin in the time
// in which a slot ends everywhere.
func (e *era) most() int { return 2 * e.p.c.N * e.p.c.Flight }

// bad reports whether this process can deliver nothing more of the era.
func (e *era) bad() bool { return e.lost || e.line != nil && e.line.Missed() > 0 }

// tag sets the era's number in the messages that were sent since mark.
func (e *era) tag(s *parley.Step, mark int) {
	if e.number == 0 {
		return
	}
	for i := mark; i < len(s.Effects); i++ {
		if s.Effects[i].Op == parley.OpSend {
			s.Effects[i].Epoch = uint32(e.number)
		}
	}
}

// ProposalFor: a slot begins, whichever process opened it. Before an era is the delivering one, this process
// proposes nothing in it, except its claim in a reset.
func (e *era) ProposalFor(s *parley.Step, slot uint64) (parley.Msg, bool) {
	if e.p.out && e == e.p.next && fresh(e.number) && slot == 1 {
		return parley.Msg{Kind: parley.Propose, Body: claim(e.p.total, e.p.numbers)}, true
	}
	if e.p.out || e != e.p.cur {
		return parley.Msg{}, false
	}
	return e.p.fill(s, slot)
}

// SlotDone: a slot is agreed on. Missing batches are requested at once.
func (e *era) SlotDone(s *parley.Step, slot uint64, decided []parley.Effect) {
	if e.lost {
		return
	}
	if slot-e.delivered > e.keep() {
		s.Refuse(s.Self, "waited too long for a batch")
		e.lost = true
		return
	}
	if len(decided) > 0 && decided[0].Msg.Kind == apart {
		s.Refuse(s.Self, string(decided[0].Msg.Body))
		e.lost = true
		return
	}
	e.done = slot
	e.mark = markOf(e.mark, decided)
	if slot%marking == 0 {
		e.marks[slot/marking%uint64(len(e.marks))] = e.mark
	}
	o, counts := e.at(slot), false
	for i := range decided {
		counts = counts || decided[i].To == e.p.self
		switch d := &decided[i]; d.Msg.Kind {
		case parley.Carried:
			o.entries[d.To].body = d.Msg.Body
			e.kept += len(d.Msg.Body)
		case parley.Decide:
			o.entries[d.To].lacking = d.Msg.Body
		}
	}
	e.p.timed(s, e, slot, counts)
	e.ask(s, o)
}

// at returns the record of a slot, which must not be too old.
func (e *era) at(slot uint64) *outcome {
	o := &e.ring[slot%uint64(len(e.ring))]
	if o.slot != slot {
		if o.entries == nil {
			o.entries, o.told = make([]entry, e.p.c.N), make([]uint8, e.p.c.N)
		}
		o.slot = slot
		clear(o.entries)
		clear(o.told)
	}
	return o
}

// whole reports whether no batch of a slot is missing.
func (o *outcome) whole() bool {
	return !slices.ContainsFunc(o.entries, func(e entry) bool { return e.lacking != nil })
}

// ask requests the missing batches of a slot from all others. A process that has a batch has it by now, and
// links lose nothing; a few repetitions cover links that may lose messages.
func (e *era) ask(s *parley.Step, o *outcome) {
	for i := range o.entries {
		one := &o.entries[i]
		if one.lacking == nil || one.asked == answers {
			continue
		}
		one.asked++
		s.SendAll(parley.Msg{Kind: Fetch, Origin: parley.ID(i), Value: o.slot, Body: one.lacking})
		if !e.p.asking {
			e.p.asking = true
			s.SetTimer(again, e.p.when.Delta)
		}
	}
}

// askAgain requests all missing batches again.
func (e *era) askAgain(s *parley.Step) {
	mark := s.Mark()
	for slot := e.delivered + 1; slot <= e.done; slot++ {
		e.ask(s, e.at(slot))
	}
	e.tag(s, mark)
}

// trim drops the batches of slots that were delivered long ago, or exceed the bound.
func (e *era) trim() {
	for e.oldest <= e.delivered && (e.oldest+e.keep() <= e.delivered || e.kept > e.most()) {
		o := e.at(e.oldest)
		for i := range o.entries {
			e.kept -= len(o.entries[i].body)
		}
		clear(o.entries)
		e.oldest++
	}
	if e.kept > e.most() {
		e.lost = true
	}
}

// answer sends a batch to a process that requests it, if it is here: also of a running slot, because the
// other process may be ahead.
func (e *era) answer(s *parley.Step, from parley.ID, m parley.Msg) {
	last := e.done
	if e.line != nil {
		last = e.line.Opened()
	}
	if m.Value < e.oldest || m.Value > min(last, e.delivered+uint64(3*e.p.c.Window)) {
		s.Refuse(from, "asks for a slot that is too old or has not begun")
		return
	}
	o := e.at(m.Value)
	body := o.entries[m.Origin].body
	if e.line != nil {
		if r := e.line.Rounds(m.Value); r != nil {
			body = r.(*vouch).held[m.Origin]
		}
	}
	switch {
	case body == nil: // others have it
	case o.told[from] >= uint8(min(answers*e.p.c.N, 255)):
		s.Refuse(from, "asks too often")
	default:
		o.told[from]++ // even if the digest differs: comparing takes longer than sending
		if !bytes.Equal(digest(body), m.Body) {
			return
		}
		mark := s.Mark()
		s.Send(from, parley.Msg{Kind: Bytes, Origin: m.Origin, Value: m.Value, Body: body})
		e.tag(s, mark)
	}
}

// take accepts a batch that was requested.
func (e *era) take(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Value <= e.delivered || m.Value > e.done {
		s.Refuse(from, "batch that is not asked for")
		return
	}
	one := &e.at(m.Value).entries[m.Origin]
	if one.lacking == nil || len(m.Body) > e.p.c.Batch || !bytes.Equal(digest(m.Body), one.lacking) {
		s.Refuse(from, "batch that is not asked for")
		return
	}
	one.body, one.lacking = m.Body, nil
	e.kept += len(m.Body)
}

func (e *era) State(v *parley.Vars) {
	parley.Num(v, "delivered", &e.delivered)
	parley.Num(v, "done", &e.done)
	parley.Num(v, "oldest", &e.oldest)
	parley.Num(v, "kept", &e.kept)
	v.Bool("lost", &e.lost)
	parley.Num(v, "mark", &e.mark)
	for i := range e.marks {
		parley.Num(v, "earlier mark", &e.marks[i])
	}
	ended := e.line == nil
	v.Bool("ended", &ended)
	if v.Loading() {
		clear(e.ring)
	}
	last := e.done
	if ended {
		e.line = nil
	} else {
		v.Machine("slots", e.line)
		last = max(last, e.line.Opened())
	}
	for slot := e.oldest; slot <= min(last, e.delivered+uint64(3*e.p.c.Window)); slot++ {
		e.at(slot).visit(v)
	}
}

func (o *outcome) visit(v *parley.Vars) {
	parley.PerProcess(v, "batch", o.entries, func(_ parley.ID, e *entry) {
		v.Bytes("body", &e.body)
		v.Bytes("lacking", &e.lacking)
		parley.Num(v, "asked", &e.asked)
	})
	parley.PerProcess(v, "told", o.told, func(_ parley.ID, n *uint8) { parley.Num(v, "times", n) })
}
