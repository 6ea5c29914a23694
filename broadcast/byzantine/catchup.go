package byzantine

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

// message is a message that waits for its slot.
type message struct {
	from parley.ID
	m    parley.Msg
}

// isBehind reports whether m+1 processes speak in slots that this process does not follow.
func (f *fetcher) isBehind() bool { return f.peers.speakers(f.cur.number+2) > f.c.M }

// keepEarly keeps a message for the next slot, if there is room for it.
func (f *fetcher) keepEarly(from parley.ID, m parley.Msg) {
	count := 0
	for _, x := range f.early {
		if x.from == from {
			if count++; x.m.Equal(m) {
				return
			}
		}
	}
	if m.Seq > f.cur.number+1 || count >= earlyPerPeer {
		f.peers[from].miss(m.Seq)
		return
	}
	f.early = append(f.early, message{from, m})
}

// feed handles the messages that came before their slot was the current one. A decision in an Answer is a DECIDED of
// its sender. Senders whose messages were not kept are asked to repeat them.
func (f *fetcher) feed(s *parley.Step) {
	k := f.cur
	if len(f.early) > 0 && f.early[0].m.Seq <= k.number {
		due := f.early // all are of one slot
		f.early = nil
		for _, x := range due {
			if x.m.Seq == k.number {
				k.receive(s, x.from, x.m)
			}
		}
	}
	for i := range f.peers {
		x, q := &f.peers[i], parley.ID(i)
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
func (f *fetcher) ask(s *parley.Step) {
	f.more, f.asked = false, f.cur.number+mostAnswers-1
	s.SendAll(parley.Msg{Kind: Ask, Seq: f.cur.number})
}

// askAgain has this process ask as if it had not asked before.
func (f *fetcher) askAgain() { f.more, f.asked = true, 0 }

// answerAsk sends own batches that are not ordered, and what is known from a slot on.
func (f *fetcher) answerAsk(s *parley.Step, from parley.ID, slot uint64) {
	for _, b := range f.lanes[f.self].pending() {
		f.send(s, from, parley.Msg{Kind: Batch, Body: b.body})
	}
	f.tell(s, from, slot)
}

// tell sends checkpoints of a slot and later ones, and decisions from the slot on. It sends checkpoints although it may
// know the decisions: others may have forgotten them, and the receiver needs m+1 processes that tell the same.
func (f *fetcher) tell(s *parley.Step, to parley.ID, slot uint64) {
	for _, c := range f.checks {
		if c.slot >= slot {
			f.send(s, to, parley.Msg{Kind: Snapshot, Seq: c.slot, Body: c.body})
		}
	}
	if i := slot - f.dropped - 1; i < uint64(len(f.past)) {
		var body []byte
		for _, c := range f.past[i:min(uint64(len(f.past)), i+mostAnswers)] {
			body = parley.AppendBytes(body, c.body)
		}
		f.send(s, to, parley.Msg{Kind: Answer, Seq: slot, Body: body})
	}
}

// takeAnswer keeps decisions until their slots are current.
func (f *fetcher) takeAnswer(s *parley.Step, from parley.ID, m parley.Msg) {
	var list [][]byte
	for r := (parley.Reader{Rest: m.Body}); len(r.Rest) > 0; {
		body := r.Bytes()
		if _, ok := readCut(body, f.c.N); r.Bad || len(body) > 0 && !ok || len(list) == mostAnswers {
			s.Refuse(from, "decisions that cannot be read")
			return
		}
		list = append(list, body)
	}
	end := m.Seq + uint64(len(list))
	if end < f.cur.number || m.Seq > f.asked {
		return // too late, or not what was asked for
	}
	x := &f.peers[from]
	x.from, x.decisions = m.Seq, list
	x.miss(end)
	f.more = f.more || end > f.asked
}

// takeSnapshot keeps a checkpoint of the current slot or a later one.
func (f *fetcher) takeSnapshot(s *parley.Step, from parley.ID, m parley.Msg) {
	if len(m.Body) > mostBody*(f.c.N+1)*(f.c.N+1) {
		s.Refuse(from, "checkpoint that is too long")
		return
	}
	x, now := &f.peers[from], f.cur.number
	list := slices.DeleteFunc(x.snapshots, func(y parley.Msg) bool { return y.Seq == m.Seq || y.Seq < now })
	if m.Seq >= now {
		list = append(list, parley.Msg{Seq: m.Seq, Body: m.Body})
		f.told = true
	}
	x.snapshots = list[max(0, len(list)-2):]
}
