package cluster

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"parley"
	commit "parley/commit/problem"
)

// recalls is the memory of a node of transactions that are decided in spite of liars: what it
// has said yes to is durable, and what it does not hear the outcome of in time it asks all
// others for. It believes what more of them say than may lie.

// The messages.
const (
	recallAsk  parley.Kind = 1 + iota // what became of it? Body: a sheet without parts
	recallSays                        // Seq: a problem.Outcome. Body: the sheet
)

// The requests, and what is delivered.
const (
	// recallYes makes a yes durable, and is delivered when it is. Value: the number. Body: a
	// sheet with this node's part.
	recallYes parley.Kind = parley.Local + 0x38 + iota
	// recallWant: somebody waits for the outcome. Body: a sheet without parts.
	recallWant
	// recallDone: the participant knows the outcome. Value: the number.
	recallDone
	// recallTold is an outcome, for this node or for the one in Origin that asked. Seq: a
	// problem.Outcome. Body: a sheet without parts.
	recallTold
	// recallAsked is delivered from a node that asks. Body: as it asks.
	recallAsked
)

// The records begin with one of these.
const (
	recallYesRecord  = 1 // the number, and a sheet
	recallDoneRecord = 2 // the number
)

// recalled is an outcome to be told.
type recalled struct {
	sheet   sheet
	outcome commit.Outcome
	to      parley.ID
}

// mostAsking is how many transactions are asked for at a time.
const mostAsking = 256

type recalls struct {
	parley.Base
	n, m         int
	delta, votes parley.Tick
	self         parley.ID

	doubts  []doubt // in the order in which they came
	records int
	ticking bool
}

// doubt is a transaction that this node waits for.
type doubt struct {
	number uint64 // 0: it is only waited for
	sheet  sheet
	known  bool // the outcome is: the participant is being told
	since  parley.Tick
	said   [3]parley.Set // by outcome: who says so
}

func newRecalls(n, m int, delta, votes parley.Tick, self parley.ID) *recalls {
	return &recalls{n: n, m: m, delta: delta, votes: votes, self: self}
}

// Start: what it had said yes to it prepares again, and asks for.
func (r *recalls) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	for _, rec := range s.Log {
		x := numbers{b: rec.Body}
		kind, number := x.next(recallDoneRecord), x.next(1<<63)
		t, ok := sheet{}, len(x.b) == 0
		if kind == recallYesRecord {
			t, ok = readSheet(x.b, r.n)
		}
		if x.bad || !ok {
			panic(fmt.Sprintf("cluster: node %d does not know its record of a transaction", r.self))
		}
		if kind == recallYesRecord {
			r.doubts = append(r.doubts, doubt{number: number, sheet: t})
		} else {
			r.forget(func(d *doubt) bool { return d.number == number })
		}
	}
	r.records = len(s.Log)
	for i := range r.doubts {
		d := &r.doubts[i]
		d.since = s.Now - r.votes - 4*r.delta // at once
		s.Deliver(r.self, parley.Msg{Kind: txPrepare, Value: d.number, Seq: 1, Body: d.sheet.encode()})
	}
	r.ask(s)
}

func (r *recalls) forget(which func(d *doubt) bool) {
	r.doubts = slices.DeleteFunc(r.doubts, func(d doubt) bool { return which(&d) })
}

// find is the doubt about a transaction.
func (r *recalls) find(t sheet) []*doubt {
	var list []*doubt
	for i := range r.doubts {
		if d := &r.doubts[i]; d.sheet.name == t.name && d.sheet.digest == t.digest {
			list = append(list, d)
		}
	}
	return list
}

// Request is from the service.
func (r *recalls) Request(s *parley.Step, q parley.Msg) {
	if q.Kind == recallDone {
		before := len(r.doubts)
		if r.forget(func(d *doubt) bool { return d.number == q.Value }); len(r.doubts) < before {
			r.append(s, binary.AppendUvarint([]byte{recallDoneRecord}, q.Value))
		}
		return
	}
	t, ok := readSheet(q.Body, r.n)
	if !ok {
		s.Refuse(r.self, "a transaction that cannot be read")
		return
	}
	switch q.Kind {
	case recallYes:
		r.append(s, append(binary.AppendUvarint([]byte{recallYesRecord}, q.Value), q.Body...))
		r.doubts = append(r.doubts, doubt{number: q.Value, sheet: t, since: s.Now})
		s.Deliver(r.self, q)
		r.tick(s)
	case recallWant:
		r.doubts = append(r.doubts, doubt{sheet: t, since: s.Now})
		r.tick(s)
	case recallTold:
		if q.Origin != r.self {
			s.Send(q.Origin, parley.Msg{Kind: recallSays, Seq: q.Seq, Body: q.Body})
			return
		}
		for _, d := range r.find(t) {
			d.known = true
		}
		r.forget(func(d *doubt) bool { return d.number == 0 && d.known })
	}
}

func (r *recalls) append(s *parley.Step, record []byte) {
	s.Append(record)
	if r.records++; r.records >= compactEvery && r.records >= 2*len(r.doubts) {
		r.records = 0
		s.Compact()
	}
}

// tick sets the timer, as long as there is anything to wait for.
func (r *recalls) tick(s *parley.Step) {
	if !r.ticking && len(r.doubts) > 0 {
		r.ticking = true
		s.SetTimer(openTimer, 4*r.delta)
	}
}

// ask asks all others for the outcomes that have been missing for too long.
func (r *recalls) ask(s *parley.Step) {
	asked := make(map[string]bool)
	for i := range r.doubts {
		d := &r.doubts[i]
		if !d.known && s.Now-d.since >= r.votes+4*r.delta && len(asked) < mostAsking {
			asked[string(d.sheet.only(parley.All).encode())] = true
		}
	}
	for _, body := range slices.Sorted(maps.Keys(asked)) {
		s.SendAll(parley.Msg{Kind: recallAsk, Body: []byte(body)})
	}
	r.tick(s)
}

// Timeout is the time to ask again.
func (r *recalls) Timeout(s *parley.Step, _ parley.Timer) {
	r.ticking = false
	r.ask(s)
}

// Receive is from a link.
func (r *recalls) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind >= parley.Local {
		return
	}
	t, ok := readSheet(q.Body, r.n)
	switch {
	case !ok || len(t.parts) > 0 || q.Value != 0 || q.Origin != 0:
		s.Refuse(from, "what is no transaction")
	case q.Kind == recallAsk:
		s.Deliver(from, parley.Msg{Kind: recallAsked, Body: q.Body})
	case q.Kind == recallSays && (q.Seq == uint64(commit.Commit) || q.Seq == uint64(commit.Abort)):
		list := r.find(t)
		if len(list) == 0 {
			s.Refuse(from, "an outcome that nobody asked for")
			return
		}
		for _, d := range list {
			if d.said[q.Seq].Add(from); !d.known && d.said[q.Seq].Len() > r.m {
				d.known = true
				s.Deliver(r.self, parley.Msg{Kind: txEnded, Value: d.number, Seq: q.Seq, Body: d.sheet.encode()})
			}
		}
		r.forget(func(d *doubt) bool { return d.number == 0 && d.known })
	default:
		s.Refuse(from, "no message of a memory")
	}
}

// State visits every variable. What is only waited for does not outlive a crash.
func (r *recalls) State(v *parley.Vars) {
	waits := func(d doubt) bool { return d.number == 0 }
	durable := slices.DeleteFunc(slices.Clone(r.doubts), waits)
	volatile := slices.DeleteFunc(slices.Clone(r.doubts), func(d doubt) bool { return !waits(d) })
	v.Durable(func() { parley.Slice(v, "doubts", &durable, func(_ int, d *doubt) { d.visit(v, r.n) }) })
	parley.Slice(v, "waits", &volatile, func(_ int, d *doubt) { d.visit(v, r.n) })
	for _, list := range [][]doubt{durable, volatile} {
		for i := range list {
			d := &list[i]
			v.Bool("known", &d.known)
			v.Time("since", &d.since)
			v.Set("said to commit", &d.said[commit.Commit])
			v.Set("said to abort", &d.said[commit.Abort])
		}
	}
	if v.Loading() {
		r.doubts = append(durable, volatile...)
	}
	parley.Num(v, "records", &r.records)
	v.Bool("ticking", &r.ticking)
}

func (d *doubt) visit(v *parley.Vars, n int) {
	parley.Num(v, "number", &d.number)
	b := d.sheet.encode()
	if v.Bytes("sheet", &b); v.Loading() {
		var ok bool
		if d.sheet, ok = readSheet(b, n); !ok {
			v.Fail()
		}
	}
}
