package byzantine

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

// fetcher gets from others what this process lacks, and gives them what they lack.
type fetcher struct {
	watch
	last *slot // the slot before the current one, for processes that have not decided it; nil: none
	cur  *slot

	wants []want
	early []message // messages of the next slot
	asked uint64    // decisions up to this slot were asked for
	more  bool      // somebody knows decisions of later slots
	told  bool      // somebody sent a Snapshot since the last look
}

// send answers a request, if its sender was not sent too much: a faulty process must not keep this one busy.
func (f *fetcher) send(s *parley.Step, to parley.ID, m parley.Msg) bool {
	x := &f.peers[to]
	if x.sent == 0 || s.Now >= x.since+f.c.Least/4 {
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
func (f *fetcher) fetch(s *parley.Step, from parley.ID, w want) {
	if f.wanted(w.lane, w.tip) < 0 {
		f.wants = append(f.wants, w)
		f.request(s, from, w)
	}
}

// wanted returns the index of a want, or -1.
func (f *fetcher) wanted(source parley.ID, t tip) int {
	return slices.IndexFunc(f.wants, func(w want) bool { return w.lane == source && w.tip == t })
}

// request requests a batch or a cut from a process, or from all if that is this process.
func (f *fetcher) request(s *parley.Step, from parley.ID, w want) {
	m := parley.Msg{Kind: Fetch, Origin: w.lane, Seq: w.tip.number, Value: f.cur.number, Body: w.tip.digest[:]}
	if w.tip.number > 0 {
		m.Value = f.lanes[w.lane].done.number + 1
	}
	if from == f.self {
		s.SendAll(m)
	} else {
		s.Send(from, m)
	}
}

// follow replaces a want that a batch satisfied by the batch before it, if that is missing, too. It is probably on its
// way.
func (f *fetcher) follow(s *parley.Step, from, source parley.ID, b batch) {
	at := f.wanted(source, b.tip)
	w, x := &f.wants[at], &f.lanes[source]
	before := tip{b.number - 1, b.before}
	if before.number <= x.done.number || x.at(before) != nil {
		f.wants = slices.Delete(f.wants, at, at+1)
		return
	}
	w.tip = before
	if w.size += len(b.body); w.size >= burst {
		w.size = 0
		f.request(s, from, *w)
	}
}

// takeCut hears a cut that was requested.
func (f *fetcher) takeCut(s *parley.Step, from parley.ID, m parley.Msg) {
	if _, ok := readCut(m.Body, f.c.N); !ok {
		s.Refuse(from, "cut that cannot be read")
		return
	}
	if at := f.wanted(0, tip{digest: digestOf(m.Body)}); at >= 0 {
		f.wants = slices.Delete(f.wants, at, at+1)
		if m.Seq == f.cur.number {
			f.cur.hear(from, m.Body)
		}
	}
}

// answerFetch sends batches, newest first, or a cut.
func (f *fetcher) answerFetch(s *parley.Step, from parley.ID, m parley.Msg) {
	t := tip{number: m.Seq}
	if copy(t.digest[:], m.Body) != len(m.Body) || len(m.Body) < len(t.digest) {
		s.Refuse(from, "malformed message")
		return
	}
	if t.number == 0 {
		body := f.decidedCut(m.Value, m.Body)
		if m.Value == f.cur.number {
			body = find(f.cur.cuts, m.Body).body
		}
		if len(body) > 0 {
			s.Send(from, parley.Msg{Kind: Cut, Seq: m.Value, Body: body})
		}
		return
	}
	for t.number >= max(m.Value, 1) {
		b := f.lanes[m.Origin].at(t)
		if b == nil || !f.send(s, from, parley.Msg{Kind: Batch, Body: b.body}) {
			return
		}
		t = tip{t.number - 1, b.before}
	}
}

// takeTips believes m+1 processes that they hold a batch: one of them is correct and has it from its source. If only
// the source says so, this process may have refused the batch when it was itself behind, and lets the source repeat it.
func (f *fetcher) takeTips(s *parley.Step, from parley.ID, m parley.Msg) {
	c, ok := readCut(m.Body, f.c.N)
	if !ok || m.Value > 1 {
		s.Refuse(from, "cut that cannot be read")
		return
	}
	f.peers[from].claim = c
	if from == f.cur.owner && m.Value == 0 {
		f.answerTips(s, from)
	}
	for i, t := range c {
		lack, _ := f.lanes[i].follow(t)
		w := want{lane: parley.ID(i), tip: lack}
		switch {
		case lack == tip{}:
		case f.peers.claimed(w.lane, t) > f.c.M:
			f.fetch(s, from, w)
		case w.lane == from:
			f.request(s, from, w)
		}
	}
}
