package cuts

import (
	"slices"

	"parley"
	"parley/agreement/tetra"
)

const (
	earlyPerPeer = 64 // messages of the next slot that are kept from each process
	mostAnswers  = 64 // decisions in one Answer

	// mostBody*(n+1) is more than the bytes of each message of a slot. The longest is ENTER: it has a claim, and at
	// most n+1 votes of each of four phases.
	mostBody = 200

	// skipAfter is the number of looks in one slot after which a process takes over a checkpoint: the length of view
	// 0, in which those who know the decision could answer.
	skipAfter = 4
)

// peer is what this process heard from a process and about its lane.
type peer struct {
	at        uint64       // the greatest slot in which it has spoken, so it has delivered all slots before
	lost      uint64       // the greatest slot of which a message may not have been kept
	from      uint64       // the slot of the first decision in its last Answer
	decisions [][]byte     // its last Answer
	snapshots []parley.Msg // its last two Snapshots
	claim     cut          // its last Tips
	greeted   uint64       // the last life in which this process welcomed it
	sent      int          // bytes that it was sent upon request
	since     parley.Tick  // since this time

	first  uint64 // the first batch of its lane that was not ordered at the last look; 0: none
	looks  int    // how many looks in a row have seen this batch
	strict uint64 // up to this slot, only batches of its lane that 2m+1 processes claim to hold are proposed
}

// message is a message that waits for its slot.
type message struct {
	from parley.ID
	m    parley.Msg
}

// speakers returns how many processes have spoken in a slot or a later one.
func (p *process) speakers(slot uint64) (count int) {
	for i := range p.peers {
		if p.peers[i].at >= slot {
			count++
		}
	}
	return count
}

// isBehind reports whether m+1 processes speak in slots that this process does not follow.
func (p *process) isBehind() bool { return p.speakers(p.cur.number+2) > p.c.M }

// keepEarly keeps a message for the next slot, if there is room for it.
func (p *process) keepEarly(from parley.ID, m parley.Msg) {
	count := 0
	for _, x := range p.early {
		if x.from == from {
			if count++; x.m.Equal(m) {
				return
			}
		}
	}
	if m.Seq > p.cur.number+1 || count >= earlyPerPeer {
		p.peers[from].miss(m.Seq)
		return
	}
	p.early = append(p.early, message{from, m})
}

// miss notes that messages of a slot may not have been kept.
func (x *peer) miss(slot uint64) { x.lost = max(x.lost, slot) }

// feed handles the messages that came before their slot was the current one. A decision in an Answer is a DECIDED of
// its sender. Senders whose messages were not kept are asked to repeat them.
func (p *process) feed(s *parley.Step) {
	k := p.cur
	if len(p.early) > 0 && p.early[0].m.Seq <= k.number {
		due := p.early // all are of one slot
		p.early = nil
		for _, x := range due {
			if x.m.Seq == k.number {
				k.receive(s, x.from, x.m)
			}
		}
	}
	for i := range p.peers {
		x, q := &p.peers[i], parley.ID(i)
		if at := k.number - x.from; at < uint64(len(x.decisions)) && !k.in.Knows(q) {
			m := parley.Msg{Kind: tetra.Decided}
			if body := x.decisions[at]; len(body) > 0 {
				m.Body = k.hear(q, body)
			}
			k.receive(s, q, m)
		}
		if x.lost >= k.number && k.asked.Add(q) {
			k.ask(s, q)
		}
	}
}

// ask asks all others for decisions from the current slot on.
func (p *process) ask(s *parley.Step) {
	p.more, p.asked = false, p.cur.number+mostAnswers-1
	s.SendAll(parley.Msg{Kind: Ask, Seq: p.cur.number})
}

// askAgain has this process ask as if it had not asked before.
func (p *process) askAgain() { p.more, p.asked = true, 0 }

// answerAsk sends own batches that are not ordered, and what is known from a slot on.
func (p *process) answerAsk(s *parley.Step, from parley.ID, slot uint64) {
	for _, b := range p.lanes[p.self].pending() {
		p.send(s, from, parley.Msg{Kind: Batch, Body: b.body})
	}
	p.tell(s, from, slot)
}

// tell sends checkpoints of a slot and later ones, and decisions from the slot on. It sends checkpoints although it may
// know the decisions: others may have forgotten them, and the receiver needs m+1 processes that tell the same.
func (p *process) tell(s *parley.Step, to parley.ID, slot uint64) {
	for _, c := range p.checks {
		if c.slot >= slot {
			p.send(s, to, parley.Msg{Kind: Snapshot, Seq: c.slot, Body: c.body})
		}
	}
	if i := slot - p.dropped - 1; i < uint64(len(p.past)) {
		var body []byte
		for _, c := range p.past[i:min(uint64(len(p.past)), i+mostAnswers)] {
			body = parley.AppendBytes(body, c.body)
		}
		p.send(s, to, parley.Msg{Kind: Answer, Seq: slot, Body: body})
	}
}

// takeAnswer keeps decisions until their slots are current.
func (p *process) takeAnswer(s *parley.Step, from parley.ID, m parley.Msg) {
	var list [][]byte
	for r := (parley.Reader{Rest: m.Body}); len(r.Rest) > 0; {
		body := r.Bytes()
		if _, ok := readCut(body, p.c.N); r.Bad || len(body) > 0 && !ok || len(list) == mostAnswers {
			s.Refuse(from, "decisions that cannot be read")
			return
		}
		list = append(list, body)
	}
	end := m.Seq + uint64(len(list))
	if end < p.cur.number || m.Seq > p.asked {
		return // too late, or not what was asked for
	}
	x := &p.peers[from]
	x.from, x.decisions = m.Seq, list
	x.miss(end)
	p.more = p.more || end > p.asked
}

// takeSnapshot keeps a checkpoint of the current slot or a later one.
func (p *process) takeSnapshot(s *parley.Step, from parley.ID, m parley.Msg) {
	if len(m.Body) > mostBody*(p.c.N+1)*(p.c.N+1) {
		s.Refuse(from, "checkpoint that is too long")
		return
	}
	x, now := &p.peers[from], p.cur.number
	list := slices.DeleteFunc(x.snapshots, func(y parley.Msg) bool { return y.Seq == m.Seq || y.Seq < now })
	if m.Seq >= now {
		list = append(list, parley.Msg{Seq: m.Seq, Body: m.Body})
		p.told = true
	}
	x.snapshots = list[max(0, len(list)-2):]
}

// common returns the first checkpoint, of the current slot or a later one, that m+1 processes tell alike.
func (p *process) common() (first parley.Msg, ok bool) {
	for i := range p.peers {
		for _, x := range p.peers[i].snapshots {
			if x.Seq < p.cur.number {
				continue
			}
			count := 0
			for other := range p.peers {
				if slices.ContainsFunc(p.peers[other].snapshots, x.Equal) {
					count++
				}
			}
			if count > p.c.M && (!ok || x.Seq < first.Seq) {
				first, ok = x, true
			}
		}
	}
	return first, ok
}

func (p *process) statePeers(v *parley.Vars) {
	parley.PerProcess(v, "of", p.peers, func(_ parley.ID, x *peer) {
		parley.Num(v, "spoke in slot", &x.at)
		parley.Num(v, "lost", &x.lost)
		parley.Num(v, "first decision", &x.from)
		parley.Slice(v, "decisions", &x.decisions, func(_ int, b *[]byte) { v.Bytes("cut", b) })
		parley.Slice(v, "snapshot", &x.snapshots, func(_ int, m *parley.Msg) {
			parley.Num(v, "slot", &m.Seq)
			v.Bytes("checkpoint", &m.Body)
		})
		parley.Slice(v, "claim", (*[]tip)(&x.claim), func(_ int, t *tip) { t.state(v, "tip") })
		parley.Num(v, "last welcome", &x.greeted)
		if parley.Num(v, "was sent", &x.sent); x.sent > 0 {
			v.Time("since", &x.since)
		}
		parley.Num(v, "not ordered", &x.first)
		parley.Num(v, "looks", &x.looks)
		parley.Num(v, "strict up to slot", &x.strict)
	})
}
