package cuts

import (
	"slices"

	"parley"
)

// fetch requests a batch, or a cut, from a process, unless it was requested before. If from is the process itself, it requests
// it from all.
func (p *process) fetch(s *parley.Step, from parley.ID, w want) {
	if slices.ContainsFunc(p.wants, func(x want) bool { return x.lane == w.lane && x.tip == w.tip }) {
		return
	}
	p.wants = append(p.wants, w)
	p.request(s, from, w)
}

func (p *process) request(s *parley.Step, from parley.ID, w want) {
	m := parley.Msg{Kind: Fetch, Origin: w.lane, Seq: w.tip.number, Value: p.cur.number, Body: w.tip.digest[:]}
	if w.tip.number > 0 {
		m.Value = p.lanes[w.lane].done.number + 1
	}
	if from == p.self {
		s.SendAll(m)
	} else {
		s.Send(from, m)
	}
}

// follow replaces a want that was satisfied by the batch before it, if that is missing, too. It is probably on its way.
func (p *process) follow(s *parley.Step, from parley.ID, at int, before tip) {
	w := &p.wants[at]
	l := &p.lanes[w.lane]
	if before.number <= l.done.number || l.at(before) != nil {
		p.wants = slices.Delete(p.wants, at, at+1)
		return
	}
	w.tip = before
	if w.size >= burst {
		w.size = 0
		p.request(s, from, *w)
	}
}

// answerFetch sends batches, newest first, or a cut.
func (p *process) answerFetch(s *parley.Step, from parley.ID, m parley.Msg) {
	var t tip
	if len(m.Body) != len(t.digest) {
		s.Refuse(from, "malformed message")
		return
	}
	t.number = m.Seq
	copy(t.digest[:], m.Body)
	if t.number == 0 {
		if body := p.cutOf(m.Value, t.digest); len(body) > 0 {
			s.Send(from, parley.Msg{Kind: Cut, Seq: m.Value, Body: body})
		}
		return
	}
	for size := 0; size < burst && t.number >= max(m.Value, 1); {
		b := p.lanes[m.Origin].at(t)
		if b == nil {
			return
		}
		s.Send(from, parley.Msg{Kind: Batch, Body: b.body})
		size += len(b.body)
		t = tip{t.number - 1, b.before}
	}
}

// cutOf returns a cut of a slot that this process holds, or nil.
func (p *process) cutOf(slot uint64, d digest) []byte {
	switch {
	case slot == p.cur.number:
		return p.cur.find(p.cur.cuts, d[:])
	case slot-p.dropped-1 < uint64(len(p.past)) && p.past[slot-p.dropped-1].digest == d:
		return p.past[slot-p.dropped-1].body
	}
	return nil
}

// takeCut takes a cut that was requested.
func (p *process) takeCut(s *parley.Step, from parley.ID, m parley.Msg) {
	d := digestOf(m.Body)
	at := slices.IndexFunc(p.wants, func(w want) bool { return w.tip == tip{digest: d} })
	if _, ok := readCut(m.Body, p.c.N); !ok || m.Seq != p.cur.number || at < 0 {
		return // it came before, or too late
	}
	p.wants = slices.Delete(p.wants, at, at+1)
	p.cur.hear(from, m.Body)
}

// isBehind reports whether m+1 processes speak in slots that this process does not follow.
func (p *process) isBehind() bool {
	ahead := 0
	for _, at := range p.at {
		if at > p.cur.number+1 {
			ahead++
		}
	}
	return ahead > p.c.M
}

// catchUp asks for decisions if this process is behind, or somebody said that there are more.
func (p *process) catchUp(s *parley.Step) {
	if (p.more || p.isBehind()) && p.asked < p.cur.number {
		p.more, p.asked = false, p.cur.number+mostAnswers-1
		s.SendAll(parley.Msg{Kind: Ask, Seq: p.cur.number})
	}
}

// answerAsk sends decisions, or checkpoints if it has forgotten them, and own batches that are not ordered.
func (p *process) answerAsk(s *parley.Step, from parley.ID, m parley.Msg) {
	if p.member {
		for _, b := range p.lanes[p.self].pending() {
			s.Send(from, parley.Msg{Kind: Batch, Body: b.body})
		}
	}
	i := m.Seq - p.dropped - 1
	switch {
	case m.Seq <= p.dropped:
		for _, c := range p.checks {
			s.Send(from, parley.Msg{Kind: Snapshot, Seq: c.slot, Body: c.body})
		}
	case i < uint64(len(p.past)):
		var body []byte
		for _, c := range p.past[i:min(uint64(len(p.past)), i+mostAnswers)] {
			body = parley.AppendBytes(body, c.body)
		}
		s.Send(from, parley.Msg{Kind: Answer, Seq: m.Seq, Body: body})
	}
}

// takeAnswer keeps decisions until their slots are current.
func (p *process) takeAnswer(s *parley.Step, from parley.ID, m parley.Msg) {
	a := answer{first: m.Seq}
	for r := (parley.Reader{Rest: m.Body}); len(r.Rest) > 0; {
		body := some(r.Bytes())
		if _, ok := readCut(body, p.c.N); r.Bad || body != nil && !ok || len(a.cuts) == mostAnswers {
			s.Refuse(from, "decisions that cannot be read")
			return
		}
		a.cuts = append(a.cuts, body)
	}
	end := a.first + uint64(len(a.cuts))
	if end <= p.cur.number || a.first > p.asked {
		return // not what was asked for, or too late
	}
	p.answers[from] = a
	p.lost = max(p.lost, end)
	p.more = p.more || end > p.asked
}

// some returns b, or nil if b is empty.
func some(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
