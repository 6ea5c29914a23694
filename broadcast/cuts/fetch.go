package cuts

import (
	"slices"

	"parley"
)

const (
	burst       = 1 << 20 // bytes of batches that one process is sent upon request in a quarter of the shortest view
	mostAnswers = 64      // decisions in one Answer
)

// want is a batch, or a cut if its number is 0, that was requested from others.
type want struct {
	lane parley.ID
	tip  tip
	size int // bytes of answers since the request
}

// allowance is what a process was sent upon request since a time.
type allowance struct {
	since parley.Tick
	bytes int
}

// fetcher requests batches and cuts from others, and answers their requests.
type fetcher struct {
	l     *ledger
	self  parley.ID
	wants []want
	spent []allowance // by process
}

// spend reports whether a process may be sent so many bytes now: a faulty process must not keep this one busy.
func (f *fetcher) spend(now parley.Tick, to parley.ID, bytes int) bool {
	a := &f.spent[to]
	if a.bytes == 0 || now >= a.since+f.l.c.Least/4 {
		*a = allowance{since: now}
	}
	if a.bytes >= burst {
		return false
	}
	a.bytes += bytes
	return true
}

// fetch requests a batch, or a cut of the given slot, from a process, unless it was requested before. If from is the
// process itself, it requests it from all.
func (f *fetcher) fetch(s *parley.Step, from parley.ID, w want, slot uint64) {
	if !f.wanted(w.lane, w.tip) {
		f.wants = append(f.wants, w)
		f.request(s, from, w, slot)
	}
}

func (f *fetcher) wanted(source parley.ID, t tip) bool {
	return slices.ContainsFunc(f.wants, func(w want) bool { return w.lane == source && w.tip == t })
}

func (f *fetcher) request(s *parley.Step, from parley.ID, w want, slot uint64) {
	m := parley.Msg{Kind: Fetch, Origin: w.lane, Seq: w.tip.number, Value: slot, Body: w.tip.digest[:]}
	if w.tip.number > 0 {
		m.Value = f.l.lanes[w.lane].done.number + 1
	}
	if from == f.self {
		s.SendAll(m)
	} else {
		s.Send(from, m)
	}
}

// again requests from all what is still missing.
func (f *fetcher) again(s *parley.Step, slot uint64) {
	for _, w := range f.wants {
		f.request(s, f.self, w, slot)
	}
}

// follow replaces a want that a batch satisfied by the batch before it, if that is missing, too. It is probably on its
// way.
func (f *fetcher) follow(s *parley.Step, from, source parley.ID, b batch) {
	at := slices.IndexFunc(f.wants, func(w want) bool { return w.lane == source && w.tip == b.tip })
	w, x := &f.wants[at], &f.l.lanes[source]
	before := tip{b.number - 1, b.before}
	if before.number <= x.done.number || x.at(before) != nil {
		f.wants = slices.Delete(f.wants, at, at+1)
		return
	}
	w.tip = before
	if w.size += len(b.body); w.size >= burst {
		w.size = 0
		f.request(s, from, *w, 0)
	}
}

// takeCut reports whether a cut was requested.
func (f *fetcher) takeCut(s *parley.Step, from parley.ID, m parley.Msg) bool {
	if _, ok := readCut(m.Body, f.l.c.N); !ok {
		s.Refuse(from, "cut that cannot be read")
		return false
	}
	d := digestOf(m.Body)
	at := slices.IndexFunc(f.wants, func(w want) bool { return w.tip == tip{digest: d} })
	if at < 0 {
		return false // it came before
	}
	f.wants = slices.Delete(f.wants, at, at+1)
	return true
}

// answerFetch sends batches, newest first, or a cut.
func (f *fetcher) answerFetch(s *parley.Step, from parley.ID, m parley.Msg, cur *slot) {
	t := tip{number: m.Seq}
	if copy(t.digest[:], m.Body) != len(m.Body) || len(m.Body) < len(t.digest) {
		s.Refuse(from, "malformed message")
		return
	}
	if t.number == 0 {
		body := f.l.decidedCut(m.Value, m.Body)
		if m.Value == cur.number {
			body = cur.find(cur.cuts, m.Body)
		}
		if len(body) > 0 {
			s.Send(from, parley.Msg{Kind: Cut, Seq: m.Value, Body: body})
		}
		return
	}
	for t.number >= max(m.Value, 1) {
		b := f.l.lanes[m.Origin].at(t)
		if b == nil || !f.spend(s.Now, from, len(b.body)) {
			return
		}
		s.Send(from, parley.Msg{Kind: Batch, Body: b.body})
		t = tip{t.number - 1, b.before}
	}
}

// answerAsk sends own batches that are not ordered, and what is known from a slot on.
func (f *fetcher) answerAsk(s *parley.Step, from parley.ID, slot uint64) {
	for _, b := range f.l.lanes[f.self].pending() {
		if f.spend(s.Now, from, len(b.body)) {
			s.Send(from, parley.Msg{Kind: Batch, Body: b.body})
		}
	}
	f.tell(s, from, slot)
}

// tell sends checkpoints of a slot and later ones, and decisions from the slot on. It sends checkpoints although it may
// know the decisions: others may have forgotten them, and the receiver needs m+1 processes that tell the same.
func (f *fetcher) tell(s *parley.Step, to parley.ID, slot uint64) {
	past, i := f.l.past, slot-f.l.dropped-1
	for _, c := range f.l.checks {
		if c.slot >= slot && f.spend(s.Now, to, len(c.body)) {
			s.Send(to, parley.Msg{Kind: Snapshot, Seq: c.slot, Body: c.body})
		}
	}
	if i < uint64(len(past)) {
		var body []byte
		for _, c := range past[i:min(uint64(len(past)), i+mostAnswers)] {
			body = parley.AppendBytes(body, c.body)
		}
		if f.spend(s.Now, to, len(body)) {
			s.Send(to, parley.Msg{Kind: Answer, Seq: slot, Body: body})
		}
	}
}

func (f *fetcher) state(v *parley.Vars) {
	parley.Slice(v, "wants", &f.wants, func(_ int, w *want) {
		v.ID("lane", &w.lane)
		w.tip.state(v, "tip")
		parley.Num(v, "size", &w.size)
	})
	parley.PerProcess(v, "was sent", f.spent, func(_ parley.ID, a *allowance) {
		if parley.Num(v, "bytes", &a.bytes); a.bytes > 0 {
			v.Time("since", &a.since)
		}
	})
}
