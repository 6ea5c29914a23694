package byzantine

import (
	"bytes"
	"slices"

	"parley"
	"parley/lockstep"
	"parley/mux"
)

// era is one sequence of slots, from 1 on, as one process knows it.
type era struct {
	p      *process
	number uint64
	other  bool          // its slots have not the timer 0, but odd
	line   *mux.Pipeline // nil: it has ended, and its batches are kept for who asks

	delivered uint64 // the last slot that was delivered
	done      uint64 // the last slot that was agreed on
	oldest    uint64 // batches of earlier slots have been let go
	kept      int    // bytes of batches that are here
	lost      bool   // this process can not go on in it
	ring      []outcome

	mark  uint64   // of all that was agreed on in it
	marks []uint64 // what that was after each of the last slots whose number is a multiple of marking
}

// marking is of how many slots one has a mark that is told.
const marking = 16

func (e *era) lately() (slot, mark uint64) {
	slot = e.done - e.done%marking // 0 stands for the beginning of the era
	if mark = e.marked(slot); mark == 0 {
		slot = 0
	}
	return slot, mark
}

func (e *era) marked(slot uint64) uint64 {
	kept := uint64(len(e.marks))
	switch {
	case e.p.out || e != e.p.cur: // it is not known what was delivered before
	case slot == 0 && e.number > 0:
		return max(1, e.p.from)
	case slot == 0 || slot%marking != 0 || slot > e.done || e.done-slot >= marking*kept:
	default:
		return max(1, e.marks[slot/marking%kept]^e.p.from)
	}
	return 0
}

// outcome is what was agreed on in a slot, and what is still told of it to others.
type outcome struct {
	slot    uint64
	entries []entry // by process
	told    []uint8 // by process: how many batches of the slot it was told
}

// entry is one process's batch in a slot.
type entry struct {
	body    []byte // nil: none, or not here
	lacking []byte // the digest, if it is not here
	asked   uint8  // how often all were asked for it
}

// newEra makes an era. All but the first wait until enough processes are ready for them;
// since those who are begin up to two message delays apart, and not one, their rounds
// are longer by one.
func (p *process) newEra(number uint64) *era {
	e := &era{
		p: p, number: number, oldest: 1, ring: make([]outcome, 5*p.c.Window),
		marks: make([]uint64, p.c.Window/marking+3), // for slots of others go on that are over here
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

// In is the schedule of an era: all but the first have as much again for a delay.
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

// timer is that of the slots: an era and the next one may go on at a time.
func (e *era) timer() parley.Timer {
	if e.other {
		return odd
	}
	return 0
}

// keep is for how many slots batches are kept that were delivered. While one process
// asks and waits for another's answer, no more slots than that may begin.
func (e *era) keep() uint64 { return uint64(2 * e.p.c.Window) }

// most is how many bytes of batches are kept, delivered or not: twice what correct processes
// begin in the time in which a slot is over everywhere.
func (e *era) most() int { return 2 * e.p.c.N * e.p.c.Flight }

// bad tells whether this process can deliver nothing more of the era.
func (e *era) bad() bool { return e.lost || e.line != nil && e.line.Missed() > 0 }

// tag gives the messages that were sent since the mark the number of the era.
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

// ProposalFor: a slot begins, whoever called for it. Before an era is what is delivered, this
// process has nothing to say in it, but its claim in one that begins anew.
func (e *era) ProposalFor(s *parley.Step, slot uint64) (parley.Msg, bool) {
	if e.p.out && e == e.p.next && fresh(e.number) && slot == 1 {
		return parley.Msg{Kind: parley.Propose, Body: claim(e.p.total, e.p.numbers)}, true
	}
	if e.p.out || e != e.p.cur {
		return parley.Msg{}, false
	}
	return e.p.fill(s, slot)
}

// SlotDone: a slot is agreed on. What is lacking is asked for at once.
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

// at returns what is known of a slot that is not too old.
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

// whole tells whether nothing is lacking of a slot.
func (o *outcome) whole() bool {
	return !slices.ContainsFunc(o.entries, func(e entry) bool { return e.lacking != nil })
}

// ask asks all others for what is lacking of a slot. One who has it has it by now, and
// links lose nothing; that all are asked again, a few times, is for those that may.
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

// askAgain asks for all that is lacking.
func (e *era) askAgain(s *parley.Step) {
	mark := s.Mark()
	for slot := e.delivered + 1; slot <= e.done; slot++ {
		e.ask(s, e.at(slot))
	}
	e.tag(s, mark)
}

// trim lets go of what was delivered long ago, or is too much.
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

// answer tells a batch to who asks for it, if it is here: of a slot that goes on too,
// for who asks may be ahead.
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
		o.told[from]++ // whatever it asks for: to compare takes longer than to tell
		if !bytes.Equal(digest(body), m.Body) {
			return
		}
		mark := s.Mark()
		s.Send(from, parley.Msg{Kind: Bytes, Origin: m.Origin, Value: m.Value, Body: body})
		e.tag(s, mark)
	}
}

// take takes in a batch that was asked for.
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
