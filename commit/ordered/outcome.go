package ordered

import (
	"fmt"
	"slices"

	"parley"
	"parley/commit/problem"
	"parley/commit/service"
)

// A process remembers what it has voted yes on until the participant has carried out the outcome, and what it
// has begun until there is an outcome. It asks the others for outcomes that do not arrive in time.

// The records, by their first byte.
const (
	yesRecord  = 1 // the number, and a Spec
	doneRecord = 2 // the number
)

// strays is where the numbers begin for transactions whose outcome arrives before the order begins them at
// this process.
const strays = 1 << 48

// mostAsking is how many outcomes a process asks for at a time.
const mostAsking = 256

// patience is how long an outcome may take before the process asks for it.
func (c Config) patience() parley.Tick { return c.Votes + 4*c.Delta }

// outcomeTracker holds the outcomes that a process waits for.
type outcomeTracker struct {
	inDoubt []inDoubtTx // in the order of arrival
	records int
	ticking bool
}

// inDoubtTx is a transaction whose outcome the process, or its participant, does not know.
type inDoubtTx struct {
	number uint64 // 0: this process has not voted yes
	spec   service.Spec
	known  bool // the outcome is known, and on its way to the participant
	asked  bool // the others were asked and will be asked again; since no longer matters
	since  parley.Tick
	said   [3]parley.Set // by outcome: the processes that report it
}

// path returns the path of the transaction, if this process has voted yes.
func (d *inDoubtTx) path() parley.Path { return service.PathOf(d.spec.Members[0], d.number) }

// waits reports whether the process still waits for the order, and has not asked others.
func (d *inDoubtTx) waits() bool { return !d.known && !d.asked }

// read reads the records of earlier incarnations.
func (r *outcomeTracker) read(s *parley.Step, n int) {
	for _, rec := range s.Log {
		kind, number, spec, ok := readRecord(rec.Body, n)
		switch {
		case !ok:
			panic(fmt.Sprintf("ordered: process %d does not know its record of a transaction", s.Self))
		case kind == yesRecord:
			r.inDoubt = append(r.inDoubt, inDoubtTx{number: number, spec: spec})
		default:
			r.done(number)
		}
	}
	r.records = len(s.Log)
}

func readRecord(b []byte, n int) (kind byte, number uint64, spec service.Spec, ok bool) {
	if len(b) == 0 {
		return 0, 0, spec, false
	}
	kind = b[0]
	number, rest, err := parley.ReadUvarint(b[1:], 1<<63)
	switch {
	case err != nil:
	case kind == yesRecord:
		spec, ok = service.ReadSpec(rest, n)
	case kind == doneRecord:
		ok = len(rest) == 0
	}
	return kind, number, spec, ok
}

// find returns the entry of t, or nil if there is none.
func (r *outcomeTracker) find(t service.Spec) *inDoubtTx {
	for i := range r.inDoubt {
		if d := &r.inDoubt[i]; d.spec.Name == t.Name && d.spec.Digest == t.Digest {
			return d
		}
	}
	return nil
}

// want adds a transaction that this process has begun.
func (r *outcomeTracker) want(now parley.Tick, t service.Spec) {
	if r.find(t) == nil {
		r.inDoubt = append(r.inDoubt, inDoubtTx{spec: t.Only(parley.All), since: now})
	}
}

// yes adds a transaction that this process has voted yes on.
func (r *outcomeTracker) yes(now parley.Tick, number uint64, own service.Spec) {
	if d := r.find(own); d != nil && d.number == 0 {
		d.number, d.spec = number, own
		return
	}
	r.inDoubt = append(r.inDoubt, inDoubtTx{number: number, spec: own, since: now})
}

// voted reports whether the participant waits for the outcome of t, because it has voted yes.
func (r *outcomeTracker) voted(t service.Spec) bool {
	d := r.find(t)
	return d != nil && d.number > 0
}

// know records that this process knows the outcome.
func (r *outcomeTracker) know(t service.Spec) {
	if d := r.find(t); d != nil {
		*d = inDoubtTx{number: d.number, spec: d.spec, known: true} // nothing else matters any more
		r.forget(t)
	}
}

// forget drops a transaction whose outcome the participant does not need.
func (r *outcomeTracker) forget(t service.Spec) {
	r.inDoubt = slices.DeleteFunc(r.inDoubt, func(d inDoubtTx) bool {
		return d.number == 0 && d.spec.Name == t.Name && d.spec.Digest == t.Digest
	})
}

// done drops a transaction whose outcome the participant has carried out, and returns whether there was one.
func (r *outcomeTracker) done(number uint64) (found bool) {
	before := len(r.inDoubt)
	r.inDoubt = slices.DeleteFunc(r.inDoubt, func(d inDoubtTx) bool { return number > 0 && d.number == number })
	return len(r.inDoubt) < before
}

func (m *Machine) record(s *parley.Step, record []byte) {
	s.Append(record)
	r := &m.outcomes
	if r.records++; r.records >= m.c.Compact && r.records >= 2*len(r.inDoubt) {
		m.save(s)
	}
}

// save replaces the log records by the state.
func (m *Machine) save(s *parley.Step) {
	m.outcomes.records, m.fresh = 0, 0
	s.Compact()
}

// live handles the end of the deliveries that come again. The process votes on what is still open: a vote may have been
// lost.
func (m *Machine) live(s *parley.Step) {
	m.repeating = false
	if m.missed {
		return
	}
	for _, t := range m.byAge() {
		if t.voted && !t.yes.Has(m.self) && m.outcomes.voted(t.spec) {
			s.Broadcast(parley.Msg{Kind: Vote, Body: ballot(true, t.spec, nil)})
		}
		t.prepare(s)
	}
}

// wait sets the timer while an outcome is missing.
func (m *Machine) wait(s *parley.Step) {
	if r := &m.outcomes; !r.ticking && slices.ContainsFunc(r.inDoubt, func(d inDoubtTx) bool { return !d.known }) {
		r.ticking = true
		s.SetTimer(askTimer, 4*m.c.Delta)
	}
}

// ask asks all others for the outcomes that are late.
func (m *Machine) ask(s *parley.Step) {
	asking := 0
	for i := range m.outcomes.inDoubt {
		d := &m.outcomes.inDoubt[i]
		d.asked = d.asked || d.waits() && s.Now-d.since >= m.c.patience()
		if d.asked && asking < mostAsking {
			asking++
			s.SendAll(parley.Msg{Kind: msgAsk, Body: d.spec.Only(parley.All).Encode()})
		}
	}
	m.wait(s)
}

// hear handles a question about an outcome, or an answer.
func (m *Machine) hear(s *parley.Step, from parley.ID, q parley.Msg) {
	t, ok := service.ReadSpec(q.Body, m.c.N)
	switch {
	case !ok || len(t.Parts) > 0 || q.Value != 0 || q.Origin != 0:
		s.Refuse(from, "what is no transaction")
	case q.Kind == msgAsk:
		if e := m.finished(t); e != nil {
			s.Send(from, parley.Msg{Kind: msgSays, Seq: uint64(e.Outcome), Body: q.Body})
		}
	case q.Kind == msgSays && (q.Seq == uint64(problem.Commit) || q.Seq == uint64(problem.Abort)):
		m.said(s, from, t, problem.Outcome(q.Seq))
	default:
		s.Refuse(from, "no message about an outcome")
	}
}

// said handles the report of an outcome. The process accepts it when more than m processes report it.
func (m *Machine) said(s *parley.Step, from parley.ID, t service.Spec, outcome problem.Outcome) {
	d := m.outcomes.find(t)
	switch {
	case d == nil:
		s.Refuse(from, "an outcome that nobody asked for")
		return
	case d.known:
		return
	}
	if d.said[outcome].Add(from); d.said[outcome].Len() <= m.c.M {
		return
	}
	number, spec := d.number, d.spec
	m.outcomes.know(spec)
	if x := m.names[t.Name]; x != nil && x.spec.Digest == t.Digest { // the order will bring the outcome, too
		x.learned = true
		number, spec = x.number, x.spec
	} else if number == 0 {
		m.stray++
		number = strays + m.stray
	}
	e := &service.Finished{Path: service.PathOf(spec.Members[0], number), Name: t.Name, Digest: t.Digest, Outcome: outcome}
	m.heard.Add(e)
	m.tell(s, e, spec)
}

func (r *outcomeTracker) state(v *parley.Vars, n int) {
	voted := func(d inDoubtTx) bool { return d.number > 0 }
	durable := slices.DeleteFunc(slices.Clone(r.inDoubt), func(d inDoubtTx) bool { return !voted(d) })
	volatile := slices.DeleteFunc(slices.Clone(r.inDoubt), voted)
	v.Durable(func() { parley.Slice(v, "doubts", &durable, func(_ int, d *inDoubtTx) { d.visit(v, n) }) })
	parley.Slice(v, "wants", &volatile, func(_ int, d *inDoubtTx) { d.visit(v, n) })
	for _, list := range [][]inDoubtTx{durable, volatile} {
		for i := range list {
			d := &list[i]
			v.Bool("known", &d.known)
			v.Bool("asked", &d.asked)
			if d.waits() { // otherwise it would grow forever, and the number of states with it
				v.Time("since", &d.since)
			}
			v.Set("said to commit", &d.said[problem.Commit])
			v.Set("said to abort", &d.said[problem.Abort])
		}
	}
	if v.Loading() {
		r.inDoubt = append(durable, volatile...)
	}
	parley.Num(v, "records", &r.records)
	v.Bool("ticking", &r.ticking)
}

func (d *inDoubtTx) visit(v *parley.Vars, n int) {
	parley.Num(v, "number", &d.number)
	d.spec.Visit(v, n)
}
