package cuts

import (
	"encoding/binary"
	"slices"

	"parley"
)

// welcome is a vote of a member to admit a process in one of its lives: it restarted without its state.
type welcome struct {
	who  parley.ID
	life uint64
}

// welcomeBytes bounds the bytes of a welcome in a batch.
const welcomeBytes = 2 + binary.MaxVarintLen64

// votes are the members that welcome a process, of its last life that anybody welcomed.
type votes struct {
	life uint64
	by   parley.Set
}

// checkpoint is everything that follows from the slots up to one of them.
type checkpoint struct {
	slot uint64
	done cut
	body []byte
}

// tally counts a welcome that was delivered from the lane of a member.
func (p *process) tally(by parley.ID, w welcome) {
	x := &p.welcomes[w.who]
	if w.life > x.life {
		*x = votes{life: w.life}
	}
	if w.life == x.life {
		x.by.Add(by)
	}
}

// admit admits the processes that m+1 members welcome. It follows the delivery of a slot. No member said its welcome before the
// old life of the process had ended, so the old life has not spoken in the next slot. There the new life takes part. Its lane
// continues after the last delivered batch.
func (p *process) admit(s *parley.Step) {
	for id := range p.welcomes {
		x := &p.welcomes[id]
		l := &p.lanes[id]
		if x.life <= l.life || x.by.Len() <= p.c.M {
			continue
		}
		l.begin(x.life)
		if parley.ID(id) == p.self && !p.member && x.life == p.life {
			p.lost = max(p.lost, p.cur.number+1)
			p.join(s)
			s.Indicate(parley.Msg{Kind: Admitted})
		}
	}
}

// check makes a checkpoint after every Config.Checkpoint slots or KeepBytes bytes. It forgets the slots up to the checkpoint
// before: a quorum took part in the current slot, so m+1 correct processes have delivered that checkpoint, and can tell it.
func (p *process) check() {
	slot := p.cur.number - 1
	if before := p.lastCheck().slot; slot < before+uint64(p.c.Checkpoint) && p.fresh < p.c.KeepBytes {
		return
	}
	p.fresh = 0
	c := checkpoint{slot: slot, done: make(cut, p.c.N)}
	for i := range p.lanes {
		c.done[i] = p.lanes[i].done
	}
	c.body = p.ledger()
	if before := p.lastCheck(); before.slot > 0 {
		p.forget(before)
	}
	if p.checks = append(p.checks, c); len(p.checks) > 2 {
		p.checks = slices.Delete(p.checks, 0, 1)
	}
	p.due = p.c.Durable
}

// compact shortens the log after a checkpoint, in a step without deliveries: if the process crashes in a step with deliveries,
// it delivers again what is in its log.
func (p *process) compact(s *parley.Step, before uint64) {
	if p.due && p.total == before {
		p.due = false
		s.Compact()
	}
}

func (p *process) lastCheck() checkpoint {
	if len(p.checks) == 0 {
		return checkpoint{}
	}
	return p.checks[len(p.checks)-1]
}

// forget drops batches and decisions up to a checkpoint.
func (p *process) forget(c checkpoint) {
	for i := range p.lanes {
		p.lanes[i].drop(c.done[i])
	}
	p.past = slices.Delete(p.past, 0, int(c.slot-p.dropped))
	p.dropped = c.slot
}

// ledger encodes what all correct processes have alike after a slot: the position; for each lane its life, what was delivered,
// and the welcomes of its source; and the tenure.
func (p *process) ledger() []byte {
	b := binary.AppendUvarint(nil, p.total)
	for i := range p.lanes {
		l, x := &p.lanes[i], &p.welcomes[i]
		b = binary.AppendUvarint(binary.AppendUvarint(b, l.life), l.requests)
		b = append(binary.AppendUvarint(b, l.done.number), l.done.digest[:]...)
		b = parley.AppendSet(binary.AppendUvarint(b, x.life), x.by)
	}
	t := &p.tenure
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(t.owner)), uint64(t.used))
	b = append(b, t.fails...)
	b = binary.AppendUvarint(b, uint64(len(t.bench)))
	for _, x := range t.bench {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.who)), uint64(x.left))
	}
	return b
}

// adopt takes over a ledger of m+1 processes after a slot, and continues after it. The process does not deliver what it missed.
func (p *process) adopt(s *parley.Step, slot uint64, body []byte) bool {
	r := parley.Reader{Rest: body}
	total := r.Number(1 << 62)
	next := make([]lane, p.c.N)
	welcomes := make([]votes, p.c.N)
	for i := range next {
		l, x := &next[i], &welcomes[i]
		l.life, l.requests, l.done.number = r.Number(mostNumber), r.Number(1<<62), r.Number(mostNumber)
		copy(l.done.digest[:], r.Take(uint64(len(l.done.digest))))
		x.life, x.by = r.Number(mostNumber), r.Set(p.c.N)
	}
	t := tenure{owner: r.ID(p.c.N), used: int(r.Number(1 << 31)), fails: slices.Clone(r.Take(uint64(p.c.N)))}
	for range r.Number(uint64(p.c.M)) {
		t.bench = append(t.bench, benched{r.ID(p.c.N), int(r.Number(1 << mostFails))})
	}
	if !r.Done() {
		return false
	}
	for i := range p.lanes {
		p.lanes[i].skip(next[i].life, next[i].done)
		p.lanes[i].requests = next[i].requests
	}
	p.total, p.welcomes, p.tenure = total, welcomes, t
	p.checks = []checkpoint{{slot: slot, body: body}}
	for i := range p.lanes {
		p.checks[0].done = append(p.checks[0].done, p.lanes[i].done)
	}
	p.past, p.dropped, p.fresh = nil, slot, 0
	p.last, p.cur = nil, p.newSlot(slot+1, t.owner)
	p.wants = nil
	s.Indicate(parley.Msg{Kind: Skipped, Seq: total})
	p.more, p.asked, p.snapshots = true, 0, make([]parley.Msg, p.c.N)
	if p.lost = max(p.lost, p.cur.number); !p.member && p.lanes[p.self].life == p.life {
		p.join(s)
		s.Indicate(parley.Msg{Kind: Admitted})
	}
	p.due = p.c.Durable
	return true
}

// takeSnapshot adopts a checkpoint that m+1 processes tell alike: one of them is correct.
func (p *process) takeSnapshot(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Seq < p.cur.number {
		return
	}
	p.snapshots[from] = parley.Msg{Seq: m.Seq, Body: m.Body}
	count := 0
	for _, x := range p.snapshots {
		if x.Seq == m.Seq && string(x.Body) == string(m.Body) {
			count++
		}
	}
	switch {
	case count <= p.c.M:
	case !p.adopt(s, m.Seq, m.Body):
		s.Refuse(from, "checkpoint that cannot be read")
	case p.c.Durable:
		s.Append(append(binary.AppendUvarint([]byte{ledgerRecord}, m.Seq), m.Body...))
	}
}

// takeKnock welcomes a process in a new life, once.
func (p *process) takeKnock(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Value > p.lanes[from].life && m.Value > p.greeted[from] && m.Value < mostNumber && p.member {
		p.greeted[from] = m.Value
		p.greets = append(p.greets, welcome{from, m.Value})
	}
}

func (p *process) stateChecks(v *parley.Vars) {
	parley.PerProcess(v, "welcomes of", p.welcomes, func(_ parley.ID, x *votes) {
		parley.Num(v, "life", &x.life)
		v.Set("by", &x.by)
	})
	parley.Slice(v, "checkpoints", &p.checks, func(_ int, c *checkpoint) {
		parley.Num(v, "slot", &c.slot)
		parley.Slice(v, "done", (*[]tip)(&c.done), func(_ int, t *tip) { t.state(v, "tip") })
		v.Bytes("ledger", &c.body)
	})
	parley.Num(v, "bytes since", &p.fresh)
	parley.Num(v, "forgotten slots", &p.dropped)
}
