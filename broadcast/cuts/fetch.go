package cuts

import (
	"slices"

	"parley"
)

// burst is how many bytes one process is sent upon request in a quarter of the shortest view.
const burst = 1 << 20

// want is a batch, or a cut if its number is 0, that was requested from others.
type want struct {
	lane parley.ID
	tip  tip
	size int // bytes of answers since the request
}

// send answers a request, if its sender was not sent too much: a faulty process must not keep this one busy.
func (p *process) send(s *parley.Step, to parley.ID, m parley.Msg) bool {
	x := &p.peers[to]
	if x.sent == 0 || s.Now >= x.since+p.c.Least/4 {
		x.sent, x.since = 0, s.Now
	}
	if x.sent >= burst {
		return false
	}
	x.sent += len(m.Body)
	s.Send(to, m)
	return true
}

// fetch requests a batch, or a cut of the current slot, from a process, unless it was requested before.
func (p *process) fetch(s *parley.Step, from parley.ID, w want) {
	if p.wanted(w.lane, w.tip) < 0 {
		p.wants = append(p.wants, w)
		p.request(s, from, w)
	}
}

// wanted returns the index of a want, or -1.
func (p *process) wanted(source parley.ID, t tip) int {
	return slices.IndexFunc(p.wants, func(w want) bool { return w.lane == source && w.tip == t })
}

// request requests a batch or a cut from a process, or from all if that is this process.
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

// follow replaces a want that a batch satisfied by the batch before it, if that is missing, too. It is probably on its
// way.
func (p *process) follow(s *parley.Step, from, source parley.ID, b batch) {
	at := p.wanted(source, b.tip)
	w, x := &p.wants[at], &p.lanes[source]
	before := tip{b.number - 1, b.before}
	if before.number <= x.done.number || x.at(before) != nil {
		p.wants = slices.Delete(p.wants, at, at+1)
		return
	}
	w.tip = before
	if w.size += len(b.body); w.size >= burst {
		w.size = 0
		p.request(s, from, *w)
	}
}

// takeCut hears a cut that was requested.
func (p *process) takeCut(s *parley.Step, from parley.ID, m parley.Msg) {
	if _, ok := readCut(m.Body, p.c.N); !ok {
		s.Refuse(from, "cut that cannot be read")
		return
	}
	if at := p.wanted(0, tip{digest: digestOf(m.Body)}); at >= 0 {
		p.wants = slices.Delete(p.wants, at, at+1)
		if m.Seq == p.cur.number {
			p.cur.hear(from, m.Body)
		}
	}
}

// answerFetch sends batches, newest first, or a cut.
func (p *process) answerFetch(s *parley.Step, from parley.ID, m parley.Msg) {
	t := tip{number: m.Seq}
	if copy(t.digest[:], m.Body) != len(m.Body) || len(m.Body) < len(t.digest) {
		s.Refuse(from, "malformed message")
		return
	}
	if t.number == 0 {
		body := p.decidedCut(m.Value, m.Body)
		if m.Value == p.cur.number {
			body = find(p.cur.cuts, m.Body).body
		}
		if len(body) > 0 {
			s.Send(from, parley.Msg{Kind: Cut, Seq: m.Value, Body: body})
		}
		return
	}
	for t.number >= max(m.Value, 1) {
		b := p.lanes[m.Origin].at(t)
		if b == nil || !p.send(s, from, parley.Msg{Kind: Batch, Body: b.body}) {
			return
		}
		t = tip{t.number - 1, b.before}
	}
}
