package reading

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/trace"
)

// Pairs is an argument with runs that look the same to a process. It is drawn side by side, as the lecture draws the
// cases of its proof that three processes cannot agree.
type Pairs struct {
	Style
	Title, Subtitle string
	Pairs           []Pair
	// End is the conclusion from all of them.
	End string
}

// Pair is two runs that look the same to one process.
type Pair struct {
	Same  parley.ID
	Cases [2]Case
	// Must says for each run what the process must decide there, and why.
	Must [2]string
}

// Case is one run.
type Case struct {
	Title  string // for example, Case one
	Faulty parley.Set
	Events []trace.Event
	Lies   []Lie
}

// Lie is what a liar sends to one correct process in a round instead of the honest messages.
type Lie struct {
	Round    int
	From, To parley.ID
	Instead  []parley.Outgoing // the honest messages
}

// Saying is what one process sends to others in a round.
type Saying struct {
	Round   int
	title   string
	From    parley.ID
	To      []parley.ID
	Rows    []string
	Values  Shares
	Lie     bool
	instead []string
}

// says returns the printed form.
func (t *Saying) says() string { return strings.Join(t.Rows, " ") }

// Account is a case as read from its events.
type Account struct {
	Case
	Words
	Starts []Outcome
	Said   []Saying // each to one process
	heard  []Saying // received by the process that the pair is about
	same   parley.ID
}

// Read reads a case of a pair.
func (d Pairs) Read(p parley.Protocol, pair *Pair, which int) *Account {
	c := &Account{Case: pair.Cases[which], Words: Words{d.Style, p}, same: pair.Same}
	c.Style.Faulty = c.Case.Faulty
	h := &parley.History{N: p.N, Faulty: c.Case.Faulty}
	for _, e := range c.Events {
		switch {
		case e.Op == trace.Request:
			h.Requests = append(h.Requests, parley.ExternalEvent{At: e.At, Msg: e.Msg})
		case e.Op == trace.Receive && e.At == pair.Same:
			c.heard = c.message(c.heard, e, e.Peer, e.At)
		case e.Op == trace.Send && e.Peer != parley.All:
			c.Said = c.message(c.Said, e, e.At, e.Peer)
		case e.Op == trace.Send:
			for to := range parley.Everyone(p.N).All() {
				c.Said = c.message(c.Said, e, e.At, to)
			}
		}
	}
	c.Starts = Outcomes(h, p.Proposers, nil)
	for id := range c.Case.Faulty.All() {
		c.Starts[id].Starts = nil // it sends anything
	}
	for _, lie := range c.Lies {
		c.mark(&lie)
	}
	inOrder := func(a, b Saying) int {
		return cmp.Or(a.Round-b.Round, cmp.Compare(a.From, b.From), cmp.Compare(a.To[0], b.To[0]))
	}
	slices.SortStableFunc(c.Said, inOrder)
	slices.SortStableFunc(c.heard, inOrder)
	return c
}

// message adds what a message sends to one process, unless that is nothing.
func (c *Account) message(list []Saying, e trace.Event, from, to parley.ID) []Saying {
	if from == to {
		return list
	}
	r := reader{p: c.Protocol, g: Gathering{Style: c.Style}}
	t := Saying{From: from, To: []parley.ID{to}}
	t.Round, t.title = r.roundOf(e)
	e.At, e.Peer = from, to
	said := r.explain(from, content{events: []trace.Event{e}, to: []parley.ID{to}}, counted)
	if said.Total == 0 {
		return list
	}
	t.Rows, t.Values = said.Rows, said.Values
	return append(list, t)
}

// mark marks a lie. The first messages of the only proposer are not marked: no other process knows its value, so they
// cannot be distinguished from the truth.
func (c *Account) mark(lie *Lie) {
	i := slices.IndexFunc(c.Said, func(t Saying) bool {
		return t.Round == lie.Round && t.From == lie.From && t.To[0] == lie.To
	})
	if i < 0 {
		i = len(c.Said)
		c.Said = append(c.Said, Saying{Round: lie.Round, From: lie.From, To: []parley.ID{lie.To}})
	}
	if lie.Round == 0 && c.Source() == lie.From {
		return
	}
	c.Said[i].Lie = true
	for _, sent := range lie.Instead {
		honest := trace.Event{Op: trace.Send, Path: sent.Path, Epoch: sent.Epoch, Msg: sent.Msg}
		for _, t := range c.message(nil, honest, lie.From, lie.To) {
			c.Said[i].instead = append(c.Said[i].instead, t.Rows...)
		}
	}
}

// Source returns the only proposer, or All if there are several.
func (c *Account) Source() parley.ID {
	if c.Protocol.Proposers.Len() == 1 {
		for id := range c.Protocol.Proposers.All() {
			return id
		}
	}
	return parley.All
}

// About describes the faulty processes and their actions.
func (c *Account) About() string {
	var out []string
	source := c.Source()
	switch {
	case source == parley.All:
		var starts []string
		for _, o := range c.Starts {
			if o.Starts != nil {
				starts = append(starts, c.Called(o.Process)+" starts with "+c.Value(o.Starts))
			}
		}
		out = append(out, strings.Join(starts, ", "))
	case c.Case.Faulty.Has(source):
		out = append(out, c.Called(source)+", the source, is faulty: it sends "+c.orders(source))
	default:
		out = append(out, c.Called(source)+", the source, is correct and sends "+c.Value(c.Starts[source].Starts))
	}
	for id := range c.Case.Faulty.All() {
		lies := c.liesOf(id)
		switch {
		case len(lies) > 0:
			out = append(out, c.Called(id)+" is faulty: it sends "+strings.Join(lies, ", and "))
		case id != source:
			out = append(out, c.Called(id)+" is faulty, but sends no lie in this run")
		}
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), ". ") + "."
}

// orders describes the first messages of a faulty source.
func (c *Account) orders(source parley.ID) string {
	type order struct {
		what string
		to   []parley.ID
	}
	var all []order
	for _, t := range c.Said {
		if t.From != source || t.Round != 0 {
			continue
		}
		what := t.Values.One()
		switch {
		case len(t.Rows) == 0:
			what = "nothing"
		case what == "":
			what = t.says()
		}
		i := slices.IndexFunc(all, func(o order) bool { return o.what == what })
		if i < 0 {
			i = len(all)
			all = append(all, order{what: what})
		}
		all[i].to = append(all[i].to, t.To[0])
	}
	var parts []string
	for _, o := range all {
		parts = append(parts, o.what+" to "+c.List(o.to))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return prose.And(parts)
}

// liesOf describes the lies of one process, grouped by content.
func (c *Account) liesOf(id parley.ID) (out []string) {
	for _, t := range c.Shared() {
		if t.From == id && t.Lie {
			out = append(out, cmp.Or(t.says(), "nothing")+" instead of "+
				cmp.Or(strings.Join(t.instead, " "), "nothing")+" to "+c.List(t.To))
		}
	}
	return out
}

// Shared returns the messages, with equal messages of one process in a round combined.
func (c *Account) Shared() (out []Saying) {
	for _, t := range c.Said {
		i := slices.IndexFunc(out, func(a Saying) bool {
			return a.Round == t.Round && a.From == t.From && a.Lie == t.Lie &&
				slices.Equal(a.Rows, t.Rows) && slices.Equal(a.instead, t.instead)
		})
		if i < 0 {
			out = append(out, t)
			continue
		}
		out[i].To = slices.Concat(out[i].To, t.To)
	}
	return out
}

// Head returns the title of the round.
func (t *Saying) Head() string {
	return cmp.Or(t.title, "Round "+prose.Number(uint64(max(t.Round, 0))))
}

// Sees describes what the process that the pair is about sees in a run, one line for each item.
func (c *Account) Sees() (out []string) {
	if o := c.Starts[c.same]; o.Starts != nil {
		out = append(out, "it starts with "+c.Value(o.Starts))
	}
	for i := range c.heard {
		t := &c.heard[i]
		out = append(out, t.Head()+", from "+c.Called(t.From)+": "+t.says())
	}
	if len(out) == 0 {
		out = append(out, "nothing")
	}
	return out
}

// CaseWords is the text next to the picture of a case.
type CaseWords struct {
	About    string   // the faulty processes and their actions
	Messages []string // the messages of each process, one line each
	Sees     []string // what the process that the pair is about sees
}

// Words returns the texts next to the pictures of one pair.
func (d Pairs) Words(p parley.Protocol, which int) (out [2]CaseWords) {
	for i := range out {
		c := d.Read(p, &d.Pairs[which], i)
		out[i] = CaseWords{About: c.About(), Sees: c.Sees()}
		for _, t := range c.Shared() {
			out[i].Messages = append(out[i].Messages, t.Head()+", "+c.Line(&t))
		}
	}
	return out
}

// Line describes what one process sends to others in a round.
func (c *Account) Line(t *Saying) string {
	text := c.Called(t.From) + " to " + c.List(t.To) + ": " + cmp.Or(t.says(), Silence)
	if t.Lie && len(t.Rows) > 0 {
		text += ", a lie"
	}
	return text
}

// Mapped returns the messages by sender and receiver. ok is true if each process sends at most one thing to each
// other one, so that one arrow for each pair of processes suffices.
func (c *Account) Mapped() (arrows map[[2]parley.ID]*Saying, ok bool) {
	arrows = make(map[[2]parley.ID]*Saying)
	for i := range c.Said {
		t := &c.Said[i]
		at := [2]parley.ID{t.From, t.To[0]}
		if arrows[at] != nil || len(t.Rows) > 1 {
			return nil, false
		}
		arrows[at] = t
	}
	return arrows, true
}

// Label returns the text of an arrow: the value, if there is one.
func (t *Saying) Label() string { return cmp.Or(t.Values.One(), t.says(), "–") }

// Order returns the order of processes in a picture: the source first.
func (c *Account) Order() (ids []parley.ID) {
	source := c.Source()
	if source != parley.All {
		ids = append(ids, source)
	}
	for id := range parley.ID(c.Protocol.N) {
		if id != source {
			ids = append(ids, id)
		}
	}
	return ids
}

// Values returns all values in a case.
func (c *Account) Values() (out []string) {
	for i := range c.Said {
		for _, v := range c.Said[i].Values {
			out = append(out, v.Value)
		}
	}
	for _, o := range c.Starts {
		if o.Starts != nil {
			out = append(out, prose.Value(o.Starts))
		}
	}
	return out
}
