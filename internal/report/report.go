// Package report describes a finished run of any host (simulator, explorer or cluster): its events, its costs, and
// which promises held. The description is a Go value, a text, or a picture.
package report

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/agreement/problem"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/form"
	"parley/trace"
)

// Report is the outcome of a run, as --json prints it.
type Report struct {
	Protocol string   `json:"protocol"`
	Title    string   `json:"title"`
	Paper    string   `json:"paper"`
	N        int      `json:"n"`
	M        int      `json:"m"`
	Seed     uint64   `json:"seed"`
	Host     string   `json:"host,omitempty"` // empty for the simulator
	Node     []string `json:"node,omitempty"` // the program that was each process, and its arguments
	// Unrepeatable says that the same arguments and seed can make another run.
	Unrepeatable bool              `json:"unrepeatable,omitempty"`
	Faulty       map[string]string `json:"faulty"`
	Values       map[string]string `json:"values"`
	Decisions    map[string]string `json:"decisions"`
	// Deliveries are in each process's order, without decisions.
	Deliveries map[string][]string `json:"deliveries,omitempty"`
	// Indications are what each process notified the layer above it of, such as suspicions.
	Indications map[string][]string `json:"indications,omitempty"`
	Verdicts    []Verdict           `json:"verdicts"`
	Cost        costs               `json:"cost"`
	Refused     map[string]uint64   `json:"refused"`
	Events      uint64              `json:"events"`
	Trace       string              `json:"trace_hash"`

	// Judged are the verdicts that the report puts into words. HeldUp says that the computer delayed processes of the
	// run.
	Judged []parley.Verdict `json:"-"`
	HeldUp bool             `json:"-"`

	run      form.Run
	violated bool
	lossy    bool   // a link lost or doubled a message
	largest  uint64 // bits of a message of a correct process in round 0
	history  *parley.History
	events   []trace.Event
	explored bool // an explorer found the run
}

// Verdict is the verdict on one property: held or broken, promised or not, or not applicable.
type Verdict struct {
	Property string `json:"property"`
	Says     string `json:"says"`
	Outcome  string `json:"outcome"`
	Because  string `json:"because"`
	Proof    string `json:"proof,omitempty"` // of what held, in a few sentences
	Broken   string `json:"broken,omitempty"`
	Measured string `json:"measured,omitempty"`
	// FirstEvent is the first event that breaks a broken property; 0: none does, the end of the run shows the break.
	FirstEvent uint64 `json:"first_event,omitempty"`
	// Witnesses are the events that show the break, in order.
	Witnesses []Witness `json:"witnesses,omitempty"`
}

// Witness is an event that shows how a property is broken.
type Witness struct {
	Event uint64 `json:"event"`
	Says  string `json:"says"`
}

// costs compares what was sent with the theorem's count for a run in which all processes are correct.
type costs struct {
	Rounds   int              `json:"rounds"`
	AtMost   bool             `json:"theorem_is_at_most"`
	Bits     uint64           `json:"value_bits"` // bits of a value in the theorem's count
	Theorem  []parley.Traffic `json:"theorem"`
	Measured []parley.Traffic `json:"measured"` // what all processes sent
	Correct  []parley.Traffic `json:"correct"`  // the part that correct processes sent
}

// total returns the sum over all rounds.
func total(rounds []parley.Traffic) parley.Traffic { return parley.Cost{PerRound: rounds}.Total() }

// New derives the report from the log of a finished run.
func New(s form.Run, log *trace.Log, facts trace.Facts) *Report {
	p := s.Protocol
	r := &Report{
		Protocol: p.Name, Title: p.Title, Paper: p.Paper, N: p.N, M: p.M, Seed: s.Seed,
		Faulty: make(map[string]string), Values: make(map[string]string), Decisions: make(map[string]string),
		Refused: make(map[string]uint64), Events: log.Len(), Trace: log.Hash(), explored: facts.Explored,
		run: s, Host: s.Host, Node: s.Node, Unrepeatable: facts.Unrepeatable,
		HeldUp: s.Host != "" && (facts.Processes.Paused || facts.Network.Late),
	}
	r.lossy = facts.Network.Lost || facts.Network.Cut || facts.Network.Doubled
	header := s.Header(facts)
	h := log.History(header)
	h.Naming = s.Names.Full
	for id, how := range s.Faulty {
		r.Faulty[s.Names.Full(id)] = how.Name
	}
	for id, v := range s.Values {
		r.Values[s.Names.Full(id)] = parley.Printable(v)
	}
	for _, e := range log.Events {
		switch e.Op {
		case trace.Refuse:
			if !s.Liars().Has(e.At) {
				r.Refused[string(e.Msg.Body)]++
			}
		case trace.Send, trace.Keep:
			r.measure(p, e, h.Correct(e.At))
		}
	}
	for _, rounds := range []*[]parley.Traffic{&r.Cost.Theorem, &r.Cost.Measured, &r.Cost.Correct} {
		*rounds = append([]parley.Traffic{}, *rounds...) // never null in JSON
	}
	r.count(p, h)
	r.happened(p, h)
	for id, v := range problem.Decisions(h) {
		r.Decisions[s.Names.Full(id)] = parley.Printable(v)
	}
	r.history, r.events = h, log.Events
	r.judge(p, h, header.Facts.RunConditions(p, h))
	return r
}

// count fills in the theorem's count, for values as large as the largest that was proposed, or as the largest that a
// correct process sent in round 0 if that is smaller, because votes are proposed as words and sent as bits. The
// theorem's own count is for values of one bit, of which each message of a round has one.
func (r *Report) count(p parley.Protocol, h *parley.History) {
	if p.Cost == nil {
		return
	}
	cost := p.Cost(p.N, p.M)
	is := &r.Cost
	is.Rounds, is.AtMost, is.Theorem, is.Bits = cost.Rounds, cost.AtMost, cost.PerRound, 1
	if p.Timing != parley.Synchronous {
		return
	}
	for _, q := range h.Requests {
		if q.Msg.Kind == parley.Propose {
			r.Cost.Bits = max(r.Cost.Bits, parley.ValueBits(q.Msg.Body))
		}
	}
	if len(cost.PerRound) > 0 && cost.PerRound[0].Messages > 0 && r.largest > 0 {
		beside := cost.PerRound[0].Bits/cost.PerRound[0].Messages - 1
		r.Cost.Bits = min(r.Cost.Bits, max(r.largest, beside+1)-beside)
	}
	r.Cost.Theorem = slices.Clone(cost.PerRound)
	for i := range r.Cost.Theorem {
		t := &r.Cost.Theorem[i]
		*t = t.Plus(parley.Traffic{Bits: r.Cost.Bits - 1}.Times(t.Messages))
	}
}

// happened lists deliveries and indications in words.
func (r *Report) happened(p parley.Protocol, h *parley.History) {
	words := reading.Words{Style: reading.Style{Width: 1 << 12, Name: h.Name}, Protocol: p}
	add := func(to *map[string][]string, at parley.ID, text string) {
		if *to == nil {
			*to = make(map[string][]string)
		}
		(*to)[h.Name(at)] = append((*to)[h.Name(at)], text)
	}
	for _, d := range h.Deliveries {
		if d.Msg.Kind != parley.Decide {
			add(&r.Deliveries, d.At, words.Payload(d.Path, d.Msg))
		}
	}
	for _, i := range h.Indications {
		add(&r.Indications, i.At, words.Indicated(i.Path, i.Msg))
	}
}

// measure adds what one event sends.
func (r *Report) measure(p parley.Protocol, e trace.Event, correct bool) {
	if p.Size == nil {
		return
	}
	round, receivers := roundOf(p, e), uint64(1)
	if round < 0 {
		return // no round of this protocol: a trace may come from an untrusted source
	}
	if e.Op == trace.Send && e.Peer == parley.All {
		receivers = uint64(p.N - 1)
	}
	size := p.Size(parley.Env{From: e.At, To: e.Peer, Path: e.Path}, e.Msg).Times(receivers)
	for len(r.Cost.Measured) <= round {
		r.Cost.Measured = append(r.Cost.Measured, parley.Traffic{})
		r.Cost.Correct = append(r.Cost.Correct, parley.Traffic{})
	}
	r.Cost.Measured[round] = r.Cost.Measured[round].Plus(size)
	if correct && round == 0 && size.Messages > 0 {
		r.largest = max(r.largest, size.Bits/size.Messages)
	}
	if correct {
		r.Cost.Correct[round] = r.Cost.Correct[round].Plus(size)
	}
}

// roundOf returns the round of a message: frames and own copies carry it in Seq. It is negative if no run of the
// protocol has that round.
func roundOf(p parley.Protocol, e trace.Event) int {
	switch {
	case p.Timing != parley.Synchronous || p.Cost == nil:
		return 0
	case e.Msg.Seq >= uint64(p.Cost(p.N, p.M).Rounds):
		return -1
	}
	return int(e.Msg.Seq)
}

// judge adds the verdict on every property. If the computer delayed a process, perhaps until the end, the process may
// have had no time for a property of mode Eventually.
func (r *Report) judge(p parley.Protocol, h *parley.History, a parley.RunConditions) {
	r.Judged = parley.Judge(p, a, h)
	for i, v := range r.Judged {
		if r.HeldUp && v.Violated() && v.Property.Mode == parley.Eventually {
			v.Promise = parley.Promise{Property: v.Property.Name,
				Because: "this computer delayed the processes, so the run may have been too short: slow it down with --tick"}
			r.Judged[i] = v
		}
		r.violated = r.violated || v.Outcome() == parley.Violated
		r.Verdicts = append(r.Verdicts, r.witnessed(NewVerdict(v), v))
	}
}

// Rule replaces the verdicts by those of an auditor, which knows what the events do not show: which processes recorded
// them, and until when.
func (r *Report) Rule(verdicts []parley.Verdict) {
	r.Judged, r.Verdicts, r.violated = verdicts, []Verdict{}, false
	for _, v := range verdicts {
		r.violated = r.violated || v.Outcome() == parley.Violated
		one := NewVerdict(v)
		if v.Broken != nil {
			if breach := v.Property.Breach(r.history); breach != nil && breach.Err.Error() == one.Broken {
				one = r.witnessed(one, v)
			}
		}
		r.Verdicts = append(r.Verdicts, one)
	}
}

// witnessed adds the events that show how the property is broken.
func (r *Report) witnessed(out Verdict, v parley.Verdict) Verdict {
	if v.Broken == nil || v.Property.Mode == parley.Sometimes {
		return out
	}
	breach := v.Property.Breach(r.history)
	if breach == nil {
		return out // a check that answers differently the second time
	}
	out.FirstEvent = breach.First
	words := reading.Words{Style: reading.Style{Width: 1 << 12, Name: r.history.Name}, Protocol: r.run.Protocol}
	for _, order := range breach.Events {
		e := r.events[order-1]
		out.Witnesses = append(out.Witnesses, Witness{order, r.history.Name(e.At) + " " + words.Does(e)})
	}
	return out
}

// mostShown is how many events Shown names besides the first that breaks a property.
const mostShown = 3

// Shown says which events show how the property is broken, or "" if it is not broken.
func (v Verdict) Shown() string {
	var others []string
	first := ""
	for _, w := range v.Witnesses {
		text := fmt.Sprintf("event %d, %s", w.Event, w.Says)
		if w.Event == v.FirstEvent {
			first = text
		} else {
			others = append(others, text)
		}
	}
	if n := len(others) - mostShown; n > 0 {
		others = append(others[:mostShown], prose.Count(uint64(n), "more event", "more events"))
	}
	switch rest := strings.Join(others, "; "); {
	case first != "" && rest != "":
		return "first broken at " + first + ", together with " + rest
	case first != "":
		return "first broken at " + first
	case v.Broken != "" && rest != "":
		return "the end of the run shows it, together with " + rest
	case v.Broken != "" && v.FirstEvent == 0:
		return "the end of the run shows it"
	}
	return ""
}

// NewVerdict puts the verdict on one property into words.
func NewVerdict(v parley.Verdict) Verdict {
	out := Verdict{
		Property: v.Property.Name, Says: v.Property.Says, Outcome: v.Outcome(), Because: v.Promise.Because,
		Measured: v.Measured,
	}
	if out.Outcome == parley.NotApplicable {
		out.Because = v.Vacuous
	}
	if out.Outcome == parley.Held {
		out.Proof = v.Promise.Proof
	}
	if v.Broken != nil {
		out.Broken = v.Broken.Error()
	}
	return out
}

// shown returns which events show how a property is broken.
func (r *Report) shown(property string) string {
	i := slices.IndexFunc(r.Verdicts, func(v Verdict) bool { return v.Property == property })
	return r.Verdicts[i].Shown()
}

// Violated reports whether a promise was broken.
func (r *Report) Violated() bool { return r.violated }
