package service

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"parley"
	"parley/commit/problem"
)

// RecallConfig is what all processes of a recall know beforehand, alike.
type RecallConfig struct {
	// N is the number of processes, and M how many of them may lie.
	N, M int
	// Delta is what a message takes at most; 0 stands for 1000.
	Delta parley.Tick
	// Votes is how long an outcome may take, beside 4 Deltas, before it is asked for;
	// 0 stands for 2 Deltas.
	Votes parley.Tick
	// Compact is after how many records the state replaces them; 0 stands for 4096.
	Compact int
}

func (c RecallConfig) withDefaults() RecallConfig {
	c.Delta = cmp.Or(c.Delta, 1000)
	c.Votes, c.Compact = cmp.Or(c.Votes, 2*c.Delta), cmp.Or(c.Compact, 4096)
	return c
}

// NewRecall returns the protocol by which a process recalls the outcomes of transactions that are
// decided elsewhere, such as in an order that tolerates liars. What the process has voted yes on
// is durable. It asks all others for an outcome that does not come in time, and believes what
// more of them say than may lie.
func NewRecall(c RecallConfig) parley.Protocol {
	c = c.withDefaults()
	return parley.Protocol{
		Name: "recall", N: c.N, M: c.M, Faults: parley.OralByzantineFaults, Serves: true,
		New: func(self parley.ID) parley.Machine { return newOutcomeMachine(c, self) },
	}
}

// The kinds of messages.
const (
	msgAsk  parley.Kind = 1 + iota // asks for an outcome. Body: a Spec without parts
	msgSays                        // Seq: a problem.Outcome. Body: the Spec
)

// The requests and deliveries of a recall. It also delivers Prepare and Ended, whose Value is the
// number of the request and whose Body is a Spec.
const (
	// RecallYes makes a yes durable, and is delivered when it is. Value: a number. Body: a Spec
	// with the part of this process.
	RecallYes parley.Kind = parley.Local + 0x38 + iota
	// RecallWant asks for an outcome. Body: a Spec without parts.
	RecallWant
	// RecallDone says that the participant knows the outcome. Value: the number.
	RecallDone
	// RecallTell gives an outcome to the process in Origin, which may be this one. Seq: a
	// problem.Outcome. Body: a Spec without parts.
	RecallTell
	// RecallAsked is delivered from a process that asks for an outcome. Body: a Spec without parts.
	RecallAsked
)

// The records begin with one of these.
const (
	recallYesRecord  = 1 // the number, and a Spec
	recallDoneRecord = 2 // the number
)

// mostAsking is how many transactions are asked for at a time.
const mostAsking = 256

// outcomeMachine is one process of a recall.
type outcomeMachine struct {
	parley.Base
	c    RecallConfig
	self parley.ID

	inDoubt []inDoubtTx // in the order in which they came
	records int
	ticking bool
}

// inDoubtTx is a transaction whose outcome this process waits for.
type inDoubtTx struct {
	number uint64 // 0: it has no part here
	spec   Spec
	known  bool // the outcome is known, and the participant is being told
	since  parley.Tick
	said   [3]parley.Set // by outcome: the processes that say so
}

func newOutcomeMachine(c RecallConfig, self parley.ID) *outcomeMachine {
	return &outcomeMachine{c: c, self: self}
}

// Start prepares again what the process had voted yes on, and asks for the outcomes.
func (r *outcomeMachine) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	for _, rec := range s.Log {
		x := reader{b: rec.Body}
		kind, number := x.next(recallDoneRecord), x.next(1<<63)
		t, ok := Spec{}, len(x.b) == 0
		if kind == recallYesRecord {
			t, ok = ReadSpec(x.b, r.c.N)
		}
		if x.bad || !ok {
			panic(fmt.Sprintf("service: process %d does not know its record of a transaction", r.self))
		}
		if kind == recallYesRecord {
			r.inDoubt = append(r.inDoubt, inDoubtTx{number: number, spec: t})
		} else {
			r.forget(func(d *inDoubtTx) bool { return d.number == number })
		}
	}
	r.records = len(s.Log)
	for i := range r.inDoubt {
		d := &r.inDoubt[i]
		d.since = s.Now - r.c.Votes - 4*r.c.Delta // at once
		s.Deliver(r.self, parley.Msg{Kind: Prepare, Value: d.number, Seq: 1, Body: d.spec.Encode()})
	}
	r.ask(s)
}

func (r *outcomeMachine) forget(which func(d *inDoubtTx) bool) {
	r.inDoubt = slices.DeleteFunc(r.inDoubt, func(d inDoubtTx) bool { return which(&d) })
}

// find returns the entries of a transaction.
func (r *outcomeMachine) find(t Spec) []*inDoubtTx {
	var list []*inDoubtTx
	for i := range r.inDoubt {
		if d := &r.inDoubt[i]; d.spec.Name == t.Name && d.spec.Digest == t.Digest {
			list = append(list, d)
		}
	}
	return list
}

// Request takes one of the requests above.
func (r *outcomeMachine) Request(s *parley.Step, q parley.Msg) {
	if q.Kind == RecallDone {
		before := len(r.inDoubt)
		if r.forget(func(d *inDoubtTx) bool { return d.number == q.Value }); len(r.inDoubt) < before {
			r.record(s, binary.AppendUvarint([]byte{recallDoneRecord}, q.Value))
		}
		return
	}
	t, ok := ReadSpec(q.Body, r.c.N)
	if !ok {
		s.Refuse(r.self, "a transaction that cannot be read")
		return
	}
	switch q.Kind {
	case RecallYes:
		r.record(s, append(binary.AppendUvarint([]byte{recallYesRecord}, q.Value), q.Body...))
		r.inDoubt = append(r.inDoubt, inDoubtTx{number: q.Value, spec: t, since: s.Now})
		s.Deliver(r.self, q)
		r.tick(s)
	case RecallWant:
		r.inDoubt = append(r.inDoubt, inDoubtTx{spec: t, since: s.Now})
		r.tick(s)
	case RecallTell:
		if q.Origin != r.self {
			s.Send(q.Origin, parley.Msg{Kind: msgSays, Seq: q.Seq, Body: q.Body})
			return
		}
		for _, d := range r.find(t) {
			d.known = true
		}
		r.forget(func(d *inDoubtTx) bool { return d.number == 0 && d.known })
	}
}

func (r *outcomeMachine) record(s *parley.Step, record []byte) {
	s.Append(record)
	if r.records++; r.records >= r.c.Compact && r.records >= 2*len(r.inDoubt) {
		r.records = 0
		s.Compact()
	}
}

// tick sets the timer while an outcome is missing.
func (r *outcomeMachine) tick(s *parley.Step) {
	if !r.ticking && len(r.inDoubt) > 0 {
		r.ticking = true
		s.SetTimer(openTimer, 4*r.c.Delta)
	}
}

// ask asks all others for the outcomes that have been missing for too long.
func (r *outcomeMachine) ask(s *parley.Step) {
	asked := make(map[string]bool)
	for i := range r.inDoubt {
		d := &r.inDoubt[i]
		if !d.known && s.Now-d.since >= r.c.Votes+4*r.c.Delta && len(asked) < mostAsking {
			asked[string(d.spec.Only(parley.All).Encode())] = true
		}
	}
	for _, body := range slices.Sorted(maps.Keys(asked)) {
		s.SendAll(parley.Msg{Kind: msgAsk, Body: []byte(body)})
	}
	r.tick(s)
}

// Timeout asks again.
func (r *outcomeMachine) Timeout(s *parley.Step, _ parley.Timer) {
	r.ticking = false
	r.ask(s)
}

// Receive takes a message from a link.
func (r *outcomeMachine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind >= parley.Local {
		return
	}
	t, ok := ReadSpec(q.Body, r.c.N)
	switch {
	case !ok || len(t.Parts) > 0 || q.Value != 0 || q.Origin != 0:
		s.Refuse(from, "what is no transaction")
	case q.Kind == msgAsk:
		s.Deliver(from, parley.Msg{Kind: RecallAsked, Body: q.Body})
	case q.Kind == msgSays && (q.Seq == uint64(problem.Commit) || q.Seq == uint64(problem.Abort)):
		list := r.find(t)
		if len(list) == 0 {
			s.Refuse(from, "an outcome that nobody asked for")
			return
		}
		for _, d := range list {
			if d.said[q.Seq].Add(from); !d.known && d.said[q.Seq].Len() > r.c.M {
				d.known = true
				s.Deliver(r.self, parley.Msg{Kind: Ended, Value: d.number, Seq: q.Seq, Body: d.spec.Encode()})
			}
		}
		r.forget(func(d *inDoubtTx) bool { return d.number == 0 && d.known })
	default:
		s.Refuse(from, "no message of a memory")
	}
}

// State visits every variable. Entries without a part here do not outlive a crash.
func (r *outcomeMachine) State(v *parley.Vars) {
	waits := func(d inDoubtTx) bool { return d.number == 0 }
	durable := slices.DeleteFunc(slices.Clone(r.inDoubt), waits)
	volatile := slices.DeleteFunc(slices.Clone(r.inDoubt), func(d inDoubtTx) bool { return !waits(d) })
	v.Durable(func() { parley.Slice(v, "inDoubt", &durable, func(_ int, d *inDoubtTx) { d.visit(v, r.c.N) }) })
	parley.Slice(v, "waits", &volatile, func(_ int, d *inDoubtTx) { d.visit(v, r.c.N) })
	for _, list := range [][]inDoubtTx{durable, volatile} {
		for i := range list {
			d := &list[i]
			v.Bool("known", &d.known)
			v.Time("since", &d.since)
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
	b := d.spec.Encode()
	if v.Bytes("spec", &b); v.Loading() {
		var ok bool
		if d.spec, ok = ReadSpec(b, n); !ok {
			v.Fail()
		}
	}
}
